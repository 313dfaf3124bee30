//! Turning a container into a template.

use super::mount::{self, Source};
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Refusal, Reply, Route, no, post};
use crate::endpoints::guest::check_lock;
use crate::task::{LockKey, Step, work};
use crate::world::{GuestKind, World};

pub fn routes() -> Vec<Route> {
    let perm = on("/vms/{vmid}", &["VM.Allocate"]);
    vec![post("/nodes/{node}/lxc/{vmid}/template", perm, vec![usual::node(), usual::vmid()], template)]
}

/// Answers at once, and not with the task that does the work.
fn template(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    call.lock(LockKey::Lxc(vmid))?;
    let guest = call.world.guest(&node, vmid, GuestKind::Lxc)?;
    check_lock(guest)?;
    if !guest.snapshots.is_empty() {
        return Err(no("unable to create template, because CT contains snapshots"));
    }
    if guest.flag("template") {
        return Err(no("you can't convert a template to a template"));
    }
    if guest.power.running {
        return Err(no("you can't convert a CT to template if the CT is running"));
    }
    let at = node.clone();
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Lxc(vmid), move |_, _| {
            Ok(Step::wait(1.0, move |world, _| {
                convert(world, &at, vmid)?;
                Ok(Step::Done)
            }))
        }))
    });
    call.spawn(&node, "vztemplate", vmid.to_string(), work);
    Ok(().into())
}

/// Every volume becomes a base that nothing writes to any more.
fn convert(world: &mut World, node: &str, vmid: u32) -> Result<(), Refusal> {
    let guest = world.guest(node, vmid, GuestKind::Lxc)?;
    let mounts = mount::mounts(&guest.config);
    if let Some(m) = mounts.iter().find(|m| m.source() != Source::Volume) {
        return Err(no(format!("Template feature is not available for '{}'", m.volume())));
    }
    let mut renamed = Vec::new();
    for mut m in mounts {
        let place = world.place(m.volume(), node);
        let place = place.ok_or_else(|| no(format!("volume '{}' does not exist", m.volume())))?;
        let Some(volume) = world.volumes.remove(&place) else {
            return Err(no(format!("volume '{}' does not exist", m.volume())));
        };
        let (folder, file) = place.2.rsplit_once('/').map_or(("", place.2.as_str()), |(d, f)| (d, f));
        let base = match file.strip_prefix("subvol-") {
            Some(rest) => format!("basevol-{rest}"),
            None => format!("base-{}", file.strip_prefix("vm-").unwrap_or(file)),
        };
        let name = if folder.is_empty() { base } else { format!("{folder}/{base}") };
        let size = volume.size;
        world.volumes.insert((place.0.clone(), place.1.clone(), name.clone()), volume);
        let (storage, _) = parse_volume_id(m.volume()).unwrap_or_default();
        let volid = format!("{storage}:{name}");
        m.set_volume(&volid, size);
        renamed.push(m);
    }
    let guest = world.guest_mut(node, vmid, GuestKind::Lxc)?;
    guest.config.extend(renamed.iter().map(|m| (m.key.clone(), m.print())));
    guest.config.insert("template".into(), "1".into());
    Ok(())
}
