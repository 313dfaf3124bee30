//! One table of field rules for each kind.

mod cidata;
mod cluster;
mod container;
mod datacenter;
mod dataset;
mod guest;
mod image;
mod machine;
mod vm;

use std::sync::LazyLock;

use crate::rules::KindRules;
use crate::{FieldPath, Kind};

/// Fields of a guest that only concern Proxmox and people. A change of any other one can be felt inside of a running guest, even if it
/// needs no restart: its network is unplugged for a moment, its disk or the whole guest moves, a firewall closes.
const UNFELT: [&str; 11] = [
    "boot_media",
    "clone",
    "mark",
    "name",
    "notes",
    "onboot",
    "pool",
    "protection",
    "startup",
    "tags",
    "timeouts",
];

/// Whether a running guest may feel a change of this field.
pub fn is_felt(path: &FieldPath) -> bool {
    path.first().is_some_and(|field| !UNFELT.contains(&field))
}

pub(crate) fn rules(kind: Kind) -> &'static KindRules {
    static IMAGE: LazyLock<KindRules> = LazyLock::new(image::rules);
    static CIDATA: LazyLock<KindRules> = LazyLock::new(cidata::rules);
    static VM: LazyLock<KindRules> = LazyLock::new(vm::rules);
    static CONTAINER: LazyLock<KindRules> = LazyLock::new(container::rules);
    static DATASET: LazyLock<KindRules> = LazyLock::new(dataset::rules);
    static MACHINE: LazyLock<KindRules> = LazyLock::new(machine::rules);
    static CLUSTER: LazyLock<KindRules> = LazyLock::new(cluster::rules);
    static ACCESS: LazyLock<KindRules> = LazyLock::new(datacenter::access_rules);
    static STORAGE: LazyLock<KindRules> = LazyLock::new(datacenter::storage_rules);
    static HOST: LazyLock<KindRules> = LazyLock::new(datacenter::host_rules);
    static FIREWALL: LazyLock<KindRules> = LazyLock::new(datacenter::firewall_rules);
    match kind {
        Kind::Image => &IMAGE,
        Kind::Cidata => &CIDATA,
        Kind::Template | Kind::Vm => &VM,
        Kind::Container => &CONTAINER,
        Kind::Dataset => &DATASET,
        Kind::Machine => &MACHINE,
        Kind::Schematic | Kind::Bootstrap | Kind::Kubernetes | Kind::Secret | Kind::Flux | Kind::Sync => {
            &CLUSTER
        }
        Kind::Pool | Kind::Role | Kind::Group | Kind::User | Kind::Token | Kind::Acl => &ACCESS,
        Kind::Storage | Kind::Mapping => &STORAGE,
        Kind::Dns | Kind::Timezone | Kind::Network => &HOST,
        Kind::Firewall | Kind::Alias | Kind::Ipset | Kind::SecurityGroup => &FIREWALL,
    }
}

#[cfg(test)]
mod tests {
    use crate::{FieldPath, Kind};

    /// The fields that the tables of the kinds name in their first lines. Those of guests are walked where they become keys of Proxmox.
    const FIELDS: &[(Kind, &str)] = &[
        (
            Kind::Vm,
            "vmid node name mark notes template bios machine ostype scsihw arch tablet acpi kvm onboot protection hotplug boot tags pool power agent.freeze efidisk.format networks.net0.trunks networks.net0.anything options.anything",
        ),
        (
            Kind::Container,
            "vmid node name mark notes tags pool onboot protection power image ostype unprivileged password ssh_keys template nameservers searchdomain timezone",
        ),
        (Kind::Image, "volume storage node content shared url checksum size"),
        (Kind::Cidata, "volume storage node shared files"),
        (Kind::Dataset, "dataset properties.compression"),
        (Kind::Machine, "role vm address version installer cordoned media foreign config.machine"),
        (Kind::Schematic, "schematic content factory"),
        (Kind::Bootstrap, "etcd id"),
        (Kind::Kubernetes, "kubernetes version"),
        (Kind::Secret, "namespace secret type data.key"),
        (Kind::Flux, "flux version source checksum"),
        (Kind::Sync, "namespace sync repository branch path interval decryption auth"),
        (Kind::Pool, "adopt mark pool comment"),
        (Kind::Role, "adopt role privileges"),
        (Kind::Group, "adopt mark group comment"),
        (Kind::User, "adopt mark user groups enabled expire email first_name last_name comment password"),
        (Kind::Token, "adopt mark token privsep expire comment secret"),
        (Kind::Acl, "adopt path subject subject_type grants propagate"),
        (
            Kind::Storage,
            "adopt storage type content nodes shared enabled sparse password options.key path server export share datastore namespace fingerprint username volume_group thin_pool pool",
        ),
        (Kind::Mapping, "adopt mark bus mapping comment mediated devices"),
        (Kind::Dns, "adopt dns servers search"),
        (Kind::Timezone, "adopt clock zone"),
        (
            Kind::Network,
            "adopt network staged interfaces.vmbr0 interfaces.vmbr0.ports interfaces.vmbr0.anything interfaces.vmbr0.options.key",
        ),
        (Kind::Firewall, "adopt firewall options.enable options.policy_in options.policy_out rules"),
        (Kind::Alias, "adopt mark alias cidr comment"),
        (Kind::Ipset, "adopt mark ipset addresses comment"),
        (Kind::SecurityGroup, "adopt mark security_group rules comment"),
    ];

    #[test]
    fn a15_every_field_has_a_rule() {
        for (kind, fields) in FIELDS {
            for field in fields.split(' ') {
                assert!(kind.rules().knows(&FieldPath::dotted(field)), "{kind}: `{field}` has no rule");
            }
        }
    }
}
