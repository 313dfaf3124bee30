//! What apply and destroy share: lock, recover, plan, show, ask, run, report.

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

use strata_engine::{ApplyOptions, ApplyReport, LockedRun, Plan, PlanFile, StopSignal, Summary};
use strata_secret::SecretBytes;
use strata_source::EffectiveStack;

use super::planned::{Planned, not_seen, show};
use crate::command_error::{CommandError, ErrorKind};
use crate::printer::Printer;
use crate::style::{self, paint};
use crate::tofu::{Applied, Driven, DrivenPlan, Inputs};
use crate::views;
use crate::workspace::bundle::Keys;
use crate::workspace::{KnownOutputs, Opened, Opening, StackSession, Workspace, counted, digest_key};

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
    /// Agrees to the removal of stacks that left the source, where nobody is asked.
    pub(crate) allow_removed: bool,
}

/// Plans, shows, asks and runs. With a plan file, exactly that one or nothing.
pub(crate) async fn execute(
    workspace: &Workspace<'_>,
    stacks: &[String],
    job: Job<'_>,
) -> Result<(), CommandError> {
    let Job { destroy, consent, parallelism, new_cluster, restoring, saved, allow_removed } = job;
    let printer = workspace.context.printer;
    let operation = if destroy { "destroy" } else { "apply" };
    // A destroy needs no keys of a cluster that was never made.
    let keys = if destroy { Keys::Draw } else { Keys::Make };
    let opening = Opening { destroy, keys, new_cluster, restoring };
    let mut locked = Vec::new();
    let mut planned = Vec::new();
    let outcome = async {
        for opened in workspace.open_all(stacks, opening.clone()).await? {
            let owner = workspace.context.lock_owner(operation);
            match opened {
                Opened::Native(mut session) => {
                    let mut run = session.run.lock(&session.view, owner).await?;
                    if has_former_key(&session, &run) {
                        // Another first run was faster. What is wanted is digested again, with its key.
                        run.release().await?;
                        let reopened =
                            workspace.open(std::slice::from_ref(&session.name), opening.clone()).await?;
                        session = reopened.into_iter().next().map_or(session, Box::new);
                        let owner = workspace.context.lock_owner(operation);
                        run = session.run.lock(&session.view, owner).await?;
                    }
                    let prepared = prepare(&session, &mut run, saved).await;
                    locked.push(run);
                    planned.push(Planned::Native(session, prepared?));
                }
                Opened::Driven(stack) => {
                    if !destroy
                        && saved.is_none()
                        && let Some(deferred) = Planned::deferred(stack, &planned)
                    {
                        // Whoever else has it is met before anything is changed.
                        locked.push(workspace.lock_driven(stack, owner).await?);
                        planned.push(deferred);
                        continue;
                    }
                    let known = Planned::outputs(&planned);
                    let driven = workspace.open_driven(stack, Inputs::All(&known)).await?;
                    locked.push(workspace.lock_driven(stack, owner).await?);
                    let plan = driven.prepare(destroy, saved).await?;
                    planned.push(Planned::Driven(driven, plan));
                }
            }
        }
        show(printer, &planned);
        workspace.tell_removed(stacks);
        // Whoever names a stack, or is asked, knows of it; a checkout that lacks half of the source must not destroy the other half.
        let named = saved.is_none() && !stacks.is_empty();
        if consent == Consent::Given && !destroy && !allow_removed && !named {
            refuse_removals(&planned)?;
        }
        check(&planned, consent, printer, destroy).await?;
        let options = ApplyOptions { limits: workspace.limits(parallelism), stop: stop_on_interrupt() };
        let reports = run_all(workspace, &mut planned, &mut locked, &options, (consent, destroy)).await?;
        tell(printer, &reports, &planned, &way_on(stacks, destroy, saved.is_some()))
    }
    .await;
    // Whatever came of it, the locks are given back; the first error is the one to tell.
    let mut released = Ok(());
    for run in locked {
        released = released.and(run.release().await.map_err(CommandError::from));
    }
    workspace.tell_orphans().await;
    outcome.and(released)?;
    if let Some(saved) = saved.filter(|saved| !saved.waiting.is_empty()) {
        let names = saved.waiting.join(" ");
        printer.note(format!("not in this plan, since they waited for it: `strata apply {names}` goes on"));
    }
    Ok(())
}

/// The secrets of a session are digested before the lock is taken, with a key that the state did not keep yet; it may keep another by now.
fn has_former_key(session: &StackSession, run: &LockedRun) -> bool {
    session.wrapped_key.is_some() && run.state().digest_key.is_some()
}

/// Recovers and plans; a saved plan must still be the plan of now.
async fn prepare(
    session: &StackSession,
    run: &mut LockedRun,
    saved: Option<&PlanFile>,
) -> Result<Plan, CommandError> {
    if has_former_key(session, run) {
        let error = "another run has made the key of this state's digests in the meantime";
        return Err(CommandError::refused(error).hint("nothing was changed; run it again"));
    }
    let Some(saved) = saved else {
        run.recover().await?;
        return Ok(run.plan(&session.view).await?);
    };
    let plan = run.plan(&session.view).await?;
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
    planned: &[Planned<'_>],
    consent: Consent,
    printer: Printer,
    destroy: bool,
) -> Result<(), CommandError> {
    if planned.iter().any(Planned::is_blocked) {
        return Err(CommandError::silent(ErrorKind::Refused));
    }
    let mut missing = Vec::new();
    let mut earlier: Vec<&Plan> = Vec::new();
    for one in planned {
        if let Planned::Native(session, plan) = one {
            missing.extend(session.run.preflight(plan, &earlier).await?);
            earlier.push(plan);
        }
    }
    if !missing.is_empty() {
        for problem in &missing {
            printer.note(CommandError::from(problem.clone()).render());
        }
        return Err(CommandError::refused("the preflight found what would fail later; nothing was changed"));
    }
    let changes = planned.iter().any(Planned::has_changes);
    if !changes || consent == Consent::Given {
        return Ok(());
    }
    let removed: Vec<String> = planned
        .iter()
        .filter(|one| one.removes_stack())
        .map(|one| format!("`{}` ({})", one.name(), counted(one.summary().delete)))
        .collect();
    if !removed.is_empty() && !destroy {
        return ask(&format!(
            "Do this, and destroy what is left of stacks that are not in the source any more: {}?",
            removed.join(", ")
        ));
    }
    ask(if destroy { "Destroy all of this?" } else { "Do this?" })
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

/// One stack after the other. What waited for outputs is planned, shown and asked for in its turn.
async fn run_all<'w>(
    workspace: &'w Workspace<'_>,
    planned: &mut [Planned<'w>],
    locked: &mut [LockedRun],
    options: &ApplyOptions,
    (consent, destroy): (Consent, bool),
) -> Result<Vec<Report>, CommandError> {
    let stop = &options.stop;
    let mut known = KnownOutputs::new();
    let mut reports = Vec::new();
    for (one, run) in planned.iter_mut().zip(locked) {
        if stop.stopping() {
            break;
        }
        if let Planned::Deferred { stack, .. } = one {
            let settled = settle(workspace, stack, &known).await;
            let agreed = match settled {
                Ok(settled) => {
                    *one = settled;
                    agree(workspace.context.printer, one, consent, stop).await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = agreed {
                let interrupted = error.kind == ErrorKind::Interrupted;
                reports.push(Report::Driven(Applied {
                    interrupted,
                    error: Some(error),
                    ..Applied::default()
                }));
                break;
            }
        }
        let report = match one {
            Planned::Native(session, plan) => Report::Native(apply(session, plan, run, options).await?),
            Planned::Driven(driven, plan) => {
                let applied = drive(driven, plan, run, stop, destroy).await?;
                known.extend(applied.outputs.clone().map(|outputs| (driven.name.clone(), outputs)));
                Report::Driven(applied)
            }
            Planned::Deferred { .. } => continue,
        };
        let failed = !report.is_success();
        reports.push(report);
        if failed {
            // A higher layer may need what failed here.
            break;
        }
    }
    Ok(reports)
}

/// Plans a stack that waited for outputs, now that they are known.
async fn settle<'w>(
    workspace: &'w Workspace<'_>,
    stack: &'w EffectiveStack,
    known: &KnownOutputs,
) -> Result<Planned<'w>, CommandError> {
    let driven = workspace.open_driven(stack, Inputs::All(known)).await?;
    let plan = driven.prepare(false, None).await?;
    Ok(Planned::Driven(driven, plan))
}

/// Shows what could not be shown before, and asks for it.
async fn agree(
    printer: Printer,
    planned: &Planned<'_>,
    consent: Consent,
    stop: &StopSignal,
) -> Result<(), CommandError> {
    show(printer, std::slice::from_ref(planned));
    let interrupted = || CommandError::new(ErrorKind::Interrupted, "interrupted before it was agreed to");
    if stop.stopping() {
        return Err(interrupted());
    }
    if consent == Consent::Given || !planned.has_changes() {
        return Ok(());
    }
    // Interrupts are heard by now, and do not end a thread that waits for an answer.
    let (answered, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || answered.send(ask("Do this too?")));
    tokio::select! {
        answer = answer => answer.unwrap_or_else(|_| Err(CommandError::refused("not confirmed"))),
        () = stop.called(1) => {
            // The question still stands in the last line.
            printer.note("");
            Err(interrupted())
        }
    }
}

/// What came of one stack.
enum Report {
    Native(ApplyReport),
    Driven(Applied),
}

impl Report {
    fn is_success(&self) -> bool {
        match self {
            Self::Native(report) => report.is_success(),
            Self::Driven(applied) => applied.error.is_none(),
        }
    }

    fn done(&self) -> usize {
        match self {
            Self::Native(report) => report.done,
            Self::Driven(applied) => applied.done,
        }
    }

    fn failed(&self) -> usize {
        match self {
            Self::Native(report) => report.failed.len(),
            Self::Driven(applied) => applied.failed,
        }
    }

    fn interrupted(&self) -> bool {
        match self {
            Self::Native(report) => report.interrupted,
            Self::Driven(applied) => applied.interrupted,
        }
    }
}

/// A stack that Strata makes itself.
async fn apply(
    session: &StackSession,
    plan: &Plan,
    run: &mut LockedRun,
    options: &ApplyOptions,
) -> Result<ApplyReport, CommandError> {
    keep_key(session, run).await?;
    keep_cluster(session, run).await?;
    let report = run.apply(plan, options).await?;
    // With an entry open the journal would be replayed over the change.
    if report.is_success() && run.open_entries() == 0 {
        keep_key(session, run).await?;
        // Of a cluster that is destroyed the keys may go, too.
        if run.state().outputs != session.outputs || run.state().cluster != session.cluster {
            run.edit(|document| {
                document.outputs.clone_from(&session.outputs);
                document.cluster.clone_from(&session.cluster);
            })
            .await?;
        }
    }
    Ok(report)
}

/// Which cluster it is, is in the state before a machine has its keys: a run that fails later leaves machines with keys that no other
/// cluster may have.
async fn keep_cluster(session: &StackSession, run: &mut LockedRun) -> Result<(), CommandError> {
    if session.cluster.is_none() || run.state().cluster.is_some() || run.open_entries() > 0 {
        return Ok(());
    }
    Ok(run.edit(|document| document.cluster.clone_from(&session.cluster)).await?)
}

/// The key of the digests is in the state before the first digest is: a run that fails may leave nothing else behind. While entries of an
/// interrupted run are open the state is not written; then it is kept once they are resolved.
async fn keep_key(session: &StackSession, run: &mut LockedRun) -> Result<(), CommandError> {
    if session.wrapped_key.is_none() || run.state().digest_key.is_some() || run.open_entries() > 0 {
        return Ok(());
    }
    let wrapped = session.wrapped_key.clone();
    if wrapped.as_deref().is_some_and(digest_key::is_wrapped) {
        return Ok(run.edit(|document| document.digest_key = wrapped).await?);
    }
    // What is not wrapped is the same whenever this machine makes it, so it goes with the first write.
    run.note_digest_key(wrapped);
    Ok(())
}

/// A stack that OpenTofu makes. Of what it made, Strata's state keeps the outputs, for others to ask for.
async fn drive(
    driven: &Driven<'_>,
    plan: &DrivenPlan,
    run: &mut LockedRun,
    stop: &StopSignal,
    destroy: bool,
) -> Result<Applied, CommandError> {
    run.still_held()?;
    let applied = if plan.changes.any() {
        driven.apply(plan, stop).await?
    } else {
        // A run that was killed may have left this undone.
        Applied { outputs: Some(plan.outputs()), ..Applied::default() }
    };
    let outputs = match applied.error {
        Some(_) => None,
        None if destroy => Some(BTreeMap::new()),
        None => applied.outputs.clone(),
    };
    if let Some(outputs) = outputs {
        // What OpenTofu holds is known by its folder: without it nobody would miss a stack that left the source.
        let held = !destroy && (plan.changes.unchanged > 0 || plan.changes.any() || !outputs.is_empty());
        let tofu = held.then(|| driven.stack.folder.clone());
        if run.state().outputs != outputs || run.state().tofu != tofu {
            run.edit(|document| {
                document.outputs = outputs;
                document.tofu = tofu;
            })
            .await?;
        }
    }
    Ok(applied)
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
                std::process::exit(i32::from(ErrorKind::Interrupted.exit_code()));
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

fn tell(
    printer: Printer,
    reports: &[Report],
    planned: &[Planned<'_>],
    way_on: &str,
) -> Result<(), CommandError> {
    let done: usize = reports.iter().map(Report::done).sum();
    let failed: usize = reports.iter().map(Report::failed).sum();
    let all: usize = planned.iter().map(Planned::steps).sum();
    let begun = planned.iter().filter(|one| !one.is_deferred()).count();
    if reports.len() == begun && reports.iter().all(Report::is_success) {
        if done > 0 {
            let mut total = Summary::default();
            planned.iter().for_each(|one| total += one.summary());
            printer.line(views::plan::render_applied(&total));
        }
        let unknown: usize = planned.iter().map(Planned::unknown).sum();
        return match unknown {
            0 => Ok(()),
            unknown => Err(CommandError::failed(not_seen(unknown))
                .hint("everything else is done; apply again when what the plan names can be seen")),
        };
    }
    let mut own = None;
    for report in reports {
        match report {
            Report::Native(report) => {
                for failure in &report.failed {
                    let error = CommandError::from(failure.error.clone());
                    let message = format!("`{}`: {}", failure.address, error.message);
                    printer.note(CommandError { message, origin: failure.origin.clone(), ..error }.render());
                }
            }
            // It has told what was wrong; how that ended it, and what helps, is left to tell.
            Report::Driven(applied) => own = own.or(applied.error.clone()),
        }
    }
    let left = all.saturating_sub(done + failed);
    let interrupted = reports.iter().any(Report::interrupted) || reports.len() < begun;
    let mut error = match own {
        Some(error) if error.kind != ErrorKind::Interrupted => {
            error.detail(format!("{done} done, {failed} failed, {left} left"))
        }
        _ if interrupted
            && failed == 0
            && reports.iter().all(|report| report.is_success() || report.interrupted()) =>
        {
            CommandError::new(ErrorKind::Interrupted, format!("interrupted: {done} done, {left} left"))
        }
        _ => CommandError::failed(format!("{done} done, {failed} failed, {left} left")),
    };
    error.hints.push(way_on.to_owned());
    Err(error)
}
