//! `strata talos`.

mod config;

use clap::Subcommand;

use super::CommandResult;
use crate::context::Context;

/// Machine configurations of Talos clusters
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Config(config::Args),
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    match &args.verb {
        Verb::Config(args) => config::run(context, args),
    }
}
