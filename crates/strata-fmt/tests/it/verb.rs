//! `strata fmt` over files: what is written, what is said, and what is left alone.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use clap::Parser;
use strata_fmt::verb::{Args, Terminal, run};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// What the verb found, and everything that it said.
fn fmt(folder: &Path, arguments: &[&str], input: &str) -> (Result<bool, String>, String) {
    let said = RefCell::new(String::new());
    let say = |text: &str| {
        said.borrow_mut().push_str(text);
        said.borrow_mut().push('\n');
    };
    let terminal = Terminal {
        line: &say,
        raw: &|text| said.borrow_mut().push_str(text),
        note: &say,
        detail: &say,
        event: &|_| {},
        input: &|| Ok(input.to_owned()),
    };
    let line = Line::parse_from(["fmt"].iter().chain(arguments));
    let found = run(&line.args, folder, &terminal).map_err(|error| error.message);
    (found, said.into_inner())
}

const UNTIDY: &str = "vms:\n    web:   # one\n        cores:  2\n";
const TIDY: &str = "vms:\n  web:   # one\n    cores: 2\n";

fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("stacks/web/stack.yaml", UNTIDY);
    put("stacks/db/stack.yml", TIDY);
    put("secrets.sops.yaml", "a:   ENC[x]\nsops:\n    mac: ENC[y]\n");
    put("templates/a.yaml", "a:   {{ b }}\n");
    put(".strata/a.yaml", UNTIDY);
    put(".gitignore", "# made\n/made/\n*.gen.yaml\n");
    put("made/a.yaml", UNTIDY);
    put("stacks/b.gen.yaml", UNTIDY);
    put("notes.txt", UNTIDY);
    folder
}

fn files(folder: &Path) -> Vec<String> {
    let places = [
        "stacks/web/stack.yaml",
        "secrets.sops.yaml",
        "templates/a.yaml",
        ".strata/a.yaml",
        "made/a.yaml",
        "stacks/b.gen.yaml",
    ];
    places.iter().map(|path| fs::read_to_string(folder.join(path)).unwrap()).collect()
}

#[test]
fn a_repository_is_checked_shown_and_written() {
    let folder = repository();
    let before = files(folder.path());
    let (found, said) = fmt(folder.path(), &["--check"], "");
    assert_eq!(found, Ok(true));
    assert!(
        said.starts_with("`secrets.sops.yaml` is left as it is: it is encrypted\nstacks/web/stack.yaml\n"),
        "{said}"
    );
    assert!(said.contains("`templates/a.yaml` is left as it is: it is a template"), "{said}");
    assert!(said.ends_with("1 of 4 files would be formatted\n"), "{said}");
    let (found, said) = fmt(folder.path(), &["--diff"], "");
    assert_eq!(found, Ok(false), "a difference is shown, and no check was asked for");
    assert!(said.contains("-    web:   # one") && said.contains("+  web:   # one"), "{said}");
    assert_eq!(files(folder.path()), before, "nothing is written");
    let (found, said) = fmt(folder.path(), &[], "");
    assert_eq!(found, Ok(false));
    assert!(said.ends_with("1 of 4 files formatted\n"), "{said}");
    let after = files(folder.path());
    assert_eq!(after[0], TIDY);
    assert_eq!(after[1..], before[1..], "what is encrypted, made or hidden is left alone");
    assert_eq!(fmt(folder.path(), &["--check"], "").0, Ok(false));
}

#[test]
fn files_and_folders_are_named() {
    let folder = repository();
    assert_eq!(fmt(folder.path(), &["--check", "stacks/db"], "").0, Ok(false));
    assert_eq!(fmt(folder.path(), &["--check", "made/a.yaml"], "").0, Ok(true), "whoever names it means it");
    fs::write(folder.path().join("stacks/broken.yaml"), "a: [1\nb: 2\n").unwrap();
    let (found, said) = fmt(folder.path(), &[], "");
    assert_eq!(found, Err("1 file could not be read as YAML, and is left as it is".to_owned()));
    assert!(said.contains("warning: `stacks/broken.yaml` is left as it is: line 2"), "{said}");
    assert_eq!(files(folder.path())[0], TIDY, "the others are written");
    assert!(
        fmt(folder.path(), &["nowhere.yaml"], "").0.unwrap_err().starts_with("cannot read `nowhere.yaml`")
    );
}

#[test]
fn standard_input_goes_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(fmt(folder.path(), &["-"], UNTIDY), (Ok(false), TIDY.to_owned()));
    assert_eq!(fmt(folder.path(), &["-", "--check"], UNTIDY), (Ok(true), String::new()));
    let sealed = "a:   ENC[x]\nsops:\n    mac: ENC[y]\n";
    assert_eq!(
        fmt(folder.path(), &["-"], sealed),
        (Ok(false), sealed.to_owned()),
        "it goes through as it is"
    );
    let (found, said) = fmt(folder.path(), &["-"], "a: [1\n");
    assert!(
        found.unwrap_err().starts_with("standard input is no YAML: line "),
        "and nothing is written: {said}"
    );
    assert_eq!(said, "");
}
