//! The parameter tables beside the published schema of the API.

mod compare;
mod published;
mod schema;
mod write;
