//! The calls of the Talos API, with who may make them and which versions have them.

mod apply;
mod etcd;
mod events;
mod files;
mod health;
mod kubeconfig;
mod lifecycle;
mod logs;
mod power;
mod processes;
mod resources;
mod services;
mod system;

use std::sync::Arc;

use bytes::Bytes;
use prost::Message;

use super::grpc::{Code, Outcome, Reply, Status};
use super::machine::{Boot, Machine};
use super::place::Presence;
use super::version::Version;
use super::wire::listed;
use crate::world::Machines;
use crate::world::World;
use resources::machine_status;

/// Who calls.
pub struct Caller {
    /// The machine that was connected to.
    pub presence: Presence,
    /// What the client's certificate says; nothing in maintenance mode.
    pub roles: Vec<String>,
    /// The address that was connected to.
    pub address: String,
}

/// The least that a caller must be. Everyone who may do more may do less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Reader,
    /// Readers of everything, and those who only make backups.
    Backup,
    /// Operators, and those who only make backups.
    Operator,
    OperatorOrBackup,
    Admin,
}

/// A call in progress, on one machine.
pub struct Call<'a> {
    pub machines: &'a Arc<Machines>,
    pub presence: &'a Presence,
    pub key: &'a str,
    pub maintenance: bool,
    pub admin: bool,
    pub version: Version,
    pub messages: &'a [Bytes],
}

impl Call<'_> {
    /// The only message of the request.
    pub fn request<M: Message + Default>(&self) -> Result<M, Status> {
        let bytes = self.messages.first().cloned().unwrap_or_default();
        M::decode(bytes).map_err(|error| {
            Status::new(Code::Internal, format!("grpc: error unmarshalling request: {error}"))
        })
    }
}

/// A reply with one message.
fn done(message: &impl Message) -> Outcome {
    Ok(Reply::one(listed(message)))
}

/// The machine and its boot.
fn machine<'w>(world: &'w World, key: &str) -> Result<(&'w Machine, &'w Boot), Status> {
    let machine = world.talos.machines.get(key);
    let boot = machine.and_then(|machine| machine.boot.as_ref());
    machine.zip(boot).ok_or_else(|| Status::new(Code::Unavailable, "the machine is gone"))
}

/// Refuses what only control planes can do.
fn only_control_planes(world: &World, key: &str, what: &str) -> Result<(), Status> {
    let control_plane =
        machine(world, key)?.1.config.as_ref().is_some_and(|config| config.is_control_plane());
    if control_plane {
        return Ok(());
    }
    Err(Status::new(Code::Unimplemented, format!("{what} is only available on control plane nodes")))
}

type Handler = fn(&Call<'_>) -> Outcome;

/// Every call: its name, who may make it, since which minor it is there, and what does it.
const CALLS: &[(&str, Who, u32, Handler)] = &[
    ("/machine.MachineService/Version", Who::Reader, 0, system::version),
    ("/machine.MachineService/Hostname", Who::Reader, 0, system::hostname),
    ("/machine.MachineService/Events", Who::Reader, 0, events::events),
    ("/machine.MachineService/Read", Who::Admin, 0, files::read),
    ("/machine.MachineService/List", Who::Reader, 0, files::list),
    ("/machine.MachineService/DiskUsage", Who::Reader, 0, files::usage),
    ("/machine.MachineService/Dmesg", Who::Reader, 0, logs::dmesg),
    ("/machine.MachineService/Logs", Who::Reader, 0, logs::logs),
    ("/machine.MachineService/LogsContainers", Who::Reader, 0, logs::names),
    ("/machine.MachineService/Containers", Who::Reader, 0, processes::containers),
    ("/machine.MachineService/Stats", Who::Reader, 0, processes::stats),
    ("/machine.MachineService/Processes", Who::Reader, 0, processes::processes),
    ("/machine.MachineService/ImageList", Who::Reader, 0, processes::images),
    ("/cluster.ClusterService/HealthCheck", Who::Reader, 0, health::check),
    ("/machine.MachineService/Memory", Who::Reader, 0, system::memory),
    ("/machine.MachineService/SystemStat", Who::Reader, 0, system::statistics),
    ("/machine.MachineService/Mounts", Who::Reader, 0, system::mounts),
    ("/storage.StorageService/Disks", Who::Reader, 0, system::disks),
    ("/time.TimeService/Time", Who::Reader, 0, system::time),
    ("/machine.MachineService/ApplyConfiguration", Who::Reader, 0, apply::apply),
    ("/machine.MachineService/Bootstrap", Who::Admin, 0, etcd::bootstrap),
    ("/machine.MachineService/Reboot", Who::Operator, 0, power::reboot),
    ("/machine.MachineService/Shutdown", Who::Operator, 0, power::shutdown),
    ("/machine.MachineService/Reset", Who::Admin, 0, power::reset),
    ("/machine.MachineService/Rollback", Who::Admin, 0, lifecycle::rollback),
    ("/machine.MachineService/Upgrade", Who::Admin, 0, lifecycle::upgrade),
    ("/machine.MachineService/ImagePull", Who::Operator, 0, lifecycle::old_pull),
    ("/machine.ImageService/Pull", Who::Operator, 13, lifecycle::pull),
    ("/machine.LifecycleService/Upgrade", Who::Admin, 13, lifecycle::streamed_upgrade),
    ("/machine.MachineService/ServiceList", Who::Reader, 0, services::list),
    ("/machine.MachineService/ServiceStart", Who::Operator, 0, services::start),
    ("/machine.MachineService/ServiceStop", Who::Operator, 0, services::stop),
    ("/machine.MachineService/ServiceRestart", Who::Operator, 0, services::restart),
    ("/machine.MachineService/Kubeconfig", Who::Admin, 0, kubeconfig::kubeconfig),
    ("/machine.MachineService/EtcdMemberList", Who::Backup, 0, etcd::members),
    ("/machine.MachineService/EtcdStatus", Who::Backup, 0, etcd::status),
    ("/machine.MachineService/EtcdAlarmList", Who::Backup, 0, etcd::alarms),
    ("/machine.MachineService/EtcdAlarmDisarm", Who::Operator, 0, etcd::disarm),
    ("/machine.MachineService/EtcdDefragment", Who::Operator, 0, etcd::defragment),
    ("/machine.MachineService/EtcdLeaveCluster", Who::Admin, 0, etcd::leave),
    ("/machine.MachineService/EtcdRemoveMemberByID", Who::Admin, 0, etcd::remove),
    ("/machine.MachineService/EtcdForfeitLeadership", Who::Admin, 0, etcd::forfeit),
    ("/machine.MachineService/EtcdSnapshot", Who::OperatorOrBackup, 0, etcd::snapshot),
    ("/machine.MachineService/EtcdRecover", Who::Admin, 0, etcd::recover),
    ("/cosi.resource.State/Get", Who::Reader, 0, resources::get),
    ("/cosi.resource.State/List", Who::Reader, 0, resources::list),
    ("/cosi.resource.State/Watch", Who::Reader, 0, resources::watch),
];

/// Calls that the server of maintenance mode has in versions that have a server of its own for it.
const OLD_MAINTENANCE: &[&str] = &[
    "/machine.MachineService/ApplyConfiguration",
    "/machine.MachineService/Version",
    "/machine.MachineService/Upgrade",
    "/machine.MachineService/Reset",
    "/storage.StorageService/Disks",
    "/cosi.resource.State/Get",
    "/cosi.resource.State/List",
    "/cosi.resource.State/Watch",
];

/// The call changes nothing.
pub fn is_read(method: &str) -> bool {
    let reading = [
        "Disks",
        "Events",
        "Get",
        "Memory",
        "Mounts",
        "SystemStat",
        "List",
        "Watch",
        "Version",
        "Hostname",
        "Time",
        "Read",
        "ServiceList",
        "Kubeconfig",
        "Containers",
        "DiskUsage",
        "Dmesg",
        "HealthCheck",
        "ImageList",
        "Logs",
        "LogsContainers",
        "Processes",
        "Stats",
    ];
    let etcd = ["EtcdMemberList", "EtcdStatus", "EtcdAlarmList", "EtcdSnapshot"];
    let name = method.rsplit('/').next().unwrap_or_default();
    reading.contains(&name) || etcd.contains(&name)
}

fn may(who: Who, roles: &[String]) -> bool {
    let has = |role: &str| roles.iter().any(|own| own == role);
    let (admin, operator) = (has("os:admin"), has("os:admin") || has("os:operator"));
    match who {
        Who::Reader => operator || has("os:reader"),
        Who::Backup => operator || has("os:reader") || has("os:etcd:backup"),
        Who::OperatorOrBackup => operator || has("os:etcd:backup"),
        Who::Operator => operator,
        Who::Admin => admin,
    }
}

/// Carries a call out on a machine.
pub fn call(
    machines: &Arc<Machines>,
    caller: &Caller,
    presence: &Presence,
    method: &str,
    messages: &[Bytes],
) -> Outcome {
    let version = {
        let world = machines.world();
        let (_, boot) = machine(&world, &presence.machine)?;
        if !world.is_present(presence) {
            return Err(Status::new(Code::Unavailable, "the machine is going down"));
        }
        boot.image.as_ref().map(|image| image.parsed())
    };
    let version = version.ok_or_else(|| Status::new(Code::Unavailable, "the machine has no system"))?;
    let Some((_, who, since, handler)) = CALLS.iter().find(|(name, ..)| *name == method) else {
        return Err(unimplemented(method));
    };
    if version.minor < *since {
        return Err(unimplemented(method));
    }
    // Nobody is known in maintenance mode; everyone may look.
    let maintenance = presence.maintenance;
    let roles = if maintenance { vec!["os:reader".to_owned()] } else { caller.roles.clone() };
    if maintenance && !version.has_one_server() {
        let open = OLD_MAINTENANCE.contains(&method);
        let for_everyone = ["/cosi.", "/storage.", "/machine.MachineService/ApplyConfiguration"];
        let for_admins = !for_everyone.iter().any(|start| method.starts_with(start));
        if !open || for_admins {
            return Err(Status::new(Code::Unimplemented, "API is not implemented in maintenance mode"));
        }
    } else if !may(*who, &roles) {
        return Err(Status::new(Code::PermissionDenied, "not authorized"));
    }
    let admin = roles.iter().any(|role| role == "os:admin");
    let key = presence.machine.as_str();
    let outcome = handler(&Call { machines, presence, key, maintenance, admin, version, messages });
    if !is_read(method) {
        machines.shared.changed();
    }
    outcome
}

fn unimplemented(method: &str) -> Status {
    let mut parts = method.trim_start_matches('/').splitn(2, '/');
    let (service, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let known = CALLS.iter().any(|(call, ..)| call.starts_with(&format!("/{service}/")));
    let text = match known {
        true => format!("unknown method {name} for service {service}"),
        false => format!("unknown service {service}"),
    };
    Status::new(Code::Unimplemented, text)
}
