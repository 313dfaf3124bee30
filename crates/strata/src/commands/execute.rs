//! What apply and destroy share: lock, recover, plan, show, ask, run, report.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

use strata_engine::{ApplyOptions, ApplyReport, LockedRun, Plan, PlanFile, StopSignal, Summary};
use strata_secret::SecretBytes;

use crate::command_error::{CommandError, ErrorKind};
use crate::printer::Printer;
use crate::style::{self, paint};
use crate::views;
use crate::workspace::cluster::Keys;
use crate::workspace::{Opening, StackSession, Workspace};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    Ask,
}

/// What is to be done, and how.
pub(crate) struct Job<'j> {
    pub(crate) destroy: bool,
    pub(crate) consent: Consent,
    pub(crate) parallelism: Option<usize>,
    pub(crate) new_cluster: bool,
    /// A copy that a lost etcd begins from.
    pub(crate) restoring: Option<Arc<SecretBytes>>,
    /// Exactly this plan, or nothing.
    pub(crate) saved: Option<&'j PlanFile>,
}

/// Runs the plan of the stacks. With a plan file, exactly that one or nothing.
pub(crate) async fn execute(
    workspace: &Workspace<'_>,
    stacks: &[String],
    job: Job<'_>,
) -> Result<(), CommandError> {
    let Job { destroy, consent, parallelism, new_cluster, restoring, saved } = job;
    let printer = workspace.context.printer;
    let operation = if destroy { "destroy" } else { "apply" };
    // A destroy needs no keys of a cluster that was never made.
    let keys = if destroy { Keys::Draw } else { Keys::Make };
    let opening = Opening { destroy, keys, new_cluster, restoring };
    let mut locked = Vec::new();
    let mut planned = Vec::new();
    let outcome = async {
        for session in workspace.open(stacks, opening).await? {
            let owner = workspace.context.lock_owner(operation);
            let mut run = session.run.lock(&session.view, owner).await?;
            let prepared = prepare(&session, &mut run, saved).await;
            locked.push(run);
            planned.push((session, prepared?));
        }
        super::plan::show(printer, &planned);
        check(&planned, consent, printer, destroy).await?;
        run_all(workspace, &planned, &mut locked, parallelism).await
    }
    .await;
    // Whatever came of it, the locks are given back; the first error is the one to tell.
    let mut released = Ok(());
    for run in locked {
        released = released.and(run.release().await.map_err(CommandError::from));
    }
    outcome.and(released)
}

/// Recovers and plans; a saved plan must still be the plan of now.
async fn prepare(
    session: &StackSession,
    run: &mut LockedRun,
    saved: Option<&PlanFile>,
) -> Result<Plan, CommandError> {
    let Some(saved) = saved else {
        run.recover().await?;
        let mut plan = run.plan(&session.view).await?;
        session.guard(&mut plan);
        return Ok(plan);
    };
    let mut plan = run.plan(&session.view).await?;
    session.guard(&mut plan);
    let planned = saved
        .stacks
        .iter()
        .find(|planned| planned.stack == session.name)
        .ok_or_else(|| CommandError::refused(format!("the plan file has no stack `{}`", session.name)))?;
    planned.check(&session.source_digest, &plan)?;
    Ok(plan)
}

/// Nothing runs that cannot run to its end, and nothing without consent.
async fn check(
    planned: &[(StackSession, Plan)],
    consent: Consent,
    printer: Printer,
    destroy: bool,
) -> Result<(), CommandError> {
    if planned.iter().any(|(_, plan)| !plan.problems.is_empty()) {
        return Err(CommandError::silent(ErrorKind::Refused));
    }
    let mut missing = Vec::new();
    for (session, plan) in planned {
        missing.extend(session.run.preflight(plan).await?);
    }
    if !missing.is_empty() {
        for problem in &missing {
            printer.note(CommandError::from(problem.clone()).render());
        }
        return Err(CommandError::refused("the preflight found what would fail later; nothing was changed"));
    }
    let changes = planned.iter().any(|(_, plan)| plan.has_changes());
    if !changes || consent == Consent::Given {
        return Ok(());
    }
    ask(if destroy { "Destroy all of this?" } else { "Do this?" })
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
    if answer.trim() == "yes" {
        Ok(())
    } else {
        Err(CommandError::refused("not confirmed, nothing was changed"))
    }
}

async fn run_all(
    workspace: &Workspace<'_>,
    planned: &[(StackSession, Plan)],
    locked: &mut [LockedRun],
    parallelism: Option<usize>,
) -> Result<(), CommandError> {
    let printer = workspace.context.printer;
    let options = ApplyOptions { limits: workspace.limits(parallelism), stop: stop_on_interrupt() };
    let mut reports = Vec::new();
    for ((session, plan), run) in planned.iter().zip(locked) {
        if options.stop.stopping() {
            break;
        }
        let report = run.apply(plan, &options).await?;
        let failed = !report.is_success();
        let keeps_key = session.wrapped_key.is_none() || run.state().digest_key.is_some();
        if !failed && (run.state().outputs != session.outputs || !keeps_key) {
            run.edit(|document| {
                document.outputs.clone_from(&session.outputs);
                if !keeps_key {
                    document.digest_key.clone_from(&session.wrapped_key);
                }
            })
            .await?;
        }
        reports.push(report);
        if failed {
            // A higher layer may need what failed here.
            break;
        }
    }
    tell(printer, &reports, planned)
}

/// First interrupt: finish what runs. Second: stop now, the journal has it.
fn stop_on_interrupt() -> StopSignal {
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
                std::process::exit(i32::from(ErrorKind::Interrupted.exit_code()));
            }
            signal.stop();
        }
    });
    stop
}

fn tell(
    printer: Printer,
    reports: &[ApplyReport],
    planned: &[(StackSession, Plan)],
) -> Result<(), CommandError> {
    let done: usize = reports.iter().map(|report| report.done).sum();
    let failed: Vec<_> = reports.iter().flat_map(|report| &report.failed).collect();
    let all: usize = planned.iter().map(|(_, plan)| plan.steps.len()).sum();
    if done == all && failed.is_empty() {
        if done > 0 {
            let mut total = Summary::default();
            planned.iter().for_each(|(_, plan)| total += plan.summary());
            printer.line(views::plan::render_applied(&total));
        }
        return Ok(());
    }
    for failure in &failed {
        let error = CommandError::from(failure.error.clone());
        let message = format!("`{}`: {}", failure.address, error.message);
        printer.note(CommandError { message, origin: failure.origin.clone(), ..error }.render());
    }
    let left = all - done - failed.len();
    let interrupted = reports.iter().any(|report| report.interrupted);
    if interrupted && failed.is_empty() {
        let message = format!("interrupted: {done} done, {left} left");
        return Err(CommandError::new(ErrorKind::Interrupted, message)
            .hint("everything is saved; `strata apply` goes on from here"));
    }
    Err(CommandError::failed(format!("{done} done, {} failed, {left} left", failed.len()))
        .hint("everything is saved; `strata apply` goes on from here"))
}
