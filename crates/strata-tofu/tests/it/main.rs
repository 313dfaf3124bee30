//! The crate as its users see it: files in, files out.

mod golden;
mod import;
mod policy;
mod speed;
mod world;
