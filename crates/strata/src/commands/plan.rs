//! `strata plan`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use strata_engine::PlanFile;
use strata_session::{Keys, Planned, Planning, Purpose, StateAccess};

use super::{CHANGES, CommandResult};
use crate::command_error::{CommandError, ErrorKind};
use crate::context::Context;
use crate::views::counts::not_planned;
use crate::views::planned::show;
use crate::workspace::Workspace;

/// Shows what an apply would change, and changes nothing
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, `layer:NAME`, addresses such as `web/vm/db` or patterns such as `web/vm/*`; everything
    /// without one
    #[arg(value_name = "STACK|ADDRESS")]
    stacks: Vec<String>,
    /// Saves the plan; `strata apply FILE` runs exactly it, or refuses
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Exit code 2 if there are changes
    #[arg(long)]
    detailed_exitcode: bool,
    /// Plans to destroy everything
    #[arg(long)]
    destroy: bool,
    /// Compares the state with what is live, not with the source
    #[arg(long, conflicts_with_all = ["output", "destroy", "replace"])]
    refresh_only: bool,
    /// Replaces the object of this address although nothing about it asks for that; once for each
    #[arg(long, value_name = "ADDRESS", conflicts_with = "destroy")]
    replace: Vec<String>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    if args.refresh_only {
        return super::drift::report(context, &args.stacks, args.detailed_exitcode).await;
    }
    // Whoever reviews a plan should know what an apply would wait for in vain.
    let workspace = Workspace::read(context, |found| found.code == strata_source::FLUX_HOMELESS)?;
    workspace.find_removed(&args.stacks).await?;
    // A saved plan must be the one that runs: then the keys that it speaks of must be there.
    let keys = if args.output.is_some() { Keys::Make } else { Keys::Draw };
    let planning = Planning {
        purpose: Purpose {
            destroy: args.destroy,
            keys,
            new_cluster: false,
            restoring: None,
            replace: args.replace.clone(),
            homes: Default::default(),
        },
        access: StateAccess::Look,
        into_file: args.output.is_some(),
        saved: None,
    };
    let planned = workspace.plan(&args.stacks, &planning).await?;
    show(context.printer, &planned);
    workspace.report_removed(&args.stacks);
    if !args.destroy && planned.iter().any(|one| one.removes_stack()) {
        context.printer.note(
            "`strata apply` asks before it removes a stack; with `--yes` it needs `--allow-removed-stacks` too",
        );
    }
    workspace.report_orphans().await;
    let blocked = planned.iter().any(Planned::is_blocked);
    let unplanned = planned.iter().filter(|one| one.is_unplanned()).count();
    if let Some(path) = &args.output
        && !blocked
        && unplanned == 0
    {
        let file = workspace.plan_file(&planned, args.destroy, &args.stacks, &args.replace).await?;
        save(context, path, &file)?;
    }
    if blocked {
        return Err(CommandError::already_shown(ErrorKind::Refused));
    }
    if unplanned > 0 {
        let error = CommandError::failed(not_planned(unplanned));
        return Err(match &args.output {
            Some(path) => error.hint(format!(
                "nothing was saved in `{}`: name the other stacks to save their plans",
                path.display()
            )),
            None => error,
        });
    }
    // What cannot be seen may have changed.
    let changes = planned.iter().any(|one| one.has_changes() || one.is_open() || one.unknown() > 0);
    Ok(if changes && args.detailed_exitcode { ExitCode::from(CHANGES) } else { ExitCode::SUCCESS })
}

fn save(context: &Context, path: &Path, file: &PlanFile) -> Result<(), CommandError> {
    let json = serde_json::to_vec_pretty(file).map_err(|error| CommandError::failed(error.to_string()))?;
    // It tells what there is and how it is reached: only for its owner, whatever was there before.
    strata_secrets::replace_private(path, &json)
        .map_err(|error| CommandError::failed(format!("cannot write `{}`: {error}", path.display())))?;
    context.printer.event(&strata_events::Event::Saved { file: path, waiting: &file.waiting });
    context.printer.line(format!("saved; `strata apply {}` runs exactly this", path.display()));
    if !file.waiting.is_empty() {
        let names = file.waiting.join("`, `");
        context.printer.line(format!("not saved: `{names}`; plan again when this is applied"));
    }
    Ok(())
}
