//! The user's own OpenTofu at work on a stack, whoever wrote the stack's code.

mod driven;
mod environment;
mod memory;
mod process;
mod program;
mod session;
mod var_files;

pub use driven::{Aim, Applied, Driven, DrivenPlan};
pub use process::Ended;
pub use program::Program;
pub use session::{Inputs, TofuSession};
