//! Moving a volume to another storage, or to another container.

use std::sync::LazyLock;

use serde_json::json;

use super::mount::{self, Mount, Source};
use super::{resize, schema};
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Refusal, Reply, Route, flag, no, number, post, text, wrong_many};
use crate::endpoints::guest::check_lock;
use crate::task::{Job, LockKey, Step, work};
use crate::world::{Guest, GuestKind, World};

fn slots() -> &'static [&'static str] {
    static SLOTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let unused = (0..schema::MOUNTS).map(|n| &*Box::leak(format!("unused{n}").into_boxed_str()));
        resize::slots().iter().copied().chain(unused).collect()
    });
    &SLOTS
}

pub fn routes() -> Vec<Route> {
    let params = vec![
        usual::node(),
        usual::vmid(),
        text("volume").one_of(slots()),
        usual::storage().opt(),
        usual::vmid_as("target-vmid").opt(),
        text("target-volume").one_of(slots()).opt(),
        flag("delete").opt(),
        text("digest").max_len(40).opt(),
        text("target-digest").max_len(40).opt(),
        number("bwlimit").min(0.0).opt(),
    ];
    let perm = on("/vms/{vmid}", &["VM.Config.Disk"]);
    vec![post("/nodes/{node}/lxc/{vmid}/move_volume", perm, params, move_volume)]
}

fn move_volume(call: &mut Call<'_>) -> Reply {
    match (call.args.has("target-vmid"), call.args.owned("storage")) {
        (true, Some(_)) => Err(both("either set 'storage' or 'target-vmid', but not both")),
        (false, None) => Err(both("both 'storage' and 'target-vmid' missing, either needs to be set")),
        (false, Some(storage)) => to_storage(call, storage),
        (true, None) => to_container(call),
    }
}

fn both(text: &str) -> Refusal {
    let errors = ["target-vmid", "storage"].map(|key| (key.to_owned(), json!(text)));
    wrong_many(errors.into_iter().collect())
}

fn to_storage(call: &mut Call<'_>, storage: String) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    let key = call.args.must("volume").to_owned();
    let drop_source = call.args.is_set("delete");
    call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    call.lock(LockKey::Lxc(vmid))?;
    let guest = call.world.guest(&node, vmid, GuestKind::Lxc)?;
    check_lock(guest)?;
    if guest.power.running {
        return Err(no("cannot move volumes of a running container"));
    }
    if schema::is_unused(&key) {
        return Err(no(format!(
            "cannot move volume '{key}', only configured volumes can be moved to another storage"
        )));
    }
    let m = Mount::parse(&key, guest.get(&key).ok_or_else(resize::no_mount)?);
    if drop_source && guest.snapshots.values().any(|config| mount::is_mounted(config, m.volume())) {
        return Err(no("you can't move a volume with snapshots and delete the source"));
    }
    call.check_digest(&guest.digest())?;
    let seconds = mount::copy_seconds(call.world, m.volume(), &node);
    call.world.guest_mut(&node, vmid, GuestKind::Lxc)?.config.insert("lock".into(), "disk".into());
    let (at, undo_at) = (node.clone(), node.clone());
    let work = work(move |_, _| {
        Ok(Step::wait(seconds, move |world, job| {
            let outcome = relocate(world, job, &at, vmid, &m, &storage, drop_source);
            unlock(world, &at, vmid);
            outcome?;
            Ok(Step::Done)
        })
        .or_undo(move |world| unlock(world, &undo_at, vmid)))
    });
    Ok(call.spawn(&node, "move_volume", vmid.to_string(), work).into())
}

fn unlock(world: &mut World, node: &str, vmid: u32) {
    if let Ok(guest) = world.guest_mut(node, vmid, GuestKind::Lxc) {
        guest.config.remove("lock");
    }
}

fn relocate(
    world: &mut World,
    job: &Job,
    node: &str,
    vmid: u32,
    m: &Mount,
    storage: &str,
    drop_source: bool,
) -> Result<(), Refusal> {
    if m.source() != Source::Volume {
        return Err(no(format!("cannot copy volumes of type {}", m.source().name())));
    }
    let mut log = Vec::new();
    let new = mount::copy(world, node, m, vmid, storage, &mut log);
    for line in log {
        job.log(world, line);
    }
    let new = new?;
    let guest = world.guest_mut(node, vmid, GuestKind::Lxc)?;
    guest.config.insert(m.key.clone(), new.print());
    if drop_source {
        world.free(m.volume(), node);
    } else {
        mount::keep_unused(guest, m.volume());
    }
    Ok(())
}

/// From one container to another, without copying.
#[derive(Clone)]
struct Handover {
    node: String,
    from: u32,
    key: String,
    to: u32,
    target_key: String,
    digest: Option<String>,
    target_digest: Option<String>,
}

impl Handover {
    fn container<'w>(&self, world: &'w World, vmid: u32) -> Result<&'w Guest, Refusal> {
        let guest = world.guests.get(&vmid).filter(|g| g.kind == GuestKind::Lxc);
        guest.ok_or_else(|| no(format!("could not find CT {vmid}")))
    }

    fn check(&self, world: &World) -> Result<Mount, Refusal> {
        let (from, to, key) = (self.from, self.to, &self.key);
        if key == "rootfs" || self.target_key == "rootfs" {
            return Err(no("Cannot move to/from 'rootfs'"));
        }
        if schema::is_unused(key) && !schema::is_unused(&self.target_key) {
            return Err(no("Moving an unused volume to a used one is not possible"));
        }
        let (source, target) = (self.container(world, from)?, self.container(world, to)?);
        if source.node != target.node {
            return Err(no(format!(
                "Both containers need to be on the same node ({} != {})",
                source.node, target.node
            )));
        }
        check_lock(source)?;
        check_lock(target)?;
        if source.flag("template") || target.flag("template") {
            return Err(no("Can't move volumes from or to template CT"));
        }
        for (vmid, guest, digest) in [(from, source, &self.digest), (to, target, &self.target_digest)] {
            if digest.as_ref().is_some_and(|digest| *digest != guest.digest()) {
                return Err(no(format!(
                    "Container {vmid}: detected modified configuration - file changed by other user? Try again."
                )));
            }
        }
        let Some(value) = source.get(key) else {
            return Err(no(format!("volume '{key}' for container '{from}' does not exist")));
        };
        if target.config.contains_key(&self.target_key) {
            return Err(no(format!(
                "Target volume key '{}' is already in use for container '{to}'",
                self.target_key
            )));
        }
        let m = Mount::parse(key, value);
        if source.snapshots.values().any(|config| mount::is_mounted(config, m.volume())) {
            return Err(no("Cannot move volume used by a snapshot to another container"));
        }
        if m.source() != Source::Volume {
            return Err(no("Cannot move a bindmount or device mount to another container"));
        }
        if source.power.running && !schema::is_unused(key) {
            return Err(no(
                "Cannot move in-use volume while the source CT is running - detach or shutdown first",
            ));
        }
        Ok(m)
    }

    fn carry_out(&self, world: &mut World, job: &Job) -> Result<(), Refusal> {
        let mut m = self.check(world)?;
        let (from, to, key, target_key) = (self.from, self.to, &self.key, &self.target_key);
        job.log(world, format!("moving volume '{key}' from container '{from}' to '{to}'"));
        let place = world.place(m.volume(), &self.node);
        let place = place.ok_or_else(|| no(format!("volume '{}' does not exist", m.volume())))?;
        let Some(mut volume) = world.volumes.remove(&place) else {
            return Err(no(format!("volume '{}' does not exist", m.volume())));
        };
        volume.vmid = Some(to);
        let size = volume.size;
        let (id, _) = parse_volume_id(m.volume()).unwrap_or_default();
        let storage = world.storage(id)?.clone();
        let prefix = if volume.format == "subvol" { "subvol" } else { "vm" };
        let file = mount::free_name(world, &storage, &self.node, to, prefix);
        let volid = world.allocate(&storage.id, &self.node, volume, &file)?;
        m.set_volume(&volid, size);
        m.key.clone_from(target_key);
        job.log(world, format!("removing volume '{key}' from container '{from}' config"));
        if let Some(source) = world.guests.get_mut(&from) {
            source.config.remove(key);
        }
        let value = if schema::is_unused(target_key) { volid } else { m.print() };
        if let Some(target) = world.guests.get_mut(&to) {
            target.config.insert(target_key.clone(), value);
        }
        job.log(world, format!("target container '{to}' updated with '{target_key}'"));
        Ok(())
    }
}

fn to_container(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let key = call.args.must("volume").to_owned();
    let order = Handover {
        node: node.clone(),
        from: call.vmid(),
        to: call.args.int("target-vmid").and_then(|id| u32::try_from(id).ok()).unwrap_or_default(),
        target_key: call.args.owned("target-volume").unwrap_or_else(|| key.clone()),
        key,
        digest: call.args.owned("digest"),
        target_digest: call.args.owned("target-digest"),
    };
    if !call.caller.is_root() {
        call.check_vm(order.to, None, &["VM.Config.Disk"])?;
    }
    let m = order.check(call.world)?;
    let storage = m.volume().split(':').next().unwrap_or_default();
    call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    let id = format!("{}-{}>{}-{}", order.from, order.key, order.to, order.target_key);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Lxc(order.from), move |world, job| {
            order.carry_out(world, job)?;
            Ok(Step::Done)
        }))
    });
    Ok(call.spawn(&node, "move_volume", id, work).into())
}
