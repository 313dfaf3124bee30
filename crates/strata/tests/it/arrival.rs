//! `strata import --state`: what OpenTofu built is taken over as it is, and the plan is empty after.
//!
//! The state and the machines are those that the real OpenTofu with bpg/proxmox made of tests/interop/tofu/arrive.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use strata_testkit::{Repo, Strata, TestSim};

use crate::world::BINARY;

const STATE: &str = include_str!("fixtures/tofu/terraform.tfstate");
const BUILT: &str = include_str!("fixtures/tofu/built.json");
/// What the state has in the clear.
const PASSWORD: &str = "s3cret-word";
const TEMPLATE: &str = "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst";

/// The datacenter as OpenTofu left it.
fn built() -> TestSim {
    let sim = TestSim::start();
    let control = sim.control();
    let found: Value = serde_json::from_str(BUILT).unwrap();
    for volume in found["volumes"].as_array().unwrap() {
        control.change(&json!({"volume": volume}));
    }
    control.change(&json!({"method": "POST", "path": "/pools", "params": {"poolid": "spare"}}));
    let office = json!({"name": "office", "cidr": "198.51.100.0/24"});
    control.change(&json!({"method": "POST", "path": "/cluster/firewall/aliases", "params": office}));
    for guest in found["guests"].as_array().unwrap() {
        let (vmid, node, kind) =
            (&guest["vmid"], guest["node"].as_str().unwrap(), guest["type"].as_str().unwrap());
        let params = match kind {
            "lxc" => json!({"vmid": vmid, "ostemplate": TEMPLATE, "rootfs": "local-lvm:4"}),
            _ => json!({"vmid": vmid}),
        };
        control.change(&json!({"method": "POST", "path": format!("/nodes/{node}/{kind}"), "params": params}));
        control.change(&json!({"edit": {"vmid": vmid, "set": guest["config"]}}));
        if guest["pool"].is_string() {
            let path = format!("/pools/{}", guest["pool"].as_str().unwrap());
            control.change(&json!({"method": "PUT", "path": path, "params": {"vms": vmid.to_string()}}));
        }
        control.change(&json!({"power": {"vmid": vmid, "running": guest["power"] == "running"}}));
        let Some(firewall) = found["firewall"].get(format!("guest/{vmid}")) else { continue };
        let path = format!("/nodes/{node}/{kind}/{vmid}/firewall");
        control.change(
            &json!({"method": "PUT", "path": format!("{path}/options"), "params": firewall["options"]}),
        );
        // A new rule comes first.
        for rule in firewall["rules"].as_array().unwrap().iter().rev() {
            control.change(&json!({"method": "POST", "path": format!("{path}/rules"), "params": rule}));
        }
    }
    sim
}

/// The user's shell, in which OpenTofu worked a moment ago.
fn strata(repo: &Repo, sim: &TestSim) -> Strata {
    repo.write("project/terraform.tfstate", STATE);
    Strata::new(BINARY, repo)
        .env("PROXMOX_VE_ENDPOINT", &sim.endpoint())
        .env("PROXMOX_VE_API_TOKEN", sim.token())
        .env("PROXMOX_VE_INSECURE", "true")
}

const IMPORT: [&str; 5] = ["-C", "new", "import", "--state", "project/terraform.tfstate"];

#[test]
fn a_state_becomes_a_repository_whose_plan_is_empty() {
    let (sim, repo) = (built(), Repo::empty());
    let strata = strata(&repo, &sim);
    let before = sim.export();
    let imported = strata.run(&IMPORT).ok();
    assert!(
        imported
            .stdout
            .contains("12 taken over, 0 known before, 0 left alone; the plan of these stacks is empty"),
        "{}",
        imported.all()
    );
    assert!(imported.stderr.contains("note: proxmox_download_file.spare: "), "{}", imported.all());
    let plan = strata.run(&["-C", "new", "plan", "--detailed-exitcode"]).ok();
    assert!(plan.stdout.contains("nothing to do"), "{}", plan.all());
    strata.run(&["-C", "new", "drift"]).ok();
    strata.run(&["-C", "new", "validate"]).ok();
    assert_eq!(sim.export(), before, "an import changes nothing on the hypervisor");
    repo.remove("project/terraform.tfstate");
    for (path, bytes) in repo.all_files() {
        assert!(!String::from_utf8_lossy(&bytes).contains(PASSWORD), "{} holds the password", path.display());
    }
    assert!(!imported.all().contains(PASSWORD));
    let secrets = strata.run(&["-C", "new", "secrets", "decrypt", "secrets.sops.yaml"]).ok();
    assert!(secrets.stdout.contains(&format!("password_7200: {PASSWORD}")), "{}", secrets.stdout);
}

#[test]
fn a_second_import_does_nothing() {
    let (sim, repo) = (built(), Repo::empty());
    let strata = strata(&repo, &sim);
    strata.run(&IMPORT).ok();
    let before: Vec<_> = repo.all_files();
    let again = strata.run(&IMPORT).ok();
    assert!(
        again
            .stdout
            .contains("0 taken over, 12 known before, 0 left alone; the plan of these stacks is empty"),
        "{}",
        again.all()
    );
    assert_eq!(repo.all_files(), before);
}

#[test]
fn what_was_taken_over_is_changed_marked_and_destroyed_like_anything_else() {
    let (sim, repo) = (built(), Repo::empty());
    let strata = strata(&repo, &sim);
    strata.run(&IMPORT).ok();
    // The first change brings the mark along.
    repo.edit("new/stacks/imported/stack.yaml", "memory: 4096", "memory: 6144");
    let plan = strata.run(&["-C", "new", "plan"]).ok();
    assert!(plan.stdout.contains("1 to change") && plan.stdout.contains("mark"), "{}", plan.all());
    strata.run(&["-C", "new", "apply", "--yes"]).ok();
    let guests = sim.export()["guests"].clone();
    let marked = |vmid: u64| {
        let guest = guests.as_array().unwrap().iter().find(|guest| guest["vmid"] == vmid).unwrap();
        guest["config"]["description"].as_str().unwrap_or_default().contains("strata: ")
    };
    assert!(marked(7120) && !marked(7130));
    strata.run(&["-C", "new", "plan", "--detailed-exitcode"]).ok();
    // What Proxmox protects stays; all else is ours to destroy, marked or not.
    repo.edit("new/stacks/imported/stack.yaml", "protection: true", "protection: false");
    strata.run(&["-C", "new", "apply", "--yes"]).ok();
    strata.run(&["-C", "new", "destroy", "--yes"]).ok();
    assert_eq!(sim.export()["guests"], json!([]));
}

#[test]
fn without_a_server_the_repository_is_written_and_taken_over_later() {
    let (sim, repo) = (built(), Repo::empty());
    let lonely = Strata::new(BINARY, &repo);
    repo.write("project/terraform.tfstate", STATE);
    let first = lonely.run(&IMPORT).ok();
    assert!(first.stdout.contains("next: set endpoint and token"), "{}", first.all());
    repo.edit("new/strata.yaml", "https://proxmox.example:8006", &sim.endpoint());
    repo.edit(
        "new/strata.yaml",
        "      token:\n        secret: proxmox_api_token\n",
        "      token: {env: TOKEN}\n      tls: {insecure: true}\n",
    );
    let strata = lonely.env("TOKEN", sim.token());
    let second = strata.run(&IMPORT).ok();
    assert!(
        second.stdout.contains("12 taken over") && second.stdout.contains("is empty"),
        "{}",
        second.all()
    );
}

#[test]
fn a_dry_run_writes_nothing() {
    let (sim, repo) = (built(), Repo::empty());
    let strata = strata(&repo, &sim);
    let before = repo.all_files();
    let said = strata.run(&["-C", "new", "import", "--dry-run", "--state", "project/terraform.tfstate"]).ok();
    assert!(
        said.stdout.contains("stacks/imported/stack.yaml") && said.stdout.contains("nothing was written"),
        "{}",
        said.all()
    );
    assert_eq!(repo.all_files(), before);
}

/// A repository that has some of the machines, written by hand.
const SOURCE: &str = "
proxmox: {target: pve, node: pve1}
vms:
  rescue:
    vmId: 7130
    cores: 2
    cpu: qemu64
    memory: 512
    osType: other
    scsiController: virtio-scsi-pci
    disks: {sata0: {storage: local-lvm, size: 4}, ide2: {iso: 'local:iso/systemrescue-12.02-amd64.iso'}}
    network: [{bridge: vmbr1, mac: 'BC:24:11:69:61:29'}]
";

#[test]
fn machines_are_matched_with_the_repository_and_its_differences_are_told() {
    let sim = built();
    let repo = Repo::on(&sim);
    repo.write("stacks/web/stack.yaml", SOURCE);
    repo.write("terraform.tfstate", STATE);
    let strata = Strata::new(BINARY, &repo);
    // Without the state of OpenTofu it is unmanaged.
    strata.run(&["plan"]).code(3);
    let imported = strata.run(&["import", "--state", "terraform.tfstate"]).ok();
    assert!(
        imported.stdout.contains("= web/vm/rescue  from proxmox_virtual_environment_vm.rescue"),
        "{}",
        imported.all()
    );
    assert!(
        imported.stderr.contains("`web/vm/rescue` differs from the source in `cpu.cores`"),
        "{}",
        imported.all()
    );
    let unknown =
        "note: proxmox_virtual_environment_vm.secure: no machine of the repository has the VMID 7120";
    assert!(imported.stderr.contains(unknown), "{}", imported.all());
    let plan = strata.run(&["plan"]).ok();
    assert!(plan.stdout.contains("1 to change") && !plan.stdout.contains("drift"), "{}", plan.all());
    repo.edit("stacks/web/stack.yaml", "    cores: 2\n", "");
    strata.run(&["plan", "--detailed-exitcode"]).ok();
}

#[test]
fn another_machine_under_the_same_number_is_not_taken_for_it() {
    let sim = built();
    let repo = Repo::on(&sim);
    repo.write("stacks/web/stack.yaml", SOURCE);
    repo.write("terraform.tfstate", STATE);
    let net = "virtio=BC:24:11:00:00:01,bridge=vmbr1";
    sim.control().change(&json!({"edit": {"vmid": 7130, "set": {"net0": net}}}));
    let strata = Strata::new(BINARY, &repo);
    let imported = strata.run(&["import", "--state", "terraform.tfstate"]).ok();
    assert!(
        imported.stderr.contains(
            "not taken over as `web/vm/rescue`: VM 7130 `rescue` on `pve1`: its hardware address is"
        ),
        "{}",
        imported.all()
    );
    strata.run(&["plan"]).code(3);
    assert!(strata.run(&["state", "list"]).ok().stdout.is_empty());
}

#[test]
fn what_cannot_be_read_is_refused_with_what_helps() {
    let repo = Repo::empty();
    let strata = Strata::new(BINARY, &repo);
    let refused = |text: &str, says: &str| {
        repo.write("x.tfstate", text);
        let said = strata.run(&["import", "--state", "x.tfstate"]).code(1);
        assert!(said.stderr.contains(says), "{}", said.all());
    };
    refused(
        "{\"serial\": 1, \"lineage\": \"a\", \"meta\": {}, \"encrypted_data\": \"eHh4\", \"encryption_version\": \"v0\"}",
        "tofu state pull | strata import --state -",
    );
    refused(
        "{\"version\": 3, \"serial\": 4, \"modules\": [{\"path\": [\"root\"]}]}",
        "its format is version 3",
    );
    refused(&STATE[..STATE.len() / 2], "it ends in the middle");
    refused("", "it is empty");
    refused("name = \"x\"\n", "it is no JSON");
    refused("{\"version\": 4, \"serial\": 1, \"resources\": []}", "nothing that Strata could take over");
    assert!(!repo.file("strata.yaml").exists());
    strata.run(&["import", "--state", "missing.tfstate"]).code(1);
    strata.run(&["import"]).code(64);
}

#[test]
fn a_state_can_be_piped() {
    let (sim, repo) = (built(), Repo::empty());
    let strata = strata(&repo, &sim);
    let mut child = strata
        .command(&["-C", "new", "import", "--state", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(STATE.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("12 taken over"));
}
