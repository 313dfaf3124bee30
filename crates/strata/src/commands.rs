//! The verbs. Each file holds one: its arguments (whose comments are the help text) and what it does.

pub(crate) mod acts;
pub(crate) mod adopt;
pub(crate) mod apply;
pub(crate) mod completions;
#[cfg(feature = "sim")]
pub(crate) mod demo;
pub(crate) mod destroy;
pub(crate) mod doctor;
pub(crate) mod drift;
pub(crate) mod execute;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod graph;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod inventory;
pub(crate) mod mcp;
#[cfg(not(feature = "sim"))]
pub(crate) mod no_sim;
pub(crate) mod outdated;
pub(crate) mod output;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod promote;
pub(crate) mod recover;
pub(crate) mod review;
pub(crate) mod schema;
pub(crate) mod secrets;
pub(crate) mod serve;
pub(crate) mod show;
#[cfg(feature = "sim")]
pub(crate) mod sim;
pub(crate) mod state;
pub(crate) mod sync;
pub(crate) mod talos;
pub(crate) mod tofu;
pub(crate) mod unlock;
pub(crate) mod validate;
pub(crate) mod version;

use std::process::ExitCode;

pub(crate) use execute::stop_on_interrupt;
#[cfg(not(feature = "sim"))]
pub(crate) use {no_sim as demo, no_sim as sim};

use crate::cli::{Cli, Command};
use crate::command_error::CommandError;
use crate::context::Context;
use crate::printer::Printer;

/// Changes or drift were found, and the user asked for that exit code.
pub(crate) const CHANGES: u8 = 2;

pub(crate) type CommandResult = Result<ExitCode, CommandError>;

pub(crate) async fn run(cli: Cli, printer: Printer) -> CommandResult {
    let context = Context::new(cli.global, printer);
    match cli.command {
        Command::Init(args) => init::run(&context, &args),
        Command::Demo(args) => demo::run(&context, &args).await,
        Command::Validate(args) => validate::run(&context, &args),
        Command::Fmt(args) => fmt::run(&context, &args),
        Command::Explain(args) => explain::run(&context, &args),
        Command::Schema(args) => schema::run(&context, &args),
        Command::Plan(args) => plan::run(&context, &args).await,
        Command::Show(args) => show::run(&context, &args),
        Command::Apply(args) => apply::run(&context, &args).await,
        Command::Destroy(args) => destroy::run(&context, &args).await,
        Command::Drift(args) => drift::run(&context, &args).await,
        Command::Recover(args) => recover::run(&context, &args).await,
        Command::Review(args) => review::run(&context, &args).await,
        Command::Output(args) => output::run(&context, &args).await,
        Command::Inventory(args) => inventory::run(&context, &args).await,
        Command::Graph(args) => graph::run(&context, &args),
        Command::Act(act) => acts::run(&context, &act).await,
        Command::State(args) => state::run(&context, &args).await,
        Command::Adopt(args) => adopt::run(&context, &args).await,
        Command::Import(args) => import::run(&context, &args).await,
        Command::Promote(args) => promote::run(&context, &args),
        Command::Policy(args) => policy::run(&context, &args),
        Command::Outdated(args) => outdated::run(&context, &args).await,
        Command::Sync(args) => sync::run(&context, &args).await,
        Command::Tofu(args) => tofu::run(&context, &args).await,
        Command::Secrets(args) => secrets::run(&context, &args).await,
        Command::Talos(args) => talos::run(&context, &args).await,
        Command::Unlock(args) => unlock::run(&context, &args).await,
        Command::Serve(args) => serve::run(&context, &args).await,
        Command::Mcp(args) => mcp::run(&context, &args).await,
        Command::Sim(args) => sim::run(&context, &args).await,
        Command::Doctor(args) => doctor::run(&context, &args).await,
        Command::Version(args) => version::run(&context, &args),
        Command::Completions(args) => completions::run(&context, &args),
    }
}
