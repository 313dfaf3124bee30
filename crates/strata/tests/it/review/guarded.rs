//! Guardrails count as the base has them, and a reason opens them.

use serde_json::Value;

use super::desk::{Desk, guest, stack};

/// A request that destroys the guest of the base and makes another.
fn replaces(desk: &Desk) {
    desk.repo.write("stacks/web/stack.yaml", &stack(&guest("other", 9105, 256)));
}

#[test]
fn a_request_cannot_loosen_the_guardrails_that_it_is_held_to() {
    let desk = Desk::new("  maxDestroys: 0\n  protected: [test/web]\n  breakGlass: true\n");
    replaces(&desk);
    let settings = desk.repo.read("strata.yaml");
    desk.repo.write(
        "strata.yaml",
        &settings.replace("maxDestroys: 0", "maxDestroys: 9").replace("  protected: [test/web]\n", ""),
    );
    let planned = desk.plan(&[]).ok();
    assert!(
        planned.stdout.contains("maxDestroys: 1 would be destroyed or replaced, and 0 are allowed"),
        "{}",
        planned.all()
    );
    let comment = desk.runner.read("comment.md");
    assert!(comment.contains("**Not to be applied: 2 errors below.**"), "{comment}");
    assert!(comment.contains("#### Destroyed or replaced") && comment.contains("- web/vm/app"), "{comment}");
    let digest = desk.digest();
    desk.merge();
    let refused = desk.apply(&digest, &[]).code(3);
    assert!(refused.stderr.contains("stack `test/web` is protected"), "{}", refused.all());
    let empty = desk.apply(&digest, &["--break-glass", " "]).code(3);
    assert!(empty.stderr.contains("`--break-glass` needs a reason"), "{}", empty.all());
    assert_eq!((desk.memory(9100), desk.memory(9105)), (Some("640".into()), None));
    desk.apply(&digest, &["--break-glass", "the disk array burns"]).ok();
    assert_eq!((desk.memory(9100), desk.memory(9105)), (None, Some("256".into())));
    let audit = desk.repo.read(".strata/review/audit.jsonl");
    let first: Value = serde_json::from_str(audit.lines().next().unwrap()).unwrap();
    assert_eq!((&first["event"], &first["reason"]), (&"break-glass".into(), &"the disk array burns".into()));
    assert_eq!(first["bypassed"].as_array().unwrap().len(), 2);
}

#[test]
fn rules_freezes_and_approvals_stand_in_the_way() {
    let rules = "  freezes: [{from: '00:00', to: '00:00', timeZone: UTC, reason: the end of the year}]
  approvals: [{count: 2, effects: [destroy]}, {count: 1, paths: ['clusters/**']}]
  rules:
    - {name: small, when: \"step.kind == 'vm' && step.action == 'create' && step.spec.memory.size > 128\", message: ask the owner first}
    - {name: tidy, when: 'step.restart', message: it restarts, severity: warning}
    - {name: typo, when: \"step.spek.memory == 1\", message: never, severity: warning}
";
    let desk = Desk::new(rules);
    replaces(&desk);
    let planned = desk.plan(&[]).ok();
    assert!(planned.stdout.contains("✗ small: web/vm/other: ask the owner first"), "{}", planned.all());
    assert!(planned.stdout.contains("! typo: web/vm/other: it cannot be decided"), "{}", planned.all());
    assert!(!planned.stdout.contains("tidy"), "{}", planned.all());
    // Whoever writes rules asks them about a plan: a saved one, or the document of a review.
    let (document, saved) = (desk.at("document.json"), desk.at("saved.json"));
    desk.plan_again(&["--document", &document]).ok();
    desk.strata().run(&["plan", "-o", &saved]).ok();
    for file in [&document, &saved] {
        let broken = desk.strata().run(&["policy", "test", file]).code(3);
        assert!(broken.stdout.contains("✗ small: web/vm/other: ask the owner first"), "{}", broken.all());
    }
    let readable = desk.strata().run(&["policy", "test"]).ok();
    assert!(readable.stdout.contains("3 rules, none broken"), "{}", readable.all());
    let digest = desk.digest();
    desk.merge();
    let refused = desk.apply(&digest, &[]).code(3);
    for said in ["small: web/vm/other", "the end of the year", "0 of 2 approvals, asked for by: destroy"] {
        assert!(refused.stderr.contains(said), "{said}: {}", refused.all());
    }
    assert!(!refused.stderr.contains("clusters"), "{}", refused.all());
    let no = desk.apply(&digest, &["--break-glass", "please"]).code(3);
    assert!(no.stderr.contains("`review.breakGlass` of the base does not allow"), "{}", no.all());
    assert_eq!(desk.memory(9105), None);
}
