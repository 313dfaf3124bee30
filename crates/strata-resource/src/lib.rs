//! The vocabulary: address, kind, spec of every managed object, inputs from other resources, secrecy, field rules, diff.
//!
//! Nothing here does IO and nothing here knows Proxmox' wire format. A kind is a table of field rules (`kinds/`); the diff is
//! generic over those tables.

mod address;
mod diff;
mod graph;
mod identity;
mod kind;
mod kinds;
mod path;
mod rules;
mod value;

pub use address::{Address, AddressError};
pub use diff::{FieldChange, Refusal, SpecDiff, diff_specs, diff_unfinished, drift_between};
pub use graph::{GraphError, Layer, Resource, ResourceGraph, RestartPolicy, Stage};
pub use identity::{CommentMark, Lineage, Mark, identity_of};
pub use kind::Kind;
pub use kinds::is_felt;
pub use path::FieldPath;
pub use rules::{ChangeEffect, FieldRule, KindRules, Literal, Unit};
pub use value::{Secret, Spec, Value, claimed_spec, secret_like, stored_spec};
