//! The files of a NoCloud ISO: the user's own documents, and what is missing beside them.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};
use strata_diagnostics::Diagnostic;
use strata_secret::SecretString;
use strata_source::machine::cloud_init::CloudInit;
use strata_source::value::address::Addressing;
use strata_source::value::document::Document;
use strata_yaml::{Reference, Value as Written};

use super::{Interface, addressing};
use crate::hardware::Machine;
use crate::resolved::Resolved;
use crate::site::Draft;

pub(crate) type Files = BTreeMap<String, SecretString>;

impl Draft<'_> {
    pub(super) fn documents(
        &mut self,
        machine: &Machine<'_>,
        vm_id: u32,
        cloud_init: &CloudInit,
        interfaces: &[Interface],
    ) -> Option<Files> {
        let mut files = Files::new();
        for (field, document) in cloud_init.custom() {
            let name = match field {
                "userData" => "user-data",
                "vendorData" => "vendor-data",
                "networkData" => "network-config",
                _ => "meta-data",
            };
            files.insert(name.to_owned(), self.document(machine, cloud_init, document)?);
        }
        if cloud_init.user_data.is_none() {
            let generated = self.user_data(machine, cloud_init)?;
            files.insert("user-data".to_owned(), generated);
        } else {
            self.refuse_unused(machine, cloud_init);
        }
        if !files.contains_key("network-config") && interfaces.iter().any(Interface::has_address) {
            files.insert(
                "network-config".to_owned(),
                SecretString::new(network_config(cloud_init, interfaces)),
            );
        }
        if !files.contains_key("meta-data") {
            // A new instance id makes cloud-init run again; it changes when what the guest is told does.
            let mut hash = Sha256::new();
            files.values().for_each(|text| hash.update(text.expose()));
            let id = format!("strata-{vm_id}-{}", hex::encode(&hash.finalize()[..8]));
            let text =
                format!("instance-id: {id}\nlocal-hostname: {}\n", self.made_as(machine.address).name());
            files.insert("meta-data".to_owned(), SecretString::new(text));
        }
        Some(files)
    }

    /// Fields that a document of the user's own leaves without effect.
    fn refuse_unused(&mut self, machine: &Machine<'_>, cloud_init: &CloudInit) {
        let unused = [
            ("user", cloud_init.user.is_some()),
            ("password", cloud_init.password.is_some()),
            ("sshKeys", !cloud_init.ssh_keys.is_empty()),
        ];
        for (field, _) in unused.into_iter().filter(|(_, set)| *set) {
            let message = format!("`{field}` and `userData` of `{}` exclude each other", machine.name);
            let hint = "user-data of your own says everything: put it there";
            self.found.push(Diagnostic::error("cloud-init", message).at(machine.name.span).hint(hint));
        }
    }

    fn document(
        &mut self,
        machine: &Machine<'_>,
        cloud_init: &CloudInit,
        document: &Document,
    ) -> Option<SecretString> {
        let allowed =
            |draft: &mut Draft<'_>, reference: &Reference| draft.allowed(machine, cloud_init, reference);
        let text = self.written(document, &allowed)?.text;
        match document {
            // The first line is how cloud-init knows its own.
            Document::Mapping(_) => Some(SecretString::new(format!("#cloud-config\n{}\n", text.expose()))),
            _ => Some(text),
        }
    }

    /// A secret in these documents lies on the hypervisor's storage in the clear: only if the user says so.
    fn allowed(
        &mut self,
        machine: &Machine<'_>,
        cloud_init: &CloudInit,
        reference: &Reference,
    ) -> Option<()> {
        if !reference.is_secret() || cloud_init.allow_secret_on_storage {
            return Some(());
        }
        let message =
            format!("cloud-init data of `{}` would put a secret on the hypervisor's storage", machine.name);
        let hint = "`allowSecretOnStorage: true` allows it; everyone who may read that storage can then read the secret";
        self.found.push(Diagnostic::error("secret-on-storage", message).at(reference.span).hint(hint));
        None
    }

    /// What the fields say, as user-data.
    fn user_data(&mut self, machine: &Machine<'_>, cloud_init: &CloudInit) -> Option<SecretString> {
        let mut data = json!({"hostname": self.made_as(machine.address).name(), "manage_etc_hosts": true});
        // All of it goes on the storage, so whatever of it is secret has to be allowed there.
        let written = cloud_init.user.iter().chain(&cloud_init.ssh_keys).chain(&cloud_init.password);
        for reference in written.filter_map(Written::reference) {
            self.allowed(machine, cloud_init, reference)?;
        }
        if let Some(user) = &cloud_init.user {
            let user = self.resolve_written(user)?.into_secret();
            data["user"] = json!(user.expose().trim_end());
        }
        let keys: Vec<SecretString> =
            self.keys(&cloud_init.ssh_keys).into_iter().map(Resolved::into_secret).collect();
        if !keys.is_empty() {
            data["ssh_authorized_keys"] = keys.iter().map(|key| json!(key.expose())).collect();
        }
        if let Some(upgrade) = cloud_init.upgrade {
            data["package_upgrade"] = json!(upgrade);
        }
        if let Some(password) = &cloud_init.password {
            let plain = self.resolve_written(password)?.into_secret();
            data["password"] = json!(plain.expose());
            data["chpasswd"] = json!({"expire": false});
        }
        Some(SecretString::new(format!("#cloud-config\n{data}\n")))
    }
}

/// Version 2, by hardware address: the guest's own names do not matter.
fn network_config(cloud_init: &CloudInit, interfaces: &[Interface]) -> String {
    let mut ethernets = Map::new();
    for interface in interfaces.iter().filter(|interface| interface.has_address()) {
        let fixed: Vec<String> = [interface.ip, interface.ip6]
            .into_iter()
            .flatten()
            .filter(|ip| matches!(ip, Addressing::Static(_)))
            .map(addressing)
            .collect();
        let mut config = json!({
            "match": {"macaddress": interface.mac.to_ascii_lowercase()},
            "dhcp4": matches!(interface.ip, Some(Addressing::Dhcp)),
            "dhcp6": matches!(interface.ip6, Some(Addressing::Dhcp)),
        });
        if matches!(interface.ip6, Some(Addressing::Auto)) {
            config["accept-ra"] = json!(true);
        }
        if !fixed.is_empty() {
            config["addresses"] = json!(fixed);
        }
        let routes: Vec<Json> = [("0.0.0.0/0", &interface.gateway), ("::/0", &interface.gateway6)]
            .into_iter()
            .filter_map(|(to, via)| via.as_ref().map(|via| json!({"to": to, "via": via})))
            .collect();
        if !routes.is_empty() {
            config["routes"] = json!(routes);
        }
        if !cloud_init.nameservers.is_empty() {
            let servers: Vec<String> =
                cloud_init.nameservers.iter().map(|server| server.0.to_string()).collect();
            config["nameservers"] = json!({"addresses": servers});
            if let Some(domain) = &cloud_init.search_domain {
                config["nameservers"]["search"] = json!([domain]);
            }
        }
        ethernets.insert(interface.slot.clone(), config);
    }
    json!({"version": 2, "ethernets": ethernets}).to_string()
}
