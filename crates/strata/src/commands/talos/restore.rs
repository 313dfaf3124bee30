//! `strata talos restore`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::commands::execute::{Consent, Job, execute};
use crate::context::Context;
use crate::workspace::Workspace;

/// Brings a cluster back whose etcd is lost, from a copy of it
///
/// Machines that are gone are made again, etcd begins from the copy on the first control plane, and the others join it. It is an
/// apply whose etcd does not begin empty: the plan is shown first. Refuses while etcd runs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster
    #[arg(value_name = "STACK")]
    stack: String,
    /// The copy: one that Strata made, encrypted with age, or one of `talosctl etcd snapshot`
    #[arg(long, value_name = "FILE")]
    snapshot: PathBuf,
    /// Does not ask
    #[arg(short, long)]
    yes: bool,
    /// How many operations run at once
    #[arg(long, value_name = "N")]
    parallelism: Option<usize>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let cluster = workspace.cluster(&args.stack).await?;
    let copy = workspace.read_snapshot(&args.snapshot)?;
    let members = strata_cluster::etcd_members(&cluster).await?;
    if !members.is_empty() {
        let message =
            format!("etcd runs, with members on `{}`: nothing has to be restored", members.join("`, `"));
        return Err(CommandError::refused(message)
            .hint("`strata talos health` shows every node; `strata apply` rebuilds one that is lost"));
    }
    drop(cluster);
    context.printer.note(
        "etcd begins from the copy: what was changed in Kubernetes since then is lost, and so is what control planes still have of the lost etcd",
    );
    let job = Job {
        destroy: false,
        consent: if args.yes { Consent::Given } else { Consent::Ask },
        parallelism: args.parallelism,
        new_cluster: false,
        restoring: Some(Arc::new(copy)),
        saved: None,
        allow_removed: false,
    };
    execute(&workspace, std::slice::from_ref(&args.stack), job).await?;
    context.printer.line(format!("etcd is back; `strata talos health {}` shows every node", args.stack));
    Ok(ExitCode::SUCCESS)
}
