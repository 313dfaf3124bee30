//! The YAML core: files as trees that know where each value stands, and types that are read from them.
//!
//! [`parse`] makes a [`Node`] of a file, [`overlay`] lays one over another. [`record!`] declares a mapping in one table: its struct, its decoder
//! ([`Decode`]), its JSON Schema ([`schema`]) and its page of the reference ([`reference()`]) follow. [`edit`] changes a file and keeps its comments.
//! [`build`] makes trees of any kind from the parser's events; [`go`] reads and writes scalars as Go's programs do; [`plain`] is YAML without
//! places.
//!
//! Reading gathers: every mistake of a file is a diagnostic with its line, and what can be read is read all the same. Trees are limited in
//! bytes, depth, nodes and aliases, so that no file takes more memory than it is large. Nothing here does IO or names a record of Strata's.
//!
//! ```
//! use strata_diagnostics::{Diagnostics, SourceMap};
//! use strata_yaml::{Context, Decode, NoOutside, parse, record};
//!
//! record! {
//!     /// A shelf.
//!     pub struct Shelf {
//!         /// How wide it is, in cm.
//!         "width" width: u32 [range(30, 240)];
//!     }
//! }
//!
//! let (mut sources, mut found) = (SourceMap::new(), Diagnostics::new());
//! let file = sources.add("shelf.yaml", "width: 900\nwood: oak\n");
//! let tree = parse(&sources, file, &mut found).required(file, "a shelf", &mut found).unwrap();
//! let shelf = Shelf::decode(&tree, &mut Context::new(&mut found, &NoOutside));
//! assert!(shelf.is_none(), "it is too wide");
//! assert_eq!(found.iter().count(), 2, "and `wood` is no key: both are told");
//! ```

pub mod build;
mod decode;
pub mod edit;
pub mod go;
mod node;
mod overlay;
mod parse;
pub mod plain;
mod reference;
mod scalar;
mod schema;
mod shape;
mod spanned;
mod tables;

pub use decode::Decode;
pub use decode::choice::{Choice, decode_choice};
pub use decode::collection::Map;
pub use decode::context::{Context, NoOutside, Outside, without_final_break};
pub use decode::field_spans::FieldSpans;
pub use decode::key::Key;
pub use decode::partial::Partial;
pub use decode::primitive::{Raw, decode_text};
pub use decode::record::{Fields, Record, decode_record, join_doc};
pub use node::{Entry, Kind, Mapping, Node};
pub use overlay::overlay;
pub use parse::{MAX_ALIASED, MAX_BYTES, MAX_DEPTH, MAX_NODES, Parsed, parse};
pub use reference::{Reference, Source, Value};
pub use scalar::{Scalar, ScalarKind, Style, shorten};
pub use schema::schema;
pub use shape::{FieldSpec, RecordSpec, Rules, Shape, TextRule, TextShape};
pub use spanned::Spanned;
pub use tables::reference;
