//! The vocabulary: address, kind, spec of every managed object, inputs from other resources, secrecy, field rules, diff.
//!
//! Nothing here does IO, and nothing here names a kind or knows a wire format. A kind is a table ([`kind!`]) in the crate that talks to its
//! remote; diff, planner and views are generic over those tables.

mod address;
mod diff;
mod graph;
mod identity;
mod kind;
mod path;
mod rules;
mod table;
mod value;

pub use address::{Address, AddressError};
pub use diff::{FieldChange, Refusal, SpecDiff, diff_specs, diff_unfinished, drift_between};
pub use graph::{GraphError, Layer, Resource, ResourceGraph, RestartPolicy, Stage};
pub use identity::{CommentMark, Lineage, Mark};
pub use kind::{Kind, register_kinds, registered_kinds};
pub use path::FieldPath;
pub use rules::{ChangeEffect, FieldRule, FieldType, KindRules, Literal, Purpose, Unit};
pub use table::{Content, KindTable, MadeFrom, Rollout, Shape, Shown, fill};
pub use value::{Secret, Spec, Value, claimed_spec, secret_like, stored_spec};
