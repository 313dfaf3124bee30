//! Proxmox' own cloud-init drive.

use std::net::IpAddr;

use serde_json::Value as Json;
use strata_source::machine::cloud_init::CloudInit;

use crate::fields::{Fields, Object, Put};

/// What cloud-init is given besides addresses, if the VM has a drive for it.
pub(crate) struct Drive {
    pub(crate) yaml: Object,
    /// The addresses, by `ipconfig0`, ….
    pub(crate) addresses: Fields,
}

pub(crate) fn drive(left: &mut Fields, home: &str, cd_taken: bool, notes: &mut Vec<String>) -> Option<Drive> {
    let mut given = left.map("cloudinit")?;
    given.forget(&["password", "content"]);
    let Some(mut drive) = given.map("drive") else {
        notes.push(
            "it has settings of cloud-init and no drive that it could read them from: they stay as they are"
                .to_owned(),
        );
        return None;
    };
    let mut yaml = Object::new();
    yaml.put(CloudInit::user, given.text("user"));
    yaml.put_full(CloudInit::ssh_keys, given.texts("ssh_keys").unwrap_or_default().into());
    let servers = given.texts("nameservers").unwrap_or_default();
    if servers.iter().all(|server| server.parse::<IpAddr>().is_ok()) {
        yaml.put_full(CloudInit::nameservers, servers.into());
    } else {
        notes.push("its cloud-init name servers are no addresses: they stay as they are".to_owned());
    }
    yaml.put(CloudInit::search_domain, given.text("searchdomain"));
    yaml.put(CloudInit::upgrade, given.unless("upgrade", true));
    yaml.put(CloudInit::kind, given.text("type"));
    yaml.put(CloudInit::storage, drive.text("storage").filter(|storage| storage != home));
    let usual = if cd_taken { "ide0" } else { "ide2" };
    yaml.put(CloudInit::slot, drive.text("slot").filter(|slot| slot != usual));
    let addresses = given.map("ipconfig").unwrap_or_default();
    given.told("cloudinit.", notes);
    Some(Drive { yaml, addresses })
}

impl Drive {
    /// Addresses alone call for a drive; without any the key must be there.
    pub(crate) fn written(self, has_address: bool, notes: &mut Vec<String>) -> Option<Json> {
        self.addresses.told("cloudinit.ipconfig.", notes);
        (!self.yaml.is_empty() || !has_address).then(|| Json::Object(self.yaml))
    }
}
