//! The manager of high availability and its local agents: what they know of each service, and one round of their work.
//!
//! A round lasts ten seconds. What is asked for is noticed in one round and carried out in the next one, by a task of root's.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use super::{GuestKind, World, WorldKind};
use crate::endpoints::{lxc, qemu};
use crate::task::{Step, work};

pub const RESOURCES: &str = "ha/resources";

/// Seconds between two rounds.
const ROUND: f64 = 10.0;

/// What was asked of the manager and what it knows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Manager {
    services: BTreeMap<String, Service>,
    /// Asked for since the last round.
    commands: Vec<(String, Command)>,
    /// When the next round is, in milliseconds since 1970.
    next: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Shut down within so many seconds; at once if it is none.
    Stop {
        timeout: u32,
    },
    Migrate {
        target: String,
        online: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum State {
    Started,
    RequestStop { timeout: Option<u32> },
    Stopped,
    Moving { target: String, online: bool },
    Error,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Service {
    state: State,
    command: Option<Command>,
    /// The task that carries out what its state asks for. Tasks do not outlive the simulator.
    #[serde(skip)]
    task: Option<String>,
    /// How often it did not start.
    failures: u32,
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::RequestStop { .. } => "request_stop",
            Self::Stopped => "stopped",
            Self::Moving { online: true, .. } => "migrate",
            Self::Moving { online: false, .. } => "relocate",
            Self::Error => "error",
        }
    }
}

/// The VMID of `vm:100` or `ct:100`.
fn vmid_of(sid: &str) -> Option<u32> {
    sid.split_once(':')?.1.parse().ok()
}

impl World {
    /// The recorded server ran without the manager and its agents.
    fn has_ha_daemons(&self) -> bool {
        self.kind != WorldKind::Single
    }

    /// What the configuration asks for; none if the manager does not look at the service.
    pub fn ha_request(&self, sid: &str) -> Option<&str> {
        let section = self.cluster.section(RESOURCES, sid)?;
        match section.props.get("state").map_or("started", String::as_str) {
            "ignored" => None,
            "enabled" => Some("started"),
            state => Some(state),
        }
    }

    /// Whether starting, stopping and moving this guest is left to the manager.
    pub fn is_ha_managed(&self, vmid: u32) -> bool {
        ["vm", "ct"].iter().any(|kind| self.ha_request(&format!("{kind}:{vmid}")).is_some())
    }

    /// What the manager says about a service.
    pub fn ha_state(&self, sid: &str) -> Option<String> {
        let request = self.ha_request(sid)?;
        if !self.has_ha_daemons() {
            return Some(request.to_owned());
        }
        Some(self.crm_state(sid).unwrap_or("queued").to_owned())
    }

    /// The manager's own word for a service that it knows.
    pub fn crm_state(&self, sid: &str) -> Option<&'static str> {
        self.daemons.ha.services.get(sid).map(|service| service.state.name())
    }

    /// The task behind starting a managed guest: it only asks for it.
    pub fn request_ha_start(&mut self, node: &str, kind: &str, vmid: u32, user: &str) -> String {
        let (word, sid) = (kind.to_uppercase(), format!("{kind}:{vmid}"));
        let asks = work(move |world, job| {
            job.log(world, format!("Requesting HA start for {word} {vmid}"));
            if world.ha_state(&sid).as_deref() == Some("error") {
                job.log(world, format!("service '{sid}' in error state, must be disabled and fixed first"));
                return Err(format!("command 'ha-manager set {sid} --state started' failed: exit code 255"));
            }
            if let Some(section) = world.cluster.file_mut(RESOURCES).get_mut(&sid) {
                section.props.insert("state".to_owned(), "started".to_owned());
            }
            Ok(Step::wait(0.5, |_, _| Ok(Step::Done)))
        });
        self.start_task(node, "hastart", &vmid.to_string(), user, asks)
    }

    /// The task behind stopping or moving a managed guest: it leaves a command for the manager.
    pub fn request_ha(&mut self, node: &str, kind: &str, vmid: u32, user: &str, command: Command) -> String {
        let (word, sid) = (kind.to_uppercase(), format!("{kind}:{vmid}"));
        let (task, line) = match &command {
            Command::Stop { .. } => ("hastop", format!("Requesting HA stop for {word} {vmid}")),
            Command::Migrate { target, .. } => {
                ("hamigrate", format!("Requesting HA migration for {word} {vmid} to node {target}"))
            }
        };
        let asks = work(move |world, job| {
            job.log(world, line);
            world.command_ha(&sid, command);
            Ok(Step::wait(0.5, |_, _| Ok(Step::Done)))
        });
        self.start_task(node, task, &vmid.to_string(), user, asks)
    }

    /// Leaves a command for the manager's next round.
    pub fn command_ha(&mut self, sid: &str, command: Command) {
        self.daemons.ha.commands.push((sid.to_owned(), command));
    }

    /// Rounds that are due. Gives the time of the next one, if there is anything to look after.
    pub fn advance_ha(&mut self, now: i64) -> Option<i64> {
        let idle = self.cluster.file(RESOURCES).next().is_none() && self.daemons.ha.services.is_empty();
        if idle || !self.has_ha_daemons() {
            self.daemons.ha.commands.clear();
            self.daemons.ha.next = None;
            return None;
        }
        let round = self.scaled_ms(ROUND);
        if round == 0 {
            // Without time between them, two rounds are one answer.
            self.ha_round();
            self.ha_round();
            return None;
        }
        let next = *self.daemons.ha.next.get_or_insert(now + round);
        if next > now {
            return Some(next);
        }
        self.ha_round();
        self.daemons.ha.next = Some(now + round);
        Some(now + round)
    }

    /// The agents do what the manager decided in the round before; then the manager decides again.
    fn ha_round(&mut self) {
        let mut services = std::mem::take(&mut self.daemons.ha.services);
        for (sid, service) in &mut services {
            self.act(sid, service);
        }
        services.retain(|sid, _| self.ha_request(sid).is_some());
        for (sid, command) in std::mem::take(&mut self.daemons.ha.commands) {
            // A service that it does not know yet is no error to anybody: the command is gone.
            if let Some(service) = services.get_mut(&sid) {
                service.command = Some(command);
            }
        }
        let managed: Vec<String> = self.cluster.file(RESOURCES).map(|(sid, _)| sid.to_owned()).collect();
        for sid in managed {
            let Some(request) = self.ha_request(&sid).map(str::to_owned) else { continue };
            let first = match request.as_str() {
                "started" => State::Started,
                _ => State::RequestStop { timeout: None },
            };
            let new = Service { state: first, command: None, task: None, failures: 0 };
            match services.entry(sid.clone()) {
                Entry::Vacant(unknown) => drop(unknown.insert(new)),
                Entry::Occupied(mut known) => self.decide(&sid, known.get_mut(), &request),
            }
        }
        self.daemons.ha.services = services;
    }

    /// Whether the service's task still runs. One that ended is forgotten; the answer then says how it ended.
    fn ha_task(&self, service: &mut Service) -> Option<Result<bool, ()>> {
        let task = service.task.as_ref()?;
        match self.tasks.get(task) {
            Some(found) if found.end.is_none() => Some(Err(())),
            found => {
                let good = found.is_none_or(|task| !task.failed());
                service.task = None;
                Some(Ok(good))
            }
        }
    }

    fn is_up(&self, sid: &str) -> bool {
        vmid_of(sid).and_then(|vmid| self.guests.get(&vmid)).is_some_and(|guest| guest.power.running)
    }

    /// The manager's decision about one service.
    fn decide(&mut self, sid: &str, service: &mut Service, request: &str) {
        let ended = match self.ha_task(service) {
            Some(Err(())) => return,
            Some(Ok(good)) => Some(good),
            None => None,
        };
        let up = self.is_up(sid);
        match service.state.clone() {
            State::Started if request != "started" => service.state = State::RequestStop { timeout: None },
            State::Started => match service.command.take() {
                Some(Command::Stop { timeout }) => {
                    service.state = State::RequestStop { timeout: Some(timeout) };
                    if let Some(section) = self.cluster.file_mut(RESOURCES).get_mut(sid) {
                        section.props.insert("state".to_owned(), "stopped".to_owned());
                    }
                }
                Some(Command::Migrate { target, online }) => self.send(sid, service, target, online),
                None if ended == Some(false) && !up => self.failed(sid, service),
                None if up => service.failures = 0,
                None => {}
            },
            State::RequestStop { .. } if !up => service.state = State::Stopped,
            State::RequestStop { .. } if ended.is_some() => service.state = State::Error,
            State::Stopped => {
                if let Some(Command::Migrate { target, online }) = service.command.take() {
                    self.send(sid, service, target, online);
                } else if request == "started" {
                    service.state = State::Started;
                }
            }
            State::Moving { .. } if ended.is_some() => {
                service.state = match request {
                    "started" => State::Started,
                    _ => State::RequestStop { timeout: None },
                };
            }
            State::Error if request == "disabled" => {
                service.failures = 0;
                service.state = State::Stopped;
            }
            _ => {}
        }
    }

    /// A move to where the service is already, or to a node that is not there, is dropped without a word.
    fn send(&self, sid: &str, service: &mut Service, target: String, online: bool) {
        let here = vmid_of(sid).and_then(|vmid| self.guests.get(&vmid)).map(|guest| guest.node.as_str());
        if self.nodes.contains_key(&target) && here != Some(target.as_str()) {
            service.state = State::Moving { target, online };
        }
    }

    /// A start failed. It is tried again as often as the resource allows, always on the same node.
    fn failed(&self, sid: &str, service: &mut Service) {
        let most = |key: &str| {
            let section = self.cluster.section(RESOURCES, sid);
            section.and_then(|s| s.props.get(key)?.parse::<u32>().ok()).unwrap_or(1)
        };
        service.failures += 1;
        if service.failures > most("max_restart") {
            service.state = State::Error;
        }
    }

    /// The agent of the node does what the service's state asks for, unless it is doing so.
    fn act(&mut self, sid: &str, service: &mut Service) {
        let running = service.task.as_ref().and_then(|task| self.tasks.get(task));
        if running.is_some() {
            // Still at work, or ended and not looked at by the manager yet.
            return;
        }
        // An agent does nothing about a service without a configuration, although the manager still knows it until its next round.
        if self.cluster.section(RESOURCES, sid).is_none() {
            return;
        }
        let Some(guest) = vmid_of(sid).and_then(|vmid| self.guests.get(&vmid)) else { return };
        let (vmid, node, kind, up) = (guest.vmid, guest.node.clone(), guest.kind, guest.power.running);
        let task = match (&service.state, kind) {
            (State::Started, GuestKind::Qemu) if !up => {
                qemu::power::spawn_start(self, &node, vmid, "root@pam")
            }
            (State::Started, GuestKind::Lxc) if !up => lxc::power::spawn_start(self, &node, vmid, "root@pam"),
            (State::RequestStop { timeout }, _) if up => {
                let timeout = timeout.unwrap_or(60);
                match kind {
                    GuestKind::Qemu => qemu::power::spawn_stop(self, &node, vmid, timeout),
                    GuestKind::Lxc => lxc::power::spawn_stop(self, &node, vmid, timeout),
                }
            }
            (State::Stopped, GuestKind::Qemu) if up => qemu::power::spawn_stop(self, &node, vmid, 60),
            (State::Stopped, GuestKind::Lxc) if up => lxc::power::spawn_stop(self, &node, vmid, 60),
            (State::Moving { target, online }, GuestKind::Qemu) => {
                qemu::migrate::spawn(self, &node, vmid, target, *online && up)
            }
            (State::Moving { target, .. }, GuestKind::Lxc) => lxc::migrate::spawn(self, &node, vmid, target),
            _ => return,
        };
        service.task = Some(task);
    }
}
