//! The comment of a review: under its limit, cut by importance, and nothing in it acts.

use strata_engine::Summary;
use strata_review::comment::{LIMIT, render};
use strata_review::cost::Cost;
use strata_review::effects::{Effects, Importance};
use strata_review::finding::{Finding, Severity};
use strata_review::outline::{Entry, Outline, StackOutline};
use strata_review::reviewed::Reviewed;

pub(crate) fn nothing_planned() -> Reviewed {
    Reviewed {
        strata: "0.1.0".to_owned(),
        repository: "demo1".to_owned(),
        commit: "9b1de0a4c2f7".repeat(3),
        merge_base: Some("3f2a9c1b7d40".repeat(3)),
        paths: Some(vec!["stacks/web/stack.yaml".to_owned()]),
        stacks: Vec::new(),
        plans: Vec::new(),
    }
}

fn outline<'r>(reviewed: &'r Reviewed, stacks: Vec<StackOutline>, findings: &'r [Finding]) -> Outline<'r> {
    let count = |importance| {
        let entries = stacks.iter().flat_map(|stack| &stack.entries);
        entries.filter(|entry| entry.importance == importance).count()
    };
    let summary = Summary {
        delete: count(Importance::Removal),
        update: count(Importance::Change) + count(Importance::Disruption),
        restart: count(Importance::Disruption),
        ..Summary::default()
    };
    let effects = Effects { summary, ..Effects::default() };
    let digest = reviewed.digest();
    let drift = Vec::new();
    Outline { reviewed, digest, effects, cost: Cost::default(), stacks, drift, findings }
}

fn entry(importance: Importance, address: &str, lines: usize) -> Entry {
    let rows: String = (0..lines).map(|row| format!("\n      field{row}  one → two")).collect();
    Entry { address: address.to_owned(), importance, text: format!("  ~ {address}  VM 9100 on pve1{rows}") }
}

fn stack(name: &str, entries: Vec<Entry>) -> StackOutline {
    StackOutline { key: format!("prod/{name}"), line: "3 to change".to_owned(), entries }
}

/// 1,000 changes in 20 stacks: of each stack one guest goes and one restarts.
fn a_thousand() -> Vec<StackOutline> {
    let stacks = (0..20).map(|place| {
        let entries = (0..50).map(|index| {
            let importance = match index {
                49 => Importance::Removal,
                48 => Importance::Disruption,
                _ => Importance::Change,
            };
            entry(importance, &format!("s{place}/vm/guest-{index}"), 12)
        });
        stack(&format!("s{place}"), entries.collect())
    });
    stacks.collect()
}

#[test]
#[ignore = "a measurement: just bench"]
fn bench_comment_of_a_thousand_changes() {
    let reviewed = nothing_planned();
    let outline = outline(&reviewed, a_thousand(), &[]);
    let (begun, times) = (std::time::Instant::now(), 20);
    let sizes: Vec<usize> = (0..times).map(|_| render(&outline).len()).collect();
    let each = begun.elapsed() / times;
    println!("the comment of 1,000 changes: {} of {LIMIT} bytes in {each:?}", sizes[0]);
}

#[test]
fn a_thousand_changes_fit_and_what_matters_stays() {
    let reviewed = nothing_planned();
    let stacks = a_thousand();
    let whole: usize = stacks.iter().flat_map(|stack| &stack.entries).map(|entry| entry.text.len()).sum();
    assert!(whole > 3 * LIMIT);
    let outline = outline(&reviewed, stacks, &[]);
    let comment = render(&outline);
    assert!(comment.len() <= LIMIT && comment.len() > LIMIT / 2, "{}", comment.len());
    assert_eq!(comment, render(&outline), "the same plan is cut in the same way");
    assert!(
        comment.lines().nth(1).unwrap().starts_with("### Strata: 20 to destroy, 980 to change, 20 restarts")
    );
    assert!(comment.contains(&format!("Digest to approve: `{}`", reviewed.digest())));
    for place in 0..20 {
        // What is destroyed and what restarts is told with all its rows, whatever else is left out.
        for index in [48, 49] {
            let whole = entry(Importance::Change, &format!("s{place}/vm/guest-{index}"), 12).text;
            assert!(comment.contains(&whole), "{place} {index}");
        }
    }
    assert_eq!(comment.matches("<details>").count(), comment.matches("</details>").count());
    assert_eq!(comment.matches("```").count() % 2, 0);
}

#[test]
fn more_stacks_than_fit_are_counted() {
    let reviewed = nothing_planned();
    let stacks =
        (0..2000).map(|place| stack(&format!("stack-{place}"), vec![entry(Importance::Change, "a/vm/b", 3)]));
    let comment = render(&outline(&reviewed, stacks.collect(), &[]));
    assert!(comment.len() <= LIMIT, "{}", comment.len());
    let shown = comment.matches("<details>").count();
    assert!(comment.contains(&format!("… and {} stacks more", 2000 - shown)), "{shown}");
    let removals = (0..5000).map(|index| entry(Importance::Removal, &format!("web/vm/guest-{index}"), 4));
    let comment = render(&outline(&reviewed, vec![stack("web", removals.collect())], &[]));
    assert!(comment.len() <= LIMIT, "{}", comment.len());
    assert!(comment.contains("objects more, in the whole text of this job"));
}

#[test]
fn findings_are_shown_by_severity_and_within_their_room() {
    let reviewed = nothing_planned();
    let finding = |severity, index: usize| Finding {
        severity,
        rule: format!("rule-{index}"),
        about: "web/vm/db".to_owned(),
        message: "x".repeat(90),
    };
    let warnings = (0..500).map(|index| finding(Severity::Warning, index));
    let findings: Vec<Finding> = warnings.chain([finding(Severity::Error, 900)]).collect();
    let comment = render(&outline(&reviewed, Vec::new(), &findings));
    assert!(comment.len() <= LIMIT && comment.contains("✗ rule-900"), "{comment}");
    assert!(comment.contains("more findings") && comment.contains("**Not to be applied: 1 error below.**"));
}

#[test]
fn texts_of_others_do_nothing() {
    let reviewed = nothing_planned();
    let hostile = [
        "</details></summary><script>alert(1)</script>",
        "@everyone @ann #1 !2 GH-3",
        "```\n/close\n/approve\n````\n~~~",
        "[x](javascript:alert(1)) ![x](https://e.example/p.png) <https://e.example>",
        "\u{202e}gnp.exe\u{200b}\u{2066}",
        "| a | b |\n|---|---|\n# title",
        "<!-- strata-review other -->",
        "-->",
    ];
    for text in hostile {
        let shown = strata_review::text::visible(&format!("  + web/vm/{text}  VM 9100"));
        let of = |importance| Entry { address: text.to_owned(), importance, text: shown.clone() };
        let stacks = vec![StackOutline {
            key: text.to_owned(),
            line: text.to_owned(),
            entries: vec![of(Importance::Removal), of(Importance::Change)],
        }];
        let findings = [Finding::error(text, text, text)];
        let mut outline = outline(&reviewed, stacks, &findings);
        outline.effects.drift = 1;
        outline.drift = vec![shown.clone()];
        let comment = render(&outline);
        assert!(!comment.contains(['\u{202e}', '\u{200b}', '\u{2066}', '\u{1b}']), "{comment}");
        // Fenced code is all between two marks, and outside of it are our own words.
        assert_eq!(comment.lines().filter(|line| line.starts_with("```")).count() % 2, 0, "{comment}");
        assert_eq!(
            comment.matches("```").count(),
            comment.lines().filter(|line| line.starts_with("```")).count()
        );
        let outside: String = comment.split("```").step_by(2).collect();
        assert_eq!(outside.matches("<!--").count(), 1, "{outside}");
        assert_eq!(outside.matches("<details>").count(), outside.matches("</details>").count(), "{outside}");
        for sign in ["<script", "@e", "@ann", "](", "# title", "#1", "!2"] {
            assert!(!outside.contains(sign), "{sign}: {outside}");
        }
        assert!(comment.lines().all(|line| !line.starts_with('/')), "{comment}");
    }
}

#[test]
fn drift_of_a_whole_datacenter_leaves_room_for_what_the_plan_does() {
    let reviewed = nothing_planned();
    let entries = (0..200).map(|index| entry(Importance::Removal, &format!("web/vm/guest-{index}"), 2));
    let mut outline = outline(&reviewed, vec![stack("web", entries.collect())], &[]);
    outline.effects.drift = 3000;
    outline.drift =
        (0..1000).map(|index| format!("prod: web/vm/guest-{index}  {}", "memory, ".repeat(400))).collect();
    let comment = render(&outline);
    assert!(comment.len() <= LIMIT, "{}", comment.len());
    assert!(comment.contains("Drift: 3000 values that somebody else changed"), "{comment}");
    assert!(comment.contains("… and 980 more objects, in the whole text of this job."), "{comment}");
    assert!(comment.contains("web/vm/guest-199  VM 9100"), "no removal is left out for it");
}

#[test]
fn what_the_plan_costs_stands_beside_what_there_is() {
    use std::collections::BTreeMap;
    use strata_review::cost::Size;
    use strata_session::{Capacity, Measure};
    let reviewed = nothing_planned();
    let gib = |count: i64| count << 30;
    let size = |cores, memory: i64, disk| Size { cores, memory: memory * 1024, disk: gib(disk) };
    let measure = |total, taken| Measure { total, taken };
    let host = Capacity {
        cores: measure(16, 10),
        memory: measure(gib(64), gib(40)),
        disk: measure(gib(500), gib(100)),
    };
    let rendered = |hosts: &[Capacity], after: Size| {
        let mut outline = outline(&reviewed, Vec::new(), &[]);
        outline.cost = Cost { before: size(2, 4, 20), after, capacity: None };
        let hosts: BTreeMap<String, Capacity> =
            hosts.iter().enumerate().map(|(at, host)| (at.to_string(), *host)).collect();
        render(&outline.within(&hosts))
    };
    let two = rendered(&[host, host], size(6, 12, 10));
    for row in [
        "| cores | 2 | 6 | +4 | 24 of 32 |",
        "| memory | 4 GiB | 12 GiB | +8 GiB | 88 GiB of 128 GiB |",
        "| disk | 20 GiB | 10 GiB | -10 GiB | 190 GiB of 1000 GiB |",
    ] {
        assert!(two.contains(row), "{row}: {two}");
    }
    assert!(!two.contains("than the hypervisors have"), "{two}");
    let full = rendered(&[host], size(2, 40, 20));
    assert!(full.contains("**More memory than the hypervisors have.**"), "{full}");
    // Who says nothing is not compared with; a plan that frees something is never too much.
    let silent = rendered(&[], size(2, 40, 20));
    assert!(silent.contains("| memory | 4 GiB | 40 GiB | +36 GiB |  |"), "{silent}");
    let crowded = Capacity { memory: measure(gib(8), gib(40)), ..host };
    assert!(!rendered(&[crowded], size(2, 2, 20)).contains("than the hypervisors have"));
}
