//! Making a VM.

use super::disks::Maker;
use super::drive::Drive;
use super::{boot, cpu, drive, net, permit, power, restore, schema};
use crate::api::param::usual;
use crate::api::{Call, Param, Perm, Refusal, Reply, Route, flag, forbidden, int, no, post, text, wrong};
use crate::endpoints::guest::{check_tags, check_unused};
use crate::task::{Job, LockKey, Step, work};
use crate::world::guest::Config;
use crate::world::{Guest, GuestKind, World};

/// Parameters of the call that are no options of the VM.
const OWN: &[&str] = &[
    "node",
    "vmid",
    "archive",
    "bwlimit",
    "force",
    "pool",
    "start",
    "ha-managed",
    "storage",
    "unique",
    "live-restore",
    "import-working-storage",
];

pub fn routes() -> Vec<Route> {
    vec![post("/nodes/{node}/qemu", Perm::Anyone, params(), create)]
}

fn params() -> Vec<Param> {
    let own = [
        usual::node(),
        usual::vmid(),
        text("archive").max_len(255).opt(),
        usual::storage().opt(),
        flag("force").needs("archive").opt(),
        flag("unique").needs("archive").opt(),
        flag("live-restore").opt(),
        usual::pool().opt(),
        int("bwlimit").min(0.0).opt(),
        flag("start").opt(),
        flag("ha-managed").opt(),
        text("import-working-storage").format(crate::api::format::storage_id).opt(),
    ];
    own.into_iter().chain(schema::params()).collect()
}

/// The options among the arguments. `cdrom` is another name for `ide2`.
pub fn options(call: &Call<'_>, own: &[&str]) -> Result<Config, Refusal> {
    let mut config = Config::new();
    for (key, arg) in &call.args.0 {
        if !own.contains(&key.as_str()) {
            config.insert(key.clone(), arg.as_text().unwrap_or_default().to_owned());
        }
    }
    if let Some(cdrom) = config.remove("cdrom") {
        if config.contains_key("ide2") {
            return Err(wrong("cdrom", "option conflicts with option ide2"));
        }
        config.insert("ide2".to_owned(), cdrom);
    }
    if let Some(units) = config.get("cpuunits").and_then(|u| u.parse::<i64>().ok()) {
        // The kernel's own limits.
        config.insert("cpuunits".to_owned(), units.clamp(1, 10_000).to_string());
    }
    Ok(config)
}

/// What the task needs to know.
struct Plan {
    node: String,
    vmid: u32,
    options: Config,
    drives: Vec<Drive>,
    default: Option<String>,
    pool: Option<String>,
    start: bool,
    user: String,
}

fn create(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    if let Some(keys) = call.args.text("sshkeys") {
        permit::check_ssh_keys(keys)?;
    }
    let mut options = options(call, OWN)?;
    let pool = call.args.owned("pool");
    let default = call.args.owned("storage");
    check_allowed(call, vmid, pool.as_deref(), default.as_deref())?;
    if let Some(archive) = call.args.owned("archive") {
        permit::check_keys(call, vmid, pool.as_deref(), options.keys().map(String::as_str))?;
        permit::check_devices(call, vmid, pool.as_deref(), &options)?;
        return restore::restore(call, archive, options);
    }
    let parsed: Vec<Drive> = drive::drives(&options).collect();
    permit::check_storages(call, vmid, &parsed, &options, default.as_deref())?;
    permit::check_keys(call, vmid, pool.as_deref(), options.keys().map(String::as_str))?;
    permit::check_devices(call, vmid, pool.as_deref(), &options)?;
    let drives = permit::parse_drives(call, &options)?;
    if let Some(tags) = options.get("tags") {
        check_tags(call, vmid, pool.as_deref(), "", tags)?;
    }
    add_macs(call.world, vmid, call.caller.id.as_deref().unwrap_or_default(), &mut options);
    check_unused(call.world, vmid).map_err(|e| no(format!("unable to create VM {vmid} - {}", e.text())))?;

    let user = call.user().to_owned();
    let mut guest = Guest::new(vmid, &node, GuestKind::Qemu, &user, call.world.now_ms());
    guest.config.insert("lock".to_owned(), "create".to_owned());
    call.world.guests.insert(vmid, guest);
    let start = call.args.is_set("start");
    let plan = Plan { node: node.clone(), vmid, options, drives, default, pool, start, user };
    let seconds = 0.5 + 0.5 * plan.drives.len() as f64;
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |_, _| {
            Ok(Step::wait(seconds, move |world, job| finish(world, job, plan)).or_undo(move |world| {
                world.forget_guest(vmid);
            }))
        }))
    });
    Ok(call.spawn(&node, "qmcreate", vmid.to_string(), work).into())
}

fn check_allowed(
    call: &Call<'_>,
    vmid: u32,
    pool: Option<&str>,
    default: Option<&str>,
) -> Result<(), Refusal> {
    if let Some(pool) = pool {
        call.check_pool(pool)?;
    }
    if let Some(storage) = default {
        call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    }
    if call.args.is_set("ha-managed") {
        call.check("/", &["Sys.Console"])?;
    }
    if call.args.is_set("start") {
        call.check_vm(vmid, pool, &["VM.PowerMgmt"])?;
    }
    if call.check_vm(vmid, pool, &["VM.Allocate"]).is_ok() {
        return Ok(());
    }
    // Who may back a VM up may also restore over it.
    let over = call.args.has("archive") && call.args.is_set("force") && call.world.guests.contains_key(&vmid);
    if over && call.may(&format!("/vms/{vmid}"), "VM.Backup") {
        return Ok(());
    }
    Err(forbidden(""))
}

fn add_macs(world: &World, vmid: u32, user: &str, options: &mut Config) {
    for (key, value) in options.iter_mut() {
        if key.starts_with("net") && schema::exists(key) {
            *value = net::with_mac(world, vmid, key, user, value);
        }
    }
}

/// The end of the task: disks first, then the configuration as a whole.
fn finish(world: &mut World, job: &Job, plan: Plan) -> Result<Step, String> {
    let vmid = plan.vmid;
    let made = {
        let mut maker = Maker {
            world,
            node: &plan.node,
            vmid,
            config: &Config::new(),
            default: plan.default.as_deref(),
            made: Vec::new(),
            log: Vec::new(),
        };
        let made = maker.make_all(&plan.drives);
        let log = std::mem::take(&mut maker.log);
        for line in log {
            job.log(world, line);
        }
        made
    };
    let drives = match made {
        Ok(drives) => drives,
        Err(refusal) => {
            world.forget_guest(vmid);
            return Err(format!("unable to create VM {vmid} - {}", refusal.text()));
        }
    };
    let config = complete(world, vmid, &plan.user, plan.options, drives);
    let Some(guest) = world.guests.get_mut(&vmid) else { return Err(format!("VM {vmid} is gone")) };
    guest.config = config;
    if let Some(pool) = &plan.pool {
        world.join_pool(vmid, pool);
    }
    if plan.start {
        job.log(world, "Execute autostart");
        power::spawn_start(world, &plan.node, vmid, &plan.user);
    }
    Ok(Step::Done)
}

/// What the server adds to what was asked for.
fn complete(world: &World, vmid: u32, user: &str, options: Config, drives: Config) -> Config {
    let id = vmid.to_string();
    let mut config: Config = options;
    config.extend(drives);
    config.insert("meta".into(), format!("creation-qemu={},ctime={}", cpu::QEMU_VERSION, world.now()));
    if config.get("boot").is_none_or(String::is_empty) {
        let order = boot::default_order(&config);
        config.insert("boot".into(), order);
    }
    if config.get("smbios1").is_none_or(String::is_empty) {
        config.insert("smbios1".into(), format!("uuid={}", world.uuid(&["smbios1", &id, user])));
    }
    let generated = config.get("vmgenid").is_none_or(|g| g == "1");
    if generated && config.get("arch").map(String::as_str) != Some("aarch64") {
        config.insert("vmgenid".into(), world.uuid(&["vmgenid", &id, user]));
    }
    if let Some(machine) = boot::pinned_machine(config.get("machine"), config.get("ostype")) {
        config.insert("machine".into(), machine);
    }
    tidy(&mut config);
    config
}

/// What writing a configuration and reading it back does to it.
pub fn tidy(config: &mut Config) {
    if config.contains_key("sockets") {
        config.remove("smp");
    } else if let Some(smp) = config.remove("smp") {
        config.remove("cores");
        config.insert("sockets".into(), smp);
    }
    let used: Vec<String> = drive::drives(config).map(|d| d.file().to_owned()).collect();
    config.retain(|key, value| !(drive::is_unused(key) && used.contains(value)));
    config.retain(|key, value| {
        if key == "description" {
            // Trailing white space is lost, and with it an empty description.
            value.truncate(value.trim_end().len());
            return !value.is_empty();
        }
        // An empty value reads back as a single space, unless the option cannot be that.
        if value.is_empty() {
            value.push(' ');
            return !schema::is_checked(key);
        }
        true
    });
}
