//! `strata talos health`.

use std::process::ExitCode;

use strata_cluster::ClusterHealth;
use strata_events::{EtcdHealth, Event, KubernetesHealth};

use crate::commands::CommandResult;
use crate::context::Context;
use crate::printer::Printer;
use crate::views;
use crate::workspace::Workspace;

/// Shows how every node, etcd and Kubernetes are; exit code 1 if something is unhealthy
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
    report(context.printer, &workspace.state_key(&args.stack)?, &health);
    context.printer.line(views::health::render(&health, context.printer.columns()));
    Ok(if health.is_healthy() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(printer: Printer, key: &str, health: &ClusterHealth) {
    for node in &health.nodes {
        let node = Event::Node {
            name: &node.name,
            role: views::health::role(node),
            address: &node.address,
            talos: node.version.as_deref(),
            kubelet: node.kubelet.as_deref(),
            healthy: node.trouble.is_none(),
            trouble: node.trouble.as_deref(),
        };
        printer.event_of(key, &node);
    }
    for member in &health.members {
        let id = format!("{:016x}", member.id);
        let (learner, healthy) = (member.learner, member.healthy);
        printer.event_of(key, &Event::EtcdMember { name: &member.name, id, learner, healthy });
    }
    let (version, trouble) = (health.kubernetes.as_deref(), health.kubernetes_trouble.as_deref());
    let whole = Event::Health {
        healthy: health.is_healthy(),
        etcd: EtcdHealth { members: health.members.len(), trouble: health.etcd_trouble.as_deref() },
        kubernetes: KubernetesHealth { version, trouble },
    };
    printer.event_of(key, &whole);
}
