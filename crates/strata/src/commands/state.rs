//! `strata state`.

mod address;
mod diff;
mod history;
mod list;
mod migrate;
mod mv;
mod pull;
mod push;
mod recover;
mod rm;
mod rollback;
mod show;

use clap::Subcommand;

use super::CommandResult;
use crate::context::Context;

/// Looks into the state, and repairs it
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    List(list::Args),
    Show(show::Args),
    Pull(pull::Args),
    Push(push::Args),
    Mv(mv::Args),
    Rm(rm::Args),
    Recover(recover::Args),
    History(history::Args),
    Diff(diff::Args),
    Rollback(rollback::Args),
    Migrate(migrate::Args),
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    match &args.verb {
        Verb::List(args) => list::run(context, args).await,
        Verb::Show(args) => show::run(context, args).await,
        Verb::Pull(args) => pull::run(context, args).await,
        Verb::Push(args) => push::run(context, args).await,
        Verb::Mv(args) => mv::run(context, args).await,
        Verb::Rm(args) => rm::run(context, args).await,
        Verb::Recover(args) => recover::run(context, args).await,
        Verb::History(args) => history::run(context, args).await,
        Verb::Diff(args) => diff::run(context, args).await,
        Verb::Rollback(args) => rollback::run(context, args).await,
        Verb::Migrate(args) => migrate::run(context, args).await,
    }
}
