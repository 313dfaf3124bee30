//! What an edit changed, line by line. An edit touches one place: what both texts begin and end with is left out.

#[derive(Debug, Clone, PartialEq, Eq)]
/// A line of a difference.
pub enum DiffLine {
    /// Lines that are not shown.
    Skipped,
    /// It stands in both.
    Same(String),
    /// It stands only in the former text.
    Gone(String),
    /// It stands only in the new text.
    Come(String),
}

/// Lines around a change that show where it is.
const AROUND: usize = 3;

/// The changed lines of two texts with a few around them; nothing where they are the same.
pub fn line_diff(before: &str, after: &str) -> Vec<DiffLine> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    if before == after {
        return Vec::new();
    }
    let common = lcs(&before, &after);
    let mut all: Vec<DiffLine> = Vec::new();
    let (mut old, mut new) = (0, 0);
    for (at, to) in common.into_iter().chain([(before.len(), after.len())]) {
        all.extend(before[old..at].iter().map(|line| DiffLine::Gone((*line).to_owned())));
        all.extend(after[new..to].iter().map(|line| DiffLine::Come((*line).to_owned())));
        all.extend(before.get(at).map(|line| DiffLine::Same((*line).to_owned())));
        (old, new) = (at + 1, to + 1);
    }
    shortened(all)
}

/// The lines that both have, in order: what both begin and end with, and the longest sequence of what is between.
fn lcs(before: &[&str], after: &[&str]) -> Vec<(usize, usize)> {
    let begin = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let rest = before[begin..].iter().rev().zip(after[begin..].iter().rev());
    let end = rest.take_while(|(one, other)| one == other).count();
    let (old, new) = (&before[begin..before.len() - end], &after[begin..after.len() - end]);
    let mut lengths = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for one in (0..old.len()).rev() {
        for other in (0..new.len()).rev() {
            lengths[one][other] = match old[one] == new[other] {
                true => lengths[one + 1][other + 1] + 1,
                false => lengths[one + 1][other].max(lengths[one][other + 1]),
            };
        }
    }
    let mut common: Vec<(usize, usize)> = (0..begin).map(|line| (line, line)).collect();
    let (mut one, mut other) = (0, 0);
    while one < old.len() && other < new.len() {
        if old[one] == new[other] {
            common.push((begin + one, begin + other));
            (one, other) = (one + 1, other + 1);
        } else if lengths[one + 1][other] >= lengths[one][other + 1] {
            one += 1;
        } else {
            other += 1;
        }
    }
    common.extend((0..end).map(|line| (before.len() - end + line, after.len() - end + line)));
    common
}

fn shortened(all: Vec<DiffLine>) -> Vec<DiffLine> {
    let changed = |at: usize| all.get(at).is_some_and(|line| !matches!(line, DiffLine::Same(_)));
    let near = |at: usize| (at.saturating_sub(AROUND)..=at + AROUND).any(changed);
    let mut shown = Vec::new();
    for (at, line) in all.iter().enumerate() {
        if near(at) {
            shown.push(line.clone());
        } else if shown.last() != Some(&DiffLine::Skipped) {
            shown.push(DiffLine::Skipped);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_shown_with_what_is_around_it() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let text = |lines: Vec<DiffLine>| {
            let shown = lines.into_iter().map(|line| match line {
                DiffLine::Skipped => "…".to_owned(),
                DiffLine::Same(line) => format!(" {line}"),
                DiffLine::Gone(line) => format!("-{line}"),
                DiffLine::Come(line) => format!("+{line}"),
            });
            shown.collect::<Vec<String>>().join("\n")
        };
        assert_eq!(text(line_diff(before, before)), "");
        let after = before.replace("e\n", "x\ny\n");
        assert_eq!(text(line_diff(before, &after)), "…\n b\n c\n d\n-e\n+x\n+y\n f\n g\n h");
        assert_eq!(text(line_diff("", "a\nb\n")), "+a\n+b");
    }
}
