//! What OpenTofu says while it works: one JSON object a line, with `-json`.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::changes::Action;

/// One line of it, as far as it matters here.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A plan would do this.
    Planned {
        address: String,
        action: Action,
        reason: Option<String>,
    },
    /// Somebody else changed it.
    Drifted {
        address: String,
    },
    Summary {
        /// `plan`, `apply` or `destroy`.
        operation: String,
        add: u64,
        change: u64,
        remove: u64,
        import: u64,
    },
    Started {
        address: String,
        action: Action,
    },
    /// Still at it.
    Running {
        address: String,
        seconds: u64,
    },
    Done {
        address: String,
        action: Action,
        seconds: u64,
    },
    Failed {
        address: String,
        action: Action,
    },
    /// The values of an apply; those that are sensitive are not told.
    Outputs(BTreeMap<String, Option<Json>>),
    Diagnosis(Diagnosis),
    Other,
}

/// What is wrong, in OpenTofu's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnosis {
    pub is_error: bool,
    pub summary: String,
    pub detail: String,
    /// File, line and column.
    pub place: Option<(String, u64, u64)>,
    /// Said in plain lines, before it spoke JSON.
    is_plain: bool,
}

/// The JSON that a command was asked for: warnings about the user's own settings come before it, in plain words.
pub fn asked_for(said: &[u8]) -> serde_json::Result<Json> {
    let is_start = |at: &usize| said[*at] == b'{' && (*at == 0 || said[at - 1] == b'\n');
    let start = (0..said.len()).find(is_start).unwrap_or_default();
    serde_json::from_slice(&said[start..])
}

/// Which state OpenTofu has, and its serial, from what `state pull` says; none before the first apply.
pub fn position(said: &[u8]) -> Option<(String, u64)> {
    let state = asked_for(said).ok()?;
    state["lineage"].as_str().map(str::to_owned).zip(state["serial"].as_u64())
}

impl Message {
    /// `None` for a line that is not JSON: some errors come before it speaks that.
    pub fn parse(line: &str) -> Option<Self> {
        let json: Json = serde_json::from_str(line).ok()?;
        json.is_object().then(|| Self::of(&json))
    }

    pub fn of(event: &Json) -> Self {
        let hook = || {
            let hook = &event["hook"];
            (text(&hook["resource"]["addr"]), Action::of_word(word(&hook["action"])), seconds(hook))
        };
        match word(&event["type"]) {
            "planned_change" => {
                let change = &event["change"];
                Self::Planned {
                    address: text(&change["resource"]["addr"]),
                    action: Action::of_word(word(&change["action"])),
                    reason: change["reason"].as_str().map(|reason| reason.replace('_', " ")),
                }
            }
            "resource_drift" => Self::Drifted { address: text(&event["change"]["resource"]["addr"]) },
            "change_summary" => {
                let count = |name: &str| event["changes"][name].as_u64().unwrap_or_default();
                Self::Summary {
                    operation: event["changes"]["operation"].as_str().unwrap_or("plan").to_owned(),
                    add: count("add"),
                    change: count("change"),
                    remove: count("remove"),
                    import: count("import"),
                }
            }
            "apply_start" => {
                let (address, action, _) = hook();
                Self::Started { address, action }
            }
            "apply_progress" => {
                let (address, _, seconds) = hook();
                Self::Running { address, seconds }
            }
            "apply_complete" => {
                let (address, action, seconds) = hook();
                Self::Done { address, action, seconds }
            }
            "apply_errored" => {
                let (address, action, _) = hook();
                Self::Failed { address, action }
            }
            "outputs" => {
                let outputs = event["outputs"].as_object().into_iter().flatten();
                Self::Outputs(outputs.map(|(name, said)| (name.clone(), open_value(said))).collect())
            }
            "diagnostic" => Self::Diagnosis(Diagnosis::of(&event["diagnostic"])),
            _ => Self::Other,
        }
    }
}

impl Diagnosis {
    pub fn of(said: &Json) -> Self {
        let place = said["range"]["filename"].as_str().map(|file| {
            let start = &said["range"]["start"];
            let number = |name: &str| start[name].as_u64().unwrap_or_default();
            (file.to_owned(), number("line"), number("column"))
        });
        Self {
            is_error: word(&said["severity"]) == "error",
            summary: text(&said["summary"]),
            detail: text(&said["detail"]),
            place,
            is_plain: false,
        }
    }

    /// Takes note of a line that is not JSON. Lines that follow each other are one.
    pub fn hear_plain(found: &mut Vec<Self>, line: &str) {
        let line = line.trim_start_matches(['╷', '│', '╵', ' ']).trim_end();
        if line.is_empty() {
            return;
        }
        let is_error = line.starts_with("Error");
        match found.last_mut().filter(|last| last.is_plain) {
            Some(last) => {
                last.is_error |= is_error;
                last.detail = format!("{}{line}\n", last.detail);
            }
            None => {
                let summary = line.trim_start_matches("Warning: ").trim_start_matches("Error: ").to_owned();
                found.push(Self { is_error, summary, is_plain: true, ..Self::default() });
            }
        }
    }

    /// Somebody has the lock of the state.
    pub fn is_locked(&self) -> bool {
        self.summary.contains("acquiring the state lock")
    }

    /// The id of that lock, where it is told: what `force-unlock` takes.
    pub fn lock_id(&self) -> Option<&str> {
        let line = self.detail.lines().find_map(|line| line.trim_start().strip_prefix("ID:"))?;
        Some(line.trim()).filter(|id| self.is_locked() && !id.is_empty())
    }

    /// Who has it, and since when.
    pub fn lock_holder(&self) -> Option<String> {
        let value = |name: &str| {
            let found = self.detail.lines().find_map(|line| line.trim_start().strip_prefix(name));
            found.map(str::trim).filter(|value| !value.is_empty())
        };
        let since = value("Created:").map(|since| format!(" since {since}")).unwrap_or_default();
        value("Who:").filter(|_| self.is_locked()).map(|who| format!("{who}{since}"))
    }

    /// `init` comes first.
    pub fn needs_init(&self) -> bool {
        const SUMMARIES: [&str; 7] = [
            "Backend initialization required",
            "Required plugins are not installed",
            "Inconsistent dependency lock file",
            "Module not installed",
            "Module source has changed",
            "Module version requirements have changed",
            "Missing required provider",
        ];
        SUMMARIES.iter().any(|summary| self.summary.starts_with(summary))
    }

    /// The state moved on since the plan was saved.
    pub fn is_stale(&self) -> bool {
        self.summary == "Saved plan is stale"
    }

    /// `prevent_destroy` forbids it.
    pub fn is_protected(&self) -> bool {
        self.summary.ends_with("nstance cannot be destroyed")
    }
}

fn word(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn text(value: &Json) -> String {
    word(value).to_owned()
}

/// Whole numbers in newer versions, others before.
fn seconds(hook: &Json) -> u64 {
    let said = &hook["elapsed_seconds"];
    said.as_u64().or_else(|| said.as_f64().map(|seconds| seconds.max(0.0) as u64)).unwrap_or_default()
}

fn open_value(said: &Json) -> Option<Json> {
    (said["sensitive"].as_bool() == Some(false)).then(|| said["value"].clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as OpenTofu 1.12.6 writes them, without the time.
    #[test]
    fn lines_are_understood() {
        let line = r#"{"@level":"info","@message":"terraform_data.b[0]: Plan to replace","@module":"tofu.ui","change":{"resource":{"addr":"terraform_data.b[0]","module":"","resource":"terraform_data.b[0]","implied_provider":"terraform","resource_type":"terraform_data","resource_name":"b","resource_key":0},"action":"replace","reason":"cannot_update"},"type":"planned_change"}"#;
        let address = "terraform_data.b[0]".to_owned();
        let reason = Some("cannot update".to_owned());
        assert_eq!(
            Message::parse(line),
            Some(Message::Planned { address: address.clone(), action: Action::Replace, reason })
        );
        let line = r#"{"@level":"info","hook":{"resource":{"addr":"terraform_data.b[0]"},"action":"create","id_key":"id","id_value":"c0cd","elapsed_seconds":3},"type":"apply_complete"}"#;
        assert_eq!(
            Message::parse(line),
            Some(Message::Done { address: address.clone(), action: Action::Create, seconds: 3 })
        );
        let line = r#"{"hook":{"resource":{"addr":"terraform_data.b[0]"},"action":"delete","elapsed_seconds":10},"type":"apply_progress"}"#;
        assert_eq!(Message::parse(line), Some(Message::Running { address, seconds: 10 }));
        let line = r#"{"changes":{"add":2,"change":1,"import":0,"remove":2,"forget":0,"operation":"plan"},"type":"change_summary"}"#;
        let summary =
            Message::Summary { operation: "plan".to_owned(), add: 2, change: 1, remove: 2, import: 0 };
        assert_eq!(Message::parse(line), Some(summary));
        assert_eq!(Message::parse("Error: something"), None);
        assert_eq!(Message::parse("[1]"), None);
        assert_eq!(Message::parse("{}"), Some(Message::Other));
    }

    #[test]
    fn sensitive_outputs_are_not_told() {
        let line = r#"{"outputs":{"size":{"sensitive":false,"type":"number","value":1},"tok":{"sensitive":true,"type":"string","value":"MARKER"}},"type":"outputs"}"#;
        let Some(Message::Outputs(outputs)) = Message::parse(line) else { panic!("outputs") };
        assert_eq!(outputs["size"], Some(1.into()));
        assert_eq!(outputs["tok"], None);
    }

    #[test]
    fn a_lock_says_whose_it_is() {
        let detail = "Error message: resource temporarily unavailable\nLock Info:\n  ID:        da12a237-4fcd\n  Path:      terraform.tfstate\n  Operation: OperationTypeApply\n  Who:       ci@runner\n  Version:   1.12.6\n  Created:   2026-11-16 03:22:41 UTC\n  Info:      \n\n\nOpenTofu acquires a state lock";
        let said = serde_json::json!({"severity": "error", "summary": "Error acquiring the state lock", "detail": detail});
        let found = Diagnosis::of(&said);
        assert!(found.is_error && found.is_locked());
        assert_eq!(found.lock_id(), Some("da12a237-4fcd"));
        assert_eq!(found.lock_holder().as_deref(), Some("ci@runner since 2026-11-16 03:22:41 UTC"));
        assert!(!found.needs_init() && !found.is_stale() && !found.is_protected());
        let other =
            Diagnosis::of(&serde_json::json!({"severity": "error", "summary": "x", "detail": detail}));
        assert_eq!((other.lock_id(), other.lock_holder()), (None, None));
    }

    #[test]
    fn plain_words_come_before_json() {
        let said = b"\nWarning: Unable to open {it}\n\nThe file does not exist.\n{\"a\":1}\n";
        assert_eq!(asked_for(said).unwrap(), serde_json::json!({"a": 1}));
        assert!(asked_for(b"").is_err() && asked_for(b"Warning: {").is_err());
        let mut found = Vec::new();
        for line in ["Warning: Unable to open", "", "The file does not exist."] {
            Diagnosis::hear_plain(&mut found, line);
        }
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].is_error, found[0].summary.as_str()), (false, "Unable to open"));
        assert_eq!(found[0].detail, "The file does not exist.\n");
        Diagnosis::hear_plain(&mut found, "│ Error: No such option");
        assert!(found[0].is_error);
    }

    #[test]
    fn what_helps_is_known() {
        let of = |summary: &str| Diagnosis { summary: summary.to_owned(), ..Diagnosis::default() };
        assert!(of("Backend initialization required, please run \"tofu init\"").needs_init());
        assert!(of("Module not installed").needs_init());
        assert!(of("Saved plan is stale").is_stale());
        assert!(of("Resource instance cannot be destroyed").is_protected());
        assert!(of("Instance cannot be destroyed").is_protected());
    }
}
