//! One table of field rules for each kind.

mod cidata;
mod container;
mod guest;
mod image;
mod vm;

use std::sync::LazyLock;

use crate::Kind;
use crate::rules::KindRules;

pub(crate) fn rules(kind: Kind) -> &'static KindRules {
    static IMAGE: LazyLock<KindRules> = LazyLock::new(image::rules);
    static CIDATA: LazyLock<KindRules> = LazyLock::new(cidata::rules);
    static VM: LazyLock<KindRules> = LazyLock::new(vm::rules);
    static CONTAINER: LazyLock<KindRules> = LazyLock::new(container::rules);
    match kind {
        Kind::Image => &IMAGE,
        Kind::Cidata => &CIDATA,
        Kind::Template | Kind::Vm => &VM,
        Kind::Container => &CONTAINER,
    }
}
