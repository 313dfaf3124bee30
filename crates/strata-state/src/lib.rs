//! The state document and its stores: locks, history, journal.

mod document;

pub use document::{DeposedObject, FORMAT, StateDocument, StateResource};
