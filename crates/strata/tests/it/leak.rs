//! The leak test: marker secrets of every kind go through everything and are found only where they must be.

use std::fs;
use std::path::Path;

use serde_json::json;
use strata_testkit::{Repo, Strata, TestSim};

use crate::world::BINARY;

/// The beginning of every marker; no other text of these tests has it.
const MARKER: &str = "MARKER-7f3a";

/// One VM or container for each place that a secret can come from.
const STACK: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
vms:
  sops-yaml: {vmId: 9101, disk: 1, memory: 64, started: false, cloudInit: {password: {secret: deep.0.yaml}}}
  sops-json: {vmId: 9102, disk: 1, memory: 64, started: false, cloudInit: {password: {secret: json.password}}}
  sops-dotenv: {vmId: 9103, disk: 1, memory: 64, started: false, cloudInit: {password: {secret: DOTENV}}}
  sops-ini: {vmId: 9104, disk: 1, memory: 64, started: false, cloudInit: {password: {secret: ini.password}}}
  sops-binary: {vmId: 9105, disk: 1, memory: 64, started: false, cloudInit: {password: {secret: data}}}
  vault-file: {vmId: 9106, disk: 1, memory: 64, started: false, cloudInit: {password: {secret: whole.password}}}
  vault-inline: {vmId: 9107, disk: 1, memory: 64, started: false, cloudInit: {password: {secret: inline}}}
  vault-tfvars: {vmId: 9108, disk: 1, memory: 64, started: false, cloudInit: {password: {secret: hcl.password}}}
  variable: {vmId: 9109, disk: 1, memory: 64, started: false, cloudInit: {password: {env: APP_PASSWORD}}}
  file: {vmId: 9110, disk: 1, memory: 64, started: false, cloudInit: {password: {file: password.txt}}}
  user-data:
    vmId: 9111
    disk: 1
    memory: 64
    started: false
    cloudInit: {userData: {secret: document}, allowSecretOnStorage: true}
containers:
  box:
    vmId: 9201
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 1
    memory: 64
    started: false
    password: {secret: container}
"#;

/// The files in the clear, and how they are encrypted.
const FILES: [(&str, &str, bool); 8] = [
    (
        "secrets.sops.yaml",
        "deep:\n  - yaml: MARKER-7f3a-yaml\ncontainer: MARKER-7f3a-container\ntoken: TOKEN\ndocument: |\n  #cloud-config\n  # MARKER-7f3a-document\n  ssh_keys: {ed25519_private: MARKER-7f3a-private}\nunused: MARKER-7f3a-unused\n",
        false,
    ),
    ("other.sops.json", "{\"json\": {\"password\": \"MARKER-7f3a-json\"}}\n", false),
    ("app.sops.env", "DOTENV=MARKER-7f3a-dotenv\n", false),
    ("app.sops.ini", "[ini]\npassword = MARKER-7f3a-ini\n", false),
    ("blob.sops.bin", "MARKER-7f3a-binary", false),
    ("whole.vault.yaml", "whole:\n  password: MARKER-7f3a-whole\n", true),
    ("inline.vault.yaml", "plain: text\ninline: MARKER-7f3a-inline\n", true),
    ("secrets.tfvars", "hcl = {\n  password = \"MARKER-7f3a-hcl\"\n}\n", true),
];

struct Leaky {
    sim: TestSim,
    repo: Repo,
    outputs: Vec<(String, String)>,
}

impl Leaky {
    fn new() -> Self {
        let sim = TestSim::start();
        let repo = Repo::on(&sim);
        let own = Repo::empty();
        Strata::new(BINARY, &own).run(&["init", "."]).ok();
        repo.write("age.key", &own.read("age.key"));
        repo.write(".sops.yaml", &own.read(".sops.yaml").replace("\\.sops\\.ya?ml$", "\\.sops\\."));
        repo.write("vault-password", "MARKER-7f3a-vault-password\n");
        repo.write("stacks/web/stack.yaml", STACK);
        repo.write("stacks/web/password.txt", "MARKER-7f3a-file\n");
        let mut settings = repo.read("strata.yaml").replace("{file: sim-token}", "{secret: token}");
        settings.push_str("secrets:\n");
        for (file, plain, vault) in FILES {
            repo.write(file, &plain.replace("TOKEN", sim.token()));
            settings.push_str(&format!("  - {}: {file}\n", if vault { "vault" } else { "sops" }));
        }
        repo.write("strata.yaml", &settings);
        repo.remove("sim-token");
        let leaky = Self { sim, repo, outputs: Vec::new() };
        for (file, _, vault) in FILES {
            let mut arguments = vec!["secrets", "encrypt", file];
            if vault {
                arguments.push("--vault");
            }
            if file.starts_with("inline") {
                arguments.extend(["--value", "inline"]);
            }
            leaky.strata().run(&arguments).ok();
        }
        leaky
    }

    fn strata(&self) -> Strata {
        Strata::new(BINARY, &self.repo)
            .env("APP_PASSWORD", "MARKER-7f3a-variable")
            .env("ANSIBLE_VAULT_PASSWORD_FILE", "vault-password")
    }

    fn run(&mut self, arguments: &[&str]) -> strata_testkit::Output {
        let output = self.strata().run(arguments);
        self.outputs.push((arguments.join(" "), output.all()));
        output
    }

    /// No marker in what was printed, nor in any file that need not have it.
    fn search(&self) {
        let token = self.sim.token().split_once('=').unwrap().1;
        let key = self.repo.read("age.key");
        let key = key.lines().last().unwrap().to_owned();
        let forms = [MARKER.to_owned(), token.to_owned(), key, "TUFSS0VSLTdmM2".to_owned()];
        for (arguments, output) in &self.outputs {
            for form in &forms {
                assert!(!output.contains(form), "`strata {arguments}` prints a secret:\n{output}");
            }
        }
        let allowed = ["age.key", "vault-password", "stacks/web/password.txt"];
        for (path, bytes) in self.repo.all_files() {
            if allowed.iter().any(|allowed| path.ends_with(Path::new(allowed))) {
                continue;
            }
            let text = String::from_utf8_lossy(&bytes);
            for form in &forms {
                assert!(!text.contains(form), "`{}` holds a secret", path.display());
            }
        }
        // Nor in an address or a query, which servers log.
        let requests = self.sim.control().requests().to_string();
        assert!(forms.iter().all(|form| !requests.contains(form)), "{requests}");
    }
}

#[test]
fn no_secret_is_in_a_file_or_an_output() {
    let mut leaky = Leaky::new();
    leaky.run(&["validate"]).ok();
    leaky.run(&["plan"]).ok();
    leaky.run(&["--json", "plan"]).ok();
    leaky.run(&["-v", "plan", "-o", "saved.plan"]).ok();
    leaky.run(&["secrets", "list"]).ok();
    leaky.run(&["--json", "secrets", "list"]).ok();
    leaky.run(&["secrets", "check"]);
    leaky.run(&["graph"]).ok();
    leaky.run(&["doctor"]);
    leaky.run(&["doctor", "--role"]);
    // Failing applies, whose errors the server words itself, and repeats what it was sent.
    let said = "-yaml -json -dotenv -ini -binary -whole -inline -hcl -variable -file -container";
    let said: Vec<String> = said.split(' ').map(|end| format!("{MARKER}{end}")).collect();
    // Of a document with secrets in it, the server may quote a line.
    let line = "ssh_keys: {ed25519_private: MARKER-7f3a-private}";
    let refuse = |status: u32| {
        json!({
            "kind": "refuse", "status": status, "writes": true, "path": "/nodes/*", "count": 0,
            "text": format!("cannot set '{}' by {}: {line}", said.join("', '"), leaky.sim.token()),
        })
    };
    for (order, arguments) in
        [(refuse(400), ["-v", "apply", "--yes"]), (refuse(401), ["--json", "apply", "--yes"])]
    {
        leaky.sim.control().fault(&order);
        assert_ne!(leaky.run(&arguments).code, 0);
        leaky.sim.control().clear_faults();
    }
    // An answer that is lost in the middle leaves a journal.
    leaky.sim.control().fault(&json!({"kind": "lost", "writes": true, "count": 2}));
    leaky.run(&["-v", "apply", "--yes"]);
    leaky.sim.control().clear_faults();
    leaky.search();
    leaky.run(&["-v", "apply", "--yes"]).ok();
    leaky.run(&["--json", "plan", "--detailed-exitcode"]).ok();
    leaky.run(&["state", "list", "web"]).ok();
    leaky.run(&["state", "pull", "web"]).ok();
    for address in ["web/vm/sops-yaml", "web/vm/user-data", "web/container/box"] {
        leaky.run(&["state", "show", address]).ok();
    }
    leaky.run(&["state", "history", "web"]).ok();
    leaky.run(&["output", "web"]);
    leaky.run(&["drift"]);
    leaky.search();
    // They reached the guests, where they must be.
    let live = leaky.sim.export();
    for vm in live["guests"].as_array().unwrap().iter().filter(|guest| guest["vmid"].as_u64() < Some(9111)) {
        assert!(vm["config"]["cipassword"].is_string(), "{vm}");
    }
    // A changed secret is still seen, and not shown.
    leaky.repo.write("stacks/web/password.txt", "MARKER-7f3a-changed\n");
    let plan = leaky.run(&["plan", "--detailed-exitcode"]).code(2);
    assert!(plan.stdout.contains("cloudinit.password") && plan.stdout.contains("(secret)"), "{}", plan.all());
    leaky.run(&["apply", "--yes"]).ok();
    leaky.run(&["destroy", "--yes"]).ok();
    leaky.search();
}

#[test]
#[cfg(debug_assertions)]
fn a_panic_tells_no_secret() {
    let mut leaky = Leaky::new();
    for backtrace in ["0", "1"] {
        let strata = leaky.strata().env("STRATA_TEST_PANIC", "1").env("RUST_BACKTRACE", backtrace);
        let output = strata.run(&["plan"]).code(1);
        assert!(output.stderr.contains("this is a bug in Strata, at "), "{}", output.all());
        assert!(output.stderr.contains("with the value <secret>"), "{}", output.all());
        leaky.outputs.push(("plan".to_owned(), output.all()));
    }
    leaky.search();
}

#[test]
fn damaged_files_are_told_without_what_they_say() {
    let mut leaky = Leaky::new();
    for (file, _, _) in FILES {
        let path = leaky.repo.file(file);
        let content = fs::read(&path).unwrap();
        let mut damaged = content.clone();
        damaged[content.len() / 3] ^= 1;
        fs::write(&path, damaged).unwrap();
        leaky.run(&["plan"]);
        let decrypted = leaky.strata().run(&["secrets", "decrypt", file]);
        // A flip in what is not protected, such as a remark, does no damage.
        if decrypted.code != 0 {
            leaky.outputs.push((format!("secrets decrypt {file}"), decrypted.all()));
        }
        fs::write(&path, content).unwrap();
    }
    leaky.search();
}

#[test]
fn the_key_of_the_digests_travels_with_the_state() {
    let sim = TestSim::start();
    let repo = Repo::empty();
    let strata = Strata::new(BINARY, &repo);
    strata.run(&["init", "--example", "prod", "."]).ok();
    repo.edit("strata.yaml", "https://127.0.0.1:18006", &sim.endpoint());
    strata.run(&["apply", "web", "--yes"]).ok();
    let state = repo.read(".strata/state/prod/web/state.json");
    assert!(state.contains("BEGIN AGE ENCRYPTED FILE"), "{state}");
    // Another machine has the state and the age identity, not the file.
    repo.remove(".strata/digest.key");
    strata.run(&["plan", "web", "--detailed-exitcode"]).ok();
    // A new key: every secret counts as changed once.
    strata.run(&["secrets", "rotate", "--digest-key"]).ok();
    let plan = strata.run(&["plan", "web", "--detailed-exitcode"]).code(2);
    assert!(plan.stdout.contains("cloudinit.password"), "{}", plan.all());
    strata.run(&["apply", "web", "--yes"]).ok();
    strata.run(&["plan", "web", "--detailed-exitcode"]).ok();
    // Nobody else can open it.
    repo.remove("age.key");
    let refused = strata.run(&["plan", "web"]).code(1);
    assert!(refused.stderr.contains("error"), "{}", refused.all());
}
