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

use crate::Kind;
use crate::rules::KindRules;

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
