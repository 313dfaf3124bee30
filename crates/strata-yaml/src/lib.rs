//! Parser events → spanned tree; a decoder that gathers all errors; overlays; JSON Schema from the same description.

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
