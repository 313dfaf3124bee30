//! `strata talos kubeconfig`.

use std::path::PathBuf;
use std::process::ExitCode;

use strata_events::Event;
use strata_secrets::OsRandom;
use strata_talos::CLIENT_VALIDITY;

use super::write;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Makes an administrator's kubeconfig from the cluster's own secrets
///
/// No node is asked. With `proxy:` in strata.yaml, kubectl goes through it, too. The file is readable only by you, and is valid for a year.
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
    let mut made = drawn
        .bundle
        .kubeconfig(
            &drawn.plan.name,
            &drawn.plan.endpoint,
            jiff::Timestamp::now(),
            CLIENT_VALIDITY,
            &mut OsRandom,
        )
        .map_err(|error| CommandError::failed(format!("cannot make the kubeconfig: {error}")))?;
    made.proxy = workspace.repository().settings.proxy.as_ref().map(|proxy| proxy.value.clone());
    let text = made.to_yaml();
    let path = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.kubeconfig", stack.name)));
    let key = workspace.state_key(&args.stack)?;
    if path.as_os_str() == "-" && context.printer.is_json() {
        context.printer.event_of(&key, &Event::Kubeconfig { kubeconfig: text.expose() });
        return Ok(ExitCode::SUCCESS);
    }
    if path.as_os_str() == "-" {
        context
            .printer
            .bytes(text.expose().as_bytes())
            .map_err(|error| CommandError::failed(format!("cannot write it: {error}")))?;
        return Ok(ExitCode::SUCCESS);
    }
    write(&path, &text)?;
    context.printer.event_of(&key, &Event::Made { file: &path });
    context.printer.line(format!(
        "made `{}`; `kubectl --kubeconfig {} get nodes` uses it",
        path.display(),
        path.display()
    ));
    Ok(ExitCode::SUCCESS)
}
