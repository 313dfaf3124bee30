//! `strata destroy`.

use std::process::ExitCode;

use super::CommandResult;
use super::execute::{Consent, Job, execute};
use crate::context::Context;
use crate::workspace::Workspace;

/// Destroys everything of the stacks that Strata made; refuses what is protected
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, `layer:NAME`, addresses such as `web/vm/db` or patterns such as `web/vm/*`; everything
    /// without one
    #[arg(value_name = "STACK|ADDRESS")]
    stacks: Vec<String>,
    /// Does not ask
    #[arg(short, long)]
    yes: bool,
    /// How many operations run at once
    #[arg(long, value_name = "N")]
    parallelism: Option<usize>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, &args.stacks).await?;
    let job = Job {
        destroy: true,
        consent: Consent::of(args.yes),
        parallelism: args.parallelism,
        // Everything is to go, whether the source still has it or not.
        allow_removed: true,
        ..Job::default()
    };
    execute(&workspace, &args.stacks, job).await.map(|()| ExitCode::SUCCESS)
}
