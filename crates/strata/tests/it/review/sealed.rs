//! What was approved is what runs: sealed plans, tampering, merges, drift, kills.

use serde_json::{Value, json};

use super::desk::{Desk, SECRET, guest, stack};
use super::git;

fn two_guests(desk: &Desk) {
    desk.repo.write("stacks/web/stack.yaml", &stack(&(guest("app", 9100, 1024) + &guest("new", 9101, 256))));
}

#[test]
fn exactly_what_was_approved_is_applied_after_the_merge() {
    let desk = Desk::new("");
    two_guests(&desk);
    let planned = desk.plan(&[]).ok();
    let (digest, comment) = (desk.digest(), desk.runner.read("comment.md"));
    assert!(planned.stdout.ends_with(&format!("digest to approve: {digest}\n")), "{}", planned.all());
    assert!(comment.contains("### Strata: 1 to create, 1 to change\n"), "{comment}");
    assert!(comment.contains(&format!("Digest to approve: `{digest}`")), "{comment}");
    assert!(
        comment.contains("<summary><code>test/web</code>") && comment.contains("640 MiB → 1024 MiB"),
        "{comment}"
    );
    let resources =
        desk.sim.control().change(&json!({"method": "GET", "path": "/cluster/resources", "params": {}}));
    let rows = resources["data"].as_array().unwrap_or_else(|| panic!("{resources}"));
    let nodes = rows.iter().filter(|row| row["type"] == "node");
    let cores: f64 = nodes.map(|row| row["maxcpu"].as_f64().unwrap()).sum();
    let row = comment
        .lines()
        .find(|line| line.starts_with("| cores | 1 | 2 | +1 | "))
        .unwrap_or_else(|| panic!("{comment}"));
    assert!(row.ends_with(&format!(" of {cores} |")), "{row}");
    let report: Value = serde_json::from_str(&desk.runner.read("report.json")).unwrap();
    assert_eq!(report, json!({"create": 1, "update": 1, "delete": 0}));
    // Nobody without a key reads it, and the same source gives the same digest.
    assert!(!desk.runner.read("plan.sealed").contains("9101"), "the plan is not encrypted");
    desk.plan_again(&[]).ok();
    assert_eq!(desk.digest(), digest);
    let shown = desk.strata().run(&["review", "show", &desk.at("plan.sealed"), "--base", "main"]).ok();
    assert!(shown.stdout.contains("web/vm/new"), "{}", shown.all());
    // Before the merge, and without the approval of this very plan, nothing is applied.
    desk.merge();
    let before = desk.sim.requests();
    let nobody = desk.strata().run(&["review", "apply", &desk.at("plan.sealed"), "--base", "HEAD^1"]).code(3);
    assert!(nobody.stderr.contains("nobody approved this plan"), "{}", nobody.all());
    let other = desk.apply(&"0".repeat(64), &[]).code(3);
    assert!(other.stderr.contains("is not the plan that was approved"), "{}", other.all());
    assert_eq!(desk.sim.requests(), before, "no target was asked");
    desk.apply(&digest, &[]).ok();
    assert_eq!((desk.memory(9100), desk.memory(9101)), (Some("1024".into()), Some("256".into())));
    // A plan is spent by its run.
    let again = desk.apply(&digest, &[]).code(3);
    assert!(again.stderr.contains("the state went from serial"), "{}", again.all());
    let audit = desk.repo.read(".strata/review/audit.jsonl");
    let events: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        events.iter().map(|line| line["event"].as_str().unwrap()).collect::<Vec<_>>(),
        ["begun", "applied"]
    );
    assert_eq!(events[1]["digest"], digest.as_str());
}

#[test]
fn a_file_that_anybody_changed_is_not_taken() {
    let desk = Desk::new("");
    two_guests(&desk);
    desk.plan(&[]).ok();
    desk.merge();
    let good: Value = serde_json::from_str(&desk.runner.read("plan.sealed")).unwrap();
    let digest = desk.digest();
    for (field, value) in good.as_object().unwrap() {
        let mut bad = good.clone();
        bad[field] = match value {
            Value::String(text) => {
                let mut text = text.clone();
                let middle = text.len() / 2;
                let other = if &text[middle..=middle] == "a" { "b" } else { "a" };
                text.replace_range(middle..=middle, other);
                text.into()
            }
            _ => 2.into(),
        };
        desk.runner.write("plan.sealed", &bad.to_string());
        let refused = desk.apply(&digest, &[]);
        assert_eq!(refused.code, 3, "{field}: {}", refused.all());
    }
    // Signed, but by somebody whom only the request itself names.
    desk.runner.write("plan.sealed", &good.to_string());
    desk.apply(&digest, &[]).ok();
}

#[test]
fn who_signs_is_said_by_the_base_and_never_by_the_request() {
    let desk = Desk::new("");
    let made = desk.strata().run(&["review", "keygen", &desk.at("mallory.key")]).ok();
    let public = made.stdout.trim().rsplit(' ').next().unwrap();
    let settings = desk.repo.read("strata.yaml");
    desk.repo
        .write("strata.yaml", &settings.replace("runners: {", &format!("runners: {{mallory: {public}, ")));
    two_guests(&desk);
    let refused = desk.plan(&["--key", &desk.at("mallory.key")]);
    assert_eq!(refused.code, 64, "the option is given twice: {}", refused.all());
    let own = ["review", "plan", "-o", &desk.at("plan.sealed"), "--key", &desk.at("mallory.key")];
    let refused = desk.strata().run(&[&own[..], &["--base", "main"]].concat()).code(3);
    assert!(refused.stderr.contains("does not have the key of this runner"), "{}", refused.all());
    // Even if it pretends that its own commit is the base: whoever applies names the real one.
    desk.strata().run(&[&own[..], &["--base", "HEAD"]].concat()).ok();
    let digest = desk.digest();
    desk.merge();
    let refused = desk.apply(&digest, &[]).code(3);
    assert!(
        refused.stderr.contains("no runner that `review.runners` of the base names"),
        "{}",
        refused.all()
    );
}

#[test]
fn what_moved_since_the_approval_is_shown_and_not_applied() {
    let desk = Desk::new("");
    two_guests(&desk);
    desk.plan(&[]).ok();
    let digest = desk.digest();
    // Another request came first, and changes the same stack.
    git(&desk.repo, &["checkout", "-q", "main"]);
    desk.repo.write("stacks/web/stack.yaml", &stack(&(guest("first", 9102, 128) + &guest("app", 9100, 640))));
    desk.commit("another");
    git(&desk.repo, &["checkout", "-q", "request"]);
    git(&desk.repo, &["checkout", "-q", "main"]);
    let output = std::process::Command::new("git")
        .current_dir(desk.repo.path())
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t.example",
            "merge",
            "-q",
            "-X",
            "ours",
            "--no-edit",
            "request",
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let refused = desk.apply(&digest, &[]).code(3);
    assert!(refused.stderr.contains("the source here is not the one that was reviewed"), "{}", refused.all());
    assert_eq!(desk.memory(9101), None);
    // The same source, and somebody changed the guest.
    let desk = Desk::new("");
    two_guests(&desk);
    desk.plan(&[]).ok();
    let digest = desk.digest();
    desk.merge();
    desk.drift(9100, &json!({"memory": 768, "name": "theirs"}));
    let refused = desk.apply(&digest, &[]).code(3);
    assert!(refused.stderr.contains("`web/vm/app` was changed"), "{}", refused.all());
    assert!(
        refused.stdout.contains("web/vm/app approved:") && refused.stdout.contains("768 MiB → 1024 MiB"),
        "{}",
        refused.all()
    );
    assert!(
        !refused.stdout.contains("web/vm/new approved:"),
        "what is the same is not shown: {}",
        refused.all()
    );
    assert_eq!((desk.memory(9100), desk.memory(9101)), (Some("768".into()), None));
    // A new plan of what was merged says what it puts back, and can be approved.
    let (sealed, comment, key) = (desk.at("plan.sealed"), desk.at("comment.md"), desk.at("runner.key"));
    let merged = ["review", "plan", "--base", "HEAD^1", "-o", &sealed, "--comment", &comment, "--key", &key];
    desk.strata().run(&merged).ok();
    let comment = desk.runner.read("comment.md");
    let drift =
        "Drift: 1 value that somebody else changed is put back.\n\n```text\n  test: web/vm/app  name\n```\n";
    assert!(comment.contains(drift), "{comment}");
    desk.apply(&desk.digest(), &[]).ok();
    assert_eq!(desk.memory(9100), Some("1024".into()));
}

#[test]
fn files_that_no_commit_has_are_not_planned() {
    let desk = Desk::new("");
    two_guests(&desk);
    desk.commit("request");
    desk.repo.write("stacks/more/stack.yaml", &stack(&guest("more", 9109, 64)));
    let refused = desk.plan_again(&[]).code(3);
    assert!(refused.stderr.contains("the files here are not those of"), "{}", refused.all());
    desk.repo.remove("stacks/more/stack.yaml");
    desk.plan_again(&[]).ok();
    desk.merge();
    desk.repo.write("stacks/web/stack.yaml", &stack(&guest("app", 9100, 2048)));
    let refused = desk.apply(&desk.digest(), &[]).code(3);
    assert!(refused.stderr.contains("the source here is not the one that was reviewed"), "{}", refused.all());
}

/// Kills the apply at some of its requests; the same command then goes on, and ends as it would have.
fn killed(step: usize) {
    let prepared = || {
        let desk = Desk::new("");
        two_guests(&desk);
        desk.plan(&[]).ok();
        desk.merge();
        desk
    };
    let desk = prepared();
    desk.sim.control().reset_requests();
    desk.apply(&desk.digest(), &[]).ok();
    let requests = desk.sim.requests();
    for kind in ["hold-before", "hold-after"] {
        for k in (1..=requests).step_by(step) {
            let desk = prepared();
            let (sealed, digest) = (desk.at("plan.sealed"), desk.digest());
            let apply = ["review", "apply", &sealed, "--base", "HEAD^1", "--approve", &digest];
            desk.strata().kill_at(&desk.sim.control(), &json!({"kind": kind, "nth": k}), &apply);
            let next = desk.strata().run(&apply);
            // A run that ended before the fault has spent the plan.
            let spent = next.code == 3 && next.stderr.contains("the state went from serial");
            assert!(next.code == 0 || spent, "{kind} {k}: {}", next.all());
            assert_eq!(
                (desk.memory(9100), desk.memory(9101)),
                (Some("1024".into()), Some("256".into())),
                "{kind} {k}"
            );
            let settled = desk.strata().run(&["plan", "--detailed-exitcode"]);
            assert_eq!(settled.code, 0, "{kind} {k}: {}", settled.all());
        }
    }
}

#[test]
fn an_apply_that_was_killed_goes_on_with_what_was_approved() {
    killed(11);
}

#[test]
#[ignore = "takes minutes: just review-kill-test"]
fn kill_all_requests_of_an_approved_apply() {
    killed(1);
}

#[test]
fn an_apply_that_was_killed_does_nothing_beyond_what_was_approved() {
    let desk = Desk::new("");
    two_guests(&desk);
    desk.plan(&[]).ok();
    desk.merge();
    let (sealed, digest) = (desk.at("plan.sealed"), desk.digest());
    let apply = ["review", "apply", &sealed, "--base", "HEAD^1", "--approve", &digest];
    let fault = json!({"kind": "hold-after", "nth": 1, "method": "POST", "path": "/nodes/pve1/qemu"});
    desk.strata().kill_at(&desk.sim.control(), &fault, &apply);
    assert!(
        desk.repo.file(&format!(".strata/review/{digest}.begun")).exists(),
        "the run was killed before it began"
    );
    // Meanwhile somebody changes what nobody spoke of.
    desk.drift(9100, &json!({"name": "theirs"}));
    let refused = desk.strata().run(&apply).code(3);
    assert!(
        refused.stderr.contains("what is left to do is more than what was approved"),
        "{}",
        refused.all()
    );
    assert!(refused.stderr.contains("`web/vm/app`"), "{}", refused.all());
    let again = desk.strata().run(&apply).code(3);
    assert!(again.stderr.contains("more than what was approved"), "{}", again.all());
}

#[test]
fn no_secret_and_no_markup_leaves_with_a_comment() {
    let desk = Desk::new("");
    let hostile = "</details><img src=x onerror=alert(1)> @everyone #1 !2 [x](https://e.example) \\u001b[31m \\u202e ```\\n/close\\n~~~";
    let guests = format!(
        "  app:\n    vmId: 9100\n    memory: 512\n    started: false\n    disk: {{storage: local-lvm, size: 1}}\n    network: [{{bridge: vmbr0}}]\n    notes: \"{hostile}\"\n    cloudInit: {{user: debian, password: {{env: APP_PASSWORD}}}}\n"
    );
    desk.repo.write("stacks/web/stack.yaml", &stack(&guests));
    let planned = desk.plan(&[]).ok();
    let comment = desk.runner.read("comment.md");
    assert!(!comment.contains('\u{1b}') && !comment.contains('\u{202e}'), "{comment}");
    // Outside of fenced code there is nothing of it.
    let outside: String = comment.split("```").step_by(2).collect();
    for sign in ["<img", "@everyone", "/close", "onerror", "e.example"] {
        assert!(!outside.contains(sign), "{sign}: {comment}");
    }
    assert!(comment.contains("onerror"), "the reviewer sees it: {comment}");
    let sealed = desk.runner.read("plan.sealed");
    for text in [&planned.stdout, &planned.stderr, &comment, &sealed, &desk.runner.read("report.json")] {
        assert!(!text.contains(SECRET), "{text}");
    }
}
