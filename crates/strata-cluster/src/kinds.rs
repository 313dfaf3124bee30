//! The kinds that a Talos cluster has, one module each. `strata_resource::kind!` says how such a table is read.

pub mod bootstrap;
pub mod flux;
pub mod kubernetes;
pub mod machine;
pub mod schematic;
pub mod secret;
pub mod sync;

pub use bootstrap::KIND as BOOTSTRAP;
pub use flux::KIND as FLUX;
pub use kubernetes::KIND as KUBERNETES;
pub use machine::KIND as MACHINE;
pub use schematic::KIND as SCHEMATIC;
pub use secret::KIND as SECRET;
use strata_resource::{Kind, Spec, register_kinds};
pub use sync::KIND as SYNC;

/// What a node runs on, which another provider makes.
pub(crate) const VM: Kind = Kind::named("vm");

/// Makes the kinds known. Done at start-up, before anything is read.
pub fn register() {
    register_kinds(&[
        &schematic::TABLE,
        &machine::TABLE,
        &bootstrap::TABLE,
        &kubernetes::TABLE,
        &secret::TABLE,
        &flux::TABLE,
        &sync::TABLE,
    ]);
}

/// While something is removed from the state and left as it is, and when that is done.
const LETTING_GO: (&str, &str) = ("letting go", "let go");

/// What becomes of an object in a cluster: with the whole cluster it goes anyhow.
fn with_the_cluster(ends: bool, otherwise: &'static str) -> &'static str {
    if ends { "goes with the cluster" } else { otherwise }
}

fn goes_with_its_machines(_: &Spec, _: bool) -> &'static str {
    "goes with its machines"
}
