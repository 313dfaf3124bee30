//! Branches are made beside the files, whole or not at all.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use strata_outdated::{BranchError, Branches};

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@t.example", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn files(text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("stacks/web/stack.yaml".to_owned(), text.to_owned())])
}

#[test]
fn a_branch_has_the_new_files_and_the_clone_stays_as_it_is() {
    let clone = tempfile::tempdir().unwrap();
    let root = clone.path().join("infra");
    std::fs::create_dir_all(root.join("stacks/web")).unwrap();
    std::fs::write(root.join("stacks/web/stack.yaml"), "old\n").unwrap();
    std::fs::write(root.join("other"), "1").unwrap();
    git(clone.path(), &["init", "-q", "-b", "main"]);
    git(clone.path(), &["config", "user.name", "t"]);
    git(clone.path(), &["config", "user.email", "t@t.example"]);
    git(clone.path(), &["add", "-A"]);
    git(clone.path(), &["commit", "-q", "-m", "base"]);
    // What somebody works on meanwhile is no part of it.
    std::fs::write(root.join("other"), "2").unwrap();
    git(clone.path(), &["add", "infra/other"]);
    let before = git(clone.path(), &["status", "--porcelain"]);
    let branches = Branches::open(&root).unwrap();
    let made = branches
        .commit("outdated/images", "Bring images up to date", &files("old\n"), &files("new\n"))
        .unwrap();
    assert!(!made.was_there);
    assert_eq!(git(clone.path(), &["show", "outdated/images:infra/stacks/web/stack.yaml"]), "new");
    assert_eq!(git(clone.path(), &["show", "outdated/images:infra/other"]), "1");
    assert_eq!(
        git(clone.path(), &["diff", "--name-only", "main", "outdated/images"]),
        "infra/stacks/web/stack.yaml"
    );
    assert_eq!(git(clone.path(), &["status", "--porcelain"]), before);
    assert_eq!(git(clone.path(), &["rev-parse", "--abbrev-ref", "HEAD"]), "main");
    assert_eq!(std::fs::read_to_string(root.join("stacks/web/stack.yaml")).unwrap(), "old\n");
    let left = std::fs::read_dir(clone.path().join(".git")).unwrap();
    assert!(!left.flatten().any(|entry| entry.file_name().to_string_lossy().contains("strata")));
    // The same again is there; something else is refused, and moves nothing.
    let again = branches.commit("outdated/images", "again", &files("old\n"), &files("new\n")).unwrap();
    assert!(again.was_there && again.commit == made.commit);
    let other = branches.commit("outdated/images", "other", &files("old\n"), &files("newer\n"));
    assert!(matches!(other, Err(BranchError::Exists(_))));
    assert_eq!(git(clone.path(), &["rev-parse", "outdated/images"]), made.commit);
    // A file that no commit has like this.
    let edited = branches.commit("outdated/talos", "x", &files("edited\n"), &files("new\n"));
    assert!(matches!(edited, Err(BranchError::Uncommitted(_))));
    assert!(git(clone.path(), &["branch", "--list", "outdated/talos"]).is_empty());
}
