//! What a session says while it runs, in words for people and as JSON.

use std::sync::Arc;

use serde_json::json;
use strata_diagnostics::{Diagnostic, SourceMap};
use strata_engine::EventSink;
use strata_net::{Exchange, TraceSink};
use strata_session::{Notice, Observer, TofuProgress};
use strata_state::Lease;

use super::driven::verb;
use super::progress::Progress;
use crate::command_error::render;
use crate::printer::Printer;
use crate::style::{self, paint};
use crate::workspace::show;

/// The terminal, or a stream of JSON.
pub(crate) struct Terminal(pub(crate) Printer);

impl Observer for Terminal {
    fn notice(&self, notice: Notice<'_>) {
        let printer = self.0;
        match notice {
            Notice::Waiting { key, holder, left } => {
                let seconds = left.as_secs().max(1);
                printer.event(&json!({
                    "event": "waiting", "key": key, "holder": holder.to_string(), "lock": holder.owner.id, "seconds": seconds,
                }));
                let lease = match holder.lease {
                    Lease::Running(left) => {
                        format!("; unless it is heard of, its lock ends in {} s", left.as_secs().max(1))
                    }
                    Lease::Endless | Lease::Lapsed => String::new(),
                };
                printer.note(format!(
                    "waiting up to {seconds} s for the lock on `{key}`, held by {holder}{lease}"
                ));
            }
            Notice::KeysMissing { stack, file } => printer.note(format!(
                "the secrets of `{stack}` do not exist yet; `strata apply` makes them in `{}`",
                file.display()
            )),
            Notice::KeysMade { file } => printer.note(format!(
                "made the secrets of the cluster, encrypted, in `{}`: commit that file",
                file.display()
            )),
            Notice::TokenKept { token, name, file } => printer.note(format!(
                "kept the token `{token}`, encrypted, as `{name}` in `{file}`: commit that file"
            )),
            Notice::Insecure => printer.note("warning: `insecure: true`: whoever answers is believed"),
            Notice::Preflight(error) => printer.note(render(error)),
            Notice::PreparingTofu { stack } => {
                printer.note(format!("preparing OpenTofu's folder of `{stack}`"));
            }
            Notice::PlainState { stack, folder, encrypts } => {
                let hint = if encrypts {
                    "encrypt it with `state.encryption` in strata.yaml, or give the stack a backend"
                } else {
                    "give the stack a backend that encrypts, or use OpenTofu with `state.encryption` in strata.yaml"
                };
                printer.note(format!(
                    "warning: `{stack}` is given secrets, and its state is a plain file in `{}` that will hold them\nhint: {hint}",
                    folder.display()
                ));
            }
            Notice::Diagnosis { diagnosis, redactor } => {
                printer.note(redactor.redact(&super::tofu::diagnosis(diagnosis)));
            }
            Notice::TofuStep { step, address, progress } => self.tofu_step(step, &address, progress),
            _ => {}
        }
    }

    fn diagnostics(&self, found: &[&Diagnostic], sources: &SourceMap) {
        show(self.0, found, sources);
    }

    fn events(&self, _key: &str) -> Arc<dyn EventSink> {
        Arc::new(Progress::new(self.0))
    }
}

impl Terminal {
    fn tofu_step(&self, step: Option<usize>, address: &str, progress: TofuProgress) {
        let printer = self.0;
        let event = |event: &str, action| {
            printer.event(&json!({"event": event, "step": step, "address": address, "action": action}));
        };
        let say = |text: String| {
            if !printer.is_json() {
                printer.note(text);
            }
        };
        match progress {
            TofuProgress::Started(action) => {
                event("step-started", action);
                say(format!("  {address}: {}", verb(action).0));
            }
            TofuProgress::Running { seconds } => printer.detail(format!("  {address}: {seconds} s")),
            TofuProgress::Done { action, seconds } => {
                event("step-done", action);
                say(format!("  {} {address}  {} {seconds} s", paint(style::CREATE, "✓"), verb(action).1));
            }
            TofuProgress::Failed(action) => {
                event("step-failed", action);
                say(format!("  {} {address}  failed", paint(style::ERROR, "✗")));
            }
        }
    }
}

/// Every request, for `-v`: never a body, never a header.
pub(crate) struct Trace(pub(crate) Printer);

impl TraceSink for Trace {
    fn exchange(&self, exchange: &Exchange<'_>) {
        let status = exchange.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        let ms = exchange.took.as_millis();
        self.0.detail(format!("  {} {} {status} {ms} ms", exchange.method, exchange.path));
    }
}
