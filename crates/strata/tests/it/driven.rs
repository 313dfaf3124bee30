//! Stacks of OpenTofu within Strata's own plans. OpenTofu is played by a script that answers as the real one does; the real one is in
//! tests/interop/tofu/stacks.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use strata_testkit::{Repo, Strata, TestSim};

use crate::world::BINARY;

/// Keeps one resource and one output in `state` beside the code, and writes down every call.
const FAKE: &str = r#"#!/bin/sh
if [ "$1" = version ]; then
  [ "$2" = -json ] && echo '{"terraform_version": "1.12.6"}' || echo 'OpenTofu v1.12.6'
  exit 0
fi
here=$(dirname "$0")
echo "$(basename "$PWD"): $*" | sed 's#/dev/fd/[0-9]*#PLAN#' >> "$here/calls"
have=$(cat state 2>/dev/null || echo null)
want=\"$(cat want)$TF_VAR_given\"
case "$1 $*" in *-destroy*) want=null ;; esac
[ -f "$here/fails" ] && [ "$1" = "$(cat "$here/fails.at")" ] && { cat "$here/fails"; exit 1; }
say() { echo '{"type": "'"$1"'", "hook": {"resource": {"addr": "x.y"}, "action": "'"$2"'", "elapsed_seconds": 1}}'; }
case $1 in
  plan)
    for argument in "$@"; do case $argument in -out=*) echo "{\"meta\":1} $have $want" > "${argument#-out=}" ;; esac; done ;;
  show)
    if [ -z "$3" ]; then
      [ "$have" = null ] && echo '{"format_version": "1.0"}' || echo 'Warning: of the settings
{"format_version": "1.0", "values": {"root_module": {"resources": [{"address": "x.y", "mode": "managed", "type": "x",
  "values": {"id": "i-1", "text": '$have', "hidden": "MARKER"}, "sensitive_values": {"hidden": true}}]}}}'
      exit 0
    fi
    read -r _ have want < "$3"
    outputs='{}'
    [ -f "$here/known" ] && outputs='{"text": {"sensitive": false, "value": '$want'}}'
    action=update
    [ "$have" = null ] && action=create
    [ "$want" = null ] && action=delete
    [ "$have" = "$want" ] && action=no-op
    echo '{"format_version": "1.2", "resource_changes": [{"address": "x.y", "mode": "managed", "change": {"actions": ["'$action'"],
      "before": {"text": '$have'}, "after": {"text": '$want'}, "after_unknown": {}}}],
      "output_changes": {"text": {"actions": ["'$action'"], "before": '$have', "after": '$want'}},
      "planned_values": {"outputs": '$outputs'}}' ;;
  state) [ "$have" = null ] || echo '{"lineage": "abc", "serial": 1}' ;;
  apply)
    for plan in "$@"; do :; done
    read -r _ have want < "$plan"
    say apply_start create
    [ "$want" = null ] && rm -f state || echo "$want" > state
    say apply_complete create
    echo '{"type": "outputs", "outputs": {"text": {"sensitive": false, "value": '$want'}, "hidden": {"sensitive": true}}}' ;;
esac
exit 0
"#;

pub(crate) fn fake(repo: &Repo) -> String {
    let path = repo.file("fake/tofu");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, FAKE).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

pub(crate) fn by_hand(repo: &Repo, name: &str, stack: &str, want: &str) {
    repo.write(&format!("stacks/{name}/stack.yaml"), stack);
    repo.write(&format!("stacks/{name}/main.tf"), "variable \"given\" {}\n");
    repo.write(&format!("stacks/{name}/want"), want);
}

#[test]
fn they_are_planned_applied_and_destroyed_in_their_layers() {
    let sim = TestSim::start();
    let repo = Repo::on(&sim);
    by_hand(&repo, "base", "metadata: {layer: platforms}\ntofu: {}\n", "one");
    repo.write(
        "stacks/web/stack.yaml",
        "proxmox: {target: pve, node: pve1, storage: tank}\nvms: {web: {vmId: 9100, memory: 64, disk: 1, started: false}}\n\
         outputs: {name: vms.web.name}\n",
    );
    by_hand(&repo, "top", "tofu: {inputs: {given: web.name}}\n", "of-");
    let tofu = fake(&repo);
    let strata = Strata::new(BINARY, &repo).env("STRATA_TOFU", &tofu);
    let shown = strata.run(&["plan", "--detailed-exitcode"]).code(2);
    for line in [
        "+ base/tofu/x.y",
        "+ web/vm/web",
        "of-web",
        "3 to create",
        "platforms: 1 in 1 stack; workloads: 2 in 2 stacks",
    ] {
        assert!(shown.stdout.contains(line), "{line}: {}", shown.all());
    }
    let events = strata.run(&["--json", "apply", "--yes"]).ok().stdout;
    let done: Vec<String> = events
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|event| event["event"] == "step-done")
        .map(|event| event["address"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(done, ["base/tofu/x.y", "web/vm/web", "top/tofu/x.y"]);
    assert_eq!(repo.read("stacks/top/state"), "\"of-web\"\n");
    assert_eq!(strata.run(&["output", "top", "text"]).ok().stdout, "of-web\n");
    strata.run(&["output", "top", "hidden"]).code(1);
    let again = strata.run(&["plan", "--detailed-exitcode"]).ok();
    assert!(again.stdout.contains("nothing to do: 3 unchanged"), "{}", again.all());
    repo.write("fake/calls", "");
    strata.run(&["destroy", "--yes"]).ok();
    let calls = repo.read("fake/calls");
    let applied: Vec<&str> = calls.lines().filter(|line| line.contains(": apply")).collect();
    assert_eq!(applied, ["top: apply -input=false -json PLAN", "base: apply -input=false -json PLAN"]);
    assert!(!repo.file("stacks/base/state").exists());
    assert_eq!(strata.run(&["output"]).ok().stdout, "");
}

#[test]
fn a_saved_plan_runs_exactly_or_not_at_all() {
    let repo = Repo::empty();
    repo.write("strata.yaml", "repository: driven1\n");
    by_hand(&repo, "cloud", "tofu: {}\n", "one");
    let tofu = fake(&repo);
    let strata = Strata::new(BINARY, &repo).env("STRATA_TOFU", &tofu);
    strata.run(&["plan", "-o", "plan.json"]).ok();
    // The code moves on: what was reviewed does not run.
    repo.write("stacks/cloud/want", "two");
    let stale = strata.run(&["apply", "plan.json", "--yes"]).code(3);
    assert!(stale.stderr.contains("the source changed"), "{}", stale.all());
    strata.run(&["plan", "-o", "plan.json"]).ok();
    strata.run(&["apply", "plan.json", "--yes"]).ok();
    assert_eq!(repo.read("stacks/cloud/state"), "\"two\"\n");
    // What OpenTofu has moves on.
    repo.write("stacks/cloud/want", "three");
    strata.run(&["plan", "-o", "plan.json"]).ok();
    repo.write("stacks/cloud/state", "\"else\"\n");
    let stale = strata.run(&["apply", "plan.json", "--yes"]).code(3);
    assert!(stale.stderr.contains("`x.y` was changed"), "{}", stale.all());
    assert_eq!(repo.read("stacks/cloud/state"), "\"else\"\n");
    // Nobody agreed.
    strata.run(&["apply"]).code(3);
    assert_eq!(repo.read("stacks/cloud/state"), "\"else\"\n");
}

#[test]
fn what_opentofu_refuses_has_our_exit_codes() {
    let repo = Repo::empty();
    repo.write("strata.yaml", "repository: driven1\n");
    by_hand(&repo, "cloud", "tofu: {}\n", "one");
    let tofu = fake(&repo);
    let strata = Strata::new(BINARY, &repo).env("STRATA_TOFU", &tofu);
    let fails = |at: &str, summary: &str, detail: &str| {
        repo.write("fake/fails.at", at);
        let said = serde_json::json!({"type": "diagnostic", "diagnostic": {"severity": "error", "summary": summary, "detail": detail}});
        repo.write("fake/fails", &format!("{said}\n"));
    };
    fails(
        "plan",
        "Error acquiring the state lock",
        "Lock Info:\n  ID:        abc-1\n  Who:       ci@runner\n",
    );
    let locked = strata.run(&["plan"]).code(4);
    assert!(locked.stderr.contains("is locked by ci@runner"), "{}", locked.all());
    assert!(locked.stderr.contains("strata tofu force-unlock cloud -- abc-1"), "{}", locked.all());
    fails("plan", "Instance cannot be destroyed", "");
    strata.run(&["destroy", "--yes"]).code(3);
    fails("plan", "Something else", "at length");
    let failed = strata.run(&["apply", "--yes"]).code(1);
    assert!(failed.stderr.contains("error: Something else\n  at length"), "{}", failed.all());
    fails("apply", "Saved plan is stale", "");
    strata.run(&["apply", "--yes"]).code(3);
    assert!(!repo.file("stacks/cloud/state").exists());
    fails("apply", "It broke", "");
    let failed = strata.run(&["apply", "--yes"]).code(1);
    assert!(failed.stderr.contains("0 done, 0 failed, 1 left"), "{}", failed.all());
    assert!(failed.stderr.contains("`strata apply` goes on from here"), "{}", failed.all());
    repo.remove("fake/fails");
    strata.run(&["apply", "--yes"]).ok();
    // Without it there is no plan of such a stack.
    repo.remove("fake/tofu");
    let missing = strata.run(&["plan"]).code(1);
    assert!(missing.stderr.contains("cannot use"), "{}", missing.all());
}

#[test]
fn outputs_that_change_are_waited_for() {
    let repo = Repo::empty();
    repo.write("strata.yaml", "repository: driven1\n");
    by_hand(&repo, "zone", "tofu: {}\n", "one");
    by_hand(&repo, "after", "tofu: {inputs: {given: zone.text}}\n", "in-");
    let tofu = fake(&repo);
    let strata = Strata::new(BINARY, &repo).env("STRATA_TOFU", &tofu);
    let shown = strata.run(&["plan"]).ok();
    assert!(shown.stdout.contains("not planned yet: it needs `zone.text`"), "{}", shown.all());
    strata.run(&["apply", "--yes"]).ok();
    assert_eq!(repo.read("stacks/after/state"), "\"in-one\"\n");
    repo.write("stacks/zone/want", "two");
    let applied = strata.run(&["apply", "--yes"]).ok();
    assert!(applied.stdout.contains("in-one → in-two"), "{}", applied.all());
    assert_eq!(repo.read("stacks/after/state"), "\"in-two\"\n");
    strata.run(&["plan", "--detailed-exitcode"]).ok();
    // What OpenTofu says of an output before its apply is enough.
    repo.write("fake/known", "");
    repo.write("stacks/zone/want", "three");
    let shown = strata.run(&["plan", "-o", "plan.json"]).ok();
    assert!(shown.stdout.contains("in-two → in-three"), "{}", shown.all());
    strata.run(&["apply", "plan.json", "--yes"]).ok();
    assert_eq!(repo.read("stacks/after/state"), "\"in-three\"\n");
}

#[test]
fn what_waits_keeps_its_place() {
    let repo = Repo::empty();
    repo.write("strata.yaml", "repository: driven1\n");
    by_hand(&repo, "zone", "tofu: {}\n", "one");
    by_hand(&repo, "after", "tofu: {inputs: {given: zone.text}}\n", "in-");
    by_hand(&repo, "last", "metadata: {dependsOn: [after]}\ntofu: {}\n", "last");
    by_hand(&repo, "alone", "tofu: {}\n", "alone");
    let tofu = fake(&repo);
    let strata = Strata::new(BINARY, &repo).env("STRATA_TOFU", &tofu);
    // A file has what can be planned, and nothing that would go before what it has not.
    let saved = strata.run(&["plan", "-o", "plan.json"]).ok();
    assert!(saved.stdout.contains("not saved: `after`, `last`; plan again"), "{}", saved.all());
    assert!(saved.stdout.contains("it goes after `after`, which is not planned yet"), "{}", saved.all());
    let applied = strata.run(&["apply", "plan.json", "--yes"]).ok();
    assert!(applied.stderr.contains("`strata apply after last` goes on"), "{}", applied.all());
    assert!(repo.file("stacks/alone/state").exists() && repo.file("stacks/zone/state").exists());
    assert!(!repo.file("stacks/after/state").exists() && !repo.file("stacks/last/state").exists());
    // Without a file everything is done in one run, each after what it needs.
    repo.write("stacks/zone/want", "two");
    repo.write("fake/calls", "");
    strata.run(&["apply", "--yes"]).ok();
    let calls = repo.read("fake/calls");
    let applied: Vec<&str> =
        calls.lines().filter_map(|line| line.split_once(": apply").map(|(stack, _)| stack)).collect();
    assert_eq!(applied, ["zone", "after", "last"]);
    assert_eq!(repo.read("stacks/after/state"), "\"in-two\"\n");
    // What fails only then leaves the rest for the next run.
    repo.write("stacks/zone/want", "three");
    repo.write("stacks/last/want", "later");
    repo.remove("stacks/after/want");
    repo.write("stacks/after/main.tf", "variable \"given\" {}\nvariable \"other\" {}\n");
    repo.write("stacks/after/stack.yaml", "tofu: {inputs: {given: zone.text, other: zone.none}}\n");
    let failed = strata.run(&["apply", "--yes"]).code(1);
    assert!(failed.stderr.contains("`zone` has no output `none` yet"), "{}", failed.all());
    assert!(failed.stderr.contains("1 done, 0 failed, 1 left"), "{}", failed.all());
    assert_eq!(repo.read("stacks/last/state"), "\"last\"\n");
}

#[test]
fn their_states_are_shown_without_secrets() {
    let repo = Repo::empty();
    repo.write("strata.yaml", "repository: driven1\n");
    by_hand(&repo, "cloud", "tofu: {}\n", "one");
    by_hand(&repo, "after", "tofu: {inputs: {given: cloud.text}}\n", "in-");
    let tofu = fake(&repo);
    let strata = Strata::new(BINARY, &repo).env("STRATA_TOFU", &tofu);
    // Nothing is there, and nobody needs outputs to see that.
    assert_eq!(strata.run(&["state", "list"]).ok().stdout, "");
    strata.run(&["apply", "cloud", "--yes"]).ok();
    assert_eq!(strata.run(&["state", "list"]).ok().stdout, "cloud/tofu/x.y  i-1\n");
    let listed = strata.run(&["--json", "state", "list", "cloud"]).ok().stdout;
    let event: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&event["address"], &event["values"]["text"]), (&"cloud/tofu/x.y".into(), &"one".into()));
    let shown = strata.run(&["state", "show", "cloud/tofu/x.y"]).ok().stdout;
    assert!(shown.contains("\"text\": \"one\"") && shown.contains("\"hidden\": \"(sensitive)\""), "{shown}");
    assert!(!listed.contains("MARKER") && !shown.contains("MARKER"));
    let none = strata.run(&["state", "show", "cloud/tofu/x.z"]).code(1);
    assert!(none.stderr.contains("the state has no `cloud/tofu/x.z`"), "{}", none.all());
    // The other verbs say what to use.
    let refused = strata.run(&["state", "rm", "cloud/tofu/x.y"]).code(3);
    assert!(refused.stderr.contains("strata tofu run cloud -- state mv|rm 'x.y'"), "{}", refused.all());
    let pulled = strata.run(&["state", "pull", "cloud"]).ok();
    assert!(pulled.stderr.contains("strata tofu run cloud -- state pull"), "{}", pulled.all());
    // Without OpenTofu nothing is left out without a message.
    repo.remove("fake/tofu");
    strata.run(&["state", "list"]).code(1);
}

#[test]
fn generated_files_without_their_source_are_not_driven() {
    let repo = Repo::empty();
    repo.write(
        "strata.yaml",
        "repository: driven1\ntargets:\n  pve: {proxmox: {endpoint: 'https://192.0.2.10:8006', token: {env: TOKEN}}}\n",
    );
    repo.write("stacks/web/stack.yaml", "proxmox: {node: pve1}\nvms: {web: {vmId: 100, disk: 8}}\n");
    let tofu = fake(&repo);
    let strata = Strata::new(BINARY, &repo).env("STRATA_TOFU", &tofu).env("TOKEN", "a@pve!b=c");
    strata.run(&["sync"]).ok();
    repo.remove("stacks/web/stack.yaml");
    let refused = strata.run(&["plan"]).code(3);
    assert!(refused.stderr.contains("everything in it was generated"), "{}", refused.all());
}

/// Only its code can destroy what OpenTofu made: without it every verb says so, and nothing is forgotten.
#[test]
fn a4_a_stack_of_opentofu_that_left_is_named() {
    let sim = TestSim::start();
    let repo = Repo::on(&sim);
    by_hand(
        &repo,
        "base",
        "metadata: {layer: platforms, description: what all others need}\ntofu: {}\n",
        "one",
    );
    repo.write("stacks/web/stack.yaml", "proxmox: {target: pve, node: pve1, storage: tank}\n");
    let tofu = fake(&repo);
    let strata = Strata::new(BINARY, &repo).env("STRATA_TOFU", &tofu);
    // What a stack is for is in the drawing.
    for format in ["mermaid", "dot"] {
        let drawn = strata.run(&["graph", "--format", format]).ok().stdout;
        assert!(drawn.contains("base: OpenTofu (what all others need)"), "{drawn}");
    }
    strata.run(&["apply", "--yes"]).ok();
    let kept = ["stack.yaml", "main.tf", "want", "state"]
        .map(|file| (file, repo.read(&format!("stacks/base/{file}"))));
    fs::remove_dir_all(repo.file("stacks/base")).unwrap();
    for arguments in [&["plan"][..], &["apply", "--yes"], &["destroy", "base", "--yes"], &["doctor"]] {
        let said = strata.run(arguments);
        assert!(
            said.all().contains("stack `base` is not in the source any more"),
            "{arguments:?}: {}",
            said.all()
        );
        assert!(said.all().contains("only its code can destroy it"), "{arguments:?}: {}", said.all());
    }
    for (file, text) in kept {
        repo.write(&format!("stacks/base/{file}"), &text);
    }
    strata.run(&["destroy", "base", "--yes"]).ok();
    fs::remove_dir_all(repo.file("stacks/base")).unwrap();
    let after = strata.run(&["plan"]).ok();
    assert!(!after.all().contains("stack `base`"), "{}", after.all());
}
