//! The vocabulary: address, spec and graph of what is managed; what a kind's table says; what a change asks for.
//!
//! An [`Address`] names an object (`web/vm/app`), a [`Spec`] is what it should be or is, a [`ResourceGraph`] what a stack wants. A kind is a
//! table ([`kind!`]) in the crate that talks to its remote; [`diff_specs`] compares what is wanted, what was applied and what is live by it.
//! [`Lineage`] and [`Mark`] say whose an object is.
//!
//! Nothing here does IO, names a kind or knows a wire format. Fields that are neither wanted nor were ever applied are nobody's: no diff
//! speaks of them. Equal specs are equal as text.
//!
//! ```
//! use strata_resource::{KindTable, Spec, Value, diff_specs, fields, register_kinds};
//!
//! static SHELF: KindTable = KindTable::new("shelf", "A shelf.", fields! {
//!     /// its name
//!     "shelf": Text => InPlace;
//!     /// how many books fit
//!     "width": Int => Replace [because("a shelf cannot be widened")];
//! });
//! register_kinds(&[&SHELF]);
//! let spec = |width| Spec::from([("width".to_owned(), Value::Int(width))]);
//! let diff = diff_specs(SHELF.kind().rules(), &spec(40), Some(&spec(30)), &spec(30));
//! assert_eq!(diff.changes[0].path.to_string(), "width");
//! ```

#![warn(missing_docs)]

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
pub use graph::{GraphError, IgnoredField, Layer, Resource, ResourceGraph, RestartPolicy, Stage};
pub use identity::{CommentMark, Lineage, Mark};
pub use kind::{Kind, register_kinds, registered_kinds};
pub use path::FieldPath;
pub use rules::{ChangeEffect, FieldRule, FieldType, KindRules, Literal, Purpose, Unit};
pub use table::{Content, KindTable, MadeFrom, RestartGroup, Rollout, Said, Shape, Shown, fill};
pub use value::{Secret, Spec, Value, claimed_spec, secret_like, stored_spec, with_slots};
