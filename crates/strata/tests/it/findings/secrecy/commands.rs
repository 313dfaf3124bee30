//! What `secrets check` finds, what `-C` means, and files that are none.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use strata_testkit::{Repo, Strata, TestSim};

use crate::cluster::lab::{Lab, Shape};
use crate::world::{BINARY, World};

fn git(repo: &Repo, arguments: &[&str]) {
    let output = Command::new("git")
        .arg("-C")
        .arg(repo.path())
        .args(["-c", "user.name=t", "-c", "user.email=t@example.test"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The exit code and what is said on standard error of a command that may hang: then it fails here, and not for ever.
fn run_that_ends(world: &World, arguments: &[&str], what: &str) -> (Option<i32>, String) {
    let mut command = world.strata().command(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // A generous time.
    let ended = (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        child.try_wait().unwrap().is_some()
    });
    if !ended {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert!(ended, "{what} hangs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Each file that opens a cluster or a datacenter, as our own verbs write it, in the index and before.
#[test]
fn c2_what_opens_a_cluster_is_found_in_the_clear() {
    let lab = Lab::new(&Shape::new(1, 1));
    git(&lab.repo, &["init", "-q"]);
    let strata = lab.strata();
    lab.repo.write(".gitignore", "age.key\n.strata/\nsim-token\n");
    strata.run(&["secrets", "check"]).ok();
    strata.run(&["talos", "kubeconfig", "lab", "--out", "access/admin.yaml"]).ok();
    strata.run(&["talos", "config", "lab", "--out", "access"]).ok();
    strata.run(&["plan", "-o", "access/reviewed.json"]).ok();
    let plain = &crate::cluster::lab::keys().plain;
    lab.repo.write("access/bundle.yaml", plain);
    let files =
        ["admin.yaml", "lab-cp-1.yaml", "lab-worker-1.yaml", "talosconfig", "reviewed.json", "bundle.yaml"];
    let all_are_found = |strata: &Strata, what: &str| {
        let found = strata.run(&["secrets", "check"]).code(3);
        for file in files {
            let told = found.stdout.lines().any(|line| line.starts_with(&format!("access/{file}: ")));
            assert!(told, "{what}: `{file}` is not found:\n{}", found.all());
        }
    };
    git(&lab.repo, &["add", "access"]);
    all_are_found(&strata, "with the age key");
    // Whoever has no key finds them by what they look like.
    lab.repo.remove("age.key");
    all_are_found(&strata, "without the age key");
    // Also what was staged, whatever lies on the disk now.
    for file in files {
        lab.repo.write(&format!("access/{file}"), "nothing: here\n");
    }
    let staged = strata.run(&["secrets", "check"]).code(3);
    assert!(
        staged.stdout.contains("access/admin.yaml: ") && staged.stdout.contains("(as staged)"),
        "{}",
        staged.all()
    );
}

#[test]
fn c2_init_ignores_what_opens_a_cluster_and_nothing_is_found_in_the_examples() {
    for example in ["homelab", "prod", "environments"] {
        let repo = Repo::empty();
        let strata = Strata::new(BINARY, &repo);
        strata.run(&["init", "--example", example, "."]).ok();
        git(&repo, &["init", "-q"]);
        for file in [
            "kubeconfig",
            "prod.kubeconfig",
            "talosconfig",
            "reviewed.plan",
            "age.key",
            "homelab-cp-1.yaml",
            "controlplane.yaml",
        ] {
            if file != "age.key" {
                repo.write(file, "x");
            }
            git(&repo, &["check-ignore", "--quiet", file]);
        }
        strata.run(&["secrets", "check"]).ok();
    }
    // The documentation is full of examples.
    let repo = Repo::empty();
    git(&repo, &["init", "-q"]);
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let copied = Command::new("cp").arg("-r").arg(docs).arg(repo.path()).status().unwrap();
    assert!(copied.success());
    git(&repo, &["add", "."]);
    Strata::new(BINARY, &repo).run(&["secrets", "check"]).ok();
}

/// Every file that the source reads, replaced by what is no file: an answer at once, with what it is.
#[test]
fn f19_a_source_that_is_no_file_is_told() {
    let world = World::instant(
        "metadata: {name: web, environment: test}\nproxmox: {target: pve, node: pve1}\nvms:\n  a: {vmId: 9100, disk: 1, memory: 64, cloudInit: {user: {file: name.txt}, password: {file: password.txt}}}\n",
    );
    world.repo.write("stacks/web/name.txt", "me\n");
    world.repo.write("stacks/web/password.txt", "something\n");
    world.strata().run(&["plan"]).ok();
    let socket = world.repo.file("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for file in [
        "strata.yaml",
        "stacks/web/stack.yaml",
        "stacks/web/name.txt",
        "stacks/web/password.txt",
        "sim-token",
    ] {
        let kept = world.repo.read(file);
        for (kind, make) in [
            ("a FIFO", &["mkfifo"][..]),
            ("a device", &["ln", "-s", "/dev/zero"]),
            ("a folder", &["mkdir"]),
            ("a socket", &["ln", "-s", socket.to_str().unwrap()]),
        ] {
            // A folder of this name is a folder, and no stack.
            if kind == "a folder" && file == "stacks/web/stack.yaml" {
                continue;
            }
            world.repo.remove(file);
            let made = Command::new(make[0]).args(&make[1..]).arg(world.repo.file(file)).status().unwrap();
            assert!(made.success());
            let (code, said) = run_that_ends(&world, &["plan"], &format!("`{file}` as {kind}"));
            assert_eq!(code, Some(1), "`{file}` as {kind}: {said}");
            // Without settings there is no repository; that is told in other words.
            if file != "strata.yaml" {
                assert!(said.contains(&format!("{kind}, not a file")), "`{file}` as {kind}: {said}");
            }
            match kind {
                "a folder" => std::fs::remove_dir(world.repo.file(file)).unwrap(),
                _ => std::fs::remove_file(world.repo.file(file)).unwrap(),
            }
            world.repo.write(file, &kept);
        }
    }
    let large = std::fs::File::create(world.repo.file("stacks/web/name.txt")).unwrap();
    large.set_len(1 << 40).unwrap();
    let said = world.strata().run(&["plan"]).code(1);
    assert!(said.stderr.contains("it is larger than 64 MiB"), "{}", said.all());
}

/// Every file that the command line names, as a FIFO, a device and a folder: an answer at once, and no memory that grows.
#[test]
fn f19_an_argument_that_is_no_file_is_told() {
    let world = World::instant(
        "metadata: {name: web, environment: test}\nproxmox: {target: pve, node: pve1}\nvms: {a: {vmId: 9100, disk: 1, memory: 64}}\n",
    );
    world.strata().run(&["apply", "--yes"]).ok();
    let made = Command::new("mkfifo").arg(world.repo.file("pipe.json")).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("/dev/zero", world.repo.file("zero.json")).unwrap();
    std::fs::create_dir(world.repo.file("folder.json")).unwrap();
    for (file, kind) in [("pipe.json", "a FIFO"), ("zero.json", "a device"), ("folder.json", "a folder")] {
        for arguments in [
            &["show", file][..],
            &["review", "show", file],
            &["state", "push", "web", file],
            &["secrets", "decrypt", file],
            &["secrets", "encrypt", file],
            &["serve", "--config", file],
            &["import", "--state", file],
            &[
                "talos",
                "config",
                "--secrets",
                file,
                "--contract",
                "v1.13",
                "--name",
                "lab",
                "--endpoint",
                "https://192.0.2.1:6443",
            ],
        ] {
            let (_, said) = run_that_ends(&world, arguments, &format!("{arguments:?} on {kind}"));
            assert!(said.contains(&format!("{kind}, not a file")), "{arguments:?}: {said}");
        }
    }
}

/// What is written is there whole or not at all, and nothing else is left.
#[test]
fn f19_a_killed_rotation_leaves_no_files() {
    let sim = TestSim::start();
    let repo = Repo::on(&sim);
    let strata = Strata::new(BINARY, &repo);
    let own = Repo::empty();
    Strata::new(BINARY, &own).run(&["init", "."]).ok();
    for file in ["age.key", ".sops.yaml", "secrets.sops.yaml"] {
        repo.write(file, &own.read(file));
    }
    let files = || {
        let mut names: Vec<_> =
            std::fs::read_dir(repo.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    for delay in 0..12 {
        let mut child = strata.spawn(&["secrets", "rotate", "secrets.sops.yaml"]);
        std::thread::sleep(Duration::from_millis(delay * 15));
        let _ = child.kill();
        child.wait().unwrap();
    }
    strata.run(&["secrets", "rotate", "secrets.sops.yaml"]).ok();
    assert_eq!(files(), before);
    let mode = std::fs::metadata(repo.file("secrets.sops.yaml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644, "the mode stays");
    strata.run(&["secrets", "decrypt", "secrets.sops.yaml"]).ok();
}

/// Keys that were taken and did nothing: two do what they say, two are refused until something reads them.
#[test]
fn e5_keys_that_nothing_read_work_or_are_refused() {
    let lab = Lab::new(&Shape::new(1, 0));
    let (before, after) = ("vm: {idBase: 800}", "vm: {idBase: 800, cpuType: x86-64-v2-AES, forceStop: true}");
    let usual = lab.run(&["plan"]).ok().stdout;
    assert!(usual.contains("type host") && !usual.contains("force_stop"), "{usual}");
    lab.repo.edit("clusters/lab/cluster.yaml", before, after);
    let plan = lab.run(&["plan"]).ok().stdout;
    assert!(plan.contains("type x86-64-v2-AES") && plan.contains("force_stop"), "{plan}");
    lab.apply();
    lab.sim.control().reset_requests();
    lab.run(&["destroy", "--yes"]).ok();
    let requests = lab.sim.control().requests().to_string();
    assert!(requests.contains("/status/stop") && !requests.contains("/status/shutdown"), "{requests}");
    for target in
        ["aws: {region: r}", "oci: {region: r, tenancy: t, user: u, fingerprint: f, privateKey: {env: K}}"]
    {
        let repo = Repo::empty();
        repo.write("strata.yaml", &format!("repository: test\ntargets:\n  cloud: {{{target}}}\n"));
        let refused = Strata::new(BINARY, &repo).run(&["validate"]).code(1);
        let key = target.split(':').next().unwrap();
        assert!(refused.stderr.contains(&format!("no key `{key}`")), "{}", refused.all());
        assert!(refused.stderr.contains("proxmox, truenas"), "{}", refused.all());
    }
}
