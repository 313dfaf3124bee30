//! `strata talos snapshot`.

use std::process::ExitCode;

use async_trait::async_trait;
use strata_engine::{OperationContext, ProviderError};
use strata_events::Event;

use crate::commands::CommandResult;
use crate::context::Context;
use crate::printer::Printer;
use crate::workspace::Workspace;

/// Saves etcd: a snapshot of it, or what control planes still hold where it has no majority
///
/// It is encrypted with age and goes where `etcd.snapshots` says; `strata talos restore` brings etcd back from it. Nothing is changed in
/// the cluster. The data of a control plane that is left without a majority are saved for each one that holds some.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster
    #[arg(value_name = "STACK")]
    stack: String,
    /// Saves what this control plane holds, whatever the others have
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let cluster = workspace.clusters().connect(&args.stack).await?;
    let told = SnapshotContext { printer: context.printer };
    for place in strata_cluster::take_snapshot(&cluster, args.node.as_deref(), &told).await? {
        let file = place.trim_matches('`');
        context.printer.event_of(&workspace.state_key(&args.stack)?, &Event::Snapshot { file });
        context.printer.line(format!("etcd was saved to {place}"));
    }
    Ok(ExitCode::SUCCESS)
}

struct SnapshotContext {
    printer: Printer,
}

#[async_trait]
impl OperationContext for SnapshotContext {
    fn before_write(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn task_started(&self, _: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    fn progress(&self, doing: &str) {
        self.printer.note(format!("  {doing}"));
    }
}
