//! `strata drift`.

use std::process::ExitCode;

use strata_engine::{DriftKind, Look};
use strata_events::{DriftFound, Event, Side};
use strata_session::tofu::{Aim, Driven, Inputs};
use strata_session::{Opened, Purpose, StateAccess};
use strata_tofu::changes::Action;

use super::{CHANGES, CommandResult};
use crate::command_error::CommandError;
use crate::context::Context;
use crate::style::{self, paint};
use crate::views;
use crate::workspace::{KnownOutputs, Workspace};

/// Shows what somebody else changed since the last apply; exit code 2 if anything
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, `layer:NAME`, addresses such as `web/vm/db` or patterns such as `web/vm/*`; everything
    /// without one
    #[arg(value_name = "STACK|ADDRESS")]
    stacks: Vec<String>,
    /// Lists what carries an ownership mark or a name of this repository and is in no state, on every target
    #[arg(long, conflicts_with = "stacks")]
    orphans: bool,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    if args.orphans {
        return orphans(context).await;
    }
    report(context, &args.stacks, true).await
}

async fn orphans(context: &Context) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let (found, unseen) = workspace.list_orphans(None).await?;
    let printer = context.printer;
    match (found, unseen) {
        (0, false) => {
            let none = paint(style::CREATE, "no orphans:");
            printer
                .line(format!("{none} every object with an ownership mark of this repository is in a state"));
            return Ok(ExitCode::SUCCESS);
        }
        (0, true) => printer.line("no orphans among what can be seen"),
        (1, _) => printer.line(paint(style::CHANGE, "1 object is in no state")),
        (found, _) => printer.line(paint(style::CHANGE, format!("{found} objects are in no state"))),
    }
    Ok(ExitCode::from(CHANGES))
}

pub(crate) async fn report(context: &Context, stacks: &[String], by_exit_code: bool) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, stacks).await?;
    let look = Look::default();
    let (mut found, mut refused, mut hidden) = (0, 0, 0);
    for opened in workspace.open(stacks, &Purpose::LOOK, StateAccess::Look).await? {
        let session = match opened {
            Opened::Native(session) => session,
            Opened::Driven(open) => {
                let known = KnownOutputs::new();
                let driven = workspace.open_driven(open.stack(), Inputs::All(&known)).await?;
                found += of_tofu(context, &driven).await?;
                continue;
            }
        };
        let drifts = session.drift(&look).await?;
        if !drifts.is_empty() || session.removed {
            context.printer.line(paint(style::STRONG, &session.name));
        }
        if let Some(removed) = workspace.removed_stack(&session.name).filter(|_| session.removed) {
            let what = DriftFound::Stack { drift: "removed-stack", objects: removed.objects };
            context.printer.event_of(&session.view().key, &Event::Drift { found: what });
            context.printer.line(format!("  {} {}", paint(style::WARNING, "!"), removed.problem().message));
            found += 1;
        }
        for drift in &drifts {
            let what = DriftFound::Object(drift);
            context.printer.event_of(&session.view().key, &Event::Drift { found: what });
            context.printer.line(views::drift::render(drift).trim_end());
        }
        let drifts: Vec<_> = drifts.into_iter().filter(|drift| !drift.kind.is_ignored()).collect();
        found += drifts.len();
        refused += drifts.iter().filter(|drift| !drift.kind.is_corrected()).count();
        hidden += drifts.iter().filter(|drift| matches!(drift.kind, DriftKind::Unknown { .. })).count();
    }
    workspace.report_removed(stacks);
    let orphans = workspace.report_orphans().await;
    (found, refused) = (found + orphans, refused + orphans);
    if found == 0 {
        context
            .printer
            .line(format!("{} everything is as it was applied", paint(style::CREATE, "no drift:")));
        return Ok(ExitCode::SUCCESS);
    }
    if hidden > 0 {
        context.printer.line(paint(style::WARNING, format!("{hidden} cannot be seen")));
    }
    let (found, refused) = (found - hidden, refused - hidden);
    let way = match (refused, found - refused) {
        (0, 0) => return Ok(ExitCode::from(if by_exit_code { CHANGES } else { 0 })),
        (0, _) => "`strata apply` corrects it".to_owned(),
        (_, 0) => "`strata apply` cannot correct it, and says why".to_owned(),
        (refused, _) => {
            format!("`strata apply` cannot correct {refused} of them, and refuses until that is resolved")
        }
    };
    context.printer.line(format!("{} {way}", paint(style::CHANGE, format!("{found} drifted:"))));
    Ok(ExitCode::from(if by_exit_code { CHANGES } else { 0 }))
}

/// What OpenTofu finds changed outside of it.
async fn of_tofu(context: &Context, driven: &Driven<'_>) -> Result<usize, CommandError> {
    let plan = driven.plan(Aim::Look).await?;
    if !plan.changes.drift.is_empty() {
        context.printer.line(paint(style::STRONG, &driven.name));
    }
    for change in &plan.changes.drift {
        let gone = change.action == Action::Delete;
        let what = DriftFound::Tofu {
            address: format!("{}{}", driven.prefix, change.address),
            drift: if gone { "gone" } else { "changed" },
            changes: Side::OpenTofu(&change.changes),
        };
        context.printer.event_of(&driven.key, &Event::Drift { found: what });
        context
            .printer
            .line(views::driven::render_drift(change, &driven.prefix, context.printer.columns()).trim_end());
    }
    Ok(plan.changes.drift.len())
}
