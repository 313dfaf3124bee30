//! Brings every machine and every etcd cluster up to the present. It may be called at any time and as often as one likes.

use strata_sim_core::Medium;

use super::Rebooted;
use super::config::MachineConfig;
use super::disk::Disk;
use super::hypervisor::{Drive, vmid};
use super::image::Image;
use super::machine::Stage;
use super::reboot;
use crate::world::World;

/// Joining waits this long after the machine came up, in seconds.
const DISCOVER: f64 = 1.0;
/// Going down takes this long, in seconds.
const GO_DOWN: f64 = 2.0;
/// Writing an image to a disk takes this long, in seconds.
const INSTALL: f64 = 8.0;

impl World<'_> {
    /// Does what is due. Gives the time of the next thing that will be, in milliseconds since 1970.
    pub fn advance(&mut self) -> Option<i64> {
        let now = self.now_ms();
        self.follow_power(now);
        // Each round carries everything one step further; at an instant pace several steps are due at once.
        for _ in 0..64 {
            if !self.step(now) {
                break;
            }
        }
        self.keep_count();
        let kubernetes = self.advance_kubernetes();
        self.next_event(now).into_iter().chain(kubernetes).min()
    }

    /// VMs that were started, stopped or deleted.
    fn follow_power(&mut self, now: i64) {
        let gone: Vec<String> = self
            .talos
            .machines
            .iter()
            .filter(|(_, machine)| machine.metal.is_none())
            .filter(|(key, _)| self.vm(key).is_none())
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            self.talos.machines.remove(&key);
        }
        let mut started = Vec::new();
        let mut stopped = Vec::new();
        for vm in self.hypervisor.vms() {
            let power = Some(vm.power);
            let key = format!("vm/{}", vm.vmid);
            match self.talos.machines.get(&key) {
                Some(_) if !vm.running => stopped.push(key),
                Some(machine) if machine.power != power => started.push((key, power)),
                None if vm.running && self.talos_source(vm.vmid).is_some() => started.push((key, power)),
                _ => {}
            }
        }
        for key in stopped {
            if let Some(machine) = self.talos.machines.get_mut(&key) {
                machine.boot = None;
                machine.power = None;
            }
        }
        for (key, power) in started {
            let again = self.talos.machines.get(&key).is_some_and(|machine| machine.boots > 0);
            if again && self.talos_disk(&key).is_some_and(|disk| disk.config.is_some()) {
                self.log_reboot(&key, "power");
            }
            let machine = self.talos.machines.entry(key.clone()).or_default();
            machine.power = power;
            machine.boot = None;
            self.talos_boot(&key, now);
        }
    }

    fn step(&mut self, now: i64) -> bool {
        let keys: Vec<String> = self.talos.machines.keys().cloned().collect();
        let mut moved = false;
        for key in keys {
            moved |= self.step_machine(&key, now);
        }
        let clusters: Vec<String> = self.talos.etcd.keys().cloned().collect();
        for id in clusters {
            self.etcd_elect(&id);
            self.etcd_advertise(&id);
            moved |= self.etcd_promote(&id, now);
        }
        moved
    }

    fn step_machine(&mut self, key: &str, now: i64) -> bool {
        let Some(boot) = self.talos.machines.get(key).and_then(|machine| machine.boot.as_ref()) else {
            return false;
        };
        let due = boot.until.is_some_and(|until| until <= now);
        match &boot.stage {
            Stage::Running => return self.step_running(key, now),
            Stage::Maintenance | Stage::NoSystem => return false,
            _ if !due => return false,
            Stage::Booting => self.come_up(key, now),
            // Talos is there already and only its configuration was missing.
            Stage::Installing if boot.from_disk => {
                let config = boot.config.clone();
                self.edit_talos_disk(key, |disk| disk.config = config);
                self.come_up(key, now);
            }
            Stage::Installing => {
                let stays = boot.config.as_ref().is_some_and(|config| !config.reboots_after_install());
                let done = self.install(key);
                if done && stays {
                    if let Some(boot) = self.talos.machines.get_mut(key).and_then(|m| m.boot.as_mut()) {
                        boot.from_disk = true;
                    }
                    self.come_up(key, now);
                    return true;
                }
                let cause = if done { "install" } else { "install-failed" };
                self.restart(key, cause, now);
            }
            Stage::Rebooting(cause) => {
                let cause = cause.clone();
                self.restart(key, &cause, now);
            }
            Stage::ShuttingDown => self.halt(key),
        }
        true
    }

    /// The kernel is up: on to the services, or to waiting for a configuration.
    fn come_up(&mut self, key: &str, now: i64) {
        self.edit_talos_disk(key, |disk| {
            if let Some(image) = disk.staged.take() {
                disk.previous = Some(std::mem::replace(&mut disk.image, image));
            }
        });
        // Partitions are made once. Talos does not mount one that is not encrypted as its configuration says, and gets no further.
        let mut unlike = false;
        self.edit_talos_disk(key, |disk| {
            let Some(config) = &disk.config else { return };
            let wanted = reboot::partitions(config);
            unlike = disk.encryption.as_ref().is_some_and(|made| *made != wanted);
            disk.encryption.get_or_insert(wanted);
        });
        if unlike {
            if let Some(boot) = self.talos.machines.get_mut(key).and_then(|machine| machine.boot.as_mut()) {
                boot.until = None;
            }
            return;
        }
        let disk = self.talos_disk(key);
        let config = disk.and_then(|disk| disk.config.clone());
        let image = disk.map(|disk| disk.image.clone());
        let Some(boot) = self.talos.machines.get_mut(key).and_then(|machine| machine.boot.as_mut()) else {
            return;
        };
        boot.until = None;
        let config = config.filter(|_| boot.from_disk);
        if boot.from_disk {
            boot.image = image.or(boot.image.take());
        }
        boot.stage = if config.is_some() { Stage::Running } else { Stage::Maintenance };
        boot.running_since = config.is_some().then_some(now);
        boot.booted_config.clone_from(&config);
        boot.config = config;
    }

    fn step_running(&mut self, key: &str, now: i64) -> bool {
        let mut moved = false;
        let Some(boot) = self.talos.machines.get_mut(key).and_then(|machine| machine.boot.as_mut()) else {
            return false;
        };
        if boot.trial.as_ref().is_some_and(|(end, _)| *end <= now)
            && let Some((_, before)) = boot.trial.take()
        {
            boot.config = Some(before);
            moved = true;
        }
        let since = boot.running_since.unwrap_or(now);
        let waits = boot.config.as_ref().is_some_and(MachineConfig::is_control_plane)
            && !boot.stopped.iter().any(|service| service == "etcd");
        let empty = self.talos_disk(key).is_some_and(|disk| disk.etcd.is_none());
        if waits && empty && since + self.scaled_ms(DISCOVER) <= now {
            moved |= self.etcd_join(key, now);
        }
        let healthy = self.etcd_of(key).is_some_and(|(cluster, member)| {
            !member.learner && self.etcd_up(cluster, member) && self.has_quorum(cluster)
        });
        if let Some(boot) = self.talos.machines.get_mut(key).and_then(|machine| machine.boot.as_mut()) {
            match (healthy, boot.etcd_since) {
                (true, None) => boot.etcd_since = Some(now),
                (false, Some(_)) => boot.etcd_since = None,
                _ => {}
            }
        }
        moved
    }

    /// Begins the installation that a configuration asks for.
    pub fn begin_install(&mut self, key: &str, config: MachineConfig) {
        let until = self.now_ms() + self.scaled_ms(INSTALL);
        if let Some(boot) = self.talos.machines.get_mut(key).and_then(|machine| machine.boot.as_mut()) {
            boot.config = Some(config);
            boot.stage = Stage::Installing;
            boot.until = Some(until);
        }
    }

    /// Begins to go down and up again.
    pub fn begin_reboot(&mut self, key: &str, cause: &str) {
        self.leave_stage(key, Stage::Rebooting(cause.to_owned()));
    }

    /// Begins to go down.
    pub fn begin_shutdown(&mut self, key: &str) {
        self.leave_stage(key, Stage::ShuttingDown);
    }

    fn leave_stage(&mut self, key: &str, stage: Stage) {
        let until = self.now_ms() + self.scaled_ms(GO_DOWN);
        if let Some(boot) = self.talos.machines.get_mut(key).and_then(|machine| machine.boot.as_mut()) {
            boot.stage = stage;
            boot.until = Some(until);
            boot.trial = None;
        }
    }

    fn restart(&mut self, key: &str, cause: &str, now: i64) {
        self.log_reboot(key, cause);
        self.talos_boot(key, now);
    }

    fn log_reboot(&mut self, key: &str, cause: &str) {
        let hostname = self
            .talos_disk(key)
            .and_then(|disk| disk.config.as_ref())
            .and_then(|config| config.hostname().map(str::to_owned))
            .unwrap_or_else(|| self.talos_hostname(key));
        self.talos.reboots.push(Rebooted { machine: key.to_owned(), hostname, cause: cause.to_owned() });
    }

    fn halt(&mut self, key: &str) {
        let Some(machine) = self.talos.machines.get_mut(key) else { return };
        machine.boot = None;
        machine.power = None;
        if let Some(metal) = &mut machine.metal {
            metal.on = false;
        }
        if let Some(vmid) = vmid(key) {
            self.hypervisor.power_off(vmid);
        }
    }

    /// Writes Talos and the configuration to the disk that the configuration names. False if there is no such disk.
    fn install(&mut self, key: &str) -> bool {
        let Some(boot) = self.talos.machines.get(key).and_then(|machine| machine.boot.as_ref()) else {
            return false;
        };
        let (Some(config), Some(running)) = (boot.config.clone(), boot.image.clone()) else { return false };
        let wanted = config.install().unwrap_or_default();
        let image = match wanted.image.as_deref() {
            Some(reference) => match Image::from_installer(reference) {
                Some(image) => image,
                None => return false,
            },
            None => running,
        };
        let number = self.talos.installs.entry(key.to_owned()).or_default();
        *number += 1;
        let number = number.to_string();
        let identity = hex::encode(&self.derive(&["identity", key, &number])[..16]);
        let disk = Disk {
            image,
            config: Some(config),
            etcd: None,
            staged: None,
            previous: None,
            identity,
            encryption: None,
        };
        if let Some(metal) = self.talos.machines.get_mut(key).and_then(|machine| machine.metal.as_mut()) {
            metal.disk = Some(Box::new(disk));
            return true;
        }
        let Some(vmid) = vmid(key) else { return false };
        let Some(slot) = device(self.hypervisor.drives(vmid), wanted.disk.as_deref()) else { return false };
        self.hypervisor.write(vmid, &slot, Medium::write(disk))
    }

    /// When something happens next without anyone doing anything.
    fn next_event(&self, now: i64) -> Option<i64> {
        let boots = self.talos.machines.values().filter_map(|machine| machine.boot.as_ref());
        let machines = boots.flat_map(|boot| {
            let joins = boot.running_since.map(|since| since + self.scaled_ms(DISCOVER));
            let serves = boot.etcd_since.map(|since| since + self.scaled_ms(super::kubernetes::START));
            let ready = boot.running_since.map(|since| since + self.scaled_ms(super::kubernetes::READY));
            [boot.until, boot.trial.as_ref().map(|(end, _)| *end), joins, serves, ready]
        });
        let learners = self.talos.etcd.values().flat_map(|cluster| &cluster.members);
        let learners = learners.filter(|member| member.learner).map(|member| Some(member.caught_up));
        machines.chain(learners).flatten().filter(|time| *time > now).min()
    }
}

/// The slot of the disk under a device name, or of the first one.
fn device(drives: Vec<Drive<'_>>, name: Option<&str>) -> Option<String> {
    let disks = |buses: &[&str]| -> Vec<String> {
        let rank = |drive: &Drive<'_>| buses.iter().position(|bus| *bus == drive.bus());
        let mut found: Vec<&Drive<'_>> =
            drives.iter().filter(|drive| drive.is_disk() && rank(drive).is_some()).collect();
        found.sort_by_key(|drive| (rank(drive), drive.number()));
        found.into_iter().map(|drive| drive.slot.clone()).collect()
    };
    let any = || disks(&["scsi", "sata", "ide", "virtio"]).into_iter().next();
    let Some(name) = name else { return any() };
    let letters = name.strip_prefix("/dev/")?;
    let (buses, letter): (&[&str], &str) = match (letters.strip_prefix("vd"), letters.strip_prefix("sd")) {
        (Some(letter), _) => (&["virtio"], letter),
        (_, Some(letter)) => (&["scsi", "sata", "ide"], letter),
        // Paths by id and the like name some disk of the machine.
        _ => return any(),
    };
    let index = letter.bytes().next().filter(u8::is_ascii_lowercase).map(|byte| usize::from(byte - b'a'))?;
    disks(buses).into_iter().nth(index)
}
