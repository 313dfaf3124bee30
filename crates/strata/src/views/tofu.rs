//! What OpenTofu says with `-json`, in Strata's words.

use serde_json::{Value as Json, json};

use crate::printer::Printer;
use crate::style::{self, paint};

pub(crate) struct View {
    printer: Printer,
    changes: u64,
    locked: bool,
    /// Lines of a plan: they come in the order of the graph's walk, which is another each time.
    planned: Vec<(String, String)>,
    applying: bool,
}

impl View {
    pub(crate) fn new(printer: Printer) -> Self {
        Self { printer, changes: 0, locked: false, planned: Vec::new(), applying: false }
    }

    /// The same for the apply of a plan that was shown before.
    pub(crate) fn of_apply(printer: Printer) -> Self {
        Self { applying: true, ..Self::new(printer) }
    }

    /// How many resources a plan changes.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Somebody else has the lock of the state.
    pub(crate) fn is_locked(&self) -> bool {
        self.locked
    }

    pub(crate) fn event(&mut self, event: &Json) {
        self.printer.event(&json!({"event": "tofu", "tofu": event}));
        match event["type"].as_str().unwrap_or_default() {
            // An apply says again what its plan has shown.
            "planned_change" if self.applying => {}
            "planned_change" => self.change(&event["change"]),
            "resource_drift" => {
                let address = text(&event["change"]["resource"]["addr"]);
                // Providers report as drift whatever the server filled in.
                self.printer.detail(format!("{address} was changed outside of OpenTofu"));
            }
            "change_summary" => self.summary(event),
            "apply_complete" => {
                let hook = &event["hook"];
                let seconds = hook["elapsed_seconds"].as_f64().unwrap_or_default();
                let address = text(&hook["resource"]["addr"]);
                self.printer.line(format!("{} {address} ({seconds:.0} s)", paint(style::CREATE, "✓")));
            }
            "apply_errored" => {
                let address = text(&event["hook"]["resource"]["addr"]);
                self.printer.line(format!("{} {address}", paint(style::ERROR, "✗")));
            }
            "apply_start" | "apply_progress" => self.printer.detail(text(&event["@message"])),
            "diagnostic" => self.diagnostic(&event["diagnostic"]),
            _ => {}
        }
    }

    fn change(&mut self, change: &Json) {
        let (sign, colour) = match change["action"].as_str().unwrap_or_default() {
            "create" => ("+", style::CREATE),
            "update" => ("~", style::CHANGE),
            "delete" => ("-", style::DESTROY),
            "replace" => ("±", style::REPLACE),
            "import" => ("<", style::CREATE),
            "remove" => ("forget", style::CHANGE),
            // Reads and moves change nothing outside.
            _ => return,
        };
        self.changes += 1;
        let address = text(&change["resource"]["addr"]);
        let reason = change["reason"].as_str().map(|reason| format!(" ({})", reason.replace('_', " ")));
        let line = format!("{} {address}{}", paint(colour, sign), reason.unwrap_or_default());
        self.planned.push((address, line));
    }

    /// Nothing more is coming.
    pub(crate) fn end(&mut self) {
        self.planned.sort();
        for (_, line) in self.planned.drain(..) {
            self.printer.line(line);
        }
    }

    fn summary(&mut self, event: &Json) {
        self.end();
        let count = |name: &str| event["changes"][name].as_u64().unwrap_or_default();
        let operation = event["changes"]["operation"].as_str().unwrap_or("plan");
        if operation == "plan" {
            self.changes =
                self.changes.max(count("add") + count("change") + count("remove") + count("import"));
        }
        let words = if operation == "plan" {
            ["to create", "to change", "to destroy"]
        } else {
            ["created", "changed", "destroyed"]
        };
        let counts = ["add", "change", "remove"].map(count);
        let parts: Vec<String> =
            counts.iter().zip(words).map(|(count, word)| format!("{count} {word}")).collect();
        self.printer.line(format!("{operation}: {}", parts.join(", ")));
    }

    fn diagnostic(&mut self, diagnostic: &Json) {
        let summary = text(&diagnostic["summary"]);
        self.locked |= summary.contains("state lock");
        let is_error = diagnostic["severity"].as_str() == Some("error");
        let word = if is_error { paint(style::ERROR, "error:") } else { paint(style::WARNING, "warning:") };
        let mut lines = vec![format!("{word} {summary}")];
        if let Some(file) = diagnostic["range"]["filename"].as_str() {
            let start = &diagnostic["range"]["start"];
            lines.push(format!(
                "  {} {file}:{}:{}",
                paint(style::FAINT, "-->"),
                start["line"],
                start["column"]
            ));
        }
        let detail = text(&diagnostic["detail"]);
        lines.extend(detail.lines().filter(|line| !line.is_empty()).map(|line| format!("  {line}")));
        self.printer.note(lines.join("\n"));
    }
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
