//! Growing a volume of a container.

use std::sync::LazyLock;

use super::mount::{self, Mount};
use super::schema;
use crate::api::format::{parse_size, parse_volume_id};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Refusal, Reply, Route, no, put, text};
use crate::endpoints::guest::{check_lock, parse_name};
use crate::task::{LockKey, Step, work};
use crate::world::{GuestKind, World};

/// `rootfs`, `mp0`, `mp1` and so on.
pub fn slots() -> &'static [&'static str] {
    static SLOTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let numbered = (0..schema::MOUNTS).map(|n| &*Box::leak(format!("mp{n}").into_boxed_str()));
        std::iter::once("rootfs").chain(numbered).collect()
    });
    &SLOTS
}

pub fn routes() -> Vec<Route> {
    let params = vec![
        usual::node(),
        usual::vmid(),
        text("disk").one_of(slots()),
        text("size").pattern(r"\+?\d+(\.\d+)?[KMGT]?"),
        text("digest").max_len(40).opt(),
    ];
    vec![put("/nodes/{node}/lxc/{vmid}/resize", on("/vms/{vmid}", &["VM.Config.Disk"]), params, resize)]
}

#[derive(Clone)]
struct ResizeRequest {
    node: String,
    vmid: u32,
    disk: String,
    size: String,
    digest: Option<String>,
}

/// What is said of a mount point that is not there: its text, which is nothing, lacks everything.
pub fn no_mount() -> Refusal {
    let missing = "property is missing and it is not optional";
    let errors = ["mp", "volume"].map(|key| (key.to_owned(), serde_json::json!(missing)));
    Refusal::Error {
        status: 500,
        message: "format error\n".to_owned(),
        errors: Some(errors.into_iter().collect()),
    }
}

/// The mount point, and its size after the change.
fn check(world: &World, order: &ResizeRequest) -> Result<(Mount, u64), Refusal> {
    let guest = world.guest(&order.node, order.vmid, GuestKind::Lxc)?;
    check_lock(guest)?;
    if order.digest.as_ref().is_some_and(|digest| *digest != guest.digest()) {
        return Err(no("detected modified configuration - file changed by other user? Try again."));
    }
    let value = guest.get(&order.disk).ok_or_else(no_mount)?;
    let m = Mount::parse(&order.disk, value);
    let (storage, name) = parse_volume_id(m.volume())
        .ok_or_else(|| no(format!("unable to parse volume ID '{}'", m.volume())))?;
    let owner = parse_name(world, storage, name)?.vmid;
    if owner != Some(order.vmid) {
        let owner = owner.map(|id| id.to_string()).unwrap_or_default();
        return Err(no(format!("can't resize mount point owned by another container ({owner})")));
    }
    let size = mount::existing(world, m.volume(), &order.node)?.size;
    let asked = parse_size(order.size.trim_start_matches('+')).ok_or_else(|| no("invalid size string"))?;
    let new = if order.size.starts_with('+') { size.saturating_add(asked) } else { asked };
    if new < size {
        return Err(no("unable to shrink disk size"));
    }
    if new == size {
        return Err(no("disk is already at specified size"));
    }
    Ok((m, new))
}

fn resize(call: &mut Call<'_>) -> Reply {
    let order = ResizeRequest {
        node: call.node(),
        vmid: call.vmid(),
        disk: call.args.must("disk").to_owned(),
        size: call.args.must("size").to_owned(),
        digest: call.args.owned("digest"),
    };
    let (m, _) = check(call.world, &order)?;
    let storage = m.volume().split(':').next().unwrap_or_default();
    call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    let (node, vmid) = (order.node.clone(), order.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Lxc(vmid), move |world, _| {
            check(world, &order)?;
            Ok(Step::wait(1.0, move |world, job| {
                grow(world, &order)?;
                job.log(world, "Image resized.");
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "resize", vmid.to_string(), work).into())
}

fn grow(world: &mut World, order: &ResizeRequest) -> Result<(), Refusal> {
    let (mut m, new) = check(world, order)?;
    let volid = m.volume().to_owned();
    let size = mount::existing(world, &volid, &order.node)?.size;
    let (id, _) = parse_volume_id(&volid).unwrap_or_default();
    if new - size > world.storage_free(world.storage(id)?, &order.node) {
        return Err(no("command '/usr/bin/qemu-img resize' failed: No space left on device"));
    }
    if let Some(place) = world.place(&volid, &order.node) {
        world.volumes.edit(&place, |volume| volume.size = new);
    }
    m.set_volume(&volid, new);
    let guest = world.guest_mut(&order.node, order.vmid, GuestKind::Lxc)?;
    guest.config.insert(order.disk.clone(), m.print());
    Ok(())
}
