//! What is said of an event in a line, above a frame or instead of one.

use std::time::Duration;

use strata_engine::{Event, Resolution};
use strata_views::style::{self, paint};

use crate::model::{Model, verbs};

/// A line for what stays in the scrollback: what ended, what went wrong, what a person should know. `started` lines are for those who see no frame.
pub fn line(model: &Model, key: &str, event: &Event, now: Duration, started: bool) -> Option<String> {
    let took = |step: usize| {
        let took = model.took(key, step, now);
        paint(style::FAINT, format!("{:.1} s", took.as_secs_f64()))
    };
    Some(match event {
        Event::WaitingOut { key, seconds } => format!(
            "  {} {key}: the run that held the lock is not heard of any more; waiting {seconds} s, in which a request of it may still \
             arrive",
            paint(style::WARNING, "!"),
        ),
        Event::ReportAwaited { address, seconds } => {
            format!("  {address}: waiting for the address that it was given, at most {seconds} s")
        }
        Event::ReportMissing { address, why } => format!(
            "  {} {address}: no output can have its address: {why}\n    hint: the next `strata apply` asks again",
            paint(style::WARNING, "!"),
        ),
        Event::RecoveryStarted { entry } => format!(
            "  {} {}: an interrupted run began to {} it, looking what came of that",
            paint(style::WARNING, "!"),
            entry.address,
            entry.doing()
        ),
        Event::RecoveryDone { resolved } => {
            let what = match resolved.resolution {
                Resolution::Finished => "it had been done",
                Resolution::Adopted => "it exists and is managed, the plan completes it",
                Resolution::NotDone => "nothing had been done",
                Resolution::LeftUnmanaged => "something unmanaged has its identity, left alone",
                Resolution::StaysOpen => "what came of it cannot be seen: it stays open, the rest goes on",
            };
            format!("  {} {}: {what}", paint(style::CREATE, "✓"), resolved.address)
        }
        Event::StepStarted { address, action, .. } if action.is_remote() && started => {
            format!("  {address}: {}", verbs(address.kind(), *action).0)
        }
        // An act outside of any plan has no step.
        Event::StepProgress { step, address, doing } if model.step(key, *step).is_none() => {
            format!("  {address}: {doing}")
        }
        Event::StepDone { step, address, action } if action.is_remote() => {
            let done = verbs(address.kind(), *action).1;
            format!("  {} {address}  {done} {}", paint(style::CREATE, "✓"), took(*step))
        }
        Event::StepWarning { address, warning, .. } => {
            format!("  {} {address}  {warning}", paint(style::WARNING, "!"))
        }
        Event::StepFailed { step, address, error, .. } => {
            format!("  {} {address}  {} {}", paint(style::ERROR, "✗"), error.message, took(*step))
        }
        Event::StepStopped { step, address, waited, .. } => {
            format!("  {} {address}  {waited} {}", paint(style::WARNING, "-"), took(*step))
        }
        Event::StepSkipped { address, because, .. } => {
            format!("  {} {address}  left out, it needs `{because}`", paint(style::WARNING, "-"))
        }
        // Every stack that runs says it; the user stopped one run.
        Event::Stopping { .. } if !model.stopping => format!(
            "{} {} running: what is being written is finished, nothing is waited for; interrupt again to stop now",
            paint(style::WARNING, "stopping:"),
            model.running()
        ),
        _ => return None,
    })
}
