//! `strata talos restore`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::commands::execute::{Consent, Job, execute};
use crate::context::Context;
use crate::workspace::Workspace;

/// Brings a cluster back whose etcd is lost, from a snapshot of it
///
/// Machines that are gone are made again, etcd begins from the snapshot on the first control plane, and the others join it. It is an
/// apply whose etcd does not start empty: the plan is shown first. Refuses while etcd runs, and a snapshot of another cluster.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster
    #[arg(value_name = "STACK")]
    stack: String,
    /// The snapshot: one that Strata made, encrypted with age, one of `talosctl etcd snapshot`, or the database file of a member
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
    let cluster = workspace.clusters().connect(&args.stack).await?;
    let snapshot = workspace.clusters().read_snapshot(&args.snapshot)?;
    let drawn = workspace.clusters().drawn(&args.stack).await?;
    if let Err(why) = snapshot.check(&drawn, &cluster.node_names()) {
        let message = format!(
            "`{}` is no snapshot of the cluster `{}`: {why}",
            args.snapshot.display(),
            drawn.plan.name
        );
        return Err(CommandError::refused(message).hint(
            "restore a snapshot of this cluster; another cluster's objects would replace everything in it",
        ));
    }
    let members = strata_cluster::etcd_members(&cluster).await?;
    if !members.is_empty() {
        let message =
            format!("etcd runs, with members on `{}`: nothing has to be restored", members.join("`, `"));
        return Err(CommandError::refused(message)
            .hint("`strata talos health` shows every node; `strata apply` rebuilds one that is lost"));
    }
    drop(cluster);
    context.printer.note(
        "etcd begins from the snapshot: what was changed in Kubernetes since then is lost. What control planes still hold of the lost etcd is saved beside the other snapshots, then wiped",
    );
    let job = Job {
        consent: Consent::of(args.yes),
        parallelism: args.parallelism,
        restoring: Some(Arc::new(snapshot.bytes)),
        ..Job::default()
    };
    execute(&workspace, std::slice::from_ref(&args.stack), job).await?;
    context.printer.event_of(&workspace.state_key(&args.stack)?, &strata_events::Event::Restored);
    context.printer.line(format!("etcd is back; `strata talos health {}` shows every node", args.stack));
    Ok(ExitCode::SUCCESS)
}
