//! The whole story at a forge: request, comment, approval, merge, apply; and everything that somebody could try in between.
//!
//! The forges are servers of our own, written from the forges' API documentation; `tests/interop/run gitea` tells the same story to a real one.

use std::process::Command;

use strata_testkit::{Dialect, FakeForge, Output};

use super::desk::{Desk, SECRET, guest, stack};
use super::git;

/// A repository at a forge, and a request of `ann`.
struct Story {
    desk: Desk,
    server: FakeForge,
    token: String,
    variable: &'static str,
    number: u64,
}

fn commit(desk: &Desk, name: &str) -> String {
    let output =
        Command::new("git").current_dir(desk.repo.path()).args(["rev-parse", name]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Story {
    /// `review` are further lines of `review:`.
    fn new(dialect: Dialect, review: &str) -> Self {
        let server = FakeForge::start(dialect);
        let token = server.user("strata-ci", true, false);
        for name in ["ann", "bobby", "chris"] {
            server.user(name, true, false);
        }
        server.user("guest", false, false);
        server.user("robot", true, true);
        let (kind, variable) = match dialect {
            Dialect::GitHub => ("github", "GITHUB_TOKEN"),
            Dialect::GitLab => ("gitlab", "GITLAB_TOKEN"),
            Dialect::Gitea => ("forgejo", "FORGEJO_TOKEN"),
        };
        let url = server.url();
        let desk =
            Desk::new(&format!("  forge: {{kind: {kind}, url: '{url}', repository: ops/infra}}\n{review}"));
        desk.repo
            .write("stacks/web/stack.yaml", &stack(&(guest("app", 9100, 1024) + &guest("new", 9101, 256))));
        desk.commit("request");
        let number = server.open("ann", &commit(&desk, "HEAD"));
        Self { desk, server, token, variable, number }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.desk.strata().env(self.variable, &self.token).run(arguments);
        assert!(
            !output.all().contains(&self.token) && !output.all().contains(SECRET),
            "a secret: {}",
            output.all()
        );
        output
    }

    fn plan(&self) -> Output {
        let (key, sealed) = (self.desk.at("runner.key"), self.desk.at("plan.sealed"));
        self.run(&["review", "plan", "--base", "main", "-o", &sealed, "--key", &key, "--forge"])
    }

    fn merge(&self) {
        self.desk.merge();
        self.server.merge(self.number, &commit(&self.desk, "HEAD"));
    }

    fn apply(&self) -> Output {
        self.run(&["review", "apply", &self.desk.at("plan.sealed"), "--base", "HEAD^1", "--forge"])
    }

    /// The comment of ours that begins so.
    fn comment(&self, marker: &str) -> String {
        let own = self.server.comments(self.number);
        let mut own = own.into_iter().filter(|(by, text)| by == "strata-ci" && text.starts_with(marker));
        let (_, text) = own.next().unwrap();
        assert!(own.next().is_none(), "one comment of a kind");
        assert!(!text.contains(SECRET) && !text.contains(&self.token), "{text}");
        text
    }

    fn is_refused(&self, why: &str) {
        let refused = self.apply().code(3);
        assert!(refused.stderr.contains(why), "{why}: {}", refused.all());
        let comment = self.comment("<!-- strata-apply ");
        assert!(comment.contains("### Strata: not applied"), "{comment}");
        assert_eq!((self.desk.memory(9100), self.desk.memory(9101)), (Some("640".into()), None));
    }
}

#[test]
fn an_approved_request_is_an_approved_plan_at_every_forge() {
    for dialect in Dialect::ALL {
        let story = Story::new(
            dialect,
            "  approvals: [{count: 2, by: [Bobby, chris]}, {count: 1, paths: ['stacks/**']}]\n",
        );
        let head = commit(&story.desk, "HEAD");
        story.plan().ok();
        let digest = story.desk.digest();
        let comment = story.comment("<!-- strata-review ");
        assert!(
            comment.contains("### Strata: 1 to create, 1 to change\n") && comment.contains(&digest),
            "{comment}"
        );
        let posted = story.server.statuses(&head);
        let [by, context, state, description] = posted.last().unwrap();
        assert_eq!((by.as_str(), state.as_str()), ("strata-ci", "success"), "{dialect:?}");
        assert!(context.starts_with("strata/") && context.ends_with("/plan"), "{context}");
        assert_eq!(*description, format!("plan {digest}: 1 to create, 1 to change"), "{dialect:?}");
        // Planned again, it is the same plan: no second comment, and what was approved stays so.
        story.server.approve(story.number, "bobby");
        story.plan().ok();
        assert_eq!(story.server.comments(story.number).len(), 1, "{dialect:?}");
        story.merge();
        story.is_refused("1 of 2 approvals of Bobby, chris");
        story.server.approve(story.number, "chris");
        story.apply().ok();
        assert_eq!(story.desk.memory(9101), Some("256".into()), "{dialect:?}");
        let merged = story.server.statuses(&commit(&story.desk, "HEAD"));
        assert_eq!(merged.last().unwrap()[2..], ["success", "applied as it was approved"], "{dialect:?}");
        assert!(story.comment("<!-- strata-apply ").contains("### Strata: applied"), "{dialect:?}");
        let audit = story.desk.repo.read(".strata/review/audit.jsonl");
        assert!(audit.lines().last().unwrap().contains(r#""approvedBy":["bobby","chris"]"#), "{audit}");
        // Once: the plan is spent, and the approval with it.
        let again = story.apply().code(3);
        assert!(again.stderr.contains("the state went from serial"), "{}", again.all());
    }
}

#[test]
fn approvals_that_are_not_of_this_plan_do_not_count() {
    for dialect in Dialect::ALL {
        let story = Story::new(dialect, "");
        // Before there is a plan.
        story.server.approve(story.number, "bobby");
        story.plan().ok();
        // The author, a program, somebody without a say, ourselves.
        for who in ["ann", "robot", "guest", "strata-ci"] {
            story.server.approve(story.number, who);
        }
        let old = commit(&story.desk, "HEAD");
        // Somebody writes into comments and statuses what they would like to be there.
        story.server.comment(
            story.number,
            "guest",
            &format!("<!-- strata-review test -->\nDigest to approve: `{}`", "0".repeat(64)),
        );
        story.server.rewrite(story.number, 0, "<!-- strata-review test -->\n### Strata: nothing to do");
        story.server.post_status(&old, "guest", "strata/test/plan", &format!("plan {}: x", "0".repeat(64)));
        story.merge();
        story.is_refused("the approval of `bobby` does not count: it was given before this plan was there");
        for why in ["the request is theirs", "no person gave it", "they may not write"] {
            story.is_refused(why);
        }
        // Withdrawn after the merge.
        story.server.approve(story.number, "chris");
        story.server.withdraw(story.number, "chris");
        story.is_refused("nobody approved the plan");
        story.server.approve(story.number, "chris");
        story.apply().ok();
        assert_eq!(story.desk.memory(9101), Some("256".into()), "{dialect:?}");
    }
}

#[test]
fn a_push_after_the_approval_takes_it_away() {
    for dialect in Dialect::ALL {
        let story = Story::new(dialect, "");
        story.plan().ok();
        story.server.approve(story.number, "bobby");
        std::fs::copy(story.desk.at("plan.sealed"), story.desk.at("old.sealed")).unwrap();
        // Rewritten and pushed by force.
        story.desk.repo.edit("stacks/web/stack.yaml", "memory: 256", "memory: 2048");
        git(&story.desk.repo, &["commit", "-q", "-a", "--amend", "--no-edit"]);
        // The pipeline of the former head comes late, and says nothing about the new one.
        story.server.push(story.number, &commit(&story.desk, "HEAD"));
        git(&story.desk.repo, &["checkout", "-q", "--detach", "HEAD@{1}"]);
        let late = story
            .run(&[
                "review",
                "plan",
                "--base",
                "main",
                "-o",
                &story.desk.at("late.sealed"),
                "--key",
                &story.desk.at("runner.key"),
                "--forge",
                "--request",
                &story.number.to_string(),
            ])
            .code(3);
        assert!(late.stderr.contains("is checked out"), "{}", late.all());
        git(&story.desk.repo, &["checkout", "-q", "request"]);
        story.plan().ok();
        story.merge();
        story.is_refused("does not count: it is of ");
        // The plan that was approved before, for the head of today.
        story.server.approve(story.number, "chris");
        std::fs::copy(story.desk.at("plan.sealed"), story.desk.at("new.sealed")).unwrap();
        std::fs::copy(story.desk.at("old.sealed"), story.desk.at("plan.sealed")).unwrap();
        story.is_refused("is not the plan that was approved");
        std::fs::copy(story.desk.at("new.sealed"), story.desk.at("plan.sealed")).unwrap();
        story.apply().ok();
        assert_eq!(story.desk.memory(9101), Some("2048".into()), "{dialect:?}");
    }
}

#[test]
fn what_moved_after_the_approval_is_told_to_the_request() {
    let story = Story::new(Dialect::Gitea, "");
    // Plans are kept in a folder of the runner, by their digests.
    let folder = story.desk.at("plans");
    std::fs::create_dir(&folder).unwrap();
    let key = story.desk.at("runner.key");
    story.run(&["review", "plan", "--base", "main", "-o", &folder, "--key", &key, "--forge"]).ok();
    story.server.approve(story.number, "bobby");
    story.desk.drift(9100, &serde_json::json!({"memory": "768"}));
    story.merge();
    let apply = ["review", "apply", &folder, "--base", "HEAD^1", "--forge"];
    let refused = story.run(&apply).code(3);
    assert!(refused.stderr.contains("the approved plan is stale"), "{}", refused.all());
    let comment = story.comment("<!-- strata-apply ");
    assert!(comment.contains("#### How it differs from the approved plan"), "{comment}");
    assert!(comment.contains("640 MiB → 1024 MiB") && comment.contains("768 MiB → 1024 MiB"), "{comment}");
    assert_eq!((story.desk.memory(9100), story.desk.memory(9101)), (Some("768".into()), None));
    // Back as it was approved, it is applied; the same comment says so.
    story.desk.drift(9100, &serde_json::json!({"memory": "640"}));
    story.run(&apply).ok();
    assert!(story.comment("<!-- strata-apply ").contains("### Strata: applied"));
}

#[test]
fn a_second_request_that_was_merged_in_between_is_noticed() {
    let story = Story::new(Dialect::GitHub, "");
    story.plan().ok();
    story.server.approve(story.number, "bobby");
    git(&story.desk.repo, &["checkout", "-q", "main"]);
    story.desk.repo.edit(
        "stacks/web/stack.yaml",
        "metadata: {environment: test}",
        "metadata: {environment: test, description: first}",
    );
    story.desk.commit("another");
    story.desk.strata().run(&["apply", "--yes"]).ok();
    story.merge();
    story.is_refused("the source here is not the one that was reviewed");
}

#[test]
fn a_request_from_a_fork_is_looked_at_and_not_planned() {
    for dialect in Dialect::ALL {
        let mut story = Story::new(dialect, "");
        story.number = story.server.open_fork("guest", &commit(&story.desk, "HEAD"));
        let number = story.number.to_string();
        let before = story.desk.sim.requests();
        // There is no key to sign with, and none to open secrets with.
        std::fs::remove_file(story.desk.repo.path().join("age.key")).unwrap();
        let sealed = story.desk.at("plan.sealed");
        story.run(&["review", "plan", "--base", "main", "-o", &sealed, "--forge", "--request", &number]).ok();
        assert_eq!(story.desk.sim.requests(), before, "no target was asked");
        assert!(!std::path::Path::new(&sealed).exists());
        let comment = story.comment("<!-- strata-review ");
        assert!(comment.contains("### Strata: not planned, since it comes from a fork"), "{comment}");
        assert!(comment.contains("web (test)") && comment.contains("`stacks/web/stack.yaml`"), "{comment}");
        let posted = story.server.statuses(&commit(&story.desk, "HEAD"));
        assert_eq!(posted.last().unwrap()[3], "not planned: it comes from a fork", "{dialect:?}");
    }
}

#[test]
fn a_request_does_not_say_where_a_token_goes() {
    let story = Story::new(Dialect::GitLab, "");
    let thief = FakeForge::start(Dialect::GitLab);
    let settings = story.desk.repo.read("strata.yaml");
    story.desk.repo.write("strata.yaml", &settings.replace(story.server.url(), thief.url()));
    story.desk.commit("elsewhere");
    story.server.push(story.number, &commit(&story.desk, "HEAD"));
    story.plan().ok();
    assert!(thief.log().is_empty(), "{:?}", thief.log());
    // Without a token, or with one that nobody knows, it says what is needed before anything is planned.
    let before = story.desk.sim.requests();
    let key = story.desk.at("runner.key");
    let arguments = ["review", "plan", "--base", "main", "-o", "x.sealed", "--key", &key, "--forge"];
    let none = story.desk.strata().run(&arguments).code(1);
    assert!(none.stderr.contains("set the variable `GITLAB_TOKEN` or `CI_JOB_TOKEN`"), "{}", none.all());
    let wrong = story.desk.strata().env("GITLAB_TOKEN", "wrong").run(&arguments).code(1);
    assert!(wrong.stderr.contains("`GITLAB_TOKEN` must be a token that is valid now"), "{}", wrong.all());
    assert_eq!(story.desk.sim.requests(), before, "no target was asked");
}

#[test]
fn drift_is_an_issue_until_it_is_gone() {
    for dialect in Dialect::ALL {
        let story = Story::new(dialect, "");
        git(&story.desk.repo, &["checkout", "-q", "main"]);
        let nightly = ["review", "drift", "--issue", "--detailed-exitcode"];
        story.run(&nightly).ok();
        assert!(story.server.issues().is_empty(), "{dialect:?}");
        story.desk.drift(9100, &serde_json::json!({"memory": "768", "description": "@everyone ``` <b>"}));
        story.run(&nightly).code(2);
        story.run(&nightly).code(2);
        let issues = story.server.issues();
        assert_eq!(issues.len(), 1, "{dialect:?}");
        let (title, text, is_open) = &issues[0];
        assert_eq!((title.as_str(), *is_open), ("Strata: drift: 1 to change", true), "{dialect:?}");
        assert!(
            text.starts_with("<!-- strata-drift test -->\n") && text.contains("768 MiB → 640 MiB"),
            "{text}"
        );
        assert!(!text.contains("Digest to approve") && !text.contains(SECRET), "{text}");
        story.desk.strata().run(&["apply", "--yes"]).ok();
        story.run(&nightly).ok();
        assert!(!story.server.issues()[0].2, "{dialect:?}");
    }
}

/// Every moment at which a forge can break, until nothing is asked of it any more.
const MOMENTS: usize = 60;

#[test]
fn a_forge_that_breaks_while_it_is_written_to_shows_no_plan_that_is_not_there() {
    let story = Story::new(Dialect::Gitea, "");
    let head = commit(&story.desk, "HEAD");
    let mut broke = 0;
    for moment in 0..MOMENTS {
        story.server.break_after(Some(moment));
        let planned = story.plan();
        story.server.break_after(None);
        let digests =
            story.server.statuses(&head).into_iter().filter(|posted| posted[3].starts_with("plan "));
        for [.., description] in digests {
            let digest = story.desk.digest();
            assert!(description.contains(&digest), "{description}");
            assert!(story.comment("<!-- strata-review ").contains(&digest), "at {moment}");
        }
        if planned.code == 0 {
            break;
        }
        assert_eq!(planned.code, 1, "at {moment}: {}", planned.all());
        broke += 1;
    }
    assert!((4..MOMENTS).contains(&broke), "{broke}");
    assert_eq!(story.server.comments(story.number).len(), 1);
    assert_eq!(story.server.statuses(&head).last().unwrap()[2], "success");
}

#[test]
fn a_forge_that_breaks_during_an_apply_decides_nothing_about_it() {
    let story = Story::new(Dialect::GitLab, "");
    story.plan().ok();
    story.server.approve(story.number, "bobby");
    story.merge();
    let mut broke = 0;
    for moment in 0..MOMENTS {
        story.server.break_after(Some(moment));
        let applied = story.apply();
        story.server.break_after(None);
        // Either nothing was done, and that is said; or all of it, and that is said.
        assert_eq!(applied.code == 0, story.desk.memory(9101).is_some(), "at {moment}: {}", applied.all());
        if applied.code == 0 {
            assert!(applied.stderr.contains("nothing was written to the request"), "{}", applied.all());
            break;
        }
        assert_eq!(applied.code, 1, "at {moment}: {}", applied.all());
        broke += 1;
    }
    assert!((4..MOMENTS).contains(&broke), "{broke}");
    // Whoever runs it once more hears that the plan is spent.
    let again = story.apply().code(3);
    assert!(again.stderr.contains("the state went from serial"), "{}", again.all());
}
