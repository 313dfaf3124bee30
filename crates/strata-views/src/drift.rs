//! What somebody else changed.

use std::fmt::Write as _;

use strata_engine::{Drift, DriftKind, IgnoredChange};
use strata_resource::{Address, FieldChange};

use super::value;
use crate::style::{self, paint};

/// One object, with what was changed of it below.
pub fn render(drift: &Drift) -> String {
    let name = paint(style::STRONG, &drift.address);
    match &drift.kind {
        DriftKind::Gone => format!("  {} {name}  it is gone\n", paint(style::DESTROY, "-")),
        DriftKind::Taken { by } => format!("  {} {name}  {by}\n", paint(style::ERROR, "✗")),
        DriftKind::Busy { what } | DriftKind::Unreachable { what } => {
            format!("  {} {name}  {what}\n", paint(style::WARNING, "!"))
        }
        DriftKind::Unknown { what, hint } => {
            let hint = format!("      {} {hint}", paint(style::HINT, "hint:"));
            format!("  {} {name}  {what}\n{hint}\n", paint(style::WARNING, "?"))
        }
        DriftKind::Unfinished => {
            format!("  {} {name}  an interrupted run left it unfinished\n", paint(style::WARNING, "!"))
        }
        DriftKind::Changed { changes } => {
            let mut text = format!("  {} {name}\n", paint(style::CHANGE, "~"));
            for change in changes {
                let (applied, live) = sides(&drift.address, change);
                let _ = writeln!(text, "      {}  applied {applied}, is now {live}", change.path);
            }
            text
        }
        DriftKind::Ignored { changes } => {
            let mut text = format!("  {} {name}\n", paint(style::FAINT, "·"));
            for ignored in changes {
                let (applied, live) = sides(&drift.address, &ignored.change);
                let (path, why) = (&ignored.change.path, reason(ignored));
                let line = format!("{path}  applied {applied}, is now {live}, ignored{why}");
                let _ = writeln!(text, "      {}", paint(style::FAINT, line));
            }
            text
        }
    }
}

/// `: somebody sets it by hand`, where the source says why.
pub(crate) fn reason(ignored: &IgnoredChange) -> String {
    ignored.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
}

/// What a change is from and to.
pub fn sides(address: &Address, change: &FieldChange) -> (String, String) {
    let (rules, table) = (address.kind().rules(), address.kind().table());
    let unit = rules.rule(&change.path).unit;
    let side = |side: &Option<strata_resource::Value>| {
        side.as_ref().map_or_else(|| "(none)".to_owned(), |shown| value::show(&table.shown, shown, unit))
    };
    (side(&change.before), side(&change.after))
}
