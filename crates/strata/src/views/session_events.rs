//! What a session says while it runs, in words for people and as JSON.

use std::sync::{Arc, OnceLock};

use strata_diagnostics::{Diagnostic, SourceMap};
use strata_engine::EventSink;
use strata_events::Event;
use strata_net::{Exchange, TraceSink};
use strata_session::{Observer, SessionEvent, TofuProgress};
use strata_state::Lease;

use super::driven::verb;
use super::progress::{Display, Progress};
use crate::printer::Printer;
use crate::style::{self, paint};
use crate::workspace::show;

/// The terminal, or a stream of JSON.
pub(crate) struct Terminal {
    printer: Printer,
    /// Made when the first stack has something to show.
    display: OnceLock<Arc<Display>>,
}

impl Terminal {
    pub(crate) fn new(printer: Printer) -> Self {
        Self { printer, display: OnceLock::new() }
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
        let display = self.display.get_or_init(|| Arc::new(Display::new(self.printer)));
        Arc::new(Progress::new(display, key))
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
