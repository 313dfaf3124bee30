//! OpenTofu: a repository's stacks as OpenTofu projects, the states that it keeps, what it says and plans, and rules for its code.
//!
//! [`render()`] writes a [`Project`] from the same resources that Strata applies; [`TofuState`] reads a state; [`Message`] and
//! [`changes::Changes`] read what the program says and plans; [`policy`] checks code; [`hcl`] writes it.
//!
//! Nothing here runs OpenTofu, reads secrets or writes files: text goes in, text comes out. A field that has no counterpart is a [`Gap`] that
//! the project names, never one that is left out without a word.
//!
//! ```
//! use strata_tofu::hcl::Body;
//!
//! let mut body = Body::new();
//! body.block("resource", &["proxmox_virtual_environment_vm", "app"], |vm| {
//!     vm.attribute("vm_id", 9100).attribute("name", "app ${1}");
//! });
//! let code = body.render();
//! assert!(code.contains("vm_id = 9100") && code.contains(r#""app $${1}""#));
//! ```

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

pub use backend::{HttpAddresses, TOKEN_USER, state_name};
pub use inventory::{Held, held};
pub use message::{Diagnosis, Message, asked_for, position};
pub use overview::Overview;
pub use path::resolve as resolve_path;
pub use project::{FileOrigin, Files, Gap, file_origin};
pub use provider::REQUIRED_VERSION;
pub use render::{Connection, Family, Project, render, secret_variables};
pub use tfstate::{Attributes, TofuResource, TofuState, TofuStateError};
