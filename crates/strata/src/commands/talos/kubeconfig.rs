//! `strata talos kubeconfig`.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use strata_secrets::OsRandom;
use strata_talos::CLIENT_VALIDITY;

use super::write;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Makes an administrator's kubeconfig from the cluster's own secrets
///
/// No node is asked. The file is readable only by you, and is valid for a year.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster
    #[arg(value_name = "STACK")]
    stack: String,
    /// Where it goes; `-` is standard output; otherwise `STACK.kubeconfig` here
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let (stack, _) = workspace.clusters().written_cluster(&args.stack)?;
    let drawn = workspace.clusters().drawn(&args.stack).await?;
    let made = drawn
        .bundle
        .kubeconfig(
            &drawn.plan.name,
            &drawn.plan.endpoint,
            jiff::Timestamp::now(),
            CLIENT_VALIDITY,
            &mut OsRandom,
        )
        .map_err(|error| CommandError::failed(format!("cannot make the kubeconfig: {error}")))?;
    let text = made.to_yaml();
    let path = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.kubeconfig", stack.name)));
    if path.as_os_str() == "-" {
        context
            .printer
            .bytes(text.expose().as_bytes())
            .map_err(|error| CommandError::failed(format!("cannot write it: {error}")))?;
        return Ok(ExitCode::SUCCESS);
    }
    write(&path, &text)?;
    context.printer.event(&json!({"event": "made", "file": path}));
    context.printer.line(format!(
        "made `{}`; `kubectl --kubeconfig {} get nodes` uses it",
        path.display(),
        path.display()
    ));
    Ok(ExitCode::SUCCESS)
}
