//! OpenTofu: a repository's stacks as OpenTofu projects, the states that it keeps, what it says and plans, and rules for its code.
//!
//! Nothing here runs OpenTofu, reads secrets or writes files: text goes in, text comes out.

mod backend;
pub mod changes;
mod data;
pub mod hcl;
mod inventory;
mod message;
mod module;
mod overview;
mod path;
pub mod policy;
mod project;
mod provider;
mod readme;
mod render;
mod runner;
mod talconfig;
mod tfstate;
mod topf;
mod variable;

pub use backend::{HttpAddresses, state_name};
pub use inventory::{Held, held};
pub use message::{Diagnosis, Message, asked_for};
pub use overview::Overview;
pub use path::resolve as resolve_path;
pub use project::{Files, Found, Gap, found};
pub use provider::REQUIRED_VERSION;
pub use render::{Connection, Family, Project, render, secret_variables};
pub use tfstate::{Attributes, TofuResource, TofuState, TofuStateError};
