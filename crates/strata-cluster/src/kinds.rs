//! The kinds that a Talos cluster has, one module each: the table of its fields (`strata_resource::kind!` says how it is read), and how
//! its objects are seen and what is done about them ([`managed`]).

pub mod bootstrap;
pub mod flux;
pub mod kubernetes;
pub mod machine;
pub(crate) mod managed;
pub mod schematic;
pub mod secret;
pub mod sync;

pub use bootstrap::KIND as BOOTSTRAP;
pub use flux::KIND as FLUX;
pub use kubernetes::KIND as KUBERNETES;
pub use machine::KIND as MACHINE;
pub use schematic::KIND as SCHEMATIC;
pub use secret::KIND as SECRET;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{Kind, Spec, register_kinds};
pub use sync::KIND as SYNC;

use self::managed::ManagedKind;

/// What a node runs on, which another provider makes.
pub(crate) const VM: Kind = Kind::named("vm");

/// Every kind, in the order in which plans put objects that do not depend on each other.
static KINDS: &[&dyn ManagedKind] = &[
    &schematic::Schematic,
    &machine::Machine,
    &bootstrap::Bootstrap,
    &kubernetes::Kubernetes,
    &secret::Secret,
    &flux::Flux,
    &sync::Sync,
];

/// Makes the kinds known. Done at start-up, before anything is read.
pub fn register() {
    let tables: Vec<_> = KINDS.iter().map(|kind| kind.table()).collect();
    register_kinds(&tables);
}

pub(crate) fn of(kind: Kind) -> Option<&'static dyn ManagedKind> {
    KINDS.iter().copied().find(|managed| managed.table().kind() == kind)
}

pub(crate) fn unknown(kind: Kind) -> ProviderError {
    ProviderError::new(ErrorClass::Internal, format!("a cluster has no {kind}"))
}

/// Why `strata sync` renders nothing for OpenTofu.
const BY_TALOS: Option<&str> = Some("talhelper or topf do it: OpenTofu only makes the machines");
const BY_FLUX: Option<&str> = Some("Flux' own bootstrap does it: OpenTofu only makes the machines");

/// While something is removed from the state and left as it is, and when that is done.
const REMOVING_FROM_STATE: (&str, &str) = ("removing from state", "removed from state");

/// What becomes of an object in a cluster: with the whole cluster it goes anyhow.
fn with_the_cluster(ends: bool, otherwise: &'static str) -> &'static str {
    if ends { "goes with the cluster" } else { otherwise }
}

fn goes_with_its_machines(_: &Spec, _: bool) -> &'static str {
    "goes with its machines"
}
