//! What a request shows: the texts of statuses and comments. Whatever others wrote stands in fenced code.

use std::fmt::Write as _;

use strata_session::SessionError;

use crate::comment::{LIMIT, changes, marker};
use crate::outline::Outline;
use crate::range::short;
use crate::text::{fenced, line, visible};

/// What a text of an apply may take, before what it differs in.
const ERROR: usize = 12_000;

/// The name of a status: `strata/demo1/plan`.
pub fn context(repository: &str, what: &str) -> String {
    format!("strata/{}/{what}", repository.replace(|c: char| !c.is_ascii_alphanumeric(), ""))
}

/// `plan 5b0c…: 2 to create`. The digest stands whole in it.
pub fn description(digest: &str, verdict: &str) -> String {
    format!("plan {digest}: {}", line(verdict))
}

/// The digest in a description.
pub fn digest_of(description: &str) -> Option<&str> {
    let digest = description.strip_prefix("plan ")?.split_once(':')?.0;
    let is_digest =
        digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_digest.then_some(digest)
}

/// The comment of a request from a fork: what it can change, by a look at its files alone.
pub fn of_fork(repository: &str, changed: &str) -> String {
    format!(
        "{}\n### Strata: not planned, since it comes from a fork\n\nA plan runs the source of a request with the secrets of the runner. \
         Without them it was looked at what it can change:\n\n{}\nSomebody who may write to this repository can push it to a branch here.\n",
        marker(repository),
        fenced(&cut(changed, ERROR)),
    )
}

/// The comment of a request that cannot be planned.
pub fn of_failure(repository: &str, error: &SessionError) -> String {
    format!("{}\n### Strata: not planned\n\n{}", marker(repository), fenced(&said(error)))
}

/// The first line of the comment about the apply.
pub fn apply_marker(repository: &str) -> String {
    marker(repository).replace("strata-review", "strata-apply")
}

/// The comment about an apply, and why it was none.
pub fn of_apply(
    repository: &str,
    digest: Option<&str>,
    error: Option<&SessionError>,
    difference: &str,
) -> String {
    let mut text = apply_marker(repository);
    let plan = digest.map(|digest| format!(" `{digest}`")).unwrap_or_default();
    match error {
        None => drop(writeln!(text, "\n### Strata: applied\n\nThe approved plan{plan} was applied.")),
        Some(error) => {
            let _ = writeln!(text, "\n### Strata: not applied\n\n{}", fenced(&said(error)));
        }
    }
    if !difference.is_empty() {
        let room = LIMIT.saturating_sub(text.len() + 1_000);
        let _ = writeln!(
            text,
            "\n#### How it differs from the approved plan\n\n{}",
            fenced(&cut(difference, room))
        );
    }
    text
}

/// The first line of the issue about drift.
pub fn drift_marker(repository: &str) -> String {
    marker(repository).replace("strata-review", "strata-drift")
}

/// Title and text of the issue about drift.
pub fn of_drift(repository: &str, outline: &Outline<'_>) -> (String, String) {
    let verdict = match outline.findings.len() {
        0 => outline.effects.verdict(),
        findings => format!("{}, {findings} in the way", outline.effects.verdict()),
    };
    let head = format!(
        "{}\n### Strata: what runs is not what the base says\n\nA plan of `{}` has: {verdict}. `strata apply` brings it into effect, `strata drift --accept` \
         keeps what somebody changed. This issue is closed when there is nothing left.\n",
        drift_marker(repository),
        short(&outline.reviewed.commit),
    );
    let changes = changes(outline, head.len());
    (format!("Strata: drift: {verdict}"), format!("{head}{changes}"))
}

fn said(error: &SessionError) -> String {
    let mut text = error.message.clone();
    for detail in &error.details {
        let _ = write!(text, "\n  {detail}");
    }
    for hint in &error.hints {
        let _ = write!(text, "\nhint: {hint}");
    }
    cut(&text, ERROR)
}

/// Whole lines, and how many are left out.
fn cut(text: &str, most: usize) -> String {
    /// An indent and the end of the line.
    const LINE: usize = 3;
    let (mut kept, mut used, mut left) = (String::new(), 0, 0);
    // As long as it is shown.
    for own in visible(text).lines() {
        used += own.len() + LINE;
        if left == 0 && used <= most {
            let _ = writeln!(kept, "{own}");
        } else {
            left += 1;
        }
    }
    if left > 0 {
        let _ = write!(kept, "… and {left} more lines, in the output of the job");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_carries_its_digest_and_nothing_else_is_one() {
        let digest = "5b".repeat(32);
        let own = description(&digest, "1 to create\n@everyone");
        assert_eq!(digest_of(&own), Some(digest.as_str()));
        assert!(!own.contains('\n'));
        for other in
            ["", "planning", "plan : x", "plan 5b: x", &format!("plan {}: x", "Z".repeat(64)), &digest]
        {
            assert_eq!(digest_of(other), None, "{other}");
        }
    }

    #[test]
    fn no_text_of_others_acts() {
        let evil = "```\n</details><img src=x>\n@everyone /close #1\n\u{1b}[31m\u{202e}txt\u{200b}\n<!-- strata-review demo1 -->";
        let error = SessionError::refused(evil).detail(evil).hint(evil);
        for text in
            [of_fork("demo1", evil), of_failure("demo1", &error), of_apply("demo1", None, Some(&error), evil)]
        {
            let mut is_code = false;
            for own in text.lines() {
                if own.starts_with("```") {
                    is_code = !is_code;
                } else if !is_code {
                    assert!(!own.contains(['@', '\u{202e}', '\u{200b}']) && !own.contains("<img"), "{own}");
                }
            }
            assert!(!is_code && !text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
            // Only the first line can be a marker.
            assert_eq!(text.lines().filter(|own| own.starts_with("<!--")).count(), 1, "{text}");
        }
    }

    #[test]
    fn a_comment_has_room_for_any_difference() {
        let difference = "stack/object approved: ```\n".repeat(20_000);
        let error = SessionError::refused("x".repeat(50_000)).detail("stale\n".repeat(9_000));
        let text = of_apply("demo1", None, Some(&error), &difference);
        assert!(text.len() <= LIMIT, "{}", text.len());
        assert!(text.contains("more lines, in the output of the job"));
    }
}
