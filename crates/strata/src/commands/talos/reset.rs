//! `strata talos reset`.

use std::process::ExitCode;

use async_trait::async_trait;
use strata_blueprint::kinds;
use strata_cluster::kinds::machine::WIPED;
use strata_cluster::{AfterReset, Cluster};
use strata_engine::{ErrorClass, LockedRun, OperationContext, ProviderError};
use strata_events::Event;
use strata_resource::Address;
use strata_talos_client::Wipe;

use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::commands::execute::ask;
use crate::context::Context;
use crate::printer::Printer;
use crate::workspace::Workspace;

/// Takes a node out of its cluster and wipes it; refuses what etcd cannot bear to lose
///
/// The node is drained, leaves etcd, its Node is deleted, and what `--wipe` says is wiped. It stays in the source: the next apply
/// brings it back. To remove a node for good, remove it from the source and apply. A node with `protect: true` is never reset.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster
    #[arg(value_name = "STACK")]
    stack: String,
    /// The name of the node
    #[arg(value_name = "NODE")]
    node: String,
    /// What is wiped: `state` (the configuration), `ephemeral` (the data), both, or `disk` (everything, Talos too)
    #[arg(long, value_name = "PARTS", value_delimiter = ',', default_value = "state,ephemeral")]
    wipe: Vec<Part>,
    /// Does not ask
    #[arg(short, long)]
    yes: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Part {
    State,
    Ephemeral,
    Disk,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let wipe = wipe(&args.wipe)?;
    let workspace = Workspace::load(context)?;
    let cluster = workspace.clusters().connect(&args.stack).await?;
    workspace.clusters().refuse_protected(&args.stack, &args.node).await?;
    strata_cluster::check_reset(&cluster, &args.node).await?;
    let what = match &wipe {
        Wipe::Partitions(labels) => labels.join(" and "),
        _ => "its whole disk".to_owned(),
    };
    context.printer.note(format!(
        "`{}` is drained, leaves the cluster `{}`, and loses {what}",
        args.node,
        cluster.name()
    ));
    if !args.yes {
        ask("Reset it?")?;
    }
    let mut locked = workspace.lock(&args.stack, "talos reset").await?;
    let outcome = reset(context.printer, &cluster, &mut locked, &args.node, wipe).await;
    let released = locked.release().await;
    let after = outcome?;
    released?;
    report(context.printer, &workspace.state_key(&args.stack)?, args, after);
    Ok(ExitCode::SUCCESS)
}

async fn reset(
    printer: Printer,
    cluster: &Cluster,
    locked: &mut LockedRun,
    node: &str,
    wipe: Wipe,
) -> Result<AfterReset, CommandError> {
    strata_cluster::remove_for_reset(cluster, node, &Attended { printer, node, locked }).await?;
    // The next plan makes a VM again that has nothing left to boot from. Noted first: a run that dies after the wipe can tell
    // nobody. A node that was not wiped is brought back by the next apply, which takes the note away.
    if !matches!(wipe, Wipe::Partitions(_)) {
        note_wiped(locked, node).await?;
    }
    Ok(strata_cluster::wipe_node(cluster, node, wipe, &Attended { printer, node, locked }).await?)
}

async fn note_wiped(locked: &mut LockedRun, node: &str) -> Result<(), CommandError> {
    let is_node = |address: &Address| address.kind() == kinds::MACHINE && address.name() == node;
    locked
        .edit(|document| {
            for (_, machine) in document.resources.iter_mut().filter(|(address, _)| is_node(address)) {
                machine.facts.insert(WIPED.to_owned(), true.into());
            }
        })
        .await?;
    Ok(())
}

fn wipe(parts: &[Part]) -> Result<Wipe, CommandError> {
    if !parts.contains(&Part::Disk) {
        let labels = [(Part::State, "STATE"), (Part::Ephemeral, "EPHEMERAL")];
        let labels = labels.into_iter().filter(|(part, _)| parts.contains(part));
        return Ok(Wipe::Partitions(labels.map(|(_, label)| label.to_owned()).collect()));
    }
    match parts {
        [_] => Ok(Wipe::SystemDisk),
        _ => Err(CommandError::usage("`disk` is everything: it is given alone")),
    }
}

fn report(printer: Printer, key: &str, args: &Args, after: AfterReset) {
    let (node, stack) = (&args.node, &args.stack);
    let (state, next) = match after {
        AfterReset::Maintenance => (
            "maintenance",
            format!("`{node}` waits for a configuration: `strata apply {stack}` makes it a node again"),
        ),
        AfterReset::Running => ("running", format!("`{node}` kept its configuration, and has joined again")),
        AfterReset::Unreachable => (
            "unreachable",
            format!(
                "`{node}` has nothing left to boot from: `strata apply {stack}` replaces its VM; a machine of metal has to boot an ISO"
            ),
        ),
    };
    printer.event_of(key, &Event::Reset { node, state });
    printer.line(next);
}

/// What the node goes through is shown as it happens; nothing is done once the lock is gone.
struct Attended<'a> {
    printer: Printer,
    node: &'a str,
    locked: &'a LockedRun,
}

#[async_trait]
impl OperationContext for Attended<'_> {
    fn before_write(&self) -> Result<(), ProviderError> {
        self.locked.still_held().map_err(|error| ProviderError::new(ErrorClass::Stopped, error.to_string()))
    }

    fn write_timeout(&self) -> Option<std::time::Duration> {
        self.locked.write_timeout()
    }

    async fn task_started(&self, _: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    fn progress(&self, doing: &str) {
        self.printer.note(format!("  {}: {doing}", self.node));
    }
}
