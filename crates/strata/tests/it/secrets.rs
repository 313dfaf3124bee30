//! `strata secrets`: encrypted files are read, changed and guarded, and plain text is left nowhere.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use strata_testkit::{Output, Repo, Strata};
use tempfile::TempDir;

use crate::world::BINARY;

const MARKER: &str = "MARKER-51c2-staple-battery";

/// A repository of `strata init`, and a private place in memory.
struct Safe {
    repo: Repo,
    memory: TempDir,
}

impl Safe {
    fn new() -> Self {
        let safe = Self { repo: Repo::empty(), memory: tempfile::tempdir_in("/dev/shm").unwrap() };
        safe.run(&["init", "."]).ok();
        // The tests put other secrets into the file that the settings refer to.
        safe.repo.edit("strata.yaml", "{secret: proxmox_api_token}", "{env: TOKEN}");
        safe
    }

    fn strata(&self) -> Strata {
        Strata::new(BINARY, &self.repo).env("XDG_RUNTIME_DIR", &self.memory.path().display().to_string())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.strata().run(arguments)
    }

    /// An editor that is this shell script; the file is `$1`.
    fn editor(&self, script: &str) -> Strata {
        let path = self.repo.file("editor");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self.strata().env("EDITOR", &path.display().to_string())
    }

    fn assert_memory_is_empty(&self) {
        let left: Vec<_> =
            fs::read_dir(self.memory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.current_dir(self.repo.path()).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", self.repo.path());
        assert!(command.args(arguments).output().unwrap().status.success(), "git {arguments:?}");
    }
}

/// Waits for something that another process does.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} never happened");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_is_encrypted_is_decrypted() {
    let safe = Safe::new();
    let files = [
        ("a.sops.yaml", format!("# mine\npassword: {MARKER}\nlist:\n  - 1\n  - true\n")),
        ("b.json", format!("{{\n\t\"password\": \"{MARKER}\"\n}}\n")),
        (".env", format!("PASSWORD={MARKER}\n")),
        ("c.ini", format!("[db]\npassword = {MARKER}\n")),
        ("d.bin", format!("{MARKER}\u{1}\n")),
    ];
    let recipient = safe.repo.read("age.key");
    let recipient = recipient.lines().next().unwrap().rsplit(' ').next().unwrap();
    for (file, text) in &files {
        safe.repo.write(file, text);
        fs::set_permissions(safe.repo.file(file), fs::Permissions::from_mode(0o640)).unwrap();
        match *file {
            // The rule of `strata init` is for such names only.
            "a.sops.yaml" => safe.run(&["secrets", "encrypt", file]).ok(),
            _ => {
                let refused = safe.run(&["secrets", "encrypt", file]).code(1);
                assert!(refused.stderr.contains("no rule of a `.sops.yaml`"), "{}", refused.stderr);
                safe.run(&["secrets", "encrypt", file, "--age", recipient]).ok()
            }
        };
        assert!(!safe.repo.read(file).contains(MARKER), "{file}");
        assert_eq!(fs::metadata(safe.repo.file(file)).unwrap().permissions().mode() & 0o777, 0o640);
        let sealed = safe.repo.read(file);
        let twice = safe.run(&["secrets", "encrypt", file, "--age", recipient]).code(3);
        assert!(twice.stderr.contains("is encrypted already"), "{}", twice.stderr);
        assert_eq!(safe.repo.read(file), sealed);
        let plain = safe.run(&["secrets", "decrypt", file]).ok();
        assert!(plain.stdout.contains(MARKER), "{file}: {}", plain.stdout);
        if *file != "b.json" && *file != "c.ini" {
            assert_eq!(plain.stdout, *text, "{file}");
        }
        let list = safe.run(&["secrets", "list", file]).ok();
        assert!(!list.all().contains(MARKER) && !list.stdout.is_empty(), "{file}: {}", list.all());
    }
    let names = safe.run(&["secrets", "list", "a.sops.yaml"]).ok().stdout;
    assert_eq!(names, "password\nlist.0\nlist.1\n");
}

#[test]
fn a_vault_is_made_read_edited_and_rekeyed() {
    let safe = Safe::new();
    safe.repo.write("old", "old password\n");
    safe.repo.write("new", "new password\n");
    let old = ["--vault-password-file", "old"];
    let with = |arguments: &[&str], keys: &[&str]| safe.run(&[&["secrets"], arguments, keys].concat());
    safe.repo.write("secrets.tfvars", &format!("token = \"{MARKER}\"\n"));
    let nobody = with(&["encrypt", "secrets.tfvars", "--vault"], &[]).code(1);
    assert!(nobody.stderr.contains("nobody to ask"), "{}", nobody.stderr);
    with(&["encrypt", "secrets.tfvars", "--vault", "--vault-id", "prod"], &old).ok();
    assert!(safe.repo.read("secrets.tfvars").starts_with("$ANSIBLE_VAULT;1.2;AES256;prod\n"));
    assert_eq!(with(&["list", "secrets.tfvars"], &old).ok().stdout, "token\n");
    let edited = safe.editor("echo 'other = \"x\"' >> \"$1\"");
    edited.run(&["secrets", "edit", "secrets.tfvars", "--vault-password-file", "old"]).ok();
    let bad = safe.editor("echo 'other = {' >> \"$1\"");
    bad.run(&["secrets", "edit", "secrets.tfvars", "--vault-password-file", "old"]).code(1);
    with(&["rotate", "secrets.tfvars"], &old).code(1);
    with(&["rotate", "secrets.tfvars", "--new-vault-password-file", "new"], &old).ok();
    with(&["decrypt", "secrets.tfvars"], &old).code(1);
    assert!(safe.repo.read("secrets.tfvars").starts_with("$ANSIBLE_VAULT;1.2;AES256;prod\n"));
    let plain = safe.strata().env("ANSIBLE_VAULT_PASSWORD_FILE", "new").run(&[
        "secrets",
        "decrypt",
        "secrets.tfvars",
    ]);
    assert_eq!(plain.ok().stdout, format!("token = \"{MARKER}\"\nother = \"x\"\n"));

    // Single values of a file that is otherwise plain.
    safe.repo.write("group.yaml", &format!("user: admin\npassword: {MARKER}\n"));
    with(&["encrypt", "group.yaml", "--vault", "--value", "password"], &old).ok();
    assert!(safe.repo.read("group.yaml").starts_with("user: admin\npassword: !vault |\n"));
    assert_eq!(with(&["list", "group.yaml"], &old).ok().stdout, "password\n");
    let edited = safe.editor("sed -i s/admin/root/ \"$1\"");
    edited.run(&["secrets", "edit", "group.yaml", "--vault-password-file", "old"]).ok();
    let gone = safe.editor("sed -i s/password/pasword/ \"$1\"");
    let gone = gone.run(&["secrets", "edit", "group.yaml", "--vault-password-file", "old"]).code(1);
    assert!(gone.stderr.contains("`password` was encrypted and is gone"), "{}", gone.stderr);
    assert!(!safe.repo.read("group.yaml").contains(MARKER));
    let plain = with(&["decrypt", "group.yaml"], &old).ok().stdout;
    assert_eq!(plain, format!("user: root\npassword: \"{MARKER}\"\n"));
    safe.assert_memory_is_empty();
}

#[test]
fn an_edit_encrypts_what_changed_and_keeps_the_rest() {
    let safe = Safe::new();
    let before = safe.repo.read("secrets.sops.yaml");
    let same = safe.editor("true").run(&["secrets", "edit", "secrets.sops.yaml"]).ok();
    assert_eq!(same.stdout, "nothing changed\n");
    assert_eq!(safe.repo.read("secrets.sops.yaml"), before);
    // The plain file is private while it is there.
    let script = format!(
        "stat -c '%a %a' \"$1\" \"$(dirname \"$1\")\" > modes; df --output=fstype \"$1\" >> modes; echo 'added: {MARKER}' >> \"$1\""
    );
    safe.editor(&script).run(&["secrets", "edit", "secrets.sops.yaml"]).ok();
    assert_eq!(safe.repo.read("modes"), "600 600\n700 700\nType\ntmpfs\n");
    let after = safe.repo.read("secrets.sops.yaml");
    assert!(!after.contains(MARKER));
    let token =
        |text: &str| text.lines().find(|line| line.starts_with("proxmox_api_token")).unwrap().to_owned();
    assert_eq!(token(&after), token(&before), "what did not change keeps its ciphertext");
    assert!(safe.run(&["secrets", "decrypt", "secrets.sops.yaml"]).ok().stdout.contains(MARKER));
    // A new file, by its rule; without a rule it is said before the editor opens.
    safe.editor("echo 'a: b' > \"$1\"").run(&["secrets", "edit", "new.sops.yaml"]).ok();
    assert_eq!(safe.run(&["secrets", "decrypt", "new.sops.yaml"]).ok().stdout, "a: b\n");
    let unruled = safe.editor("touch ran").run(&["secrets", "edit", "new.txt"]).code(1);
    assert!(unruled.stderr.contains("no rule of a `.sops.yaml`") && !safe.repo.file("ran").exists());
    safe.assert_memory_is_empty();
}

#[test]
fn an_edit_that_goes_wrong_leaves_the_old_file() {
    let safe = Safe::new();
    let before = safe.repo.read("secrets.sops.yaml");
    for (script, message) in [
        (format!("echo 'x: {MARKER}' >> \"$1\"; exit 7"), "ended with exit status: 7"),
        (format!("echo 'x: {MARKER}' >> \"$1\"; kill -9 $$"), "ended with signal: 9"),
        (format!("echo 'x: [{MARKER}' >> \"$1\""), "what the editor left cannot be used"),
        ("rm \"$1\"".to_owned(), "cannot read what the editor wrote"),
        ("printf '\\377' > \"$1\"".to_owned(), "what the editor left cannot be used"),
    ] {
        let output = safe.editor(&script).run(&["secrets", "edit", "secrets.sops.yaml"]).code(1);
        assert!(output.stderr.contains(message), "{script}: {}", output.stderr);
        assert!(!output.all().contains(MARKER), "{}", output.all());
        assert_eq!(safe.repo.read("secrets.sops.yaml"), before, "{script}");
        safe.assert_memory_is_empty();
    }
    let missing =
        safe.strata().env("EDITOR", "/nowhere/editor").run(&["secrets", "edit", "secrets.sops.yaml"]);
    assert_eq!(missing.code, 1, "{}", missing.all());
    // Somebody else's change during the edit is not lost.
    let script = "echo '# theirs' >> secrets.sops.yaml; echo 'x: y' >> \"$1\"";
    let moved = safe.editor(script).run(&["secrets", "edit", "secrets.sops.yaml"]).code(3);
    assert!(moved.stderr.contains("was changed by somebody else"), "{}", moved.stderr);
    assert_eq!(safe.repo.read("secrets.sops.yaml"), format!("{before}# theirs\n"));
    safe.assert_memory_is_empty();
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn an_edit_that_is_killed_leaves_nothing_in_memory() {
    let safe = Safe::new();
    let before = safe.repo.read("secrets.sops.yaml");
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::TERM, Some(130)), (Signal::KILL, None)] {
        let _ = fs::remove_file(safe.repo.file("waiting"));
        let script = format!("echo 'x: {MARKER}' >> \"$1\"; echo $$ > waiting; exec sleep 600");
        let mut child = safe.editor(&script).spawn(&["secrets", "edit", "secrets.sops.yaml"]);
        until("the editor", || {
            fs::read_to_string(safe.repo.file("waiting")).is_ok_and(|pid| pid.ends_with('\n'))
        });
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), code);
        until("the sweep", || fs::read_dir(safe.memory.path()).unwrap().next().is_none());
        assert_eq!(safe.repo.read("secrets.sops.yaml"), before);
        // An editor whose Strata was killed is left to its user.
        let editor = safe.repo.read("waiting").trim().parse().ok().and_then(Pid::from_raw).unwrap();
        let _ = kill_process(editor, Signal::KILL);
    }
}

#[test]
fn names_are_listed_and_commands_get_values() {
    let safe = Safe::new();
    safe.editor(&format!("printf 'db:\\n  pass: {MARKER}\\n' > \"$1\""))
        .run(&["secrets", "edit", "secrets.sops.yaml"])
        .ok();
    let list = safe.run(&["secrets", "list"]).ok();
    assert_eq!(list.stdout, "db.pass  secrets.sops.yaml\n");
    let json = safe.run(&["--json", "secrets", "list"]).ok();
    let line: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&line["event"], &line["name"]), (&"secret".into(), &"db.pass".into()));
    assert_eq!(line["file"], "secrets.sops.yaml");
    let all = safe.run(&["secrets", "exec", "--", "sh", "-c", "echo $DB_PASS; exit 9"]).code(9);
    assert_eq!(all.stdout, format!("{MARKER}\n"));
    let named = ["secrets", "exec", "--name", "P=db.pass", "--", "sh", "-c", "echo $P-$DB_PASS"];
    assert_eq!(safe.run(&named).ok().stdout, format!("{MARKER}-\n"));
    let missing = safe.run(&["secrets", "exec", "--name", "P=db.pas", "--", "true"]).code(1);
    assert!(missing.stderr.contains("did you mean `db.pass`"), "{}", missing.stderr);
    safe.run(&["secrets", "exec", "--", "/nowhere/command"]).code(1);
}

#[test]
fn a_rotation_changes_keys_and_no_values() {
    let safe = Safe::new();
    let plain = safe.run(&["secrets", "decrypt", "secrets.sops.yaml"]).ok().stdout;
    let before = safe.repo.read("secrets.sops.yaml");
    // A second reader: first only as a recipient, then with a new data key.
    let other = Safe::new();
    let recipient = |safe: &Safe| {
        let key = safe.repo.read("age.key");
        key.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned()
    };
    safe.repo.edit(".sops.yaml", &recipient(&safe), &format!("{},{}", recipient(&safe), recipient(&other)));
    safe.run(&["secrets", "rotate", "--recipients-only"]).ok();
    let shared = safe.repo.read("secrets.sops.yaml");
    let value = |text: &str| text.lines().next().unwrap().to_owned();
    assert_eq!(value(&shared), value(&before), "the data key stays");
    let key = other.repo.file("age.key").display().to_string();
    let theirs =
        || safe.strata().env("SOPS_AGE_KEY_FILE", &key).run(&["secrets", "decrypt", "secrets.sops.yaml"]);
    assert_eq!(theirs().ok().stdout, plain);
    safe.repo.edit(".sops.yaml", &format!(",{}", recipient(&other)), "");
    safe.repo.write(".strata/digest.key", &"k".repeat(32));
    let rotated = safe.run(&["secrets", "rotate", "--digest-key"]).ok();
    assert!(rotated.stdout.contains("every secret counts as changed once"), "{}", rotated.stdout);
    assert_ne!(fs::read(safe.repo.file(".strata/digest.key")).unwrap(), [b'k'; 32]);
    assert_ne!(value(&safe.repo.read("secrets.sops.yaml")), value(&before), "a new data key");
    assert_eq!(safe.run(&["secrets", "decrypt", "secrets.sops.yaml"]).ok().stdout, plain);
    theirs().code(1);
    // The old entry for the key does not open the new values.
    let (old, new) = (safe.repo.read("secrets.sops.yaml"), before);
    let mixed = format!("{}\n{}", value(&old), new.split_once('\n').unwrap().1);
    safe.repo.write("mixed.sops.yaml", &mixed);
    safe.run(&["secrets", "decrypt", "mixed.sops.yaml"]).code(1);
}

#[test]
fn secrets_in_the_clear_are_found_and_not_shown() {
    let safe = Safe::new();
    safe.editor(&format!("echo 'token: {MARKER}' > \"$1\""))
        .run(&["secrets", "edit", "secrets.sops.yaml"])
        .ok();
    safe.repo.remove("editor");
    safe.run(&["secrets", "check"]).ok();
    safe.git(&["init", "-q"]);
    safe.git(&["add", "."]);
    safe.run(&["secrets", "check"]).ok();
    safe.repo.write("notes.md", &format!("# notes\nuse {MARKER}\n"));
    safe.run(&["secrets", "check"]).ok();
    safe.git(&["add", "notes.md"]);
    // What is staged counts, also if the file on the disk is clean again.
    safe.repo.write("notes.md", "# notes\n");
    let staged = safe.run(&["secrets", "check"]).code(3);
    assert_eq!(staged.stdout, "notes.md: line 2: a secret of this repository in the clear (as staged)\n");
    assert!(!staged.all().contains(MARKER));
    safe.git(&["add", "notes.md"]);
    safe.repo.write("other.sops.yaml", "a: b\n");
    safe.git(&["add", "-f", "age.key", "other.sops.yaml"]);
    let found = safe.run(&["secrets", "check"]).code(3);
    assert_eq!(
        found.stdout,
        "age.key: line 2: a private key in the clear\nother.sops.yaml: should be encrypted and is not\n"
    );
    assert!(!found.all().contains("AGE-SECRET-KEY"));
}

#[test]
fn the_hook_of_init_stops_a_commit() {
    let safe = Safe::new();
    let hook = fs::metadata(safe.repo.file(".githooks/pre-commit")).unwrap();
    assert_eq!(hook.permissions().mode() & 0o111, 0o111);
    safe.git(&["init", "-q"]);
    safe.git(&["config", "core.hooksPath", ".githooks"]);
    safe.git(&["add", "."]);
    let commit = || {
        let folder = std::path::Path::new(BINARY).parent().unwrap().display().to_string();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
        let mut command = Command::new("git");
        command.current_dir(safe.repo.path()).env("PATH", path).env("HOME", safe.repo.path());
        let author = ["-c", "user.name=tester", "-c", "user.email=tester@example.org"];
        command.args(author).args(["commit", "-q", "-m", "test"]).output().unwrap()
    };
    let clean = commit();
    assert!(clean.status.success(), "{}", String::from_utf8_lossy(&clean.stderr));
    safe.git(&["add", "-f", "age.key"]);
    assert!(!commit().status.success());
}

/// A terminal whose keys the test presses; the program sees its other end as standard input.
struct Keyboard {
    keys: fs::File,
    terminal: fs::File,
}

impl Keyboard {
    fn new() -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
        let terminal = fs::OpenOptions::new().read(true).write(true).open(name).unwrap();
        Self { keys: keys.into(), terminal }
    }

    /// Runs the program, and presses keys when it asks for the n-th time. Gives what it said, and what the terminal echoed.
    fn answer(&mut self, mut command: Command, answers: &[&str]) -> (Option<i32>, String, String, String) {
        use std::io::{Read, Write};
        use std::process::Stdio;
        command.stdin(self.terminal.try_clone().unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = child.stderr.take().unwrap();
        let mut stderr = String::new();
        let mut byte = [0];
        let mut answers = answers.iter();
        while said.read(&mut byte).unwrap() == 1 {
            stderr.push(char::from(byte[0]));
            // A question stays on its line.
            if stderr.ends_with(": ")
                && stderr.lines().last().is_some_and(|line| line.starts_with("password of the vault"))
                && let Some(answer) = answers.next()
            {
                self.keys.write_all(answer.as_bytes()).unwrap();
            }
        }
        let output = child.wait_with_output().unwrap();
        // Something is written to the terminal's own side, so that reading what it shows ends.
        self.terminal.write_all(b"END").unwrap();
        let mut echoed = Vec::new();
        while !echoed.ends_with(b"END") {
            assert_eq!(self.keys.read(&mut byte).unwrap(), 1);
            echoed.push(byte[0]);
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), stderr, text(echoed))
    }
}

#[test]
fn a_person_is_asked_for_the_password_of_a_vault() {
    let safe = Safe::new();
    safe.repo.write("secret.vault.yaml", &format!("db: {MARKER}\n"));
    safe.repo.write("password", "pass word");
    safe.run(&["secrets", "encrypt", "--vault", "secret.vault.yaml", "--vault-password-file", "password"])
        .ok();
    safe.repo.remove("password");
    let mut keyboard = Keyboard::new();
    let decrypt = || safe.strata().command(&["secrets", "decrypt", "secret.vault.yaml"]);
    // With a slip, and the key that takes it back.
    let (code, stdout, stderr, echoed) = keyboard.answer(decrypt(), &["pass wors\u{7f}d\r"]);
    assert_eq!((code, stdout.as_str()), (Some(0), format!("db: {MARKER}\n").as_str()), "{stderr}");
    assert!(!echoed.contains("pass") && !stderr.contains("pass word"), "{echoed} {stderr}");
    // A wrong one, and a person who goes away.
    let (code, stdout, stderr, _) = keyboard.answer(decrypt(), &["wrong\r"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    let (code, stdout, stderr, _) = keyboard.answer(decrypt(), &["pass\u{3}"]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    // A new vault asks twice, so that a slip locks nobody out.
    safe.repo.write("new.yaml", "a: b\n");
    let encrypt = || safe.strata().command(&["secrets", "encrypt", "--vault", "new.yaml"]);
    let (code, _, stderr, echoed) = keyboard.answer(encrypt(), &["one\r", "two\r"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(safe.repo.read("new.yaml"), "a: b\n");
    assert!(!echoed.contains("one"), "{echoed}");
    let (code, _, stderr, _) = keyboard.answer(encrypt(), &["one\r", "one\r"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(safe.repo.read("new.yaml").starts_with("$ANSIBLE_VAULT;1.1;AES256\n"));
    // Every command that needs a secret asks, not only those of `secrets`.
    let settings = safe.repo.read("strata.yaml").replace("{env: TOKEN}", "{secret: db}");
    safe.repo.write("strata.yaml", &settings.replace("sops: secrets.sops.yaml", "vault: secret.vault.yaml"));
    safe.repo.write(
        "stacks/web/stack.yaml",
        "proxmox: {node: pve1}\nvms: {a: {vmId: 100, disk: 1, started: false}}\n",
    );
    let (code, _, stderr, _) = keyboard.answer(safe.strata().command(&["plan"]), &["pass word\r"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("assword") && !stderr.contains("nobody to ask"), "{stderr}");
}
