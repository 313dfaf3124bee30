//! `strata plan`.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use strata_engine::{Plan, PlanFile, Summary};
use strata_resource::Layer;

use super::{CHANGES, CommandResult};
use crate::command_error::{CommandError, ErrorKind};
use crate::context::Context;
use crate::printer::Printer;
use crate::style::{self, paint};
use crate::views;
use crate::workspace::cluster::Keys;
use crate::workspace::{Opening, StackSession, Workspace};

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
    // A saved plan must be the one that runs: then the keys that it speaks of must be there.
    let keys = if args.output.is_some() { Keys::Make } else { Keys::Draw };
    let opening = Opening { destroy: args.destroy, keys, new_cluster: false, restoring: None };
    let mut file = workspace.plan_file(args.destroy);
    let mut planned = Vec::new();
    for session in workspace.open(&args.stacks, opening).await? {
        let mut plan = session.run.plan(&session.view).await?;
        session.guard(&mut plan);
        file.push(&session.name, &session.source_digest, plan.clone());
        planned.push((session, plan));
    }
    show(context.printer, &planned);
    let blocked = planned.iter().any(|(_, plan)| !plan.problems.is_empty());
    if let Some(path) = &args.output
        && !blocked
    {
        save(context, path, &file)?;
    }
    if blocked {
        return Err(CommandError::silent(ErrorKind::Refused));
    }
    let changes = planned.iter().any(|(_, plan)| plan.has_changes());
    Ok(if changes && args.detailed_exitcode { ExitCode::from(CHANGES) } else { ExitCode::SUCCESS })
}

fn save(context: &Context, path: &PathBuf, file: &PlanFile) -> Result<(), CommandError> {
    let json = serde_json::to_vec_pretty(file).map_err(|error| CommandError::failed(error.to_string()))?;
    std::fs::write(path, json)
        .map_err(|error| CommandError::failed(format!("cannot write `{}`: {error}", path.display())))?;
    context.printer.line(format!("saved; `strata apply {}` runs exactly this", path.display()));
    Ok(())
}

/// Shows the plans of all stacks, with one summary under them.
pub(crate) fn show(printer: Printer, planned: &[(StackSession, Plan)]) {
    let mut total = Summary::default();
    let mut radius: Vec<(Layer, usize, usize)> = Vec::new();
    for (session, plan) in planned {
        let summary = plan.summary();
        for step in &plan.steps {
            printer.event(&views::plan::PlannedStep::new(step));
        }
        for problem in &plan.problems {
            printer.event(&json!({"event": "problem", "problem": problem}));
        }
        let text = views::plan::render(plan, printer.columns(), printer.is_verbose());
        if !text.is_empty() {
            printer.line(format!(
                "{} {}",
                paint(style::STRONG, &session.name),
                paint(style::FAINT, format!("({}, {})", session.layer, plan.key))
            ));
            printer.line(text);
        }
        if summary.changes() > 0 {
            match radius.iter_mut().find(|(layer, ..)| *layer == session.layer) {
                Some((_, stacks, objects)) => {
                    *stacks += 1;
                    *objects += summary.changes();
                }
                None => radius.push((session.layer, 1, summary.changes())),
            }
        }
        total += summary;
    }
    printer.event(&json!({"event": "summary", "summary": total}));
    if planned.iter().all(|(_, plan)| plan.problems.is_empty()) {
        printer.line(views::plan::render_summary(&total));
    } else {
        printer.line(paint(style::ERROR, "refused: nothing is done until the above is settled"));
    }
    if !radius.is_empty() {
        let parts: Vec<String> = radius
            .iter()
            .map(|(layer, stacks, objects)| {
                format!("{layer}: {objects} in {stacks} {}", if *stacks == 1 { "stack" } else { "stacks" })
            })
            .collect();
        printer.line(paint(style::FAINT, format!("blast radius: {}", parts.join("; "))));
    }
}
