//! `strata adopt`: guests that were made by hand get their YAML, their records and their ownership marks, and nothing else happens to them.

use serde_json::{Value, json};
use strata_testkit::{Repo, Strata, TestSim};

use crate::world::BINARY;

const STACK: &str = "\
# Everything that serves the web.
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1}   # one node for now

vms:
  # kept from the old days
  first:
    vmId: 9100
    memory: 1024
    disks: {scsi0: {size: 4}}
    started: false
";

struct World {
    sim: TestSim,
    repo: Repo,
}

impl World {
    fn new() -> Self {
        let sim = TestSim::start();
        let repo = Repo::on(&sim);
        repo.write("stacks/web/stack.yaml", STACK);
        Self { sim, repo }
    }

    fn strata(&self) -> Strata {
        Strata::new(BINARY, &self.repo)
    }

    fn post(&self, path: &str, params: Value) {
        let answer = self.sim.control().change(&json!({"method": "POST", "path": path, "params": params}));
        assert_eq!(answer["status"], 200, "{answer}");
    }

    /// A VM as people make them: by clicking, over years.
    fn hand_made(&self, vmid: u32) {
        self.post(
            "/nodes/pve2/qemu",
            json!({
                "vmid": vmid, "name": "db", "memory": 4096, "cores": 2, "sockets": 2, "cpu": "host", "scsi0": "local-lvm:32,ssd=1,mbps_rd=100",
                "virtio1": "tank:8", "net0": "virtio=BC:24:11:AA:00:01,bridge=vmbr1,tag=30,firewall=1", "agent": 1, "onboot": 1,
                "tags": "Prod;db", "description": "The database.\nAsk Ann: ünï", "boot": "order=scsi0;net0", "vga": "std",
                "args": "-device foo", "rng0": "source=/dev/urandom", "ide2": "none,media=cdrom",
            }),
        );
        self.sim.control().change(&json!({"power": {"vmid": vmid, "running": true}}));
        let firewall = format!("/nodes/pve2/qemu/{vmid}/firewall");
        let options = json!({"enable": 1, "policy_in": "DROP"});
        self.sim
            .control()
            .change(&json!({"method": "PUT", "path": format!("{firewall}/options"), "params": options}));
        self.post(
            &format!("{firewall}/rules"),
            json!({"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "5432", "enable": 1, "comment": "postgres"}),
        );
    }

    /// Kills a run at its k-th request. False if it ended before it came that far.
    fn kill_at(&self, kind: &str, k: u64, arguments: &[&str]) -> bool {
        self.strata().kill_at(&self.sim.control(), &json!({"kind": kind, "nth": k}), arguments).struck
    }

    fn guest(&self, vmid: u32) -> Value {
        let export = self.sim.export();
        let mut guests = export["guests"].as_array().unwrap().iter();
        guests.find(|guest| guest["vmid"] == vmid).cloned().unwrap_or_default()
    }

    fn assert_empty_plan(&self) {
        let plan = self.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{}", plan.all());
    }
}

/// Without what an adoption may change.
fn but_notes(mut guest: Value) -> Value {
    guest["config"].as_object_mut().unwrap().remove("description");
    guest["config"].as_object_mut().unwrap().remove("digest");
    guest
}

#[test]
fn a_vm_made_by_hand_is_adopted_as_it_is() {
    let world = World::new();
    assert_eq!(world.strata().run(&["apply", "--yes"]).code, 0);
    world.hand_made(9110);
    let before = world.guest(9110);

    let dry = world.strata().run(&["adopt", "web/vm/db=9110", "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.all());
    assert_eq!(world.repo.read("stacks/web/stack.yaml"), STACK);
    let asked = world.strata().run(&["adopt", "web/vm/db=9110"]);
    assert_eq!(asked.code, 3, "{}", asked.all());

    let adopted = world.strata().run(&["adopt", "web/vm/db=9110", "--yes"]);
    assert_eq!(adopted.code, 0, "{}", adopted.all());
    insta::assert_snapshot!(adopted.stdout, @r#"
    stacks/web/stack.yaml
      …
            memory: 1024
            disks: {scsi0: {size: 4}}
            started: false
      +   db:
      +     vmId: 9110
      +     node: pve2
      +     tags: [db, prod]
      +     notes: |-
      +       The database.
      +       Ask Ann: ünï
      +     onboot: true
      +     firewall:
      +       policyIn: DROP
      +       rules:
      +         - {direction: in, action: ACCEPT, comment: postgres, protocol: tcp, destinationPort: 5432}
      +     cores: 2
      +     sockets: 2
      +     cpu: host
      +     memory: 4096
      +     osType: other
      +     scsiController: lsi
      +     disks:
      +       scsi0: {size: 32, ssd: true, options: {mbps_rd: 100}}
      +       virtio1: {size: 8, storage: tank}
      +     network: [{bridge: vmbr1, mac: BC:24:11:AA:00:01, vlan: 30}]
      +     vga: std
      +     agent: true
      +     bootOrder: [scsi0, net0]
      +     options: {args: "-device foo", rng0: source=/dev/urandom}
    = web/vm/db  VM 9110 `db` on `pve2`
    adopted: 1 guest, 1 marked; the plan of what was adopted is empty
    "#);
    assert!(
        adopted.stderr.contains("the empty CD drive `ide2` has no key in the YAML"),
        "{}",
        adopted.stderr
    );
    let text = world.repo.read("stacks/web/stack.yaml");
    assert!(text.starts_with(STACK), "{text}");
    let after = world.guest(9110);
    let notes = after["config"]["description"].as_str().unwrap();
    assert!(notes.starts_with("The database.\nAsk Ann: ünï\n"), "{notes}");
    assert!(notes.contains("strata:") && notes.contains("web/vm/db vmid=9110"), "{notes}");
    assert_eq!(but_notes(after), but_notes(before));
    world.assert_empty_plan();

    // Again there is nothing to do, and nothing is written.
    let again = world.strata().run(&["adopt", "web/vm/db=9110", "--yes"]);
    assert_eq!(again.code, 0, "{}", again.all());
    assert_eq!(world.repo.read("stacks/web/stack.yaml"), text);

    // Only what was adopted goes when it leaves the source.
    world.repo.write("stacks/web/stack.yaml", STACK);
    assert_eq!(world.strata().run(&["apply", "--yes"]).code, 0);
    assert_eq!(world.guest(9110), Value::Null);
    assert_eq!(world.guest(9100)["vmid"], 9100);
}

#[test]
fn without_a_mark_the_notes_stay_and_the_state_is_enough() {
    let world = World::new();
    world.hand_made(9110);
    let before = world.guest(9110);
    let adopted =
        world.strata().run(&["adopt", "--target", "pve", "9110", "--as", "data/vm/db", "--no-mark", "--yes"]);
    assert_eq!(adopted.code, 0, "{}", adopted.all());
    assert_eq!(world.guest(9110), before);
    let text = world.repo.read("stacks/data/stack.yaml");
    assert!(
        text.starts_with("proxmox:\n  target: pve\n  node: pve2\nvms:\n  db:\n    vmId: 9110\n"),
        "{text}"
    );
    let plan = world.strata().run(&["plan", "data", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{}", plan.all());
    // The mark can come later.
    let adopted = world.strata().run(&["adopt", "data/vm/db=9110", "--yes"]);
    assert_eq!(adopted.code, 0, "{}", adopted.all());
    assert!(world.guest(9110)["config"]["description"].as_str().unwrap().contains("data/vm/db vmid=9110"));
}

#[test]
fn what_must_not_be_adopted_is_refused_with_the_reason() {
    let world = World::new();
    world.hand_made(9110);
    let refused = |arguments: &[&str]| {
        let all: Vec<&str> = ["adopt", "--yes"].iter().chain(arguments).copied().collect();
        let run = world.strata().run(&all);
        assert_ne!(run.code, 0, "{}", run.all());
        assert_eq!(world.repo.read("stacks/web/stack.yaml"), STACK);
        run.stderr
    };
    let edit = |set: Value| world.sim.control().change(&json!({"edit": {"vmid": 9110, "set": set}}));
    let mut told = vec![
        refused(&["web/vm/db=9999"]),
        refused(&["web/container/db=9110"]),
        refused(&["web/vm/first=9110"]),
        refused(&["web/vm/db"]),
    ];
    edit(json!({"description": "strata: 00112233445566778899aabbccddeeff web/vm/other vmid=9110"}));
    told.push(refused(&["web/vm/db=9110"]));
    edit(json!({"description": "strata: 00112233445566778899aabbccddeeff web/vm/other vmid=9000"}));
    told.push(refused(&["web/vm/db=9110"]));
    edit(json!({"description": "", "lock": "backup"}));
    told.push(refused(&["web/vm/db=9110"]));
    insta::assert_snapshot!(told.concat(), @r"
    error: `web/vm/db`: `pve` has no guest with the VMID 9999
      hint: its login may lack the right to see it: `VM.Audit` on the guest
    error: `web/container/db` names a container; VM 9110 `db` on `pve2` is none
      hint: write `web/vm/db`
    error: `web/vm/first` is in the source already, with the VMID 9100
      hint: name another address
    error: `web/vm/db` does not say as what the guest is adopted
      hint: write `ADDRESS=VMID`, such as `web/vm/db=9110`, or name the address with `--as`
    error: `web/vm/db`: VM 9110 `db` on `pve2` carries the ownership mark of another repository, as `web/vm/other`
      hint: remove it from the state there, and the line from its notes; then adopt it
    error: `web/vm/db`: VM 9110 `db` on `pve2` is a copy: it carries the ownership mark of VMID 9000
      hint: remove that line from its notes, then adopt it
    error: `web/vm/db`: VM 9110 `db` on `pve2` is locked (backup)
      hint: wait until its task has ended, then adopt it; `qm unlock 9110` on `pve2` frees it where no task works on it any more
    ");
}

/// Containers, cloud-init, passthrough, raw keys: what the plan then compares is all there.
#[test]
fn odd_guests_are_adopted_together() {
    let world = World::new();
    world.sim.control().change(&json!({"volume": {
        "volid": "local:vztmpl/debian.tar.zst", "node": "pve1", "size": 1000, "content": "vztmpl",
    }}));
    world.post(
        "/nodes/pve1/lxc",
        json!({
            "vmid": 9201, "hostname": "dns", "ostemplate": "local:vztmpl/debian.tar.zst", "rootfs": "local-lvm:6", "unprivileged": 1,
            "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:AA:00:09,ip=192.0.2.53/24,gw=192.0.2.1", "cores": 2, "memory": 768, "swap": 0,
            "features": "nesting=1", "nameserver": "192.0.2.1", "tags": "dns", "mp0": "local-lvm:2,mp=/data,backup=1",
        }),
    );
    world.post(
        "/nodes/pve1/qemu",
        json!({
            "vmid": 9301, "name": "old", "ide0": "local-lvm:3", "sata1": "local-lvm:2,backup=0", "net1": "e1000=BC:24:11:AA:00:11,bridge=vmbr0",
            "ide2": "local-lvm:cloudinit", "ciuser": "root", "ipconfig1": "ip=dhcp", "searchdomain": "example.org", "cpu": "kvm64,flags=+aes",
            "bios": "seabios", "hotplug": "disk,network", "startup": "order=3,up=20", "serial0": "socket", "balloon": 0, "kvm": 0,
        }),
    );
    let adopted = world.strata().run(&["adopt", "odd/container/dns=9201", "odd/vm/old=9301", "--yes"]);
    assert_eq!(adopted.code, 0, "{}\n{}", adopted.all(), world.guest(9201));
    let plan = world.strata().run(&["plan", "odd", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{}", plan.all());
    let text = world.repo.read("stacks/odd/stack.yaml");
    for part in
        ["mountPoints:", "features: {nesting: true}", "cloudInit: {user: root", "options: {kvm: 0}", "net1:"]
    {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    assert!(adopted.stderr.contains("set `image` before it may be recreated"), "{}", adopted.stderr);
}

/// Whatever a run was killed at, the next one finishes it.
#[test]
fn killed_at_every_request_an_adoption_converges() {
    let reference = World::new();
    reference.hand_made(9110);
    let before = reference.guest(9110);
    let adopt = ["adopt", "web/vm/db=9110", "--yes"];
    assert_eq!(reference.strata().run(&adopt).code, 0);
    let marked = reference.guest(9110)["config"]["description"].clone();
    let text = reference.repo.read("stacks/web/stack.yaml");
    for kind in ["hold-before", "hold-after"] {
        let killed = (1..100).take_while(|request| {
            let world = World::new();
            world.hand_made(9110);
            let struck = world.kill_at(kind, *request, &adopt);
            let what = format!("{kind} {request}");
            let again = world.strata().run(&adopt);
            assert_eq!(again.code, 0, "{what}: {}", again.all());
            assert_eq!(world.repo.read("stacks/web/stack.yaml"), text, "{what}");
            let guest = world.guest(9110);
            assert_eq!(guest["config"]["description"], marked, "{what}");
            assert_eq!(but_notes(guest), but_notes(before.clone()), "{what}");
            let plan = world.strata().run(&["plan", "web"]).ok();
            assert!(!plan.all().contains("web/vm/db"), "{what}: {}", plan.all());
            struck
        });
        assert!(killed.count() > 5);
    }
}
