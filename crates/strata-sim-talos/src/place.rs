//! Who is at an address.

use super::machine::{Machine, Stage};
use crate::world::World;

/// A machine found at an address, and the boot it is in: with the next one, connections are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence {
    pub machine: String,
    pub boot: String,
    /// The API answers without client certificates.
    pub maintenance: bool,
}

impl World<'_> {
    /// The machine at an address, if one runs there. The shared address of a cluster belongs to the machine that holds it.
    pub fn talos_at(&self, address: &str) -> Option<(&str, &Machine)> {
        let own = self.talos.machines.iter().find(|(key, machine)| {
            self.reachable(key, machine)
                && machine.boot.as_ref().is_some_and(|boot| boot.addresses().iter().any(|a| a == address))
        });
        if let Some((key, machine)) = own {
            return Some((key.as_str(), machine));
        }
        let holder = self.vip_holder(address)?;
        self.talos.machines.get_key_value(&holder).map(|(key, machine)| (key.as_str(), machine))
    }

    /// The machine is on, not frozen, and has a network.
    fn reachable(&self, key: &str, machine: &Machine) -> bool {
        let up = match machine.stage() {
            Some(Stage::Booting | Stage::NoSystem) | None => false,
            Some(_) => true,
        };
        let frozen = self.vm(key).is_some_and(|vm| vm.paused || !vm.running);
        up && !frozen && !machine.cut_off
    }

    /// Where a connection to the Talos API at this address leads.
    pub fn talos_presence(&self, address: &str) -> Option<Presence> {
        let (key, machine) = self.talos_at(address)?;
        let boot = machine.boot.as_ref()?;
        let maintenance = match boot.stage {
            Stage::Maintenance => true,
            Stage::Running => false,
            // Installing and going down: the API has already stopped.
            _ => return None,
        };
        if !maintenance && !self.has_certificate(key) {
            return None;
        }
        Some(Presence { machine: key.to_owned(), boot: boot.id.clone(), maintenance })
    }

    /// The machine has no power, or nothing reaches it: nobody says goodbye.
    pub fn is_off(&self, key: &str) -> bool {
        self.talos.machines.get(key).is_none_or(|machine| machine.boot.is_none() || machine.cut_off)
    }

    /// That machine is still in that boot and reachable.
    pub fn is_present(&self, presence: &Presence) -> bool {
        self.talos.machines.get(&presence.machine).is_some_and(|machine| {
            let boot = machine.boot.as_ref();
            self.reachable(&presence.machine, machine)
                && boot.is_some_and(|boot| {
                    boot.id == presence.boot
                        && match boot.stage {
                            Stage::Maintenance => presence.maintenance,
                            Stage::Running => !presence.maintenance,
                            _ => false,
                        }
                })
        })
    }

    /// A control plane signs its own certificate; a worker asks one that is up and knows the same token.
    fn has_certificate(&self, key: &str) -> bool {
        self.signing_authority(key).is_some()
    }

    /// Certificate and key of the authority that signs the machine's certificate.
    pub fn signing_authority(&self, key: &str) -> Option<(String, String)> {
        let config = self.talos.machines.get(key)?.config()?;
        let own = config.os_authority()?;
        if let Some(private) = own.key {
            return Some((own.certificate, private));
        }
        self.talos.machines.iter().find_map(|(other, machine)| {
            let theirs =
                machine.config().filter(|_| machine.is_running() && self.reachable(other, machine))?;
            let authority = theirs.os_authority()?;
            let same = authority.certificate == own.certificate && theirs.token() == config.token();
            authority.key.filter(|_| same).map(|private| (authority.certificate, private))
        })
    }

    /// The name of a machine: what its configuration says, or one made from its identity.
    pub fn talos_hostname(&self, key: &str) -> String {
        let configured = self.talos.machines.get(key).and_then(Machine::config).and_then(|c| c.hostname());
        configured.map_or_else(
            || {
                let identity = self.talos_disk(key).map_or(key, |disk| disk.identity.as_str());
                let word = hex::encode(&self.derive(&["hostname", identity])[..3]);
                format!("talos-{}-{}", &word[..3], &word[3..])
            },
            str::to_owned,
        )
    }
}
