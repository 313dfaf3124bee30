//! What OpenTofu built, told by its state: the machines, volumes and clusters that Strata can take over, and what it cannot.
//!
//! With a repository, these are matched with its resources; without one, `repository` writes one.

mod cluster;
mod container;
mod datacenter;
mod firewall;
mod guest;
mod image;
mod nodes_file;
mod repository;
mod vm;

use strata_blueprint::kinds;
use strata_resource::Kind;
use strata_secret::SecretString;

pub use cluster::{BuiltCluster, BuiltNode};
pub use datacenter::BuiltObject;
pub use nodes_file::{nodes_file, with_patches};
pub use repository::{Connection, Repository, write_repository};
use strata_tofu::{Attributes, TofuResource, TofuState};

const VMS: [&str; 5] = [
    "proxmox_virtual_environment_vm",
    "proxmox_virtual_environment_vm2",
    "proxmox_virtual_environment_cloned_vm",
    "proxmox_vm",
    "proxmox_cloned_vm",
];
const CONTAINER: &str = "proxmox_virtual_environment_container";
const DOWNLOADS: [&str; 2] = ["proxmox_download_file", "proxmox_virtual_environment_download_file"];
const FILE: &str = "proxmox_virtual_environment_file";
/// Documents of cloud-init, and the fields that name their files.
const DOCUMENTS: [(&str, &str); 4] = [
    ("user-data", "user_data_file_id"),
    ("meta-data", "meta_data_file_id"),
    ("network-config", "network_data_file_id"),
    ("vendor-data", "vendor_data_file_id"),
];
const FIREWALL_OPTIONS: &str = "proxmox_virtual_environment_firewall_options";
const FIREWALL_RULES: &str = "proxmox_virtual_environment_firewall_rules";
const MEMBERSHIPS: [&str; 2] = ["proxmox_pool_membership", "proxmox_virtual_environment_pool_membership"];

/// Something that was not carried over as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateNote {
    /// The address in the state.
    pub address: String,
    /// What was not carried over, and why.
    pub message: String,
}

impl StateNote {
    fn new(address: &str, message: impl Into<String>) -> Self {
        Self { address: address.to_owned(), message: message.into() }
    }
}

/// A machine that OpenTofu built.
pub struct BuiltGuest {
    /// The address in the state.
    pub address: String,
    /// A template is a VM that others are cloned from.
    pub kind: Kind,
    /// Its VMID.
    pub vm_id: u32,
    /// The host that it is on.
    pub node: String,
    /// What it is called in Proxmox.
    pub name: String,
    /// What it is known by: the hardware address of its first network device, or its name.
    pub proof: String,
    /// Its documents of cloud-init, where those are files on a storage.
    pub snippets: Vec<Snippet>,
}

/// A document of cloud-init as a file on a storage.
#[derive(Clone)]
pub struct Snippet {
    /// As cloud-init calls it: `user-data`.
    pub file: &'static str,
    /// `local:snippets/web.yaml`.
    pub volume: String,
    /// What is in it, where the state knows.
    pub content: Option<SecretString>,
}

/// A volume that OpenTofu had downloaded.
pub struct BuiltVolume {
    /// The address in the state.
    pub address: String,
    /// `local:iso/debian.iso`.
    pub volume: String,
    /// A host that sees it.
    pub node: String,
    /// In bytes, where the state knows.
    pub size: Option<i64>,
}

/// All that can be taken over.
pub struct BuiltObjects {
    /// VMs, templates and containers.
    pub guests: Vec<BuiltGuest>,
    /// Downloaded images.
    pub volumes: Vec<BuiltVolume>,
    /// Everything else of the datacenter.
    pub objects: Vec<BuiltObject>,
    /// Clusters with Talos.
    pub clusters: Vec<BuiltCluster>,
    /// What cannot be.
    pub notes: Vec<StateNote>,
}

impl BuiltObjects {
    /// What a state holds. Data sources are nobody's.
    pub fn of(state: &TofuState) -> Self {
        let mut notes: Vec<StateNote> =
            state.unusable.iter().map(|(address, reason)| StateNote::new(address, *reason)).collect();
        let (mut guests, mut volumes, mut objects) = (Vec::new(), Vec::new(), Vec::new());
        for resource in state.resources.iter().filter(|resource| !resource.is_data) {
            if is_guest(resource) {
                match built_guest(state, resource) {
                    Some(guest) => guests.push(guest),
                    None => notes.push(StateNote::new(&resource.address, "the state does not say its VMID")),
                }
            } else if DOWNLOADS.contains(&resource.kind.as_str()) {
                volumes.extend(built_volume(resource));
            } else if let Some(object) = datacenter::built(resource) {
                objects.push(object);
            } else if let Some(message) = left_alone(resource) {
                notes.push(StateNote::new(&resource.address, message));
            }
        }
        let clusters = cluster::built(state, &mut notes);
        Self { guests, volumes, objects, clusters, notes }
    }

    /// Whether nothing can be taken over.
    pub fn is_empty(&self) -> bool {
        !self.is_on_proxmox() && self.volumes.is_empty() && self.clusters.is_empty()
    }

    /// Whether a new repository needs a Proxmox to take it over from; volumes alone become nothing.
    pub fn is_on_proxmox(&self) -> bool {
        !self.guests.is_empty() || !self.objects.is_empty()
    }
}

fn is_guest(resource: &TofuResource) -> bool {
    VMS.contains(&resource.kind.as_str()) || resource.kind == CONTAINER
}

/// The number of a machine.
fn vm_id(attributes: Attributes<'_>) -> Option<u32> {
    let id = attributes.positive("vm_id").or_else(|| attributes.positive("id"))?;
    u32::try_from(id).ok()
}

fn built_guest(state: &TofuState, resource: &TofuResource) -> Option<BuiltGuest> {
    let attributes = resource.attributes();
    let is_container = resource.kind == CONTAINER;
    let kind = match (is_container, attributes.flag("template")) {
        (true, _) => kinds::CONTAINER,
        (false, Some(true)) => kinds::TEMPLATE,
        (false, _) => kinds::VM,
    };
    let initialization = attributes.block("initialization");
    let hostname = initialization.filter(|_| is_container).and_then(|inner| inner.text("hostname"));
    let name = hostname.or_else(|| attributes.text("name")).unwrap_or_default().to_owned();
    let devices = if is_container { "network_interface" } else { "network_device" };
    let first = attributes.blocks(devices).into_iter().next();
    let by_slot = attributes.entries("network");
    let first = first.or_else(|| by_slot.iter().find(|(slot, _)| *slot == "net0").map(|(_, device)| *device));
    let mac = first.and_then(|device| device.text("mac_address")).map(str::to_ascii_uppercase);
    let documents = DOCUMENTS.into_iter().filter_map(|(file, field)| {
        let volume = initialization?.text(field).filter(|volume| !volume.is_empty())?;
        Some(Snippet { file, volume: volume.to_owned(), content: content(state, volume) })
    });
    Some(BuiltGuest {
        snippets: documents.collect(),
        address: resource.address.clone(),
        kind,
        vm_id: vm_id(attributes)?,
        node: attributes.text("node_name").unwrap_or_default().to_owned(),
        proof: mac.unwrap_or_else(|| name.clone()),
        name,
    })
}

/// What is in a file that the state has brought.
fn content(state: &TofuState, volume: &str) -> Option<SecretString> {
    let files = state.resources.iter().filter(|resource| resource.kind == FILE && !resource.is_data);
    let mut own = files.map(TofuResource::attributes).filter(|file| file.text("id") == Some(volume));
    let text = own.next()?.block("source_raw")?.text("data")?;
    Some(SecretString::new(text.to_owned()))
}

fn built_volume(resource: &TofuResource) -> Option<BuiltVolume> {
    let attributes = resource.attributes();
    Some(BuiltVolume {
        address: resource.address.clone(),
        volume: attributes.text("id")?.to_owned(),
        node: attributes.text("node_name").unwrap_or_default().to_owned(),
        size: attributes.positive("size"),
    })
}

/// Why a resource is not taken over; nothing for those that are part of others.
fn left_alone(resource: &TofuResource) -> Option<String> {
    let attributes = resource.attributes();
    let kind = resource.kind.as_str();
    if kind == FILE {
        let volume = attributes.text("id").unwrap_or_default();
        return Some(format!(
            "the file `{volume}` stays as it is: machines refer to it, and Strata does not manage it"
        ));
    }
    if kind == FIREWALL_OPTIONS || kind == FIREWALL_RULES {
        let of_guest = attributes.positive("vm_id").or_else(|| attributes.positive("container_id"));
        return of_guest.is_none().then(|| "the firewall of a node stays as it is".to_owned());
    }
    if MEMBERSHIPS.contains(&kind) && attributes.positive("vm_id").is_some() {
        return None;
    }
    if kind.starts_with("talos_") {
        return None;
    }
    let which = if kind.starts_with("proxmox") {
        "it stays as it is: Strata has no place for it yet, and OpenTofu can go on managing it"
    } else {
        "it stays as it is: it belongs to a provider that Strata does not stand in for"
    };
    Some(which.to_owned())
}
