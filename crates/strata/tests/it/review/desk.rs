//! A repository with a runner, an age key and a datacenter, and the steps of a request.

use serde_json::{Value, json};
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Output, Repo, Strata, TestSim};

use super::git;
use crate::world::BINARY;

pub(super) const SECRET: &str = "correct-horse-battery-staple";

/// What a request is made of, and what a runner has beside the clone.
pub(super) struct Desk {
    pub(super) sim: TestSim,
    pub(super) repo: Repo,
    /// Files of the runner: its key, sealed plans, comments.
    pub(super) runner: Repo,
}

pub(super) fn stack(guests: &str) -> String {
    format!("metadata: {{environment: test}}\nproxmox: {{target: pve, node: pve1}}\nvms:\n{guests}")
}

pub(super) fn guest(name: &str, vmid: u32, memory: u32) -> String {
    format!(
        "  {name}: {{vmId: {vmid}, memory: {memory}, started: false, disk: {{storage: local-lvm, size: 1}}, network: [{{bridge: vmbr0}}]}}\n"
    )
}

impl Desk {
    /// A base with one guest that is applied; `review` are further lines of `review:`.
    pub(super) fn new(review: &str) -> Self {
        let sim = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
        let desk = Self { repo: Repo::on(&sim), runner: Repo::empty(), sim };
        let (identity, recipient) = strata_secrets::generate_identity();
        desk.repo.write("age.key", identity.expose());
        desk.repo.write(".gitignore", "age.key\nsim-token\n.strata/\n.cache/\n*.schema.json\nschemas/\n");
        desk.repo.write("stacks/web/stack.yaml", &stack(&guest("app", 9100, 640)));
        let key = desk.runner.file("runner.key");
        let made = desk.strata().run(&["review", "keygen", key.to_str().unwrap()]).ok();
        let public = made.stdout.trim().rsplit(' ').next().unwrap().to_owned();
        let settings = desk.repo.read("strata.yaml");
        let settings =
            format!("{settings}review:\n  recipients: [{recipient}]\n  runners: {{ci: {public}}}\n{review}");
        desk.repo.write("strata.yaml", &settings);
        git(&desk.repo, &["init", "-q"]);
        desk.commit("base");
        desk.strata().run(&["apply", "--yes"]).ok();
        git(&desk.repo, &["checkout", "-q", "-b", "request"]);
        desk
    }

    pub(super) fn strata(&self) -> Strata {
        Strata::new(BINARY, &self.repo).env("APP_PASSWORD", SECRET)
    }

    pub(super) fn commit(&self, message: &str) {
        git(&self.repo, &["add", "-A"]);
        git(&self.repo, &["commit", "-q", "-m", message]);
    }

    /// The path of a file of the runner.
    pub(super) fn at(&self, name: &str) -> String {
        self.runner.file(name).to_str().unwrap().to_owned()
    }

    /// Commits the request, and plans it.
    pub(super) fn plan(&self, more: &[&str]) -> Output {
        self.commit("request");
        self.plan_again(more)
    }

    pub(super) fn plan_again(&self, more: &[&str]) -> Output {
        let (sealed, comment, report) =
            (self.at("plan.sealed"), self.at("comment.md"), self.at("report.json"));
        let key = self.at("runner.key");
        let own =
            ["review", "plan", "--base", "main", "-o", &sealed, "--comment", &comment, "--report", &report];
        self.strata().run(&[&own[..], &["--key", &key], more].concat())
    }

    /// The digest that the last plan is to be approved by.
    pub(super) fn digest(&self) -> String {
        let sealed: Value = serde_json::from_str(&self.runner.read("plan.sealed")).unwrap();
        sealed["digest"].as_str().unwrap().to_owned()
    }

    pub(super) fn merge(&self) {
        git(&self.repo, &["checkout", "-q", "main"]);
        git(&self.repo, &["merge", "-q", "--no-ff", "--no-edit", "request"]);
    }

    pub(super) fn apply(&self, digest: &str, more: &[&str]) -> Output {
        let sealed = self.at("plan.sealed");
        let own = ["review", "apply", &sealed, "--base", "HEAD^1", "--approve", digest];
        self.strata().run(&[&own[..], more].concat())
    }

    /// Somebody else changes a guest.
    pub(super) fn drift(&self, vmid: u32, params: &Value) {
        let path = format!("/nodes/pve1/qemu/{vmid}/config");
        let answer = self.sim.control().change(&json!({"method": "PUT", "path": path, "params": params}));
        assert_eq!(answer["status"], 200, "{answer}");
    }

    /// The memory of a guest as it is, by its VMID.
    pub(super) fn memory(&self, vmid: u32) -> Option<String> {
        let guests = self.sim.export()["guests"].clone();
        let all: Vec<Value> = match guests {
            Value::Array(list) => list,
            Value::Object(map) => map.into_iter().map(|(_, guest)| guest).collect(),
            _ => Vec::new(),
        };
        let guest = all.into_iter().find(|guest| guest["vmid"] == vmid)?;
        Some(guest["config"]["memory"].to_string().replace('"', ""))
    }
}
