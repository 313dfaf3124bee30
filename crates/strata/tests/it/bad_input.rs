//! What goes wrong before anything is done: each message says what, where and what next.

use serde_json::json;
use strata_testkit::{Output, Repo, Strata};

use crate::world::{BINARY, STACK, World};

/// A stack of one VM, for mistakes that need no more.
const ONE: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
vms:
  app:
    vmId: 9100
    memory: 1024
    disk: {storage: local-lvm, size: 4}
    started: false
"#;

/// What a person reads, without what differs from run to run.
pub(crate) fn shown(world: &World, output: &Output) -> String {
    let text = output.stderr.replace(&world.sim.endpoint(), "ENDPOINT");
    let text = text.replace(&world.sim.endpoint().replace("https://", ""), "HOST:PORT");
    let text = text.replace(&world.sim.fingerprint(), "FINGERPRINT");
    // How long something took.
    let untimed = |line: &str| match line.rsplit_once(' ') {
        Some((line, "s")) => format!("{} …\n", line.rsplit_once(' ').map_or(line, |(line, _)| line)),
        _ => format!("{line}\n"),
    };
    text.lines().map(untimed).collect()
}

fn as_root(world: &World, method: &str, path: &str, params: &serde_json::Value) -> serde_json::Value {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{method} {path}: {answer}");
    answer["data"].clone()
}

#[test]
fn a_folder_that_is_no_repository() {
    let repo = Repo::empty();
    let output = Strata::new(BINARY, &repo).run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @r"
    error: there is no `strata.yaml` in `.` or above it
      hint: `strata init` makes a repository; `-C DIR` names another folder
    ");
}

#[test]
fn a_wrong_token() {
    let world = World::instant(ONE);
    world.repo.write("sim-token", "strata@pve!demo=00000000-0000-0000-0000-000000000000");
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(shown(&world, &output), @"
    error: target `pve`: cannot list the storages: Authentication failed!
      --> strata.yaml:5
      hint: check the token's user, name and secret, and that neither it nor its user has expired
    ");
    // One that is not even a token.
    world.repo.write("sim-token", "strata@pve");
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(shown(&world, &output), @"
    error: target `pve`: the API token does not have the form `user@realm!name=uuid`
      --> strata.yaml:5
    ");
}

#[test]
fn a_wrong_fingerprint() {
    let world = World::instant(ONE);
    let own = world.sim.fingerprint();
    let other = own.replace(&own[..5], if own.starts_with("00:11") { "22:33" } else { "00:11" });
    world.repo.edit("strata.yaml", &own, &other);
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(shown(&world, &output).replace(&other, "OTHER"), @r#"
    error: target `pve`: cannot list the storages: the certificate of `HOST:PORT` is not the pinned one: it has the fingerprint FINGERPRINT, pinned is OTHER
      --> strata.yaml:5
      hint: if the certificate was renewed, check the new one on the server and set `tls.fingerprint: "FINGERPRINT"`
    "#);
}

#[test]
fn a_certificate_that_nobody_vouches_for() {
    let world = World::instant(ONE);
    let own = format!("      tls: {{fingerprint: \"{}\"}}\n", world.sim.fingerprint());
    world.repo.edit("strata.yaml", &own, "");
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(shown(&world, &output), @r#"
    error: target `pve`: cannot list the storages: the certificate of `HOST:PORT` cannot be verified: invalid peer certificate: UnknownIssuer; its fingerprint is FINGERPRINT
      --> strata.yaml:5
      hint: compare the fingerprint with the one that the server shows, then set `tls.fingerprint: "FINGERPRINT"`, or name its CA with `tls.ca`
    "#);
}

#[test]
fn d5_an_endpoint_that_is_down() {
    let world = World::instant(ONE);
    world.repo.edit("strata.yaml", &world.sim.endpoint(), "https://127.0.0.1:9");
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error: target `pve`: cannot list the storages: cannot connect to `127.0.0.1:9`: Connection refused (os error 111)
      --> strata.yaml:5
      hint: check the endpoint's address and port, and that the machine is up
    ");
}

#[test]
fn d5_an_endpoint_without_tls() {
    let world = World::instant(ONE);
    world.repo.edit("strata.yaml", "https://", "http://");
    let told = world.strata().run(&["plan"]).code(1).stderr;
    assert!(told.contains("must be https: Proxmox serves its API over TLS alone"), "{told}");
    assert!(told.contains("--> strata.yaml:5"), "{told}");
    assert!(told.contains("hint: write `https://127.0.0.1:"), "{told}");
}

#[test]
fn a_privilege_that_is_missing() {
    let world = World::instant(ONE);
    as_root(
        &world,
        "POST",
        "/access/roles",
        &json!({"roleid": "Few", "privs": "VM.Audit,Datastore.Audit,Sys.Audit"}),
    );
    as_root(&world, "POST", "/access/users", &json!({"userid": "few@pve"}));
    as_root(&world, "PUT", "/access/acl", &json!({"path": "/", "users": "few@pve", "roles": "Few"}));
    let token = as_root(&world, "POST", "/access/users/few@pve/token/few", &json!({"privsep": 0}));
    world.repo.write("sim-token", &format!("few@pve!few={}", token["value"].as_str().unwrap()));
    let before = world.export();
    for arguments in [&["plan"][..], &["apply", "--yes"]] {
        let told = world.strata().run(arguments).code(3).stdout;
        for missing in [
            "`Datastore.AllocateSpace` is missing on `/storage/local-lvm`: it is needed to make the disks of `web/vm/app`",
            "`VM.Allocate` is missing on `/vms/9100`: it is needed to create `web/vm/app`",
            "`VM.Config.CPU` is missing on `/vms/9100`: it is needed to configure `web/vm/app`",
            "`VM.Config.Disk` is missing on `/vms/9100`: it is needed to configure `web/vm/app`",
            "`VM.Config.HWType` is missing on `/vms/9100`: it is needed to configure `web/vm/app`",
            "`VM.Config.Memory` is missing on `/vms/9100`: it is needed to configure `web/vm/app`",
            "`VM.Config.Options` is missing on `/vms/9100`: it is needed to configure `web/vm/app`",
        ] {
            assert!(told.contains(&format!("✗ web/vm/app: the privilege {missing}")), "{missing}: {told}");
        }
        assert_eq!(told.matches("--> stacks/web/stack.yaml:5").count(), 7, "{told}");
        assert!(
            told.contains("hint: `strata doctor --role` prints a role with everything that is needed"),
            "{told}"
        );
        assert!(told.contains("refused: nothing is done until the above is resolved"), "{told}");
    }
    assert_eq!(world.export(), before);
}

#[test]
fn a_full_storage() {
    let world = World::instant(ONE);
    let room = |bytes: u64| {
        world.sim.control().change(&json!({"room": {"storage": "local-lvm", "bytes": bytes}}));
    };
    room(1_000_000);
    let output = world.strata().run(&["apply", "--yes"]).code(1);
    insta::assert_snapshot!(shown(&world, &output), @r#"
      web/vm/app: creating
      ✗ web/vm/app  cannot create VM 9100 on `pve1`: unable to create VM 9100 - lvcreate 'pve/vm-9100-disk-0' error:   Volume group "pve" has insufficient free space …
    error: `web/vm/app`: cannot create VM 9100 on `pve1`: unable to create VM 9100 - lvcreate 'pve/vm-9100-disk-0' error:   Volume group "pve" has insufficient free space
      --> stacks/web/stack.yaml:5
      TASK ERROR: unable to create VM 9100 - lvcreate 'pve/vm-9100-disk-0' error:   Volume group "pve" has insufficient free space
      hint: the storage is full: make room on it, or choose another one, then apply again
    error: 0 done, 1 failed, 0 left
      hint: everything is saved; `strata apply` goes on from here
    "#);
    // With room again the same command finishes.
    room(1_000_000_000_000);
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

#[test]
fn a_hypervisor_that_is_down() {
    let world = World::instant(ONE);
    world.strata().run(&["apply", "--yes"]).ok();
    // The node that was asked passes on what it hears of the other.
    let down = json!({"kind": "refuse", "status": 595, "path": "/nodes/pve1/*", "count": 0, "text": "No route to host"});
    world.sim.control().fault(&down);
    let output = world.strata().run(&["plan", "--detailed-exitcode"]).code(2);
    insta::assert_snapshot!(output.stdout, @"
    web (workloads, test/web)
      ? web/vm/app: the hypervisor `pve1` is unreachable: what is on it cannot be seen
          --> stacks/web/stack.yaml:5
          hint: bring `pve1` back into its cluster, then plan again; what is elsewhere is planned all the same

    nothing to do with what can be seen: 0 unchanged
    1 object cannot be seen: it is left as it is
    ");
}

#[test]
fn a_number_that_a_stranger_has() {
    let world = World::instant(ONE);
    world.stranger(9100);
    let before = world.export();
    let output = world.strata().run(&["apply", "--yes"]).code(3);
    insta::assert_snapshot!(output.all(), @"
    web (workloads, test/web)
      ✗ web/vm/app: VM 9100 `stranger` on `pve1` exists and is not managed by this repository
          --> stacks/web/stack.yaml:5
          hint: Strata never touches what is not its own: `strata adopt web/vm/app=9100` adopts it, or give the resource another identity

    refused: nothing is done until the above is resolved
    ");
    assert_eq!(world.export(), before);
}

#[test]
fn two_applies_at_once() {
    let world = World::instant(STACK);
    let control = world.sim.control();
    let held = control.fault(&json!({"kind": "hold-before", "writes": true}));
    let mut first = world.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(held, 30.0));
    let second = world.strata().run(&["apply", "--yes"]).code(4);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let text = second.stderr.replace(&host, "HOST").replace(&first.id().to_string(), "PID");
    // The moment is the other's own.
    let since = text.split_once("since ").map(|(_, rest)| rest[..20].to_owned()).unwrap_or_default();
    let lock = text.split_once("lock id: ").map(|(_, rest)| rest[..16].to_owned()).unwrap_or_default();
    insta::assert_snapshot!(text.replace(&since, "TIME").replace(&lock, "LOCK"), @"
    error: the state `test/web` is locked by tester@HOST (pid PID) for `apply` since TIME
      state key: test/web
      lock id: LOCK
      hint: wait for it, or, if that run is gone for good, `strata unlock` takes the lock away
    ");
    control.release(held);
    control.clear_faults();
    assert_eq!(first.wait().unwrap().code(), Some(0));
}

#[test]
fn a_plan_that_is_stale() {
    let world = World::instant(ONE);
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.edit("stacks/web/stack.yaml", "memory: 1024", "memory: 2048");
    world.strata().run(&["plan", "-o", "reviewed.plan"]).ok();
    as_root(&world, "PUT", "/nodes/pve1/qemu/9100/config", &json!({"cores": 3}));
    world.repo.edit("stacks/web/stack.yaml", "memory: 2048", "memory: 4096");
    let output = world.strata().run(&["apply", "reviewed.plan", "--yes"]).code(3);
    insta::assert_snapshot!(output.stderr, @"
    error: the plan of `web` is stale, nothing was changed
      the source changed
      `web/vm/app` was changed
      hint: make a new plan and have it reviewed
    ");
    let output = world.strata().run(&["apply", "nowhere.plan", "--yes"]).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error: there is no plan file `nowhere.plan`, and no stack of that name
      hint: `strata plan -o nowhere.plan` makes one
    ");
}

#[test]
fn an_unknown_key() {
    let world = World::instant(&ONE.replace("memory: 1024", "memroy: 1024"));
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error[unknown-key]: `app` has no key `memroy`
     --> stacks/web/stack.yaml:7:5
      |
    7 |     memroy: 1024
      |     ^^^^^^
      |
      = note: allowed here: vmId, count, use, ip, name, node, pool, tags, notes, protect, protection, onboot, startup, started, firewall, ha and 39 more
      = hint: did you mean `memory`?
    1 error
    ");
}

#[test]
fn a_secret_that_is_missing() {
    let world = World::instant(&ONE.replace(
        "    started: false",
        "    started: false\n    cloudInit: {password: {secret: web.pasword}}",
    ));
    // Nothing lists secrets.
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error[unknown-secret]: there is no secret `web.pasword`
      --> stacks/web/stack.yaml:10:27
       |
    10 |     cloudInit: {password: {secret: web.pasword}}
       |                           ^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: name a file of secrets under `secrets` in strata.yaml
    1 error
    ");
    // The file has another name in it.
    keys_and_secrets(&world, "web:\n  password: x\n");
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error[unknown-secret]: there is no secret `web.pasword`
      --> stacks/web/stack.yaml:10:27
       |
    10 |     cloudInit: {password: {secret: web.pasword}}
       |                           ^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: did you mean `web.password`?
    1 error
    ");
    // In a vault even the names are hidden until it is opened.
    world.repo.write("secrets.vault.yaml", "web:\n  password: x\n");
    world.repo.write("vault-password", "correct");
    let vault = ["--vault-password-file", "vault-password"];
    world.strata().run(&[&["secrets", "encrypt", "--vault", "secrets.vault.yaml"], &vault[..]].concat()).ok();
    world.repo.edit("strata.yaml", "sops: secrets.sops.yaml", "vault: secrets.vault.yaml");
    let output = world.strata().run(&[&["plan"], &vault[..]].concat()).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error[unresolved]: there is no secret `web.pasword` in `secrets.vault.yaml`; did you mean `web.password`?
      --> stacks/web/stack.yaml:10:27
       |
    10 |     cloudInit: {password: {secret: web.pasword}}
       |                           ^^^^^^^^^^^^^^^^^^^^^
    ");
    // Nobody there to ask for the password.
    world.repo.edit("stacks/web/stack.yaml", "pasword", "password");
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error[unresolved]: `secrets.vault.yaml`: the password of the vault cannot be had from a prompt: there is nobody to ask
      --> stacks/web/stack.yaml:10:27
       |
    10 |     cloudInit: {password: {secret: web.password}}
       |                           ^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: give the password by `--vault-password-file` or ANSIBLE_VAULT_PASSWORD_FILE, or at a terminal
    ");
    world.repo.write("vault-password", "wrong");
    let output = world.strata().run(&[&["plan"], &vault[..]].concat()).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error[unresolved]: `secrets.vault.yaml`: none of 1 passwords opens the vault: a wrong password, or the vault was changed
      --> stacks/web/stack.yaml:10:27
       |
    10 |     cloudInit: {password: {secret: web.password}}
       |                           ^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: give the password by `--vault-password-file` or ANSIBLE_VAULT_PASSWORD_FILE, or at a terminal
    ");
    world.repo.write("vault-password", "correct");
    world.strata().run(&[&["plan"], &vault[..]].concat()).ok();
}

/// An encrypted file with the key that opens it.
fn keys_and_secrets(world: &World, plain: &str) {
    let other = Repo::empty();
    Strata::new(BINARY, &other).run(&["init", "."]).ok();
    for file in ["age.key", ".sops.yaml"] {
        world.repo.write(file, &other.read(file));
    }
    world.repo.write("secrets.sops.yaml", plain);
    world.strata().run(&["secrets", "encrypt", "secrets.sops.yaml"]).ok();
    let settings = world.repo.read("strata.yaml");
    world.repo.write("strata.yaml", &format!("{settings}secrets: [{{sops: secrets.sops.yaml}}]\n"));
}

#[test]
fn a_wrong_age_key() {
    let world = World::instant(&ONE.replace(
        "    started: false",
        "    started: false\n    cloudInit: {password: {secret: web.password}}",
    ));
    keys_and_secrets(&world, "web:\n  password: x\n");
    let own = world.repo.read("age.key");
    let recipient = own.lines().next().unwrap().rsplit(' ').next().unwrap();
    let other = Repo::empty();
    Strata::new(BINARY, &other).run(&["init", "."]).ok();
    world.repo.write("age.key", &other.read("age.key"));
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr.replace(recipient, "RECIPIENT").replace(&world.repo.path().display().to_string(), "REPO"), @"
    error[unresolved]: `secrets.sops.yaml`: the file is encrypted for `RECIPIENT`; 0 of 1 keys could be opened: none of the age identities can open it
                         `SOPS_AGE_SSH_PRIVATE_KEY_FILE` is not set
                         `REPO/age.key` (by `SOPS_AGE_KEY_FILE`) has no key that fits
                         `SOPS_AGE_KEY` is not set
                         `REPO/.config/sops/age/keys.txt` does not exist
                         `REPO/.ssh/id_ed25519` does not exist
                         `REPO/.ssh/id_rsa` does not exist
      --> stacks/web/stack.yaml:10:27
       |
    10 |     cloudInit: {password: {secret: web.password}}
       |                           ^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: give an age key that opens it by SOPS_AGE_KEY_FILE, or as `age.key` at the root of the repository
    ");
    world.repo.remove("age.key");
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr.replace(recipient, "RECIPIENT").replace(&world.repo.path().display().to_string(), "REPO"), @"
    error[unresolved]: `secrets.sops.yaml`: the file is encrypted for `RECIPIENT`; 0 of 1 keys could be opened: none of the age identities can open it
                         `SOPS_AGE_SSH_PRIVATE_KEY_FILE` is not set
                         `SOPS_AGE_KEY_FILE` is not set
                         `SOPS_AGE_KEY` is not set
                         `REPO/.config/sops/age/keys.txt` does not exist
                         `REPO/.ssh/id_ed25519` does not exist
                         `REPO/.ssh/id_rsa` does not exist
      --> stacks/web/stack.yaml:10:27
       |
    10 |     cloudInit: {password: {secret: web.password}}
       |                           ^^^^^^^^^^^^^^^^^^^^^^
       |
       = hint: give an age key that opens it by SOPS_AGE_KEY_FILE, or as `age.key` at the root of the repository
    ");
}

#[test]
fn stacks_that_wait_for_each_other() {
    let world = World::instant(&ONE.replace("environment: test}", "environment: test, dependsOn: [db]}"));
    world.repo.write(
        "stacks/db/stack.yaml",
        &ONE.replace("name: web, environment: test}", "name: db, environment: test, dependsOn: [web]}")
            .replace("9100", "9101")
            .replace("  app:", "  base:"),
    );
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error[cycle]: these stacks depend on each other in a circle: db → web → db
     --> stacks/db/stack.yaml:2:53
      |
    2 | metadata: {name: db, environment: test, dependsOn: [web]}
      |                                                     ^^^ `db` needs `web`
      |
     ::: stacks/web/stack.yaml:2:54
      |
    2 | metadata: {name: web, environment: test, dependsOn: [db]}
      |                                                      -- `web` needs `db`
      |
      = hint: remove one of these dependencies
    1 error
    ");
}

#[test]
fn yaml_that_cannot_be_read_hides_nothing_of_other_files() {
    let world = World::instant(&ONE.replace("memory: 1024", "memory: [1024"));
    world.repo.write("stacks/db/stack.yaml", "vms:\n\tapp: {}\n");
    world.repo.write(
        "stacks/ok/stack.yaml",
        &ONE.replace("name: web", "name: ok").replace("memory: 1024", "memroy: 1024"),
    );
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error[syntax]: a tab is used as indentation; YAML takes spaces only
     --> stacks/db/stack.yaml:2:1
      |
    2 |     app: {}
      | ^^^^
      |
      = hint: replace each tab with spaces
    error[unknown-key]: `app` has no key `memroy`
     --> stacks/ok/stack.yaml:7:5
      |
    7 |     memroy: 1024
      |     ^^^^^^
      |
      = note: allowed here: vmId, count, use, ip, name, node, pool, tags, notes, protect, protection, onboot, startup, started, firewall, ha and 39 more
      = hint: did you mean `memory`?
    error[syntax]: a `:` cannot stand here
     --> stacks/web/stack.yaml:8:9
      |
    8 |     disk: {storage: local-lvm, size: 4}
      |         ^
      |
      = hint: a `{` or `[` before it may lack its `}` or `]`
    3 errors
    ");
}

#[test]
fn values_from_outside_stand_anywhere_and_secrets_only_where_they_stay_secret() {
    let world = World::instant(&ONE.replace(
        "memory: 1024",
        "memory: {env: MEMORY}\n    notes: {file: notes.txt}\n    cores: {env: CORES}",
    ));
    world.repo.write("stacks/web/notes.txt", "from a file\n");
    let plan = world.strata().env("MEMORY", "3072").env("CORES", "3").run(&["plan"]).ok();
    assert!(plan.stdout.contains("3072 MiB") && plan.stdout.contains("cores 3"), "{}", plan.all());
    assert!(plan.stdout.contains("from a file"), "{}", plan.all());
    let output = world.strata().env("MEMORY", "much").run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error[invalid-value]: `much` is not a size
     --> stacks/web/stack.yaml:7:13
      |
    7 |     memory: {env: MEMORY}
      |             ^^^^^^^^^^^^^ `memory` takes a number of MiB, or a size with its unit such as `512M` or `4GiB`
    error[unresolved]: the variable `CORES` is not set
     --> stacks/web/stack.yaml:9:12
      |
    9 |     cores: {env: CORES}
      |            ^^^^^^^^^^^^
    2 errors
    ");
    world.repo.edit("stacks/web/stack.yaml", "{env: MEMORY}", "{secret: memory}");
    let output = world.strata().env("CORES", "3").run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error[secret-not-allowed]: `memory` cannot be a secret: plans and the state show it
     --> stacks/web/stack.yaml:7:13
      |
    7 |     memory: {secret: memory}
      |             ^^^^^^^^^^^^^^^^
      |
      = hint: write the value, or take it from `{env: NAME}` or `{file: path}`
    1 error
    ");
}

#[test]
fn a_truncated_state_is_refused_and_can_be_rolled_back() {
    let world = World::instant(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    let file = ".strata/state/test/web/state.json";
    let text = world.repo.read(file);
    world.repo.write(file, &text[..text.len() / 2]);
    let output = world.strata().run(&["plan"]).code(1);
    assert!(
        output.stderr.contains("cannot be read") && output.stderr.contains("state rollback"),
        "{}",
        output.all()
    );
    let serial = world.strata().run(&["state", "history", "web"]).ok().stdout;
    let serial = serial.split_whitespace().next().unwrap().to_owned();
    world.strata().run(&["state", "rollback", "web", &serial]).ok();
    world.assert_settled();
}

#[test]
fn a_state_of_a_newer_program() {
    let world = World::instant(STACK);
    world.repo.write(".strata/state/test/web/state.json", r#"{"format": 99}"#);
    let output = world.strata().run(&["plan"]).code(1);
    insta::assert_snapshot!(output.stderr, @"
    error: the state `test/web` was written by a newer Strata: its format is 99, this one knows up to 2
      hint: use the newer Strata
    ");
}
