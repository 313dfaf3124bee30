//! The kinds that a TrueNAS has.

pub mod dataset;

pub use dataset::KIND as DATASET;
use strata_resource::register_kinds;

/// Makes the kinds known. Done at start-up, before anything is read.
pub fn register() {
    register_kinds(&[&dataset::TABLE]);
}
