//! What apply and destroy share: the person at the terminal who sees a plan, agrees to it, stops it, and is told what came of it.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::{Arc, Once};

use async_trait::async_trait;
use strata_engine::{PlanFile, StopSignal};
use strata_events::Event;
use strata_live::PlannedStack;
use strata_secret::SecretBytes;
use strata_session::{
    Executed, OWN_FOLDER, Planned, Report, Reviewer, StackOutcome, StackResult, counted, interrupted,
};

use crate::command_error::{CommandError, ErrorKind, exit_code, render};
use crate::printer::Printer;
use crate::style::{self, paint};
use crate::views;
use crate::views::columns::folded;
use crate::views::counts::{not_planned, not_seen};
use crate::views::plan::render_dangers;
use crate::views::planned::show;
use crate::workspace::Workspace;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    #[default]
    Ask,
}

impl Consent {
    pub(crate) fn of(yes: bool) -> Self {
        if yes { Self::Given } else { Self::Ask }
    }
}

/// Refuses what is planned, whoever agrees to it.
pub(crate) type Guard<'g> = &'g (dyn Fn(&[Planned<'_>]) -> Result<(), CommandError> + Send + Sync);

/// What is to be done, and how.
#[derive(Default)]
pub(crate) struct Job<'j> {
    pub(crate) destroy: bool,
    pub(crate) consent: Consent,
    pub(crate) parallelism: Option<usize>,
    pub(crate) new_cluster: bool,
    /// An etcd snapshot that a lost etcd is restored from.
    pub(crate) restoring: Option<Arc<SecretBytes>>,
    /// Addresses of what is replaced although nothing about it asks for that.
    pub(crate) replace: Vec<String>,
    /// Exactly this plan, or nothing.
    pub(crate) saved: Option<&'j PlanFile>,
    /// Agrees to the removal of stacks that left the source, where nobody is asked.
    pub(crate) allow_removed: bool,
    pub(crate) guard: Option<Guard<'j>>,
}

/// Plans, shows, asks and runs. With a plan file, exactly that one or nothing.
pub(crate) async fn execute(
    workspace: &Workspace<'_>,
    stacks: &[String],
    job: Job<'_>,
) -> Result<(), CommandError> {
    let printer = workspace.context.printer;
    let Job { destroy, consent, allow_removed, saved, .. } = job;
    // Whoever names a stack, or is asked, knows of it; a checkout that lacks half of the source must not destroy the other half.
    let named = saved.is_none() && !stacks.is_empty();
    let refuses_removals = consent == Consent::Given && !destroy && !allow_removed && !named;
    let told = Once::new();
    let person = Person { workspace, stacks, consent, destroy, refuses_removals, guard: job.guard, told };
    let asked = strata_session::Job {
        destroy,
        parallelism: job.parallelism,
        new_cluster: job.new_cluster,
        restoring: job.restoring,
        replace: job.replace,
        saved,
    };
    let executed = workspace.execute(stacks, &asked, &person).await;
    printer.live().end().iter().for_each(|line| printer.note(line));
    let outcome = executed.and_then(|executed| {
        let told = report(printer, &executed, &way_on(stacks, destroy, saved.is_some()));
        told.and(executed.released)
    });
    workspace.report_orphans().await;
    outcome?;
    if let Some(saved) = saved.filter(|saved| !saved.waiting.is_empty()) {
        let names = saved.waiting.join(" ");
        printer.note(format!("not in this plan, since they waited for it: `strata apply {names}` goes on"));
    }
    Ok(())
}

/// Whoever started the command.
struct Person<'p> {
    workspace: &'p Workspace<'p>,
    stacks: &'p [String],
    consent: Consent,
    destroy: bool,
    /// Nobody has agreed to the removal of stacks that left the source.
    refuses_removals: bool,
    guard: Option<Guard<'p>>,
    /// What no plan can show was told.
    told: Once,
}

#[async_trait]
impl Reviewer for Person<'_> {
    fn show(&self, planned: &[Planned<'_>]) -> Result<(), CommandError> {
        let printer = self.workspace.context.printer;
        show(printer, planned);
        let of = |one: &Planned<'_>| match one {
            Planned::Native(_, plan) => {
                Some(PlannedStack::of(one.key(), one.name().to_owned(), one.layer(), plan))
            }
            _ => None,
        };
        printer
            .live()
            .plan(planned.iter().filter_map(of), self.workspace.root().join(OWN_FOLDER).join("times.json"));
        self.told.call_once(|| self.workspace.report_removed(self.stacks));
        self.guard.map_or(Ok(()), |guard| guard(planned))?;
        if self.refuses_removals { refuse_removals(planned) } else { Ok(()) }
    }

    async fn agree(&self, planned: &[Planned<'_>], stop: Option<&StopSignal>) -> Result<(), CommandError> {
        if self.consent == Consent::Given {
            return Ok(());
        }
        let printer = self.workspace.context.printer;
        printer.live().pause();
        let plans = planned.iter().filter_map(|one| match one {
            Planned::Native(_, plan) => Some(&**plan),
            _ => None,
        });
        render_dangers(plans).iter().for_each(|line| printer.note(folded(line, 2, printer.columns())));
        let Some(stop) = stop else { return ask(&self.question(planned)) };
        // Interrupts are heard by now, and do not end a thread that waits for an answer.
        let (answered, answer) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || answered.send(ask("Do this too?")));
        tokio::select! {
            answer = answer => answer.unwrap_or_else(|_| Err(CommandError::refused("not confirmed"))),
            () = stop.called(1) => {
                // The question still stands in the last line.
                self.workspace.context.printer.note("");
                Err(interrupted())
            }
        }
    }

    fn begin(&self) -> StopSignal {
        stop_on_interrupt()
    }
}

impl Person<'_> {
    fn question(&self, planned: &[Planned<'_>]) -> String {
        if self.destroy {
            return "Destroy all of this?".to_owned();
        }
        let removed = planned.iter().filter(|one| one.removes_stack());
        let removed: Vec<String> =
            removed.map(|one| format!("`{}` ({})", one.name(), counted(one.summary().delete))).collect();
        match removed.is_empty() {
            true => "Do this?".to_owned(),
            false => format!(
                "Do this, and destroy what is left of stacks that are not in the source any more: {}?",
                removed.join(", ")
            ),
        }
    }
}

/// `--yes` agrees to what the source asks for. That a stack is not in the source can also be a wrong folder or a half checkout.
fn refuse_removals(planned: &[Planned<'_>]) -> Result<(), CommandError> {
    let removed: Vec<&Planned<'_>> = planned.iter().filter(|one| one.removes_stack()).collect();
    let Some(first) = removed.first() else { return Ok(()) };
    let objects: usize = removed.iter().map(|one| one.summary().delete).sum();
    let names: Vec<String> = removed.iter().map(|one| format!("`{}`", one.name())).collect();
    Err(CommandError::refused(format!(
        "`--yes` does not agree to the removal of {}: not in the source any more, and {} would be destroyed",
        names.join(", "),
        counted(objects)
    ))
    .hint(format!(
        "`strata apply --yes --allow-removed-stacks` removes them, `strata destroy {}` this one; put a stack back to keep it",
        first.name()
    )))
}

pub(crate) fn ask(question: &str) -> Result<(), CommandError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(CommandError::refused("there is nobody to ask: standard input is not a terminal")
            .hint("`--yes` goes ahead without asking"));
    }
    let mut out = anstream::stderr();
    let _ = write!(out, "{} only `yes` goes ahead: ", paint(style::STRONG, question));
    let _ = out.flush();
    let mut answer = String::new();
    let _ = stdin.lock().read_line(&mut answer);
    if answer.trim() == "yes" { Ok(()) } else { Err(CommandError::refused("not confirmed, and not done")) }
}

/// First interrupt: finish what runs. Second: stop now, the journal has it.
pub(crate) fn stop_on_interrupt() -> StopSignal {
    let stop = StopSignal::default();
    let signal = stop.clone();
    tokio::spawn(async move {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).ok();
        loop {
            let terminated = async {
                match &mut terminate {
                    Some(terminate) => terminate.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                result = tokio::signal::ctrl_c() => if result.is_err() { return },
                _ = terminated => {}
            }
            // The third time something hangs that should not: the journal has what was begun.
            if signal.now() {
                std::process::exit(i32::from(exit_code(ErrorKind::Interrupted)));
            }
            signal.stop();
        }
    });
    stop
}

/// The command that goes on with what is left. An apply would make again what a destroy has taken down.
fn way_on(stacks: &[String], destroy: bool, saved: bool) -> String {
    let verb = if destroy { "destroy" } else { "apply" };
    // A plan file is spent by its first run.
    let names: Vec<&str> = if saved { Vec::new() } else { stacks.iter().map(String::as_str).collect() };
    let command = [&["strata", verb][..], &names].concat().join(" ");
    format!("everything is saved; `{command}` goes on from here")
}

fn report(printer: Printer, executed: &Executed, way_on: &str) -> Result<(), CommandError> {
    let Executed { outcomes, totals, .. } = executed;
    let reports = || outcomes.iter().filter_map(StackOutcome::report);
    let done: usize = reports().map(Report::done).sum();
    let failed: usize = reports().map(Report::failed).sum();
    if outcomes.iter().all(StackOutcome::is_success) {
        if done > 0 || totals.summary.moved > 0 {
            printer.line(views::plan::render_applied(&totals.summary));
        }
        return match totals.unknown {
            0 => Ok(()),
            unknown => Err(CommandError::failed(not_seen(unknown))
                .hint("everything else is done; apply again when what the plan names can be seen")),
        };
    }
    // What ended a stack without a report. Of several each is told with its stack.
    let mut errors: Vec<(&str, CommandError)> = Vec::new();
    for StackOutcome { stack, result, .. } in outcomes {
        match result {
            StackResult::Ended(Report::Native(report)) => {
                for failure in &report.failed {
                    let error = CommandError::from(failure.error.clone());
                    let message = format!("`{}`: {}", failure.address, error.message);
                    let error = CommandError { message, origin: failure.origin.clone(), ..error };
                    printer.note(render(&error));
                }
            }
            // It has told what was wrong; how that ended it, and what helps, is left to tell.
            StackResult::Ended(Report::Driven(applied)) => {
                errors.extend(applied.error.clone().map(|error| (stack.as_str(), error)));
            }
            StackResult::Failed(error) => errors.push((stack, error.clone())),
            StackResult::NotPlanned(_) | StackResult::NeedsFailed(_) | StackResult::Stopped => {}
        }
    }
    for StackOutcome { stack, key, result } in outcomes {
        match result {
            StackResult::NeedsFailed(needed) => {
                printer.event_of(key, &Event::StackLeft { because: needed });
                printer.note(format!("{stack}: left as it is, it needs `{needed}`, which failed"));
            }
            StackResult::NotPlanned(error) => {
                printer.note(format!("{stack}: left as it is, it could not be planned: {}", error.message));
            }
            StackResult::Ended(_) | StackResult::Failed(_) | StackResult::Stopped => {}
        }
    }
    let left = totals.steps.saturating_sub(done + failed);
    let is_stopped = |outcome: &&StackOutcome| match &outcome.result {
        StackResult::Stopped => true,
        StackResult::Ended(report) => report.interrupted(),
        StackResult::Failed(_) | StackResult::NotPlanned(_) | StackResult::NeedsFailed(_) => false,
    };
    let only_stopped =
        failed == 0 && outcomes.iter().all(|outcome| outcome.is_success() || is_stopped(&outcome));
    let unplanned = outcomes.iter().filter(|one| matches!(one.result, StackResult::NotPlanned(_))).count();
    let mut counts = format!("{done} done, {failed} failed, {left} left");
    if unplanned > 0 {
        counts = format!("{counts}; {}", not_planned(unplanned));
    }
    errors.retain(|(_, error)| error.kind != ErrorKind::Interrupted);
    let mut error = match errors.as_slice() {
        [] if only_stopped => {
            CommandError::new(ErrorKind::Interrupted, format!("interrupted: {done} done, {left} left"))
        }
        [] => CommandError::failed(counts),
        [(_, error)] => error.clone().detail(counts),
        several => {
            for (stack, error) in several.iter().filter(|(_, error)| !error.is_shown) {
                let message = format!("`{stack}`: {}", error.message);
                printer.note(render(&CommandError { message, ..error.clone() }));
            }
            CommandError::failed(counts)
        }
    };
    error.hints.push(way_on.to_owned());
    Err(error)
}
