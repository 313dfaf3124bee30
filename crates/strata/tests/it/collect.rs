//! `strata secrets collect`: the plain values of a flat `cluster.yaml` become an encrypted file, and are found there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use strata_testkit::{Output, Repo, Strata, TestSim};

use crate::world::BINARY;

const FILE: &str = "infrastructure/secrets.sops.yaml";
const PASSWORD: &str = "MARKER-91d0-state-password";

/// A repository of the cluster-template family.
struct Family {
    repo: Repo,
}

impl Family {
    fn new() -> Self {
        let repo = Repo::empty();
        repo.write(
            "cluster.yaml",
            &format!(
                "---\nnode_cidr: 192.0.2.0/24\ncluster_api_addr: 192.0.2.40\ncloudflare_token: of-an-application\n\
                 proxmox_api_url: https://192.0.2.10:8006/api2/json\nproxmox_node: pve1\n\
                 proxmox_api_token_id: \"root@pam!tofu\"\nproxmox_api_token_secret: MARKER-token-secret\n\
                 cf_account_id: abc123\ntfstate_password: {PASSWORD} # the worker's\nstate_encryption_passphrase: ''\n"
            ),
        );
        let schematic = "ab".repeat(32);
        repo.write(
            "nodes.yaml",
            &format!(
                "nodes:\n  - {{name: k8s-0, address: 192.0.2.50, controller: true, disk: /dev/sda, mac_addr: \"bc:24:11:00:00:01\", \
                 schematic_id: {schematic}, vm_id: 500}}\n"
            ),
        );
        Self { repo }
    }

    fn on(sim: &TestSim) -> Self {
        let family = Self::new();
        let (id, secret) = sim.token().split_once('=').unwrap();
        family.repo.edit("cluster.yaml", "https://192.0.2.10:8006", &sim.endpoint());
        family.repo.edit("cluster.yaml", "root@pam!tofu", id);
        family.repo.edit("cluster.yaml", "MARKER-token-secret", secret);
        let fingerprint = format!("proxmox_tls_fingerprint: \"{}\"\n---\n", sim.fingerprint());
        family.repo.edit("cluster.yaml", "---\n", &fingerprint.replace("\n---\n", "\n"));
        family.repo.write("strata.yaml", &format!("repository: family\nproxy: http://{}\n", sim.gateway()));
        family
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Strata::new(BINARY, &self.repo).run(arguments)
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.current_dir(self.repo.path()).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", self.repo.path());
        assert!(command.args(arguments).output().unwrap().status.success(), "git {arguments:?}");
    }

    fn plain(&self) -> String {
        self.run(&["secrets", "decrypt", FILE]).ok().stdout
    }

    /// Takes lines out of `cluster.yaml`.
    fn forget(&self, keys: &[&str]) {
        let text = self.repo.read("cluster.yaml");
        let kept = text.lines().filter(|line| !keys.iter().any(|key| line.starts_with(key)));
        self.repo.write("cluster.yaml", &kept.map(|line| format!("{line}\n")).collect::<String>());
    }
}

const ALL: &str = "cf_account_id: abc123
tfstate_username: terraform
tfstate_password: MARKER-91d0-state-password
proxmox_api_token_id: root@pam!tofu
proxmox_api_token_secret: MARKER-token-secret
";

#[test]
fn plain_values_become_an_encrypted_file() {
    let family = Family::new();
    // There is no key, no rule and no strata.yaml yet.
    let first = family.run(&["secrets", "collect"]).ok();
    insta::assert_snapshot!(first.stdout, @"
    made the key `age.key`: keep a copy of it, and keep it out of git
    added a rule for `infrastructure/.*\\.sops\\.ya?ml` to `.sops.yaml`
    encrypted `infrastructure/secrets.sops.yaml`: cf_account_id, tfstate_username, tfstate_password, proxmox_api_token_id, proxmox_api_token_secret
    ");
    assert!(!first.all().contains("MARKER"));
    let mode = fs::metadata(family.repo.file("age.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let key = family.repo.read("age.key");
    let recipient = key.lines().next().unwrap().rsplit(' ').next().unwrap();
    assert_eq!(
        family.repo.read(".sops.yaml"),
        format!(
            "creation_rules:\n  - path_regex: infrastructure/.*\\.sops\\.ya?ml\n    mac_only_encrypted: true\n    age: \"{recipient}\"\n"
        )
    );
    let sealed = family.repo.read(FILE);
    assert!(!sealed.contains("MARKER") && sealed.contains("mac_only_encrypted: true"), "{sealed}");
    assert_eq!(family.plain(), ALL);

    // The same again changes nothing; another value changes that one.
    assert_eq!(family.run(&["secrets", "collect"]).ok().stdout, "nothing changed\n");
    assert_eq!(family.repo.read(FILE), sealed);
    family.repo.edit("cluster.yaml", PASSWORD, "MARKER-another");
    family.run(&["secrets", "collect"]).ok();
    let changed = family.repo.read(FILE);
    let differ: Vec<&str> = changed
        .lines()
        .zip(sealed.lines())
        .filter(|(new, old)| new != old)
        .map(|(new, _)| new.trim().split(':').next().unwrap())
        .filter(|name| *name != "lastmodified")
        .collect();
    assert_eq!(differ, ["tfstate_password", "mac"]);

    // What cluster.yaml no longer says stays; what has no use without Proxmox goes.
    family.forget(&["cf_account_id", "tfstate_password", "proxmox_api_token_secret"]);
    assert_eq!(family.run(&["secrets", "collect"]).ok().stdout, "nothing changed\n");
    family.forget(&["proxmox_node"]);
    family.run(&["secrets", "collect"]).ok();
    assert_eq!(
        family.plain(),
        "cf_account_id: abc123\ntfstate_username: terraform\ntfstate_password: MARKER-another\n"
    );
}

#[test]
fn comments_and_other_values_of_the_encrypted_file_stay() {
    let family = Family::new();
    family.run(&["secrets", "collect"]).ok();
    let plain = family.plain().replace("cf_account_id", "# ours\nextra:\n  - one\ncf_account_id");
    family.repo.write(FILE, &plain);
    family.run(&["secrets", "encrypt", FILE]).ok();
    family.repo.edit("cluster.yaml", "abc123", "def456");
    family.run(&["secrets", "collect"]).ok();
    assert_eq!(family.plain(), plain.replace("abc123", "def456"));
}

#[test]
fn the_rule_is_added_to_a_repository_of_strata_init() {
    let family = Family::new();
    family.run(&["init", "."]).ok();
    let own = family.repo.read("age.key");
    let output = family.run(&["secrets", "collect"]).ok();
    assert!(
        output.stderr.contains("add `- sops: infrastructure/secrets.sops.yaml` under `secrets`"),
        "{}",
        output.all()
    );
    assert_eq!(family.repo.read("age.key"), own, "the key is the one that is there");
    let rules = family.repo.read(".sops.yaml");
    assert!(rules.starts_with("creation_rules:\n  - path_regex: infrastructure/"), "{rules}");
    assert!(rules.contains("  - path_regex: \\.sops\\.ya?ml$\n"), "{rules}");
    assert!(family.repo.read(FILE).contains("mac_only_encrypted: true"));
    assert_eq!(family.plain(), ALL);
    family.repo.edit("strata.yaml", "secrets:\n", "secrets:\n  - sops: infrastructure/secrets.sops.yaml\n");
    assert_eq!(family.run(&["secrets", "collect"]).ok().all(), "nothing changed\n");
}

#[test]
fn a_file_that_git_tracks_is_refused() {
    let family = Family::new();
    family.git(&["init", "-q"]);
    let warned = family.run(&["secrets", "collect"]).ok();
    assert!(warned.stderr.contains("git does not ignore"), "{}", warned.all());
    family.git(&["add", "cluster.yaml"]);
    let refused = family.run(&["secrets", "collect"]).code(3);
    let text = refused.stderr.replace(&family.repo.path().display().to_string(), "REPO");
    insta::assert_snapshot!(text, @"
    error: git tracks `REPO/cluster.yaml`, which has secrets in the clear: `cf_account_id`, `tfstate_username`, `tfstate_password`, `proxmox_api_token_id`, `proxmox_api_token_secret`
      hint: `git rm --cached cluster.yaml` and a line `cluster.yaml` in .gitignore keep it out of git
      hint: whoever has the history knows these secrets: change them where they are used
    ");
    family.git(&["rm", "-q", "--cached", "cluster.yaml"]);
    family.repo.write(".gitignore", "cluster.yaml\nage.key\n");
    assert_eq!(family.run(&["secrets", "collect"]).ok().all(), "nothing changed\n");
}

#[test]
fn other_files_are_left_alone() {
    let family = Family::new();
    family.repo.write("cluster.yaml", "cluster: {talos: {version: v1.13.0}}\n");
    let refused = family.run(&["secrets", "collect"]).code(1);
    assert!(refused.stderr.contains("not a flat `cluster.yaml`"), "{}", refused.all());
    family.repo.write("cluster.yaml", "node_cidr: [\ntfstate_password: MARKER\n");
    let broken = family.run(&["secrets", "collect"]).code(1);
    assert!(broken.stderr.contains("cluster.yaml") && !broken.stderr.contains("MARKER"), "{}", broken.all());
    assert!(!family.repo.file(FILE).exists());
}

#[test]
fn a_cluster_of_the_family_is_applied_with_what_was_collected() {
    let sim = TestSim::start();
    let before = sim.export();
    let family = Family::on(&sim);
    // As it is, with everything in the clear.
    let plan = family.run(&["plan"]).ok();
    assert!(plan.stdout.contains("VM 500 on pve1"), "{}", plan.all());
    let collected = family.run(&["secrets", "collect"]).ok();
    assert!(
        collected.stdout.contains("listed `infrastructure/secrets.sops.yaml` in `strata.yaml`"),
        "{}",
        collected.all()
    );
    // The token is found in the encrypted file, by itself and by name.
    family.forget(&["proxmox_api_token"]);
    family.run(&["apply", "--yes"]).ok();
    family.run(&["plan", "--detailed-exitcode"]).ok();
    let text = family.repo.read("cluster.yaml");
    let named = "proxmox_api_token_id: {secret: proxmox_api_token_id}\nproxmox_api_token_secret: {secret: proxmox_api_token_secret}\n";
    family.repo.write("cluster.yaml", &format!("{text}{named}"));
    family.run(&["plan", "--detailed-exitcode"]).ok();
    // New keys for everything in one command, and it still works.
    let sealed = family.repo.read(FILE);
    family.run(&["secrets", "rotate"]).ok();
    let rotated = family.repo.read(FILE);
    assert!(sealed.lines().zip(rotated.lines()).take(5).all(|(old, new)| old != new), "{rotated}");
    family.run(&["plan", "--detailed-exitcode"]).ok();
    family.run(&["destroy", "--yes"]).ok();
    assert_eq!(sim.export(), before);
    // Without a token anywhere it is said what is missing, and where it goes.
    family.repo.write("cluster.yaml", &text);
    family.repo.write("strata.yaml", "repository: family\n");
    let missing = family.run(&["plan"]).code(1);
    insta::assert_snapshot!(missing.stderr, @"
    error: the cluster `kubernetes` has no API token of its Proxmox: there is no secret `proxmox_api_token_secret` in the repository, which lists no secrets
      --> cluster.yaml
      hint: write `proxmox_api_token_id` and `proxmox_api_token_secret` into it; `strata secrets collect` encrypts them
    ");
}

#[test]
#[ignore = "needs sops: just interop sops"]
fn sops_and_strata_take_turns() {
    let family = Family::new();
    family.run(&["secrets", "collect"]).ok();
    let sops = |arguments: &[&str]| {
        let program = std::env::var("STRATA_SOPS").unwrap_or_else(|_| "sops".to_owned());
        let mut command = Command::new(program);
        command.current_dir(family.repo.path()).env("SOPS_AGE_KEY_FILE", "age.key").args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(sops(&["decrypt", FILE]), ALL);
    sops(&["set", FILE, "[\"cf_account_id\"]", "\"theirs\""]);
    assert_eq!(family.plain(), ALL.replace("abc123", "theirs"));
    family.run(&["secrets", "collect"]).ok();
    assert_eq!(sops(&["decrypt", FILE]), ALL);
    // `sops` takes the same rule for new files.
    family.repo.write("infrastructure/other.sops.yaml", "a: b\n");
    sops(&["encrypt", "--in-place", "infrastructure/other.sops.yaml"]);
    assert_eq!(family.run(&["secrets", "decrypt", "infrastructure/other.sops.yaml"]).ok().stdout, "a: b\n");
}
