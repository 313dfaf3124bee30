//! What OpenTofu would do and does, in the form of Strata's own plans.

use std::fmt::Write as _;

use serde_json::Value as Json;
use strata_tofu::Diagnosis;
use strata_tofu::changes::{Action, Changes, Difference, ResourceChange, Side};

use crate::style::{self, paint};

/// A value that is longer is cut, also where there is room: whole documents are not for a plan.
const LONGEST: usize = 160;
/// A value is not cut shorter than this, however narrow the terminal is.
const SHORTEST: usize = 16;

/// The changes of a stack, one block each; `prefix` makes their addresses ours.
pub fn render(changes: &Changes, prefix: &str, columns: usize) -> String {
    let mut text = String::new();
    for change in &changes.resources {
        let (symbol, colour) = symbol(change.action);
        block(&mut text, &paint(colour, symbol), prefix, change, columns);
    }
    for output in &changes.outputs {
        let name = paint(style::STRONG, &output.name);
        let room = room(columns, output.name.chars().count() + 13, &output.change);
        let _ =
            writeln!(text, "{} output {name}  {}", paint(style::CHANGE, "  ~"), sides(&output.change, room));
    }
    text
}

/// What somebody else changed.
pub fn render_drift(change: &ResourceChange, prefix: &str, columns: usize) -> String {
    let mut text = String::new();
    let (symbol, colour) = symbol(change.action);
    block(&mut text, &paint(colour, symbol), prefix, change, columns);
    if change.action == Action::Delete {
        text = format!("{}  it is gone\n", text.trim_end());
    }
    text
}

fn symbol(action: Action) -> (&'static str, anstyle::Style) {
    match action {
        Action::Create => ("  +", style::CREATE),
        Action::Update => ("  ~", style::CHANGE),
        Action::Replace => ("-/+", style::REPLACE),
        Action::Delete => ("  -", style::DESTROY),
        Action::Import => ("  <", style::CREATE),
        Action::Forget | Action::Move | Action::None => ("  ·", style::FAINT),
    }
}

fn block(text: &mut String, symbol: &str, prefix: &str, change: &ResourceChange, columns: usize) {
    let note = match change.action {
        Action::Import => "taken over",
        Action::Forget => "dropped from OpenTofu's state; the object stays",
        Action::Move => "has another address",
        _ => "",
    };
    let notes: Vec<&str> = [note, change.reason.as_deref().unwrap_or_default()]
        .into_iter()
        .filter(|note| !note.is_empty())
        .collect();
    let address = paint(style::STRONG, format!("{prefix}{}", change.address));
    let notes = if notes.is_empty() { String::new() } else { format!("  {}", notes.join("; ")) };
    let _ = writeln!(text, "{symbol} {address}{}", paint(style::FAINT, notes));
    let width = change.changes.iter().map(|one| one.path.chars().count()).max().unwrap_or(0).min(28);
    for one in &change.changes {
        let note = if one.replaces { paint(style::FAINT, "  needs a replacement") } else { String::new() };
        let note_width = if one.replaces { 21 } else { 0 };
        let own = width.max(one.path.chars().count()) + 8 + note_width;
        let shown = if change.action == Action::Create {
            side(&one.after, columns.saturating_sub(own).clamp(SHORTEST, LONGEST))
        } else {
            sides(one, room(columns, own, one))
        };
        let _ = writeln!(text, "      {:width$}  {shown}{note}", one.path);
    }
}

/// How long each side may be where both stand beside something as wide as this.
fn room(columns: usize, taken: usize, change: &Difference) -> usize {
    let left = columns.saturating_sub(taken + 3);
    let is_both = change.before != Side::Absent && change.after != Side::Absent;
    (if is_both { left / 2 } else { left }).clamp(SHORTEST, LONGEST)
}

fn sides(change: &Difference, room: usize) -> String {
    match (&change.before, &change.after) {
        (Side::Absent, after) => paint(style::CREATE, format!("+ {}", side(after, room))),
        (before, Side::Absent) => paint(style::DESTROY, format!("- {}", side(before, room))),
        (Side::Sensitive, Side::Sensitive) => "(sensitive) → (sensitive)".to_owned(),
        (before, after) => {
            format!(
                "{} → {}",
                paint(style::DESTROY, side(before, room)),
                paint(style::CREATE, side(after, room))
            )
        }
    }
}

fn side(side: &Side, room: usize) -> String {
    match side {
        Side::Absent => "(none)".to_owned(),
        Side::Sensitive => "(sensitive)".to_owned(),
        Side::Unknown => "(known after the apply)".to_owned(),
        Side::Value(value) => {
            let text = match value {
                Json::String(text) if is_plain(text) => text.clone(),
                other => other.to_string(),
            };
            shortened(&text, room)
        }
    }
}

/// Needs no quotes to be told from what stands around it.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.chars().any(char::is_control)
}

fn shortened(text: &str, room: usize) -> String {
    let length = text.chars().count();
    if length <= room {
        return text.to_owned();
    }
    let whole = format!("… ({length} characters)");
    let note = if room >= 2 * whole.chars().count() { whole } else { "…".to_owned() };
    let begin: String = text.chars().take(room.saturating_sub(note.chars().count())).collect();
    format!("{begin}{note}")
}

/// What an action is called while it runs and when it is done.
pub fn verb(action: Action) -> (&'static str, &'static str) {
    match action {
        Action::Create => ("creating", "created"),
        Action::Update => ("changing", "changed"),
        Action::Replace => ("replacing", "replaced"),
        Action::Delete => ("destroying", "destroyed"),
        Action::Import => ("taking over", "taken over"),
        Action::Forget => ("dropping from the state", "dropped from the state"),
        Action::Move | Action::None => ("working", "done"),
    }
}

/// What is wrong and where, over a few lines.
pub fn diagnosis(found: &Diagnosis) -> String {
    let word = if found.is_error { paint(style::ERROR, "error:") } else { paint(style::WARNING, "warning:") };
    let mut lines = vec![format!("{word} {}", found.summary)];
    if let Some((file, line, column)) = &found.place {
        lines.push(format!("  {} {file}:{line}:{column}", paint(style::FAINT, "-->")));
    }
    // How `init` is run is told in our words.
    let detail = if found.needs_init() { "" } else { found.detail.as_str() };
    lines.extend(detail.lines().filter(|line| !line.is_empty()).map(|line| format!("  {line}")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_reads_like_our_own() {
        let shown = br#"{"format_version": "1.2", "resource_changes": [
            {"address": "a.new", "mode": "managed", "change": {"actions": ["create"], "before": null,
             "after": {"name": "web", "tags": {"a": 1}}, "after_unknown": {"id": true}, "after_sensitive": {}}},
            {"address": "a.b[\"x\"]", "mode": "managed", "action_reason": "replace_because_cannot_update",
             "change": {"actions": ["delete", "create"], "before": {"size": 1, "token": "MARKER"}, "after": {"size": 2, "token": "MARKER2"},
             "before_sensitive": {"token": true}, "after_sensitive": {"token": true}, "replace_paths": [["size"]]}},
            {"address": "a.gone", "mode": "managed", "change": {"actions": ["delete"], "before": {"x": 1}, "after": null}}
        ], "output_changes": {"url": {"actions": ["update"], "before": "a", "after": null, "after_unknown": true}}}"#;
        let changes = Changes::parse(shown, &str::to_owned).unwrap();
        let text = anstream::adapter::strip_str(&render(&changes, "cloud/tofu/", usize::MAX)).to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(
            lines,
            [
                "-/+ cloud/tofu/a.b[\"x\"]  the provider cannot change it in place",
                "      size   1 → 2  needs a replacement",
                "      token  (sensitive) → (sensitive)",
                "  - cloud/tofu/a.gone",
                "  + cloud/tofu/a.new",
                "      name  web",
                "      tags  {\"a\":1}",
                "  ~ output url  a → (known after the apply)",
            ]
        );
        let event = strata_events::Event::planned_by_tofu(&changes.resources[0], "cloud/tofu/");
        let line = strata_events::line(&event, None, 0).unwrap();
        assert!(line.contains(r#""action":"replace""#) && line.contains(r#""before":1"#), "{line}");
        assert!(!line.contains("MARKER"));
    }

    #[test]
    fn long_values_are_cut() {
        let long = side(&Side::Value(json!("x".repeat(500))), LONGEST);
        assert!(long.ends_with("… (500 characters)") && long.chars().count() == LONGEST);
        assert_eq!(side(&Side::Value(json!(" x")), LONGEST), "\" x\"");
        assert_eq!(side(&Side::Value(json!("a\nb")), LONGEST), "\"a\\nb\"");
    }

    #[test]
    fn a_plan_fits_eighty_columns() {
        let long = "y".repeat(300);
        let shown = json!({"format_version": "1.2", "resource_changes": [
            {"address": "a.new", "mode": "managed", "change": {"actions": ["create"], "before": null, "after": {"text": long}}},
            {"address": "a.old", "mode": "managed", "change": {"actions": ["update"], "before": {"text": "x".repeat(300)},
             "after": {"text": long}, "replace_paths": [["text"]]}},
        ], "output_changes": {"text": {"actions": ["update"], "before": "x".repeat(300), "after": long}}});
        let changes = Changes::parse(shown.to_string().as_bytes(), &str::to_owned).unwrap();
        let text = anstream::adapter::strip_str(&render(&changes, "cloud/tofu/", 80)).to_string();
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
