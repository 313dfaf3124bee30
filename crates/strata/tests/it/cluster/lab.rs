//! A cluster that tests change: its source, the datacenter it is in, and what must always be true of it.

use std::sync::OnceLock;

use serde_json::{Value, json};
use strata_secrets::OsRandom;
use strata_sim::{Pace, SimOptions, TRUENAS_API_KEY, TRUENAS_HOST};
use strata_talos::{SecretsBundle, ServiceAccountKey};
use strata_testkit::{Output, Repo, Strata, TestSim};

use crate::world::BINARY;

pub(crate) const GIT_TOKEN: &str = "git-token-5d1c";
pub(crate) const STORAGE_KEY: &str = "storage-key-9b7e";
pub(crate) const FILE: &str = "clusters/lab/cluster.yaml";

/// What the source asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) control_planes: u32,
    pub(crate) workers: u32,
    pub(crate) talos: String,
    pub(crate) kubernetes: String,
    pub(crate) cores: u32,
    /// Patches of the machine configuration of all nodes, each a YAML document.
    pub(crate) patches: Vec<String>,
    pub(crate) gitops: bool,
    /// Asks others too: a schematic that the image factory has to be told, and a dataset on a TrueNAS.
    pub(crate) others: bool,
}

impl Shape {
    /// Talos 1.13 and the Kubernetes that goes with it.
    pub(crate) fn new(control_planes: u32, workers: u32) -> Self {
        Self {
            control_planes,
            workers,
            talos: "v1.13.9".to_owned(),
            kubernetes: "v1.36.3".to_owned(),
            cores: 4,
            patches: Vec::new(),
            gitops: false,
            others: false,
        }
    }

    pub(crate) fn with_gitops(self) -> Self {
        Self { gitops: true, ..self }
    }

    /// With everything that a cold boot can ask of anybody.
    pub(crate) fn whole(self) -> Self {
        Self { gitops: true, others: true, ..self }
    }

    pub(crate) fn versions(self, talos: &str, kubernetes: &str) -> Self {
        Self { talos: talos.to_owned(), kubernetes: kubernetes.to_owned(), ..self }
    }

    pub(crate) fn yaml(&self) -> String {
        let Self { control_planes, workers, talos, kubernetes, cores, patches, gitops, others } = self;
        let mut patched = String::new();
        if !patches.is_empty() {
            patched.push_str("  patches:\n");
        }
        for patch in patches {
            patched.push_str("    - |\n");
            // A text over several lines is the patch itself, one line is a path.
            for line in format!("# a patch\n{patch}").lines() {
                patched.push_str(&format!("      {line}\n"));
            }
        }
        let gitops = if *gitops { GITOPS } else { "" };
        let (schematic, storage) = if *others { (EXTENDED, STORAGE) } else { (PLAIN, "") };
        format!(
            r#"
metadata: {{name: lab, environment: test}}
cluster:
  talos:
    version: {talos}
    schematic: {schematic}
    installDisk: /dev/sda
  kubernetes: {{version: {kubernetes}}}
  network:
    cidr: 192.0.2.0/24
    gateway: 192.0.2.1
    nameservers: [192.0.2.1]
    vip: 192.0.2.40
    bridge: vmbr0
  topology:
    controlPlane: {{count: {control_planes}, resources: {{cores: {cores}, memory: 4096, disk: 20}}, addresses: 192.0.2.41-192.0.2.49}}
    workers: {{count: {workers}, resources: {{cores: 2, memory: 4096, disk: 20}}, addresses: 192.0.2.51-192.0.2.69}}
{patched}proxmox:
  target: pve
  nodes: [pve1, pve2, pve3]
  storage: {{iso: tank, disk: local-lvm}}
  vm: {{idBase: 800}}
{storage}{gitops}"#
        )
    }
}

const PLAIN: &str = "{id: ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515}";
const EXTENDED: &str = "{extensions: [siderolabs/iscsi-tools]}";
const STORAGE: &str =
    "storage: {truenas: {target: nas, datasets: [{name: tank/k8s/lab, properties: {compression: LZ4}}]}}\n";

const GITOPS: &str = r#"gitops:
  flux:
    version: v2.9.4
    repository: https://git.example/me/infra
    path: clusters/lab
    ageKey: {file: age.key}
    username: git
    password: {env: GIT_TOKEN}
    manifests: {file: flux.yaml}
  secrets:
    storage-api: {namespace: storage, data: {key: {env: STORAGE_KEY}}}
"#;

/// The two kinds that Flux needs, and two controllers.
fn flux_manifests() -> String {
    let definition = |group: &str, plural: &str, kind: &str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Namespaced",
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
    };
    let controller = |name: &str| {
        let labels = json!({"app.kubernetes.io/part-of": "flux", "app.kubernetes.io/version": "v2.9.4"});
        let containers = json!([{"name": "manager", "image": format!("example/{name}:v1")}]);
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "flux-system", "labels": labels},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}}})
    };
    let documents = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}}),
        definition("source.toolkit.fluxcd.io", "gitrepositories", "GitRepository"),
        definition("kustomize.toolkit.fluxcd.io", "kustomizations", "Kustomization"),
        controller("source-controller"),
        controller("kustomize-controller"),
    ];
    documents.map(|document| document.to_string()).join("\n---\n")
}

/// The keys of every lab: made once, so that two labs can be compared.
pub(crate) struct Keys {
    pub(crate) age_key: String,
    rules: String,
    bundle: String,
    /// The bundle in the clear.
    pub(crate) plain: String,
    pub(crate) cluster_id: String,
}

pub(crate) fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let repo = Repo::empty();
        let strata = Strata::new(BINARY, &repo);
        strata.run(&["init", "."]).ok();
        let bundle =
            SecretsBundle::generate(jiff::Timestamp::now(), ServiceAccountKey::Ecdsa, &mut OsRandom).unwrap();
        let plain = bundle.to_yaml().expose().to_owned();
        repo.write("talos.sops.yaml", &plain);
        strata.run(&["secrets", "encrypt", "talos.sops.yaml"]).ok();
        Keys {
            age_key: repo.read("age.key"),
            rules: repo.read(".sops.yaml"),
            bundle: repo.read("talos.sops.yaml"),
            plain,
            cluster_id: bundle.cluster_id.clone(),
        }
    })
}

pub(crate) struct Lab {
    pub(crate) sim: TestSim,
    pub(crate) repo: Repo,
}

impl Lab {
    /// A hundred times as fast as reality: things take a moment, so that what is seen while they happen is seen too.
    pub(crate) fn new(shape: &Shape) -> Self {
        Self::paced(shape, "0.01".parse().unwrap())
    }

    pub(crate) fn paced(shape: &Shape, pace: Pace) -> Self {
        let sim = TestSim::with(SimOptions { pace, ..SimOptions::default() });
        let repo = Repo::on(&sim);
        let keys = keys();
        repo.write("age.key", &keys.age_key);
        repo.write(".sops.yaml", &keys.rules);
        repo.write("clusters/lab/talos.sops.yaml", &keys.bundle);
        repo.write("flux.yaml", &flux_manifests());
        repo.write("network-ca.pem", sim.network_ca_pem());
        let nas = format!(
            "  nas:\n    truenas: {{endpoint: \"https://{TRUENAS_HOST}\", apiKey: {{env: NAS_KEY}}, tls: {{fingerprint: \"{}\"}}}}\n",
            sim.fingerprint()
        );
        repo.write("strata.yaml", &(repo.read("strata.yaml") + &nas));
        let lab = Self { sim, repo };
        dial(&lab.sim, &lab.repo);
        lab.source(shape);
        lab
    }

    /// One whose cluster runs.
    pub(crate) fn booted(shape: &Shape) -> Self {
        let lab = Self::new(shape);
        lab.apply();
        lab
    }

    pub(crate) fn source(&self, shape: &Shape) {
        self.repo.write(FILE, &shape.yaml());
    }

    pub(crate) fn strata(&self) -> Strata {
        self.strata_of(&self.repo)
    }

    /// In another checkout.
    pub(crate) fn strata_of(&self, repo: &Repo) -> Strata {
        Strata::new(BINARY, repo)
            .env("STRATA_DIAL", "dial.json")
            .env("GIT_TOKEN", GIT_TOKEN)
            .env("STORAGE_KEY", STORAGE_KEY)
            .env("NAS_KEY", TRUENAS_API_KEY)
            .env("SSL_CERT_FILE", "network-ca.pem")
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.strata().run(arguments)
    }

    #[track_caller]
    pub(crate) fn apply(&self) -> Output {
        self.run(&["apply", "--yes"]).ok()
    }

    /// Asks for something else and applies it.
    #[track_caller]
    pub(crate) fn becomes(&self, shape: &Shape) -> Output {
        self.source(shape);
        self.apply()
    }

    /// Applies until nothing is left to do, at most so many times; gives the words of the applies that did not get there.
    #[track_caller]
    pub(crate) fn converges(&self, within: usize) -> Vec<String> {
        self.converges_telling(within, "")
    }

    #[track_caller]
    pub(crate) fn converges_telling(&self, within: usize, told: &str) -> Vec<String> {
        let mut said = Vec::new();
        for _ in 0..within {
            let output = self.run(&["apply", "--yes"]);
            assert!(!output.all().contains("panicked"), "{told}\n{}", output.all());
            if output.code == 0 && self.run(&["plan", "--detailed-exitcode"]).code == 0 {
                return said;
            }
            said.push(output.all());
        }
        panic!("{told}\nafter {within} applies it has not converged:\n{}", said.join("\n---\n"));
    }

    pub(crate) fn export(&self) -> Value {
        self.sim.export()
    }

    /// Everything but what Kubernetes says of itself: whether a node is ready shows there by and by.
    pub(crate) fn machines(&self) -> Value {
        let mut export = self.export();
        export.as_object_mut().unwrap().remove("kubernetes");
        export
    }

    /// What an apply says that it does, step by step.
    #[track_caller]
    pub(crate) fn apply_telling(&self) -> String {
        self.run(&["--json", "apply", "--yes"]).ok().all()
    }

    /// Machines, members of etcd, reboots and counters.
    pub(crate) fn talos(&self) -> Value {
        self.sim.control().call("GET", "/_sim/talos", None)
    }

    pub(crate) fn change(&self, change: &Value) {
        self.sim.control().change(&json!({"talos": change}));
    }

    /// Somebody deletes a VM, running or not.
    pub(crate) fn lose(&self, node: &str, vmid: u32) {
        let control = self.sim.control();
        control.change(&json!({"power": {"vmid": vmid, "running": false}}));
        let path = format!("/nodes/{node}/qemu/{vmid}");
        let answer = control.change(&json!({"method": "DELETE", "path": path, "params": {}}));
        assert_eq!(answer["status"], 200, "{answer}");
    }

    /// The node and the VMID that a machine is on, by its name.
    pub(crate) fn vm(&self, name: &str) -> (String, u32) {
        let export = self.export();
        let guests = export["guests"].as_array().unwrap();
        let guest = guests.iter().find(|guest| guest["config"]["name"] == name);
        let guest = guest.unwrap_or_else(|| panic!("no VM is called `{name}`: {export}"));
        (guest["node"].as_str().unwrap().to_owned(), u32::try_from(guest["vmid"].as_u64().unwrap()).unwrap())
    }

    /// Never two clusters, never two control planes down at once, never a lost majority.
    #[track_caller]
    pub(crate) fn assert_sound(&self, what: &str) {
        let talos = self.talos();
        let counters = talos["counters"].as_object().unwrap();
        let own = &counters[&keys().cluster_id];
        assert_eq!(counters.len(), 1, "{what}: one cluster, not {talos:#}");
        assert_eq!(own["bootstraps"], 1, "{what}: etcd is bootstrapped once: {talos:#}");
        assert!(
            own["most_down"].as_u64() <= Some(1),
            "{what}: two control planes were down at once: {talos:#}"
        );
        assert_eq!(own["quorum_lost"], false, "{what}: the majority was lost: {talos:#}");
        assert_eq!(talos["etcd-clusters"].as_array().unwrap().len(), 1, "{what}: one etcd: {talos:#}");
    }

    /// Every node is there, votes if it should, and runs; nothing waits for anything.
    #[track_caller]
    pub(crate) fn assert_is(&self, shape: &Shape, what: &str) {
        let talos = self.talos();
        let machines = talos["machines"].as_array().unwrap();
        assert_eq!(machines.len() as u32, shape.control_planes + shape.workers, "{what}: {talos:#}");
        for machine in machines {
            assert_eq!(machine["stage"], "running", "{what}: {machine}");
            assert_eq!(machine["reboot-pending"], false, "{what}: {machine}");
            assert_eq!(machine["runs"]["version"], json!(shape.talos), "{what}: {machine}");
        }
        let members = talos["etcd-clusters"][0]["members"].as_array().unwrap();
        assert_eq!(members.len() as u32, shape.control_planes, "{what}: {talos:#}");
        assert!(members.iter().all(|member| member["learner"] == false && member["up"] == true), "{what}");
    }

    /// Nothing is open any more, and a second plan has nothing to do.
    #[track_caller]
    pub(crate) fn assert_settled(&self, what: &str) {
        let plan = self.run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{what}\n{}", plan.all());
        assert!(
            !self.repo.file(".strata/state/test/lab/journal").exists(),
            "{what}: the journal is not empty"
        );
    }
}

/// Leads what the model says to the simulator.
pub(crate) fn dial(sim: &TestSim, repo: &Repo) {
    let ready: Value = serde_json::from_str(&sim.ready_line()).unwrap();
    repo.write("dial.json", &ready["dial"].to_string());
}
