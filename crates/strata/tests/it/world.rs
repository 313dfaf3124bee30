//! The datacenter and the repository that most tests begin with: templates, clones, ISO VMs, containers, and somebody else's guest.

use serde_json::{Value, json};
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_strata");

/// What every reference to a password stands for.
pub(crate) const PASSWORD: &str = "correct-horse-battery";

/// A stack with one of everything.
pub(crate) const STACK: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
templates:
  debian:
    vmId: 9000
    image: {url: "https://images.example/debian-12-genericcloud-amd64.qcow2"}
    cores: 2
    memory: 2048
    disk: 10
vms:
  app:
    count: 2
    template: debian
    vmId: 9100
    cores: 2
    memory: 4096
    disks: {scsi0: {storage: local-lvm, size: 20}, scsi1: {storage: tank, size: 5}}
    network: [{bridge: vmbr0, vlan: 30, ip: 192.0.2.10/24, gateway: 192.0.2.1}]
    cloudInit: {user: debian, password: {env: APP_PASSWORD}}
    firewall: {rules: [{direction: in, action: ACCEPT, protocol: tcp, destinationPort: "443"}]}
    tags: [app]
  own:
    vmId: 9110
    template: debian
    disks: {scsi0: {storage: local-lvm, size: 12}}
    network: [{bridge: vmbr0}]
    cloudInit: {userData: "own.yaml"}
    pool: production
  rescue:
    vmId: 9120
    iso: {url: "https://images.example/rescue.iso"}
    memory: 1024
    disk: {storage: local-lvm, size: 4}
    network: [{bridge: vmbr1}]
    started: false
containers:
  dns:
    vmId: 9200
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 4
    memory: 256
    network: [{bridge: vmbr0, ip: 192.0.2.53/24, gateway: 192.0.2.1}]
    firewall: {rules: [{direction: in, action: ACCEPT, protocol: udp, destinationPort: "53"}]}
outputs:
  addresses: "vms.app[*].address"
"#;

pub(crate) struct World {
    pub(crate) sim: TestSim,
    pub(crate) repo: Repo,
}

impl World {
    /// Tasks take a moment, so that what is seen while they run is seen too.
    pub(crate) fn new() -> Self {
        Self::with(Pace::FAST, STACK)
    }

    pub(crate) fn instant(stack: &str) -> Self {
        Self::with(Pace::INSTANT, stack)
    }

    pub(crate) fn with(pace: Pace, stack: &str) -> Self {
        let sim = TestSim::with(SimOptions { pace, ..SimOptions::default() });
        let repo = Repo::on(&sim);
        repo.write("stacks/web/stack.yaml", stack);
        repo.write("stacks/web/own.yaml", "#cloud-config\npackages: [postgresql]\n");
        let world = Self { sim, repo };
        world.stranger(200);
        world
    }

    /// A guest of somebody else.
    pub(crate) fn stranger(&self, vmid: u32) {
        let change = json!({
            "method": "POST",
            "path": "/nodes/pve1/qemu",
            "params": {"vmid": vmid, "name": "stranger", "memory": 64, "scsi0": "local-lvm:1", "description": "not yours"},
        });
        let answer = self.sim.control().change(&change);
        assert_eq!(answer["status"], 200, "{answer}");
    }

    pub(crate) fn strata(&self) -> Strata {
        let passwords = ["APP_PASSWORD", "ANN_PASSWORD", "PBS_PASSWORD"];
        passwords.iter().fold(Strata::new(BINARY, &self.repo), |strata, name| strata.env(name, PASSWORD))
    }

    /// Every live object; the order in which storages were made means nothing.
    pub(crate) fn export(&self) -> Value {
        let mut export = self.sim.export();
        let storages = export["storages"].as_array_mut().unwrap();
        storages.sort_by_key(|storage| storage["storage"].to_string());
        export
    }

    /// Nothing is open any more, and a second plan has nothing to do.
    pub(crate) fn assert_settled(&self) {
        let plan = self.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{}", plan.all());
        for stack in ["web", "dc"] {
            let journal = self.repo.file(&format!(".strata/state/test/{stack}/journal"));
            assert!(!journal.exists(), "the journal is not empty");
        }
    }
}
