//! What a VM is told at its first boot: through Proxmox' own cloud-init drive, or, with documents of the user's own, through a
//! NoCloud ISO that takes the drive's place and never sits beside it.

mod documents;

use sha2::{Digest, Sha256};
use strata_resource::{Resource, RestartPolicy, Secret, Spec, Stage, Value};
use strata_source::machine::cloud_init::CloudInit;
use strata_source::machine::image::ContentType;
use strata_source::machine::network::Nic;
use strata_source::value::address::Addressing;
use strata_yaml::{Spanned, Value as Written};

use crate::fields::{Fields, int, list};
use crate::hardware::{Built, CD_DRIVE, Machine};
use crate::kinds;
use crate::resolved::Resolved;
use crate::site::Draft;

/// The slot that the data come in where the CD drive is taken by an ISO.
const SECOND_DRIVE: &str = "ide0";

/// The addresses of one interface of one machine.
pub(crate) struct Interface {
    pub(crate) slot: String,
    pub(crate) mac: String,
    pub(crate) ip: Option<Addressing>,
    pub(crate) gateway: Option<String>,
    pub(crate) ip6: Option<Addressing>,
    pub(crate) gateway6: Option<String>,
}

impl Interface {
    fn has_address(&self) -> bool {
        self.ip.is_some() || self.ip6.is_some()
    }
}

pub(crate) fn addressing(addressing: Addressing) -> String {
    match addressing {
        Addressing::Dhcp => "dhcp".to_owned(),
        Addressing::Auto => "auto".to_owned(),
        Addressing::Static(cidr) => cidr.to_string(),
    }
}

impl Draft<'_> {
    /// The interfaces of a machine, from its network devices; `of` gives the address of this very machine.
    pub(crate) fn interfaces<'n>(
        built: &Built,
        nics: impl Iterator<Item = (&'n Spanned<String>, &'n Nic)>,
        of: &dyn Fn(Addressing) -> Option<Addressing>,
    ) -> Vec<Interface> {
        let networks = built.spec.get("networks").and_then(Value::as_map);
        nics.map(|(slot, nic)| Interface {
            slot: slot.value.clone(),
            mac: networks
                .and_then(|networks| networks.get(slot.as_str())?.as_map()?.get("mac")?.as_text())
                .unwrap_or_default()
                .to_owned(),
            ip: nic.ip.as_ref().and_then(|ip| of(ip.value)),
            gateway: nic.gateway.as_ref().map(|gateway| gateway.0.to_string()),
            ip6: nic.ip6.as_ref().and_then(|ip| of(ip.value)),
            gateway6: nic.gateway6.as_ref().map(|gateway| gateway.0.to_string()),
        })
        .collect()
    }

    pub(crate) fn cloud_init(
        &mut self,
        machine: &Machine<'_>,
        vm_id: u32,
        cloud_init: Option<&CloudInit>,
        interfaces: &[Interface],
        built: &mut Built,
    ) {
        let has_address = interfaces.iter().any(Interface::has_address);
        match cloud_init {
            Some(cloud_init) if cloud_init.custom().next().is_some() => {
                self.iso(machine, vm_id, cloud_init, interfaces, built);
            }
            None if !has_address => {}
            cloud_init => self.drive(machine, cloud_init, interfaces, built),
        }
    }

    /// Proxmox makes the data from these fields.
    fn drive(
        &mut self,
        machine: &Machine<'_>,
        cloud_init: Option<&CloudInit>,
        interfaces: &[Interface],
        built: &mut Built,
    ) {
        let mut spec = Spec::new();
        let own = cloud_init
            .and_then(|cloud_init| cloud_init.storage.as_ref())
            .map(|storage| storage.value.clone());
        let storage = own.or_else(|| built.home()).unwrap_or_else(|| machine.storage.of_disks().to_owned());
        let mut drive = Spec::new();
        let slot = cloud_init.and_then(|cloud_init| cloud_init.slot.as_ref());
        drive.put("slot", slot.map_or_else(|| free_drive(&built.spec), |slot| slot.value.as_str()));
        drive.put("storage", storage);
        spec.put("drive", drive);
        if let Some(cloud_init) = cloud_init {
            spec.put_some("user", cloud_init.user.as_ref().and_then(|user| self.text(user)));
            spec.put_some(
                "password",
                cloud_init.password.as_ref().and_then(|password| self.secret(password)),
            );
            let keys = self.keys(&cloud_init.ssh_keys).into_iter().map(Resolved::into_value);
            spec.put_full("ssh_keys", Value::List(keys.collect()));
            spec.put_full("nameservers", list(cloud_init.nameservers.iter().map(|server| server.0)));
            spec.put_some("searchdomain", cloud_init.search_domain.clone());
            spec.put_some("upgrade", cloud_init.upgrade);
            spec.put_some("type", cloud_init.kind.map(|kind| kind.to_string()));
        }
        let mut configs = Spec::new();
        for interface in interfaces.iter().filter(|interface| interface.has_address()) {
            let mut config = Spec::new();
            config.put_some("ip", interface.ip.map(addressing));
            config.put_some("gateway", interface.gateway.clone());
            config.put_some("ip6", interface.ip6.map(addressing));
            config.put_some("gateway6", interface.gateway6.clone());
            configs.put(&interface.slot.replace("net", "ipconfig"), config);
        }
        spec.put_full("ipconfig", Value::Map(configs));
        built.spec.put("cloudinit", spec);
    }

    /// An ISO with the user's own documents.
    fn iso(
        &mut self,
        machine: &Machine<'_>,
        vm_id: u32,
        cloud_init: &CloudInit,
        interfaces: &[Interface],
        built: &mut Built,
    ) {
        let Some(files) = self.documents(machine, vm_id, cloud_init, interfaces) else { return };
        let mut hash = Sha256::new();
        for (name, text) in &files {
            for part in [name.as_bytes(), text.expose().as_bytes()] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
        }
        let content = hex::encode(&hash.finalize()[..6]);
        let storage = machine.storage.of_images(ContentType::Iso).to_owned();
        let volume = format!("{storage}:iso/strata-{}-{vm_id}-{content}.iso", self.site.lineage.short());
        let address = self.address(kinds::CIDATA, machine.address.name());
        let volume = self.as_made(&address, &volume);
        let files = files.into_iter().map(|(name, text)| (name, Value::Secret(Secret::new(text)))).collect();
        let mut spec = Spec::new();
        spec.put("volume", volume.clone());
        spec.put("storage", storage.clone());
        spec.put("node", machine.node);
        spec.put("shared", self.is_shared(&storage));
        spec.put("vmid", int(vm_id));
        spec.put("files", Value::Map(files));
        self.insert(Resource {
            address: address.clone(),
            target: self.target.clone(),
            spec,
            depends_on: Default::default(),
            stage: Stage::Compute,
            protect: false,
            on_change: RestartPolicy::default(),
            ignore: Vec::new(),
            limits: vec![format!("storage:{}/{storage}", machine.node)],
            origin: self.origin(machine.name.span),
        });
        built.needs.insert(address);
        // The guest reads the ISO when it boots: a new content needs a restart, not only another CD in the drive.
        built.spec.put("cloudinit", Spec::from([("content".to_owned(), Value::Text(content))]));
        let slot =
            cloud_init.slot.as_ref().map_or_else(|| free_drive(&built.spec), |slot| slot.value.as_str());
        let slot = slot.to_owned();
        let cdroms = built.spec.entry("cdroms".to_owned()).or_insert_with(|| Value::Map(Spec::new()));
        if let Value::Map(cdroms) = cdroms {
            cdroms.put(&slot, Spec::from([("volume".to_owned(), Value::Text(volume))]));
        }
    }

    /// A value that may come from outside. What comes from an encrypted file stays a secret.
    pub(crate) fn text(&mut self, written: &Written<String>) -> Option<Value> {
        match written {
            Written::Literal(text) => Some(Value::Text(text.clone())),
            Written::Reference(reference) => self.resolve(reference).map(Resolved::into_value),
        }
    }

    pub(crate) fn secret(&mut self, written: &Written<String>) -> Option<Value> {
        self.resolve_written(written).map(|resolved| Value::Secret(Secret::new(resolved.into_secret())))
    }

    /// Public keys, one a line; a file may hold several.
    pub(crate) fn keys(&mut self, written: &[Written<String>]) -> Vec<Resolved> {
        let resolved: Vec<Resolved> =
            written.iter().filter_map(|written| self.resolve_written(written)).collect();
        resolved.into_iter().flat_map(Resolved::into_lines).collect()
    }
}

fn free_drive(spec: &Spec) -> &'static str {
    let taken =
        spec.get("cdroms").and_then(Value::as_map).is_some_and(|cdroms| cdroms.contains_key(CD_DRIVE));
    if taken { SECOND_DRIVE } else { CD_DRIVE }
}
