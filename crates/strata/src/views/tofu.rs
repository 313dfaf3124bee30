//! What OpenTofu says with `-json`, in Strata's words.

use serde_json::Value as Json;
use strata_events::Event;
use strata_secret::Redactor;
use strata_tofu::changes::Action;
use strata_tofu::{Diagnosis, Message};
use strata_views::driven::diagnosis;

use crate::printer::Printer;
use crate::style::{self, paint};

pub(crate) struct View {
    printer: Printer,
    /// The key of the stack.
    key: String,
    redactor: Redactor,
    changes: u64,
    /// Lines of a plan: they come in the order of the graph's walk, which is another each time.
    planned: Vec<(String, String)>,
    applying: bool,
    /// What it found wrong.
    found: Vec<Diagnosis>,
}

impl View {
    pub(crate) fn new(printer: Printer, key: &str, redactor: &Redactor) -> Self {
        let (key, redactor) = (key.to_owned(), redactor.clone());
        Self { printer, key, redactor, changes: 0, planned: Vec::new(), applying: false, found: Vec::new() }
    }

    /// The same for the apply of a plan that was shown before.
    pub(crate) fn of_apply(printer: Printer, key: &str, redactor: &Redactor) -> Self {
        Self { applying: true, ..Self::new(printer, key, redactor) }
    }

    /// How many resources a plan changes.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn found(&self) -> &[Diagnosis] {
        &self.found
    }

    pub(crate) fn line(&mut self, line: &str) {
        match serde_json::from_str::<Json>(line) {
            Ok(event) => self.event(&event),
            // Some errors come before it speaks JSON.
            Err(_) => self.printer.note(self.redactor.redact(line)),
        }
    }

    fn event(&mut self, event: &Json) {
        if self.printer.is_json()
            && let Ok(clean) = serde_json::from_str::<Json>(&self.redactor.redact(&event.to_string()))
        {
            self.printer.event_of(&self.key, &Event::Tofu { tofu: clean });
        }
        match Message::of(event) {
            // An apply says again what its plan has shown.
            Message::Planned { .. } if self.applying => {}
            Message::Planned { address, action, reason } => self.change(address, action, reason),
            // Providers report as drift whatever the server filled in.
            Message::Drifted { address } => {
                self.printer.detail(format!("{address} was changed outside of OpenTofu"));
            }
            Message::Summary { operation, add, change, remove, import } => {
                self.summary(&operation, [add, change, remove], import);
            }
            Message::Started { address, action } => {
                self.printer.detail(format!("{address}: {}", super::driven::verb(action).0));
            }
            Message::Running { address, seconds } => self.printer.detail(format!("{address}: {seconds} s")),
            Message::Done { address, seconds, .. } => {
                self.printer.line(format!("{} {address} ({seconds} s)", paint(style::CREATE, "✓")));
            }
            Message::Failed { address, .. } => {
                self.printer.line(format!("{} {address}", paint(style::ERROR, "✗")));
            }
            Message::Diagnosis(found) => {
                self.printer.note(self.redactor.redact(&diagnosis(&found)));
                self.found.push(found);
            }
            Message::Outputs(_) | Message::Other => {}
        }
    }

    fn change(&mut self, address: String, action: Action, reason: Option<String>) {
        let (sign, colour) = match action {
            Action::Create => ("+", style::CREATE),
            Action::Update => ("~", style::CHANGE),
            Action::Delete => ("-", style::DESTROY),
            Action::Replace => ("±", style::REPLACE),
            Action::Import => ("<", style::CREATE),
            Action::Forget => ("forget", style::CHANGE),
            // Reads and moves change nothing outside.
            Action::Move | Action::None => return,
        };
        self.changes += 1;
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let line = format!("{} {address}{reason}", paint(colour, sign));
        self.planned.push((address, line));
    }

    /// Nothing more is coming.
    pub(crate) fn end(&mut self) {
        self.planned.sort();
        for (_, line) in self.planned.drain(..) {
            self.printer.line(line);
        }
    }

    fn summary(&mut self, operation: &str, counts: [u64; 3], import: u64) {
        self.end();
        let is_plan = operation == "plan";
        if is_plan {
            self.changes = self.changes.max(counts.iter().sum::<u64>() + import);
        }
        let words = if is_plan {
            ["to create", "to change", "to destroy"]
        } else {
            ["created", "changed", "destroyed"]
        };
        let parts: Vec<String> =
            counts.iter().zip(words).map(|(count, word)| format!("{count} {word}")).collect();
        self.printer.line(format!("{operation}: {}", parts.join(", ")));
    }
}
