//! `strata talos health`.

use std::process::ExitCode;

use serde_json::json;
use strata_cluster::ClusterHealth;

use crate::commands::CommandResult;
use crate::context::Context;
use crate::printer::Printer;
use crate::views;
use crate::workspace::Workspace;

/// Shows how every node, etcd and Kubernetes are; exit code 1 if something is not well
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster
    #[arg(value_name = "STACK")]
    stack: String,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let cluster = workspace.clusters().connect(&args.stack).await?;
    let health = strata_cluster::health(&cluster).await;
    tell(context.printer, &health);
    context.printer.line(views::health::render(&health, context.printer.columns()));
    Ok(if health.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(printer: Printer, health: &ClusterHealth) {
    for node in &health.nodes {
        printer.event(&json!({
            "event": "node",
            "name": node.name,
            "role": views::health::role(node),
            "address": node.address,
            "talos": node.version,
            "kubelet": node.kubelet,
            "well": node.trouble.is_none(),
            "trouble": node.trouble,
        }));
    }
    for member in &health.members {
        printer.event(&json!({
            "event": "etcd-member",
            "name": member.name,
            "id": format!("{:016x}", member.id),
            "learner": member.learner,
            "well": member.well,
        }));
    }
    printer.event(&json!({
        "event": "health",
        "well": health.is_well(),
        "etcd": {"members": health.members.len(), "trouble": health.etcd_trouble},
        "kubernetes": {"version": health.kubernetes, "trouble": health.kubernetes_trouble},
    }));
}
