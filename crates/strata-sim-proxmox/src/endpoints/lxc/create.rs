//! Making a container from a template, or from a backup.

use super::mount::{self, Mount, Source};
use super::update::{clamp_units, note, options};
use super::{apply, permit, power, restore, schema};
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::{Call, Param, Perm, Refusal, Reply, Route, flag, forbidden, no, number, post, text, wrong};
use crate::endpoints::guest::{check_unused, check_volume, parse_name};
use crate::endpoints::qemu::permit::check_ssh_keys;
use crate::task::{Job, LockKey, Step, work};
use crate::world::cluster::Section;
use crate::world::guest::Config;
use crate::world::{Guest, GuestKind, World};

pub fn routes() -> Vec<Route> {
    vec![post("/nodes/{node}/lxc", Perm::Anyone, params(), create)]
}

/// Parameters that are not options of the container.
const OWN: &[&str] = &[
    "node",
    "vmid",
    "ostemplate",
    "password",
    "storage",
    "force",
    "restore",
    "unique",
    "pool",
    "ignore-unpack-errors",
    "ssh-public-keys",
    "bwlimit",
    "start",
    "ha-managed",
    "unprivileged",
];

fn params() -> Vec<Param> {
    let mut params = vec![
        usual::node(),
        usual::vmid(),
        text("ostemplate").max_len(255),
        text("password").min_len(5).opt(),
        usual::storage().opt(),
        flag("force").opt(),
        flag("restore").opt(),
        flag("unique").needs("restore").opt(),
        usual::pool().opt(),
        flag("ignore-unpack-errors").opt(),
        text("ssh-public-keys").opt(),
        number("bwlimit").min(0.0).opt(),
        flag("start").opt(),
        flag("ha-managed").opt(),
    ];
    params.extend(schema::params());
    params
}

/// What was asked for, after every check that is made before the task.
pub struct CreateRequest {
    pub node: String,
    pub vmid: u32,
    pub user: String,
    pub is_root: bool,
    pub archive: String,
    /// Where volumes go for which no storage is named.
    pub storage: String,
    /// Empty: a root of the usual size, or what the backup had.
    pub mounts: Vec<Mount>,
    /// The options that were given, as the file keeps them.
    pub config: Config,
    pub unprivileged: Option<bool>,
    pub restore: bool,
    pub unique: bool,
    start: bool,
    ha_managed: bool,
    pool: Option<String>,
    /// The container that a restore replaces.
    replaced: Option<Guest>,
}

impl CreateRequest {
    pub fn what(&self) -> String {
        let verb = if self.restore { "restore" } else { "create" };
        format!("unable to {verb} CT {}", self.vmid)
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    let order = checked(call)?;
    let (node, vmid) = (order.node.clone(), order.vmid);
    let kind = if order.restore { "vzrestore" } else { "vzcreate" };
    // From here on the number is taken, by something that shows nothing but its lock.
    let mut guest = Guest::new(vmid, &node, GuestKind::Lxc, &order.user, call.world.now_ms());
    if let Some(old) = &order.replaced {
        guest = old.clone();
    }
    guest.config.insert("lock".into(), "create".into());
    call.world.guests.insert(vmid, guest);
    let work =
        work(move |_, _| Ok(Step::lock(LockKey::Lxc(vmid), move |world, job| begin(world, job, order))));
    Ok(call.spawn(&node, kind, vmid.to_string(), work).into())
}

fn checked(call: &mut Call<'_>) -> Result<CreateRequest, Refusal> {
    let (node, vmid) = (call.node(), call.vmid());
    let (restore, force) = (call.args.is_set("restore"), call.args.is_set("force"));
    let unprivileged = call.args.flag("unprivileged").or(if restore { None } else { Some(true) });
    if !restore && unprivileged == Some(false) {
        call.check("/", &["Sys.Modify"])?;
    }
    let ha_managed = call.args.is_set("ha-managed");
    if ha_managed {
        call.check("/", &["Sys.Console"])?;
    }
    let existing = call.world.guest(&node, vmid, GuestKind::Lxc).ok().cloned();
    let replaced = existing.filter(|_| restore && force);
    match &replaced {
        None => check_unused(call.world, vmid)?,
        Some(old) => {
            if old.power.running {
                return Err(no("can't overwrite running container"));
            }
            let what = format!("unable to restore CT {vmid}");
            crate::endpoints::guest::check_protection(old, &what)?;
        }
    }
    if let Some(keys) = call.args.text("ssh-public-keys") {
        check_ssh_keys(keys)?;
    }
    let pool = call.args.owned("pool");
    if let Some(pool) = &pool {
        call.check_pool(pool)?;
    }
    check_may_create(call, vmid, pool.as_deref(), replaced.is_some())?;
    let storage = call.args.owned("storage").unwrap_or_else(|| "local".to_owned());
    let mut set = options(call, OWN);
    if let Some(units) = set.get_mut("cpuunits") {
        *units = clamp_units(units);
    }
    let subject = permit::Subject {
        vmid,
        pool: pool.as_deref(),
        old: None,
        unprivileged: unprivileged.unwrap_or_default(),
    };
    permit::check(call, &subject, &set, &[])?;
    let archive = call.args.must("ostemplate").to_owned();
    check_archive(call, vmid, &archive, if restore { "backup" } else { "vztmpl" })?;
    let mounts = take_mounts(&mut set, &storage)?;
    check_mounts(call, &node, &mounts, &storage)?;
    let config = given(call, &node, vmid, set)?;
    Ok(CreateRequest {
        user: call.user().to_owned(),
        is_root: call.caller.is_root(),
        node,
        vmid,
        archive,
        storage,
        mounts,
        config,
        unprivileged,
        restore,
        unique: call.args.is_set("unique"),
        start: call.args.is_set("start"),
        ha_managed,
        pool,
        replaced,
    })
}

fn check_may_create(call: &Call<'_>, vmid: u32, pool: Option<&str>, replaces: bool) -> Result<(), Refusal> {
    let may = |path: &str, privilege: &str| call.may(path, privilege);
    let by_pool = pool.is_some_and(|pool| may(&format!("/pool/{pool}"), "VM.Allocate"));
    let path = format!("/vms/{vmid}");
    if may(&path, "VM.Allocate") || by_pool || (replaces && may(&path, "VM.Backup")) {
        return Ok(());
    }
    Err(forbidden(""))
}

/// The archive must be of the right kind, and the caller must be allowed to read it.
fn check_archive(call: &Call<'_>, vmid: u32, archive: &str, content: &str) -> Result<(), Refusal> {
    if archive == "-" {
        return Err(no("pipe requires cli environment"));
    }
    if let Some((storage, name)) = parse_volume_id(archive) {
        let named = parse_name(call.world, storage, name)?;
        if named.content != content {
            return Err(no(format!("unable to use volume {archive} - content type needs to be '{content}'")));
        }
    }
    check_volume(call, Some(vmid), archive)
}

/// Takes the mount points out of the options. A bare number is a size on the default storage.
fn take_mounts(set: &mut Config, storage: &str) -> Result<Vec<Mount>, Refusal> {
    let is_size = |v: &str| !v.is_empty() && v.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let mut config = Config::new();
    set.retain(|key, value| {
        if schema::is_mount(key) {
            let value = if is_size(value) { format!("{storage}:{value}") } else { value.clone() };
            config.insert(key.clone(), value);
        }
        // Volumes without a mount point cannot be given to a new container.
        !schema::is_mount(key) && !schema::is_unused(key)
    });
    if !config.is_empty() && !config.contains_key("rootfs") {
        return Err(no("mount points configured, but 'rootfs' not set - aborting"));
    }
    Ok(mount::mounts(&config))
}

fn check_mounts(call: &Call<'_>, node: &str, mounts: &[Mount], default: &str) -> Result<(), Refusal> {
    let check = |id: &str| {
        let storage = call.world.storage_on(id, node)?;
        if !storage.holds("rootdir") {
            let text = format!("storage '{id}' does not support container directories");
            return Err(wrong("storage", text));
        }
        call.check(&format!("/storage/{id}"), &["Datastore.AllocateSpace"])
    };
    for m in mounts {
        if m.source() != Source::Volume {
            if !call.caller.is_root() {
                return Err(no("Only root can pass arbitrary filesystem paths."));
            }
            continue;
        }
        let (storage, _) = parse_volume_id(m.volume())
            .ok_or_else(|| no(format!("unable to parse volume ID '{}'", m.volume())))?;
        check(storage)?;
    }
    if mounts.is_empty() { check(default) } else { Ok(()) }
}

/// The options as a stopped container takes them.
fn given(call: &mut Call<'_>, node: &str, vmid: u32, set: Config) -> Result<Config, Refusal> {
    let mut draft = Guest::new(vmid, node, GuestKind::Lxc, call.user(), 0);
    note(call.world, &mut draft, set, &[], &[])?;
    apply::stopped(call.world, &mut draft, None);
    Ok(draft.config)
}

/// Makes the volumes. Up to here a restore has not touched the container that it replaces.
fn begin(world: &mut World, job: &Job, mut order: CreateRequest) -> Result<Step, String> {
    let mut log = Vec::new();
    let prepared = if order.restore { restore::prepare(world, &mut order, &mut log) } else { Ok(()) };
    let made = prepared.and_then(|()| make_volumes(world, &mut order, &mut log));
    for line in log {
        job.log(world, line);
    }
    let volumes = match made {
        Ok(volumes) => volumes,
        Err(refusal) => return Err(give_up(world, &order, &[], &refusal.text())),
    };
    if let Some(old) = &order.replaced {
        for volid in mount::volumes(&old.config) {
            world.free(&volid, &order.node);
        }
    }
    let (vmid, node, doomed) = (order.vmid, order.node.clone(), volumes.clone());
    let seconds = 2.0;
    Ok(Step::wait(seconds, move |world, job| {
        finish(world, job, &order).map_err(|text| {
            job.log(world, text.clone());
            give_up(world, &order, &volumes, &text)
        })
    })
    .or_undo(move |world| {
        for volid in doomed {
            world.free(&volid, &node);
        }
        world.forget_guest(vmid);
    }))
}

/// Leaves nothing behind, except a container that was to be replaced and is still whole.
fn give_up(world: &mut World, order: &CreateRequest, volumes: &[String], why: &str) -> String {
    for volid in volumes {
        world.free(volid, &order.node);
    }
    match &order.replaced {
        Some(old) if volumes.is_empty() => {
            world.guests.insert(order.vmid, old.clone());
        }
        _ => world.forget_guest(order.vmid),
    }
    format!("{} - {why}", order.what())
}

/// Gives every mount point its volume.
fn make_volumes(
    world: &mut World,
    order: &mut CreateRequest,
    log: &mut Vec<String>,
) -> Result<Vec<String>, Refusal> {
    if order.mounts.is_empty() {
        order.mounts = vec![Mount::parse("rootfs", &format!("{}:4", order.storage))];
    }
    let mut made = Vec::new();
    for m in &mut order.mounts {
        let Some((storage, size)) = m.new_volume().map(|(s, n)| (s.to_owned(), n)) else { continue };
        match mount::allocate(world, &order.node, order.vmid, &storage, size, log) {
            Ok(volid) => {
                m.set_volume(&volid, size);
                made.push(volid);
            }
            Err(refusal) => {
                for volid in made {
                    world.free(&volid, &order.node);
                }
                return Err(refusal);
            }
        }
    }
    Ok(made)
}

fn finish(world: &mut World, job: &Job, order: &CreateRequest) -> Result<Step, String> {
    let volume = world.volume(&order.archive, &order.node).cloned();
    let Some(volume) = volume else { return Err(format!("volume '{}' does not exist", order.archive)) };
    let (storage, name) = parse_volume_id(&order.archive).unwrap_or_default();
    let path = world.storage(storage)?.path(name);
    if order.restore {
        job.log(world, format!("restoring '{}' now..", order.archive));
    }
    job.log(world, format!("extracting archive '{path}'"));
    let mut config = order.config.clone();
    config.extend(order.mounts.iter().map(|m| (m.key.clone(), m.print())));
    if order.restore {
        job.log(world, "merging backed-up and given configuration..");
        restore::merge(world, order, &volume, &mut config);
    } else {
        job.log(world, "Detected container architecture: amd64");
        config.entry("arch".into()).or_insert_with(|| "amd64".into());
        let ostype = os_type(name, config.get("ostype").map(String::as_str))?;
        config.insert("ostype".into(), ostype);
        for kind in ["rsa", "ecdsa", "ed25519"] {
            let line = format!("Creating SSH host key 'ssh_host_{kind}_key' - this may take some time ...");
            job.log(world, line);
        }
    }
    if order.unprivileged == Some(true) {
        config.insert("unprivileged".into(), "1".into());
    }
    config.entry("hostname".into()).or_insert_with(|| format!("CT{}", order.vmid));
    config.entry("memory".into()).or_insert_with(|| "512".into());
    config.entry("swap".into()).or_insert_with(|| "512".into());
    let mut guest = Guest::new(order.vmid, &order.node, GuestKind::Lxc, &order.user, world.now_ms());
    guest.config = config;
    world.guests.insert(order.vmid, guest);
    if let Some(pool) = &order.pool {
        world.join_pool(order.vmid, pool);
    }
    if order.ha_managed {
        job.log(world, "Add as HA resource");
        let state = if order.start { "started" } else { "stopped" };
        let section = Section {
            kind: "ct".into(),
            props: [("state".to_owned(), state.to_owned())].into_iter().collect(),
        };
        world.cluster.file_mut("ha/resources").insert(format!("ct:{}", order.vmid), section);
    }
    if !order.start {
        return Ok(Step::Done);
    }
    // Another task starts it, and this one sees it up before it ends.
    world.tasks.unlock(&LockKey::Lxc(order.vmid), job.id);
    power::spawn_start(world, &order.node, order.vmid, &order.user);
    Ok(Step::wait(START_SECONDS, |_, _| Ok(Step::Done)))
}

/// A little longer than a start takes.
const START_SECONDS: f64 = 2.0;

/// The operating system inside a template, which its name tells.
fn os_type(name: &str, given: Option<&str>) -> Result<String, String> {
    const NAMES: &[(&str, &str)] = &[
        ("alpine", "alpine"),
        ("archlinux", "archlinux"),
        ("arch", "archlinux"),
        ("almalinux", "centos"),
        ("centos", "centos"),
        ("rockylinux", "centos"),
        ("debian", "debian"),
        ("devuan", "devuan"),
        ("fedora", "fedora"),
        ("gentoo", "gentoo"),
        ("nixos", "nixos"),
        ("opensuse", "opensuse"),
        ("turnkey", "debian"),
        ("proxmox", "debian"),
        ("ubuntu", "ubuntu"),
    ];
    let file = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let found = NAMES.iter().find(|(part, _)| file.contains(part)).map(|(_, kind)| *kind);
    match (given, found) {
        (Some("unmanaged"), _) | (None, None) => Ok("unmanaged".to_owned()),
        (Some(given), Some(found)) if given != found => {
            Err(format!("got unexpected ostype ({given} != {found})"))
        }
        (Some(given), _) => Ok(given.to_owned()),
        (None, Some(found)) => Ok(found.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_tells_what_it_is() {
        assert_eq!(os_type("vztmpl/debian-12-standard_12.7-1_amd64.tar.zst", None).unwrap(), "debian");
        assert_eq!(os_type("vztmpl/rockylinux-9.tar.xz", None).unwrap(), "centos");
        assert_eq!(os_type("vztmpl/mine.tar.gz", Some("alpine")).unwrap(), "alpine");
        assert!(os_type("vztmpl/ubuntu-24.04.tar.zst", Some("debian")).is_err());
    }
}
