//! Storages, and devices that guests refer to by name.

use strata_diagnostics::Diagnostic;
use strata_resource::{Spec, Value};
use strata_source::hypervisor::storage::Storage;
use strata_source::hypervisor::{Hypervisor, MappedDevice, Mapping};
use strata_yaml::Spanned;

use super::Part;
use crate::fields::{Fields, int, list};
use crate::guest::raw;
use crate::kinds;
use crate::site::Draft;

/// What Proxmox keeps apart and never tells.
const SECRETS: [&str; 4] = ["encryption-key", "master-pubkey", "keyring", "password"];

impl Draft<'_> {
    pub(super) fn storages_and_mappings(&mut self, hypervisor: &Hypervisor) {
        for (name, storage) in hypervisor.storages.iter() {
            self.storage(name, storage);
        }
        let Some(mappings) = &hypervisor.mappings else { return };
        for (bus, mappings) in [("pci", &mappings.pci), ("usb", &mappings.usb)] {
            for (name, mapping) in mappings.iter() {
                self.mapping(bus, name, mapping);
            }
        }
    }

    fn storage(&mut self, name: &Spanned<String>, storage: &Storage) {
        let mut part = Part::new(kinds::STORAGE, name, name.span).flags(storage.adopt, storage.protect);
        for (key, _) in storage.options.iter().filter(|(key, _)| SECRETS.contains(&key.as_str())) {
            let message =
                format!("`{key}` of the storage `{name}` is a secret, and `options` are shown to everyone");
            let hint = match key.as_str() {
                "password" => "write it as `password: {secret: NAME}`, beside `options`",
                _ => "set it in Proxmox: Strata leaves the keys of a storage alone",
            };
            self.found.push(Diagnostic::error("secret-option", message).at(key.span).hint(hint));
        }
        if let Some(path) = storage.path.as_deref().filter(|path| path.starts_with('/')) {
            let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
            let kept = format!("/{}", parts.join("/"));
            if kept != path {
                let message =
                    format!("`{path}` of the storage `{name}` is not how Proxmox keeps that folder");
                let problem = Diagnostic::error("not-a-folder", message).at(name.span);
                self.found.push(problem.hint(format!("write `{kept}`")));
            }
        }
        let spec = &mut part.spec;
        spec.put("storage", name.as_str());
        spec.put("type", storage.kind.to_string());
        spec.put_full("content", list(storage.content.iter()));
        spec.put_full("nodes", list(storage.nodes.iter().map(|node| &node.value)));
        spec.put_some("shared", storage.shared);
        spec.put("enabled", storage.enabled);
        let texts = [
            ("path", &storage.path),
            ("server", &storage.server),
            ("export", &storage.export),
            ("share", &storage.share),
            ("datastore", &storage.datastore),
            ("namespace", &storage.namespace),
            ("fingerprint", &storage.fingerprint),
            ("volume_group", &storage.volume_group),
            ("thin_pool", &storage.thin_pool),
            ("pool", &storage.pool),
        ];
        for (field, text) in texts {
            spec.put_some(field, text.clone());
        }
        spec.put_some("sparse", storage.sparse);
        spec.put_full("options", raw(storage.options.iter().map(|(key, value)| (key.as_str(), value))));
        // Proxmox shows it to everyone who sees the storage; whether we do is for the source to say.
        let username = storage.username.as_ref().and_then(|name| self.text(name));
        part.spec.put_some("username", username);
        let password = storage.password.as_ref().and_then(|password| self.secret(password));
        part.spec.put_some("password", password);
        self.part(part);
    }

    fn mapping(&mut self, bus: &str, name: &Spanned<String>, mapping: &Mapping) {
        let address_name = format!("{bus}-{name}");
        let mut part =
            Part::new(kinds::MAPPING, &address_name, name.span).flags(mapping.adopt, mapping.protect);
        let spec = &mut part.spec;
        spec.put("bus", bus);
        spec.put("mapping", name.as_str());
        if bus == "pci" {
            spec.put_some("mediated", mapping.mediated);
        }
        spec.put("devices", Value::List(mapping.devices.iter().map(device).collect()));
        self.comment(spec, kinds::MAPPING, &address_name, mapping.comment.as_ref());
        if mapping.devices.is_empty() {
            self.refuse("no-device", format!("the mapping `{name}` stands for no device"), name.span);
        }
        self.part(part);
    }
}

fn device(device: &MappedDevice) -> Value {
    let mut spec = Spec::new();
    spec.put("node", device.node.as_str());
    spec.put_some("path", device.path.as_ref().map(|path| path.value.clone()));
    spec.put_some("id", device.id.clone());
    spec.put_some("subsystem_id", device.subsystem_id.clone());
    spec.put_some("iommu_group", device.iommu_group.map(int));
    Value::Map(spec)
}
