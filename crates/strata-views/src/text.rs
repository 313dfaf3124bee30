//! Two versions of a file, as the lines that differ and a few around them.

use std::fmt::Write as _;

use crate::style::{self, paint};

/// Lines that are shown before and after a change.
const AROUND: usize = 3;

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Both,
    Before,
    After,
}

/// The difference in the form of `diff -u`; nothing where there is none.
pub fn diff(path: &str, before: &str, after: &str) -> String {
    let lines = compared(&before.lines().collect::<Vec<_>>(), &after.lines().collect::<Vec<_>>());
    let near = |place: usize| {
        let from = place.saturating_sub(AROUND);
        let to = (place + AROUND + 1).min(lines.len());
        lines[from..to].iter().any(|(side, _)| *side != Side::Both)
    };
    if lines.iter().all(|(side, _)| *side == Side::Both) {
        return String::new();
    }
    let mut text = format!("--- {path}\n+++ {path}\n");
    let (mut old, mut new, mut within) = (0, 0, false);
    for (place, (side, line)) in lines.iter().enumerate() {
        old += usize::from(*side != Side::After);
        new += usize::from(*side != Side::Before);
        if !near(place) {
            within = false;
            continue;
        }
        if !within {
            let _ = writeln!(text, "@@ -{} +{} @@", old.max(1), new.max(1));
            within = true;
        }
        let _ = match side {
            Side::Both => writeln!(text, " {line}"),
            Side::Before => writeln!(text, "{}", paint(style::DESTROY, format!("-{line}"))),
            Side::After => writeln!(text, "{}", paint(style::CREATE, format!("+{line}"))),
        };
    }
    text
}

/// The longest common run of lines, and what each side has besides; what both begin and end with is not searched.
fn compared<'t>(before: &[&'t str], after: &[&'t str]) -> Vec<(Side, &'t str)> {
    let begin = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (old, new) = (&before[begin..], &after[begin..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    // The length of the longest common run from each place to the end.
    let mut longest = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for (row, one) in old.iter().enumerate().rev() {
        for (column, other) in new.iter().enumerate().rev() {
            longest[row][column] = match one == other {
                true => longest[row + 1][column + 1] + 1,
                false => longest[row + 1][column].max(longest[row][column + 1]),
            };
        }
    }
    let mut lines: Vec<(Side, &str)> = before[..begin].iter().map(|line| (Side::Both, *line)).collect();
    let (mut row, mut column) = (0, 0);
    while row < old.len() || column < new.len() {
        if row < old.len() && column < new.len() && old[row] == new[column] {
            lines.push((Side::Both, old[row]));
            (row, column) = (row + 1, column + 1);
        } else if row < old.len()
            && (column == new.len() || longest[row + 1][column] >= longest[row][column + 1])
        {
            lines.push((Side::Before, old[row]));
            row += 1;
        } else {
            lines.push((Side::After, new[column]));
            column += 1;
        }
    }
    lines.extend(before[before.len() - end..].iter().map(|line| (Side::Both, *line)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_are_shown_with_a_few_around() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let after = "a\nb\nc\nd\nE\nf\ng\nh\ni\n";
        let shown = anstream::adapter::strip_str(&diff("x.yaml", before, after)).to_string();
        assert_eq!(shown, "--- x.yaml\n+++ x.yaml\n@@ -2 +2 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n+i\n");
        assert_eq!(diff("x", before, before), "");
        let added = anstream::adapter::strip_str(&diff("x", "", "a\n")).to_string();
        assert_eq!(added, "--- x\n+++ x\n@@ -1 +1 @@\n+a\n");
    }
}
