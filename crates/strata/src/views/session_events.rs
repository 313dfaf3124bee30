//! What a session says while it runs, in words for people and as JSON.

use std::sync::Arc;

use strata_diagnostics::{Diagnostic, SourceMap};
use strata_engine::{Event as RunEvent, EventSink};
use strata_events::Event;
use strata_net::{Exchange, TraceSink};
use strata_session::{Observer, SessionEvent, TofuProgress};
use strata_state::Lease;

use super::driven::verb;
use crate::printer::Printer;
use crate::style::{self, paint};
use crate::workspace::show;

/// The terminal, or a stream of JSON.
pub(crate) struct Terminal {
    printer: Printer,
}

/// What the engine says about one stack.
struct OfStack {
    printer: Printer,
    key: String,
}

impl EventSink for OfStack {
    fn emit(&self, event: RunEvent) {
        if self.printer.is_json() {
            self.printer.event_of(&self.key, &Event::Run(Box::new(event)));
        } else {
            self.printer.live().take(&self.key, &event);
        }
    }
}

impl Terminal {
    pub(crate) fn new(printer: Printer) -> Self {
        Self { printer }
    }
}

impl Observer for Terminal {
    fn session_event(&self, event: SessionEvent<'_>) {
        let printer = self.printer;
        match event {
            SessionEvent::Waiting { key, holder, left } => {
                let seconds = left.as_secs().max(1);
                let lock = holder.owner.id.as_str();
                printer.event_of(key, &Event::Waiting { key, holder: holder.to_string(), lock, seconds });
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
            SessionEvent::KeysMissing { stack, file } => printer.note(format!(
                "the secrets of `{stack}` do not exist yet; `strata apply` makes them in `{}`",
                file.display()
            )),
            SessionEvent::KeysMade { file } => printer.note(format!(
                "made the secrets of the cluster, encrypted, in `{}`: commit that file",
                file.display()
            )),
            SessionEvent::TokenKept { token, name, file } => printer.note(format!(
                "kept the token `{token}`, encrypted, as `{name}` in `{file}`: commit that file"
            )),
            SessionEvent::Connecting { endpoint, seconds } => {
                printer.note(format!("connecting to {endpoint} ({seconds} s)"));
            }
            SessionEvent::Insecure => {
                printer.note("warning: `insecure: true`: the certificate of the server is not verified")
            }
            SessionEvent::PreparingTofu { stack } => {
                printer.note(format!("preparing OpenTofu's folder of `{stack}`"));
            }
            SessionEvent::PlainState { stack, folder, encrypts } => {
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
            SessionEvent::Diagnosis { diagnosis, redactor } => {
                printer.note(redactor.redact(&super::driven::diagnosis(diagnosis)));
            }
            SessionEvent::TofuStep { key, step, address, progress } => {
                self.tofu_step(key, step, &address, progress)
            }
            _ => {}
        }
    }

    fn diagnostics(&self, found: &[&Diagnostic], sources: &SourceMap) {
        show(self.printer, found, sources);
    }

    fn events(&self, key: &str) -> Arc<dyn EventSink> {
        Arc::new(OfStack { printer: self.printer, key: key.to_owned() })
    }
}

impl Terminal {
    fn tofu_step(&self, key: &str, step: Option<usize>, address: &str, progress: TofuProgress) {
        let printer = self.printer;
        let say = |text: String| {
            if !printer.is_json() {
                printer.note(text);
            }
        };
        match progress {
            TofuProgress::Started(action) => {
                printer.event_of(key, &Event::TofuStepStarted { step, address, action });
                say(format!("  {address}: {}", verb(action).0));
            }
            TofuProgress::Running { seconds } => printer.detail(format!("  {address}: {seconds} s")),
            TofuProgress::Done { action, seconds } => {
                printer.event_of(key, &Event::TofuStepDone { step, address, action });
                say(format!("  {} {address}  {} {seconds} s", paint(style::CREATE, "✓"), verb(action).1));
            }
            TofuProgress::Failed(action) => {
                printer.event_of(key, &Event::TofuStepFailed { step, address, action });
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
