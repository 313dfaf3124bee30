//! `strata talos`.

mod config;
mod health;
mod kubeconfig;
mod reset;
mod restore;
mod snapshot;
mod upgrade;

use std::path::Path;

use clap::Subcommand;
use strata_secret::SecretString;

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;

/// Talos clusters: their files, how they are, and what is done to them by hand
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Config(Box<config::Args>),
    Kubeconfig(kubeconfig::Args),
    Health(health::Args),
    Upgrade(upgrade::Args),
    Reset(reset::Args),
    Snapshot(snapshot::Args),
    Restore(restore::Args),
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    match &args.verb {
        Verb::Config(args) => config::run(context, args).await,
        Verb::Kubeconfig(args) => kubeconfig::run(context, args).await,
        Verb::Health(args) => health::run(context, args).await,
        Verb::Upgrade(args) => upgrade::run(context, args).await,
        Verb::Reset(args) => reset::run(context, args).await,
        Verb::Snapshot(args) => snapshot::run(context, args).await,
        Verb::Restore(args) => restore::run(context, args).await,
    }
}

/// Only the user may read what holds the keys of a cluster.
fn write(path: &Path, content: &SecretString) -> Result<(), CommandError> {
    let failed =
        |error: std::io::Error| CommandError::failed(format!("cannot write `{}`: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    strata_secrets::replace_private(path, content.expose().as_bytes()).map_err(failed)
}
