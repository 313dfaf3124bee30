//! The user's own OpenTofu at work on a stack, whoever wrote the stack's code.

mod driven;
mod environment;
mod memory;
mod process;
mod program;
mod session;
mod var_files;

pub(crate) use driven::{Aim, Applied, Driven, DrivenPlan, refuse_resources};
pub(crate) use program::Program;
pub(crate) use session::{Inputs, Session, Shown};
