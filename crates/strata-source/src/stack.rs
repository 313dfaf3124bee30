//! `stacks/<path>/stack.yaml`: templates, virtual machines and containers; or what OpenTofu's code beside it needs.

pub mod expand;
pub mod group;
pub mod id_range;
pub mod output;
pub mod tofu;

use strata_yaml::{Map, Spanned, TextRule, TextShape, choice, record};

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

/// A Proxmox node, and how much it is preferred.
const HA_NODE: TextRule = TextRule {
    shape: TextShape {
        what: "a Proxmox node, with `:` and its priority where it has one",
        pattern: Some("^[A-Za-z0-9][A-Za-z0-9-]*(:[1-9][0-9]{0,3})?$"),
    },
    accepts: |text| {
        let (node, priority) = text.split_once(':').unwrap_or((text, "1"));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let node = node.bytes().all(plain) && node.starts_with(|first: char| first.is_ascii_alphanumeric());
        // Proxmox drops a priority of 0.
        let written = priority.len() < 5 && priority.bytes().all(|byte| byte.is_ascii_digit());
        node && written && !priority.starts_with('0') && !priority.is_empty()
    },
};

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
        /// the Proxmox node; `any` has one chosen for each guest when it is made
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

choice! {
    /// Whether guests are kept together.
    pub enum HaAffinity {
        /// All of them on one host.
        Positive = "positive",
        /// Each on another host.
        Negative = "negative",
    }
}

record! {
    /// Where high availability may put guests.
    pub struct HaRule [at_most_one(&["nodes", "affinity"])] {
        /// guests of this stack that have `ha`: `vms.web`, `containers.dns`
        "guests" guests: Vec<Spanned<String>>;
        /// the hosts that they belong on, with a priority where one is preferred: `pve1:2`
        "nodes" nodes: Vec<Spanned<String>> [text(HA_NODE)];
        /// with `nodes`: never on any other host, also if none of these is there
        "strict" strict: Option<bool>;
        /// `positive` keeps them on one host, `negative` on different ones
        "affinity" affinity: Option<HaAffinity>;
        /// whether it applies
        "enabled" enabled: bool = true;
        /// for people
        "comment" comment: Option<String> [env()];
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
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
        at_most_one(&["tofu", "haRules"]),
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
        /// where high availability may put guests, by the id of the rule
        "haRules" ha_rules: Map<HaRule> [keys(ID)];
        /// what others may ask of this stack, by name: `vms.web[*].address`
        "outputs" outputs: Map<Spanned<OutputPath>> [keys(NAME), env()];
    }
}
