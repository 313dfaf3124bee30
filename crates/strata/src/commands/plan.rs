//! `strata plan`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use strata_engine::PlanFile;

use super::planned::{Planned, show};
use super::{CHANGES, CommandResult};
use crate::command_error::{CommandError, ErrorKind};
use crate::context::Context;
use crate::tofu::{Aim, Inputs, refuse_resources};
use crate::workspace::bundle::Keys;
use crate::workspace::{Opened, Opening, Workspace};

/// Shows what an apply would change, and changes nothing
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, or `layer:NAME`; all stacks without one
    #[arg(value_name = "STACK")]
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
    #[arg(long, conflicts_with_all = ["output", "destroy"])]
    refresh_only: bool,
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
    let opening = Opening { destroy: args.destroy, keys, new_cluster: false, restoring: None };
    let mut file = workspace.plan_file(args.destroy);
    let mut planned = Vec::new();
    let aim = if args.destroy { Aim::Destroy } else { Aim::Apply };
    for opened in workspace.open_all(&args.stacks, opening).await? {
        let may_wait = !args.destroy && args.output.is_some();
        planned.push(match opened {
            Opened::Native(session) => {
                if may_wait && let Some(deferred) = Planned::behind(workspace.stack(&session.name)?, &planned)
                {
                    planned.push(deferred);
                    continue;
                }
                let plan = session.run.plan(&session.view).await?;
                file.push(&session.name, &session.source_digest, plan.clone());
                Planned::Native(session, plan)
            }
            Opened::Driven(stack) => {
                let output = Planned::deferred(stack, &planned).filter(|_| !args.destroy);
                let order = || Planned::behind(stack, &planned).filter(|_| may_wait);
                if let Some(deferred) = output.or_else(order) {
                    planned.push(deferred);
                    continue;
                }
                let known = Planned::outputs(&planned);
                let driven = workspace.open_driven(stack, Inputs::All(&known)).await?;
                refuse_resources(&driven.name, &driven.run.read_state(&driven.view).await?.document)?;
                let plan = driven.plan(aim).await?;
                if args.output.is_some() {
                    file.driven.push(driven.saved(&plan).await?);
                }
                Planned::Driven(driven, plan)
            }
        });
    }
    let waiting = planned.iter().filter(|one| one.is_deferred());
    file.waiting = waiting.map(|one| one.name().to_owned()).collect();
    show(context.printer, &planned);
    workspace.tell_removed(&args.stacks);
    if !args.destroy && planned.iter().any(|one| one.removes_stack()) {
        context.printer.note(
            "`strata apply` asks before it removes a stack; with `--yes` it needs `--allow-removed-stacks` too",
        );
    }
    workspace.tell_orphans().await;
    let blocked = planned.iter().any(Planned::is_blocked);
    if let Some(path) = &args.output
        && !blocked
    {
        save(context, path, &file)?;
    }
    if blocked {
        return Err(CommandError::silent(ErrorKind::Refused));
    }
    // What cannot be seen may have changed.
    let changes = planned.iter().any(|one| one.has_changes() || one.is_open() || one.unknown() > 0);
    Ok(if changes && args.detailed_exitcode { ExitCode::from(CHANGES) } else { ExitCode::SUCCESS })
}

fn save(context: &Context, path: &Path, file: &PlanFile) -> Result<(), CommandError> {
    let json = serde_json::to_vec_pretty(file).map_err(|error| CommandError::failed(error.to_string()))?;
    // It tells what there is and how it is reached: only for its owner, whatever was there before.
    crate::replace_file::replace_private(path, &json)
        .map_err(|error| CommandError::failed(format!("cannot write `{}`: {error}", path.display())))?;
    context.printer.line(format!("saved; `strata apply {}` runs exactly this", path.display()));
    if !file.waiting.is_empty() {
        let names = file.waiting.join("`, `");
        context.printer.line(format!("not saved: `{names}`; plan again when this is applied"));
    }
    Ok(())
}
