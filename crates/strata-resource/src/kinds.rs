//! One table of field rules for each kind.

mod cidata;
mod cluster;
mod container;
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
    }
}
