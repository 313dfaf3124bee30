//! `strata review`.

use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use strata_providers::AllProviders;
use strata_review::verbs::{self, Desk, Ended, Run, Runner, Verb};

use super::execute::{Consent, Job, execute};
use super::{CHANGES, CommandResult};
use crate::command_error::CommandError;
use crate::context::Context;
use crate::workspace::Workspace;

/// Validates a change before it is merged
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let ended = verbs::run(&args.verb, &desk(context)).await?;
    Ok(if ended == Ended::Changes { ExitCode::from(CHANGES) } else { ExitCode::SUCCESS })
}

pub(crate) fn desk(context: &Context) -> Desk<'_> {
    let surroundings = context.surroundings(Arc::new(AllProviders::default()));
    Desk { surroundings, terminal: context, runner: context }
}

#[async_trait]
impl Runner for Context {
    async fn apply(&self, run: &Run<'_>) -> Result<(), CommandError> {
        let mut global = self.global.clone();
        global.environment = run.environment.map(str::to_owned);
        let context = Context { global, printer: self.printer, environment: self.environment.clone() };
        let stacks = run.file.names();
        let workspace = Workspace::load_with_removed(&context, &stacks).await?;
        let saved = run.exact.then_some(run.file);
        // Whoever approved the plan has seen which stacks it removes.
        let (consent, allow_removed, guard) = (Consent::Given, true, Some(run.guard));
        execute(&workspace, &stacks, Job { consent, allow_removed, guard, saved, ..Job::default() }).await
    }
}
