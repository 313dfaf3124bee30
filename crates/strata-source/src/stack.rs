//! `stacks/<path>/stack.yaml`: templates, virtual machines and containers; or what OpenTofu's code beside it needs.

pub mod expand;
pub mod group;
pub mod id_range;
pub mod output;
pub mod tofu;

use strata_yaml::{Map, Spanned, choice, record};

use crate::machine::container::Container;
use crate::machine::image::Image;
use crate::machine::profile::Profile;
use crate::machine::template::Template;
use crate::machine::vm::Vm;
use crate::stack::id_range::IdRange;
use crate::stack::output::OutputPath;
use crate::stack::tofu::TofuInputs;
use crate::value::name::{HOST, ID, NAME, SUBJECT};
use crate::value::place::VM_ID;

choice! {
    /// What may depend on what: a lower layer never needs a higher one.
    pub enum Layer { Hypervisors = "hypervisors", Platforms = "platforms", Workloads = "workloads" | "standalone" }
}

record! {
    /// Who the stack is.
    pub struct Metadata {
        /// otherwise the name of its folder
        "name" name: Option<Spanned<String>> [text(NAME)];
        /// the environment it is in without `-e`
        "environment" environment: Option<Spanned<String>> [text(NAME)];
        /// what it is for, for people: `strata graph` shows it
        "description" description: Option<String> [env()];
        /// otherwise by the folder it is in
        "layer" layer: Option<Layer>;
        /// stacks that are applied before this one
        "dependsOn" depends_on: Vec<Spanned<String>>;
    }
}

record! {
    /// Where volumes go unless something says otherwise.
    pub struct StorageDefaults [shorthand("disk")] {
        /// disks and container volumes
        "disk" disk: Option<Spanned<String>> [text(ID), aliases(&["datastore"])];
        /// CD images
        "iso" iso: Option<Spanned<String>> [text(ID)];
        /// disk images that disks are imported from; otherwise where CD images go
        "import" import: Option<Spanned<String>> [text(ID)];
        /// container templates; otherwise where CD images go
        "vztmpl" vztmpl: Option<Spanned<String>> [text(ID)];
        /// a CD image that is there already
        "isoPath" iso_path: Option<Spanned<String>>;
    }
}

record! {
    /// Where the stack lives.
    pub struct StackProxmox [at_most_one(&["node", "nodes"])] {
        /// one of the targets of strata.yaml
        "target" target: Option<Spanned<String>> [text(NAME)];
        /// the Proxmox node
        "node" node: Option<Spanned<String>> [text(ID)];
        /// Proxmox nodes that guests with `count` are spread over
        "nodes" nodes: Vec<Spanned<String>> [text(ID)];
        /// where volumes go unless something says otherwise
        "storage" storage: Option<StorageDefaults>;
        /// the pool that guests are members of
        "pool" pool: Option<Spanned<String>> [env()];
        /// the VMIDs that this stack keeps to: `9100-9199`
        "idRange" id_range: Option<Spanned<IdRange>> [label(VM_ID)];
    }
}

record! {
    /// What has another address now. It stays as it is: only its ownership mark, and a name that comes from its key, change.
    pub struct Moved {
        /// the address that it had: `web/vm/db`; or a whole stack, `web`
        "from" from: Spanned<String> [text(SUBJECT)];
        /// the address that it has now, or the stack
        "to" to: Spanned<String> [text(SUBJECT)];
    }
}

record! {
    /// A stack of machines, or one written by hand in OpenTofu.
    pub struct Stack [
        document,
        at_most_one(&["tofu", "proxmox"]),
        at_most_one(&["tofu", "images"]),
        at_most_one(&["tofu", "templates"]),
        at_most_one(&["tofu", "vms"]),
        at_most_one(&["tofu", "containers"]),
        at_most_one(&["tofu", "outputs"]),
        at_most_one(&["tofu", "profiles"])
    ] {
        /// who the stack is
        "metadata" metadata: Option<Metadata>;
        /// what has another address now, in whatever stack it was and is
        "moved" moved: Vec<Moved>;
        /// the OpenTofu code beside this file was written by hand: it is driven, not rendered
        "tofu" tofu: Option<TofuInputs>;
        /// where it lives
        "proxmox" proxmox: Option<StackProxmox>;
        /// named sets of fields, for `use` in this stack; they win over those of strata.yaml
        "profiles" profiles: Map<Profile> [keys(NAME)];
        /// images that machines refer to by name
        "images" images: Map<Image> [keys(NAME)];
        /// VMs that others are cloned from
        "templates" templates: Map<Template> [keys(HOST)];
        /// virtual machines
        "vms" vms: Map<Vm> [keys(HOST)];
        /// LXC containers
        "containers" containers: Map<Container> [keys(HOST)];
        /// what others may ask of this stack, by name: `vms.web[*].address`
        "outputs" outputs: Map<Spanned<OutputPath>> [keys(NAME), env()];
    }
}
