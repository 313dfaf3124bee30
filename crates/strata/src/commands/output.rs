//! `strata output`.

use std::process::ExitCode;

use strata_resource::Value;

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;
use crate::workspace::Workspace;

/// Prints the outputs of stacks, as they were last applied
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The stack; all stacks without one
    stack: Option<String>,
    /// One output, alone, for scripts
    name: Option<String>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let stacks: Vec<String> = args.stack.iter().cloned().collect();
    for stack in workspace.names(&stacks)? {
        let outputs = workspace.read_state(&stack).await?.document.outputs;
        if let Some(name) = &args.name {
            let value = outputs.get(name).ok_or_else(|| {
                let known: Vec<&str> = outputs.keys().map(String::as_str).collect();
                CommandError::failed(format!("`{stack}` has no output `{name}`"))
                    .hint(format!("it has: {}; outputs appear with the next apply", known.join(", ")))
            })?;
            let text = if context.printer.is_json() {
                serde_json::to_string(value).unwrap_or_default()
            } else {
                plain(value)
            };
            context.printer.raw(&format!("{text}\n"));
            continue;
        }
        for (name, value) in &outputs {
            context.printer.event(&serde_json::json!({"stack": stack, "name": name, "value": value}));
            context.printer.line(format!("{stack}.{name} = {}", plain(value).replace('\n', ", ")));
        }
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
