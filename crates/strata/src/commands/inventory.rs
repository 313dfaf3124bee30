//! `strata inventory`.

use std::process::ExitCode;

use strata_events::Event;
use strata_inventory::{ansible, hosts, prometheus, ssh};

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;
use crate::workspace::Workspace;

/// Lists guests and machines for other programs: Ansible, ssh, Prometheus, hosts files
///
/// They are read from the states and the source; nothing is asked, and no secret is in the answer. Groups are `stack_…`, `layer_…`,
/// `pool_…`, `tag_…`, `environment_…` and `role_…`. An executable file with `exec strata -C DIR inventory --format ansible "$@"` is an
/// inventory of Ansible.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, or `layer:NAME`; all stacks without one
    #[arg(value_name = "STACK")]
    stacks: Vec<String>,
    /// The form of the answer
    #[arg(long, value_enum, default_value_t = Format::Json)]
    format: Format,
    /// Every host; as without it
    #[arg(long, conflicts_with = "host")]
    list: bool,
    /// One host only
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// The port of the targets of Prometheus
    #[arg(long, default_value_t = 9100)]
    port: u16,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Ansible,
    Ssh,
    Prometheus,
    Hosts,
    Json,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let mut inventory = strata_providers::inventory(&workspace, &args.stacks).await?;
    let document = |json: serde_json::Value| format!("{json:#}\n");
    if let (Format::Ansible, Some(name)) = (args.format, &args.host) {
        // Ansible asks for hosts of other inventories, too.
        context.printer.raw(&document(ansible::host(&inventory, name)));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &args.host {
        inventory = inventory.only(name).ok_or_else(|| {
            CommandError::failed(format!("there is no host `{name}`"))
                .hint("`strata inventory --format hosts` lists them; a guest is there once it was applied")
        })?;
    }
    let text = match args.format {
        Format::Json if context.printer.is_json() => {
            context.printer.event(&Event::Inventory { inventory: &inventory });
            return Ok(ExitCode::SUCCESS);
        }
        Format::Json => document(serde_json::to_value(&inventory).unwrap_or_default()),
        Format::Ansible => document(ansible::list(&inventory)),
        Format::Prometheus => document(prometheus::targets(&inventory, args.port)),
        Format::Ssh => ssh::render(&inventory),
        Format::Hosts => hosts::render(&inventory),
    };
    context.printer.raw(&text);
    Ok(ExitCode::SUCCESS)
}
