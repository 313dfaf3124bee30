//! `strata drift`.

use std::process::ExitCode;

use strata_engine::{ApplyOptions, DriftKind, Look};
use strata_events::{DriftFound, Event, Side};
use strata_session::tofu::{Aim, Driven, Inputs};
use strata_session::{Opened, Purpose, StateAccess, counted};
use strata_tofu::changes::Action;

use super::execute::{ask, stop_on_interrupt};
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
    /// Keeps what somebody changed: the live values are written into the files of the source, shown as a diff, and recorded
    #[arg(long, requires = "stacks", conflicts_with = "orphans")]
    accept: bool,
    /// With `--accept`: goes ahead without asking
    #[arg(long, short, requires = "accept")]
    yes: bool,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    if args.orphans {
        return orphans(context).await;
    }
    if args.accept {
        return accept(context, &args.stacks, args.yes).await;
    }
    report(context, &args.stacks, true).await
}

/// Writes what is live into the source. What cannot be accepted is named, and the exit code says that drift is left.
async fn accept(context: &Context, stacks: &[String], yes: bool) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, stacks).await?;
    let proposal = workspace.propose_acceptance(stacks).await?;
    let printer = context.printer;
    for (path, edit) in &proposal.files {
        printer.event(&Event::file(path, None));
        printer.line(views::text::diff(path, &edit.before, &edit.after).trim_end());
    }
    for (address, error) in &proposal.left_out {
        printer.event(&Event::NotAccepted { address, error });
        printer.line(format!("{} {}", paint(style::WARNING, "not accepted:"), error.message));
        for hint in &error.hints {
            printer.line(format!("  {} {hint}", paint(style::HINT, "hint:")));
        }
    }
    let left = || ExitCode::from(if proposal.left_out.is_empty() { 0 } else { CHANGES });
    if proposal.accepted.is_empty() {
        printer.line(match proposal.left_out.is_empty() {
            true => format!("{} nothing to accept", paint(style::CREATE, "no drift:")),
            false => "nothing was written".to_owned(),
        });
        return Ok(left());
    }
    if !yes && !proposal.files.is_empty() {
        ask("Write this to the source?")?;
    }
    for (path, edit) in &proposal.files {
        edit.write(workspace.root(), path)?;
    }
    // What is recorded is what the files say now.
    let workspace = Workspace::load(context)?;
    let limits = workspace.limits(None, 1);
    let options = ApplyOptions { limits, stop: stop_on_interrupt(), ..ApplyOptions::default() };
    workspace.accept(&proposal, &options).await?;
    for (address, changes) in &proposal.accepted {
        printer.event(&Event::Accepted { address, changes });
        let fields: Vec<String> = changes.iter().map(|change| change.path.to_string()).collect();
        let fields = paint(style::FAINT, fields.join(", "));
        printer.line(format!("{} {address}  {fields}", paint(style::CREATE, "=")));
    }
    let count = counted(proposal.accepted.len());
    let done = paint(style::CREATE, "accepted:");
    printer.line(format!("{done} the drift of {count}; the plan of what was accepted is empty"));
    Ok(left())
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
        (0, _) => {
            "`strata apply` corrects it, `strata drift --accept ADDRESS` writes it into the source".to_owned()
        }
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
