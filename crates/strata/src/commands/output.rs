//! `strata output`.

use std::process::ExitCode;

use strata_events::Event;
use strata_resource::Value;

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;
use crate::workspace::Workspace;

/// Prints the outputs of stacks, or all their guests, as they were last applied
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The stack; all stacks without one
    stack: Option<String>,
    /// One output, alone, for scripts
    name: Option<String>,
    /// All guests and all nodes of clusters, with address, VMID and hypervisor
    #[arg(long, conflicts_with = "name")]
    guests: bool,
    /// Only those of this pool
    #[arg(long, value_name = "POOL", requires = "guests")]
    pool: Option<String>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let stacks: Vec<String> = args.stack.iter().cloned().collect();
    if args.guests {
        return guests(&workspace, &stacks, args.pool.as_deref()).await;
    }
    for stack in workspace.names(&stacks)? {
        let (key, document) = (workspace.state_key(&stack)?, workspace.read_state(&stack).await?.document);
        let outputs = document.outputs;
        if let Some(name) = &args.name {
            let value = outputs.get(name).ok_or_else(|| {
                let known: Vec<&str> = outputs.keys().map(String::as_str).collect();
                CommandError::failed(format!("`{stack}` has no output `{name}`"))
                    .hint(format!("it has: {}; outputs appear with the next apply", known.join(", ")))
            })?;
            context.printer.event_of(&key, &Event::Output { name, value });
            context.printer.line(plain(value));
            continue;
        }
        for (name, value) in &outputs {
            context.printer.event_of(&key, &Event::Output { name, value });
            context.printer.line(format!("{stack}.{name} = {}", plain(value).replace('\n', ", ")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn guests(workspace: &Workspace<'_>, stacks: &[String], pool: Option<&str>) -> CommandResult {
    let inventory = strata_providers::inventory(workspace, stacks).await?;
    let chosen = inventory.hosts.iter().filter(|host| pool.is_none() || host.pool.as_deref() == pool);
    let printer = workspace.context.printer;
    for host in chosen {
        printer.event_of(&format!("{}/{}", host.environment, host.stack), &Event::Guest { host });
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        printer.line(format!(
            "{}  {}  {}  {}  {}",
            host.name,
            or_dash(host.address.map(|address| address.to_string())),
            or_dash(host.vmid.map(|vmid| vmid.to_string())),
            or_dash(host.node.clone()),
            host.stack
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// One line for each item, as scripts like it.
fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Int(int) => int.to_string(),
        Value::Bool(bool) => bool.to_string(),
        Value::List(list) => list.iter().map(plain).collect::<Vec<_>>().join("\n"),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}
