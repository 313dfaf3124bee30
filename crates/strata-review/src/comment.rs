//! The comment of a review as Markdown: the verdict first, what is destroyed or replaced open, everything else folded by stack.
//!
//! It never grows beyond [`LIMIT`]: what is left out is what matters least, and how much that is stands in its place. Whatever others wrote stands in
//! fenced code, or escaped in the title of a fold.

use std::fmt::Write as _;

use crate::effects::Importance;
use crate::finding::Finding;
use crate::outline::Outline;
use crate::range::short;
use crate::text::{fenced, html, line};

mod cut;

use cut::{Kept, Pieces};

/// Forges take at least so many characters.
pub const LIMIT: usize = 60_000;

/// What findings may take of it, and what is kept free for titles and folds that are counted roughly.
const FINDINGS: usize = 12_000;
const RESERVE: usize = 1_000;
/// What a fold needs beside its title and its content, and a removal beside its text.
const FOLD: usize = 180;

/// The first line: by it a comment is found again.
pub fn marker(repository: &str) -> String {
    format!("<!-- strata-review {} -->", repository.replace(|c: char| !c.is_ascii_alphanumeric(), ""))
}

/// The comment.
pub fn render(outline: &Outline<'_>) -> String {
    let head = head(outline);
    let changes = changes(outline, head.len());
    format!("{head}{changes}\nDigest to approve: `{}`\n", outline.digest)
}

/// What would be done, for a text whose beginning has so many bytes.
pub fn changes(outline: &Outline<'_>, taken: usize) -> String {
    let tail = tail(outline);
    let findings = findings(outline.findings);
    let taken = taken + tail.len() + findings.len() + RESERVE;
    let mut pieces = Pieces::new(LIMIT.saturating_sub(taken));
    for (place, stack) in outline.stacks.iter().enumerate() {
        let title = html(&stack.key).len() + html(&stack.line).len() + FOLD;
        pieces.group(place, title);
        for (index, entry) in stack.entries.iter().enumerate() {
            // An object of a removal stands in the open part: it pays for its line there.
            let cost = |text: &str| text.len() + text.lines().count() * 3 + 2;
            pieces.add(entry.importance, (place, index), cost(&entry.text), cost(entry.headline()));
        }
    }
    let kept = pieces.choose();
    let mut text = findings;
    text.push_str(&removals(outline, &kept));
    text.push_str(&folds(outline, &kept));
    text.push_str(&tail);
    text
}

fn head(outline: &Outline<'_>) -> String {
    let reviewed = outline.reviewed;
    let mut text = format!("{}\n### Strata: {}\n\n", marker(&reviewed.repository), outline.effects.verdict());
    let errors = outline.findings.iter().filter(|finding| finding.is_error()).count();
    if errors > 0 {
        let _ = writeln!(text, "**Not to be applied: {} below.**\n", counted(errors, "error"));
    }
    let _ = write!(text, "{} between ", counted(outline.stacks.len(), "stack"));
    let base = reviewed.merge_base.as_deref().map_or("the beginning", short);
    let _ = writeln!(
        text,
        "`{base}` and `{}`, planned by Strata {}.",
        short(&reviewed.commit),
        line(&reviewed.strata)
    );
    text
}

fn tail(outline: &Outline<'_>) -> String {
    let mut text = String::new();
    let drift = outline.effects.drift;
    if drift > 0 {
        let _ =
            writeln!(text, "\nDrift: {} that somebody else changed is put back.\n", counted(drift, "value"));
        text.push_str(&drifted(&outline.drift));
    }
    if outline.effects.unknown > 0 {
        let unknown = counted(outline.effects.unknown, "object");
        let _ = writeln!(text, "\nNot seen, and left as it is: {unknown}.");
    }
    let waiting = outline.waiting();
    if !waiting.is_empty() {
        let names: Vec<&String> = waiting.iter().take(50).collect();
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        let _ =
            writeln!(text, "\nNot in this plan, since they wait for it:\n\n{}", fenced(&names.join("\n")));
    }
    if !outline.cost.is_none() {
        text.push_str("\n| guests of this plan | before | after | | all guests after it, of what there is |\n|---|---:|---:|---:|---:|\n");
        for [name, before, after, difference, share] in outline.cost.rows() {
            let _ = writeln!(text, "| {name} | {before} | {after} | {difference} | {share} |");
        }
        if let Some(short) = outline.cost.short_of() {
            let _ = writeln!(text, "\n**More {short} than the hypervisors have.**");
        }
    }
    text
}

/// The first objects that drifted.
fn drifted(lines: &[String]) -> String {
    const MOST: usize = 20;
    let shown: Vec<String> = lines.iter().take(MOST).map(|line| line.chars().take(160).collect()).collect();
    let more = match lines.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("\n… and {}, in the whole text of this job.\n", counted(more, "more object")),
    };
    if shown.is_empty() { String::new() } else { format!("{}{more}", fenced(&shown.join("\n"))) }
}

fn findings(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    // Equal ones stay in their order.
    sorted.sort_by_key(|finding| finding.severity);
    let mut lines = String::new();
    let mut left = 0;
    for finding in sorted {
        let one = line(&finding.line());
        if left == 0 && lines.len() + one.len() + 8 <= FINDINGS {
            let _ = writeln!(lines, "{one}");
        } else {
            left += 1;
        }
    }
    let more = if left > 0 { format!("\n… and {left} more findings.\n") } else { String::new() };
    format!("\n#### Findings\n\n{}{more}", fenced(&lines))
}

/// What is destroyed or replaced, open.
fn removals(outline: &Outline<'_>, kept: &Kept) -> String {
    let mut lines = String::new();
    let mut left = 0;
    for (place, stack) in outline.stacks.iter().enumerate() {
        for (index, entry) in stack.entries.iter().enumerate() {
            if entry.importance != Importance::Removal {
                continue;
            }
            match kept.of((place, index)) {
                Some(true) => {
                    let _ = writeln!(lines, "{}", entry.text);
                }
                Some(false) => {
                    let _ = writeln!(lines, "{}", entry.headline());
                }
                None => left += 1,
            }
        }
    }
    match (lines.is_empty(), left) {
        (true, 0) => String::new(),
        _ => format!("\n#### Destroyed or replaced\n\n{}{}", fenced(&lines), rest(left)),
    }
}

/// Everything else, folded.
fn folds(outline: &Outline<'_>, kept: &Kept) -> String {
    let mut text = String::new();
    let mut stacks_left = 0;
    for (place, stack) in outline.stacks.iter().enumerate() {
        let others =
            || stack.entries.iter().enumerate().filter(|(_, entry)| entry.importance != Importance::Removal);
        if others().next().is_none() {
            continue;
        }
        let (mut lines, mut left) = (String::new(), 0);
        for (index, entry) in others() {
            match kept.of((place, index)) {
                Some(true) => lines.push_str(&entry.text),
                Some(false) => lines.push_str(entry.headline()),
                None => {
                    left += 1;
                    continue;
                }
            }
            lines.push('\n');
        }
        if lines.is_empty() {
            stacks_left += 1;
            continue;
        }
        let (key, summary) = (html(&stack.key), html(&stack.line));
        let _ = writeln!(text, "\n<details><summary><code>{key}</code>: {summary}</summary>\n");
        let _ = writeln!(text, "{}{}\n</details>", fenced(&lines), rest(left));
    }
    if stacks_left > 0 {
        let _ =
            writeln!(text, "\n… and {} more, in the whole text of this job.", counted(stacks_left, "stack"));
    }
    text
}

fn rest(left: usize) -> String {
    if left == 0 {
        return String::new();
    }
    format!("\n… and {} more, in the whole text of this job.\n", counted(left, "object"))
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
