//! `strata demo`.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use serde_json::{Value, json};
use strata_examples::ExampleTarget;
use strata_sim::{Pace, Sim, SimOptions};

use super::CommandResult;
use super::init::{write_example, write_secrets};
use crate::command_error::CommandError;
use crate::context::Context;
use crate::style::{self, paint};

/// Runs the whole story on the simulated datacenter: from nothing to a cluster run by Flux, and back
///
/// Starts a simulator on free ports, makes a repository in a temporary folder, and runs Strata's own commands on it, each shown as
/// you would type it. Nothing outside that folder is touched.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The example to play
    #[arg(long, default_value = "homelab")]
    example: String,
    /// Makes the repository here and keeps it
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let io = |error: std::io::Error| CommandError::failed(format!("the demo cannot run: {error}"));
    let sim = Sim::start(SimOptions { pace: Pace::FAST, ..SimOptions::default() }).await.map_err(io)?;
    let temporary = std::env::temp_dir().join(format!("strata-demo-{}", std::process::id()));
    let folder = args.keep.clone().unwrap_or_else(|| temporary.clone());
    let target = ExampleTarget {
        endpoint: sim.endpoint(),
        token: sim.token().to_owned(),
        fingerprint: sim.fingerprint(),
        gateway: format!("http://{}", sim.gateway()),
    };
    write_example(&args.example, &folder, &target)?;
    let outcome = Story { context, sim: &sim, folder: &folder }.run_story(&args.example).await;
    if args.keep.is_none() {
        let _ = std::fs::remove_dir_all(&temporary);
    }
    sim.shutdown().await.map_err(io)?;
    outcome.map(|()| ExitCode::SUCCESS)
}

struct Story<'a> {
    context: &'a Context,
    sim: &'a Sim,
    folder: &'a Path,
}

impl Story<'_> {
    async fn run_story(&self, example: &str) -> Result<(), CommandError> {
        self.say(&format!(
            "A datacenter is simulated at {}. A repository was made from the example `{example}`.",
            self.sim.endpoint()
        ));
        self.say("What Strata may do there is a role that it computes from the repository, no more:");
        self.strata(&["doctor", "--role"], 0).await?;
        self.take_the_computed_role().await?;
        let before = self.sim.export();
        self.say("What would be made:");
        self.strata(&["plan"], 0).await?;
        self.say("Make it so:");
        self.strata(&["apply", "--yes"], 0).await?;
        self.say("A second plan finds nothing to do, which its exit code says too:");
        self.strata(&["plan", "--detailed-exitcode"], 0).await?;
        if let Some(vmid) = self.somebody_changes_a_guest().await {
            self.say(&format!("Somebody edits guest {vmid} by hand, its notes too. It is still managed, and drift is seen (exit code 2) ..."));
            self.strata(&["drift"], 2).await?;
            self.say("... and corrected:");
            self.strata(&["apply", "--yes"], 0).await?;
        }
        if let Some(cluster) = self.cluster(example) {
            self.say("The cluster gets two more control planes. They join one after the other, and only into a cluster that is healthy:");
            self.edit(&cluster, "controlPlane: {count: 1", "controlPlane: {count: 3")?;
            self.strata(&["apply", "--yes"], 0).await?;
            self.say("A new version of Talos: an etcd snapshot first, then one node at a time, each drained, rebooted and healthy again before the next:");
            self.edit(&cluster, "version: v1.13.9", "version: v1.14.0")?;
            self.strata(&["apply", "--yes"], 0).await?;
            self.strata(&["plan", "--detailed-exitcode"], 0).await?;
        }
        self.say("Take it all down:");
        self.strata(&["destroy", "--yes"], 0).await?;
        if self.sim.export() != before {
            return Err(CommandError::failed("the simulated datacenter is not as it was before"));
        }
        self.say("The datacenter is as it was before, to the last object.");
        Ok(())
    }

    /// The cluster that grows, where the example has a small one.
    fn cluster(&self, example: &str) -> Option<PathBuf> {
        let path = self.folder.join(format!("clusters/{example}/cluster.yaml"));
        let text = std::fs::read_to_string(&path).ok()?;
        text.contains("controlPlane: {count: 1").then_some(path)
    }

    /// What the user would do in an editor.
    fn edit(&self, path: &Path, from: &str, to: &str) -> Result<(), CommandError> {
        let text = std::fs::read_to_string(path).map_err(not_run)?;
        let shown = path.strip_prefix(self.folder).unwrap_or(path).display();
        self.context.printer.line(paint(style::FAINT, format!("$ sed -i 's/{from}/{to}/' {shown}")));
        std::fs::write(path, text.replacen(from, to, 1)).map_err(not_run)
    }

    /// A user of its own with that role, and its token in the repository's secrets.
    async fn take_the_computed_role(&self) -> Result<(), CommandError> {
        let output = self.program()?.args(["--json", "doctor", "--role"]).output().await.map_err(not_run)?;
        let line = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
        let role: Value = serde_json::from_str(&line).unwrap_or_default();
        let privileges = role["privileges"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let privileges = privileges.collect::<Vec<_>>().join(",");
        let steps = [
            ("POST", "/access/roles", json!({"roleid": "Strata", "privs": privileges})),
            ("POST", "/access/users", json!({"userid": "least@pve"})),
            ("PUT", "/access/acl", json!({"path": "/", "users": "least@pve", "roles": "Strata"})),
            ("POST", "/access/users/least@pve/token/strata", json!({"privsep": 0})),
        ];
        let mut answer = Value::Null;
        for (method, path, params) in steps {
            let change = json!({"method": method, "path": path, "params": params});
            answer = self.sim.change(&change).await.map_err(CommandError::failed)?;
        }
        let secret = answer["data"]["value"].as_str().unwrap_or_default();
        write_secrets(self.folder, &format!("least@pve!strata={secret}"))
    }

    fn program(&self) -> Result<tokio::process::Command, CommandError> {
        let program = std::env::current_exe().map_err(not_run)?;
        let mut command = tokio::process::Command::new(program);
        command.arg("-C").arg(self.folder).stdin(Stdio::null());
        Ok(command)
    }

    fn say(&self, text: &str) {
        self.context.printer.line(format!("\n{}", paint(style::STRONG, text)));
    }

    /// Runs this very program as a user would.
    async fn strata(&self, arguments: &[&str], expected: i32) -> Result<(), CommandError> {
        self.context.printer.line(paint(style::FAINT, format!("$ strata {}", arguments.join(" "))));
        let mut command = self.program()?;
        for (flag, set) in
            [("--json", self.context.printer.is_json()), ("--no-color", self.context.global.no_color)]
        {
            if set {
                command.arg(flag);
            }
        }
        let status = command.args(arguments).status().await.map_err(not_run)?;
        if status.code() == Some(expected) {
            return Ok(());
        }
        Err(CommandError::failed(format!(
            "`strata {}` ended with {status}, not with {expected}",
            arguments.join(" ")
        )))
    }

    /// Somebody at the web interface. The guest is one that the example has.
    async fn somebody_changes_a_guest(&self) -> Option<i64> {
        let guests = self.sim.export();
        let (node, vmid) = guests["guests"].as_array()?.iter().find_map(|guest| {
            let is_vm = guest["type"] == "qemu" && guest["config"]["template"].is_null();
            is_vm.then(|| Some((guest["node"].as_str()?.to_owned(), guest["vmid"].as_i64()?)))?
        })?;
        let change = json!({
            "method": "PUT",
            "path": format!("/nodes/{node}/qemu/{vmid}/config"),
            "params": {"description": "who put this note here?", "onboot": 0},
        });
        self.sim.change(&change).await.ok()?;
        Some(vmid)
    }
}

fn not_run(error: std::io::Error) -> CommandError {
    CommandError::failed(format!("cannot run strata: {error}"))
}
