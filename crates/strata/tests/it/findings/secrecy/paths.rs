//! With `-C` every path of the command line starts in that folder, as for `git` and `make`. A unit test of the command line compares
//! this table with what there is.

use std::path::Path;

use strata_testkit::{Output, Repo, Strata};

use crate::cluster::lab::{Lab, Shape};
use crate::world::BINARY;

/// How a path is tried.
enum Tried {
    /// It is written to: the arguments, and what is there then.
    Writes(&'static [&'static str], &'static str),
    /// It is read: what is there before, and the arguments. Whatever is wrong with it, it is found.
    Reads(&'static str, &'static [&'static str]),
    /// It works as the others of its verb, or a server would have to run for it.
    As(&'static str),
}

use Tried::{As, Reads, Writes};

const TABLE: &[(&str, Tried)] = &[
    ("--directory", As("the folder itself")),
    ("--dial", Reads("d.json", &["--dial", "d.json", "plan"])),
    ("--vault-password-file", Reads("p.txt", &["--vault-password-file", "p.txt", "validate"])),
    ("init DIR", Writes(&["init", "new"], "new/strata.yaml")),
    ("init --home", As("a folder of the control machine, which is only named in pipelines")),
    ("demo --keep", As("init DIR")),
    ("graph --plan", Reads("no.plan", &["graph", "--format", "svg", "--plan", "no.plan"])),
    ("fmt PATH", Reads("f.yaml", &["fmt", "f.yaml"])),
    ("schema --write", Writes(&["schema", "--write", "schemas"], "schemas/stack.json")),
    ("plan --output", Writes(&["plan", "-o", "a.plan"], "a.plan")),
    ("show FILE", Reads("no.plan", &["show", "./no.plan"])),
    ("apply STACK|ADDRESS|FILE", Reads("no.plan", &["apply", "./no.plan", "--yes"])),
    ("state push FILE", Reads("no.state", &["state", "push", "lab", "no.state"])),
    ("import DIR", Reads("old/main.tf", &["import", "old"])),
    ("import --state", Reads("old.tfstate", &["import", "--state", "old.tfstate"])),
    ("secrets edit FILE", Reads("e.sops.yaml", &["secrets", "edit", "e.sops.yaml"])),
    ("secrets encrypt FILE", Reads("n.sops.yaml", &["secrets", "encrypt", "n.sops.yaml"])),
    ("secrets decrypt FILE", Reads("e.sops.yaml", &["secrets", "decrypt", "e.sops.yaml"])),
    ("secrets list FILE", Reads("e.sops.yaml", &["secrets", "list", "e.sops.yaml"])),
    ("secrets rotate FILES", Reads("e.sops.yaml", &["secrets", "rotate", "e.sops.yaml"])),
    ("secrets rotate --new-vault-password-file", As("--vault-password-file")),
    ("secrets sweep FOLDER", As("secrets edit FILE")),
    ("secrets collect FILE", Reads("c.yaml", &["secrets", "collect", "c.yaml"])),
    (
        "talos config --secrets",
        Reads("s.sops.yaml", &["talos", "config", "lab", "--secrets", "s.sops.yaml", "--out", "t"]),
    ),
    (
        "talos config --out",
        Writes(&["talos", "config", "lab", "--out", "talos-out"], "talos-out/talosconfig"),
    ),
    ("talos kubeconfig --out", Writes(&["talos", "kubeconfig", "lab", "--out", "kube-out"], "kube-out")),
    (
        "talos restore --snapshot",
        Reads("no.snapshot", &["talos", "restore", "lab", "--snapshot", "no.snapshot", "--yes"]),
    ),
    ("serve --config", Reads("serve.yaml", &["serve", "user", "list", "--config", "serve.yaml"])),
    ("serve --data", As("serve --config")),
    ("serve --tls-certificate", As("serve --config")),
    ("serve --tls-key", As("serve --config")),
    ("serve backup FOLDER", As("serve --data")),
    ("serve restore FOLDER", As("serve --data")),
    ("sim --data", As("serve --data")),
    ("policy test FILE", Reads("no.json", &["policy", "test", "no.json"])),
    ("review keygen FILE", Writes(&["review", "keygen", "runner.key"], "runner.key")),
    ("review show FILE", Reads("no.sealed", &["review", "show", "no.sealed"])),
    ("review apply FILE", As("review show FILE")),
    ("review plan --output", As("plan --output")),
    ("review plan --comment", As("plan --output")),
    ("review plan --document", As("plan --output")),
    ("review plan --report", As("plan --output")),
];

/// Says that there is no such file.
fn is_missing(output: &Output) -> bool {
    ["No such file", "there is no file", "does not exist", "is not there"]
        .iter()
        .any(|words| output.all().contains(words))
}

#[test]
fn f19_paths_of_the_command_line_start_where_c_says() {
    let lab = Lab::new(&Shape::new(1, 1));
    let outside = Repo::empty();
    let name = lab.repo.path().file_name().unwrap().to_str().unwrap().to_owned();
    let strata = |folder: &Path| {
        Strata::at(BINARY, folder)
            .env("STRATA_DIAL", "dial.json")
            .env("NAS_KEY", "x")
            .env("EDITOR", "true")
            .env("SSL_CERT_FILE", "network-ca.pem")
    };
    // Relative, from the folder above; and absolute, from one that has nothing to do with it.
    let above = lab.repo.path().parent().unwrap();
    let absolute = lab.repo.path().to_str().unwrap();
    for (path, tried) in TABLE {
        for (folder, directory) in [(above, name.as_str()), (outside.path(), absolute)] {
            let run = |arguments: &[&str]| {
                let all: Vec<&str> = ["-C", directory].into_iter().chain(arguments.iter().copied()).collect();
                strata(folder).run(&all)
            };
            match tried {
                Writes(arguments, file) => {
                    let output = run(arguments);
                    let made = lab.repo.file(file);
                    assert!(made.exists(), "{path}: `{file}` is not where `-C` says\n{}", output.all());
                    assert!(!folder.join(file).exists(), "{path}: `{file}` is where the program was started");
                    let first = lab.repo.file(Path::new(file).iter().next().unwrap().to_str().unwrap());
                    let removed = if first.is_dir() {
                        std::fs::remove_dir_all(first)
                    } else {
                        std::fs::remove_file(first)
                    };
                    removed.unwrap();
                }
                Reads(file, arguments) => {
                    lab.repo.write(file, "{}\n");
                    if file.starts_with("e.") {
                        lab.repo.write(file, "a: b\n");
                        run(&["secrets", "encrypt", file]).ok();
                    }
                    let output = run(arguments);
                    assert!(!is_missing(&output), "{path}: {}", output.all());
                    lab.repo.remove(file);
                }
                As(other) => assert!(!other.is_empty()),
            }
        }
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "nothing is written elsewhere");
    let file = outside.file("a-file");
    std::fs::write(&file, "x").unwrap();
    let refused = strata(above).run(&["-C", file.to_str().unwrap(), "plan"]).code(1);
    assert!(refused.stderr.contains("cannot work in `"), "{}", refused.all());
}
