//! The verbs that only look, as tools of the Model Context Protocol: for agents in editors and for scripts.
//!
//! A [`Tool`] is a verb and the arguments that it takes; what a client is told of it and the command line that becomes of a call are both made from that
//! table. A [`Runner`] runs the command line. [`serve`] reads one JSON object a line and answers each: calls run side by side, and one that is cancelled is ended.
//!
//! What always holds: only verbs of the table are run, and an argument of a call is never taken for an option. No tool changes a source, a state or anything
//! remote.
//!
//! ```
//! use strata_mcp::{Argument, Form, Tool, command_line};
//!
//! const ABOUT: Argument = Argument { name: "stacks", form: Form::Texts, option: None, required: false, help: "stacks" };
//! let tool = Tool { name: "graph", verb: &["graph"], arguments: &[ABOUT], help: "what depends on what" };
//! let called = command_line(&tool, &serde_json::json!({"stacks": ["web"]}))?;
//! assert_eq!(called, ["graph", "--", "web"]);
//! assert!(command_line(&tool, &serde_json::json!({"stack": "web"})).is_err());
//! # Ok::<(), String>(())
//! ```

#![warn(missing_docs)]

mod call;
mod message;
mod program;
mod server;
mod tool;
mod verbs;

pub use call::{Ended, Runner};
pub use program::Program;
pub use server::{serve, serve_standard};
pub use tool::{Argument, Form, Tool, command_line};
pub use verbs::TOOLS;
