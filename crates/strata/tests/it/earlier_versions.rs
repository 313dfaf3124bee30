//! What an earlier version stored is read: states and journals with open entries; saved plans are refused, and JSON events keep their names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};
use tempfile::TempDir;

use crate::world::BINARY;

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/a281163").join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(fixture(path)).unwrap()
}

/// The repository and the datacenter as the earlier version left them.
struct Earlier {
    sim: TestSim,
    repo: Repo,
    _data: TempDir,
}

impl Earlier {
    fn at(moment: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        fs::copy(fixture(&format!("{moment}/world.json")), data.path().join("world.json")).unwrap();
        let sim = TestSim::with(SimOptions {
            pace: Pace::INSTANT,
            data_dir: Some(data.path().to_owned()),
            ..SimOptions::default()
        });
        let repo = Repo::empty();
        repo.write("strata.yaml", &text("strata.yaml"));
        repo.write("stacks/web/stack.yaml", &text("stack.yaml"));
        repo.write("sim-token", sim.token());
        // Ports of a test are free ones; the source stays as it was, so that saved plans fit to it.
        let address = sim.endpoint().trim_start_matches("https://").to_owned();
        repo.write("dial.json", &json!({"127.0.0.1:28006": address}).to_string());
        repo.write(".strata/state/default/web/state.json", &text(&format!("{moment}/state.json")));
        Self { sim, repo, _data: data }
    }

    fn strata(&self) -> Strata {
        Strata::new(BINARY, &self.repo).env("STRATA_DIAL", "dial.json")
    }

    #[track_caller]
    fn assert_applied(&self) {
        let plan = self.strata().run(&["plan", "--detailed-exitcode"]).ok();
        assert!(plan.stdout.contains("nothing to do"), "{}", plan.all());
        assert!(!self.repo.file(".strata/state/default/web/journal").exists(), "the journal is not empty");
        let export = self.sim.export();
        let guests: BTreeMap<u64, &Value> = export["guests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|guest| (guest["vmid"].as_u64().unwrap(), &guest["config"]))
            .collect();
        assert_eq!(guests[&9200]["memory"], json!("2048"), "updated: {export:#}");
        assert!(!guests.contains_key(&9201), "deleted: {export:#}");
        assert!(guests.contains_key(&9202), "created: {export:#}");
    }
}

#[test]
fn an_apply_of_an_earlier_version_that_was_killed_is_finished() {
    let earlier = Earlier::at("killed");
    earlier.repo.write(".strata/state/default/web/journal", &text("killed/journal"));
    let listed = earlier.strata().run(&["state", "list", "web"]).ok();
    for address in ["web/container/dns", "web/image/dns@pve1", "web/vm/a", "web/vm/b"] {
        assert!(listed.stdout.contains(address), "{}", listed.all());
    }
    let plan = earlier.strata().run(&["plan"]).ok();
    for open in ["began to update it", "began to delete it", "began to create it"] {
        assert!(plan.all().contains(open), "{open}: {}", plan.all());
    }
    earlier.strata().run(&["apply", "--yes"]).ok();
    earlier.assert_applied();
}

/// A plan is bound to what its version would do: another version refuses it, and changes nothing.
#[test]
fn a_plan_that_an_earlier_version_saved_is_refused() {
    let earlier = Earlier::at("planned");
    earlier.repo.write("web.plan", &text("planned/web.plan"));
    let before = earlier.sim.export();
    let refused = earlier.strata().run(&["apply", "--yes", "web.plan"]);
    assert_ne!(refused.code, 0, "{}", refused.all());
    assert!(
        refused.stderr.contains("`web.plan` cannot be applied: another version of Strata saved it (0.1.0)")
    );
    // Whoever edits one is told that, whatever version saved it.
    earlier.repo.edit("web.plan", "2048", "4096");
    let edited = earlier.strata().run(&["apply", "--yes", "web.plan"]);
    assert!(edited.stderr.contains("was changed after it was made"), "{}", edited.all());
    assert_eq!(earlier.sim.export(), before);
    earlier.strata().run(&["apply", "--yes"]).ok();
    earlier.assert_applied();
}

/// Programs read events by their names and keys: each that there was is still there.
#[test]
fn events_keep_their_names_and_keys() {
    fn names(lines: &str) -> BTreeMap<String, BTreeSet<String>> {
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in lines.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let keys = event.as_object().unwrap().keys().cloned();
            names.entry(event["event"].as_str().unwrap().to_owned()).or_default().extend(keys);
        }
        names
    }
    let earlier = Earlier::at("planned");
    earlier.strata().run(&["destroy", "--yes"]).ok();
    let now = names(&earlier.strata().run(&["--json", "apply", "--yes"]).ok().stdout);
    for (event, keys) in names(&text("events.jsonl")) {
        let kept = now.get(&event).unwrap_or_else(|| panic!("no event `{event}`: {now:?}"));
        assert!(keys.is_subset(kept), "{event}: {keys:?} became {kept:?}");
    }
}
