//! What somebody else changed.

use std::fmt::Write as _;

use strata_engine::{Drift, DriftKind};

use super::value;
use crate::style::{self, paint};

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
            let (rules, table) = (drift.address.kind().rules(), drift.address.kind().table());
            let mut text = format!("  {} {name}\n", paint(style::CHANGE, "~"));
            for change in changes {
                let unit = rules.rule(&change.path).unit;
                let side = |side: &Option<strata_resource::Value>| {
                    side.as_ref()
                        .map_or_else(|| "(none)".to_owned(), |shown| value::show(&table.shown, shown, unit))
                };
                let (applied, live) = (side(&change.before), side(&change.after));
                let _ = writeln!(text, "      {}  applied {applied}, is now {live}", change.path);
            }
            text
        }
    }
}
