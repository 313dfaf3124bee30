//! Real clones: commits, branches that parted, folders within a clone, shallow clones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use strata_review::{Change, Git, GitError, Range, RangeError};
use strata_source::world::World as _;
use tempfile::TempDir;

/// A clone with a repository of Strata in one of its folders.
struct Clone {
    folder: TempDir,
    root: &'static str,
}

fn run(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@t.example", "-c", "init.defaultBranch=main"])
        .args(["-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Clone {
    fn new(root: &'static str) -> Self {
        let clone = Self { folder: tempfile::tempdir().unwrap(), root };
        clone.git(&["init", "-q"]);
        clone.write(
            "strata.yaml",
            "repository: demo1\ntargets: {pve: {proxmox: {endpoint: 'https://192.0.2.1:8006', token: {env: T}}}}\n",
        );
        for (name, vmid) in [("web", 9100), ("db", 9200)] {
            clone.write(&format!("stacks/{name}/stack.yaml"), &stack(vmid, 512));
        }
        clone.commit("first");
        clone
    }

    fn git(&self, arguments: &[&str]) -> String {
        run(self.folder.path(), arguments)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(self.root).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self, subject: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn open(&self) -> Git {
        Git::open(&self.folder.path().join(self.root)).unwrap()
    }

    fn range(&self, base: &str, head: &str) -> Result<Range, RangeError> {
        Range::read(&self.open(), base, head, &variables())
    }
}

fn variables() -> BTreeMap<String, String> {
    BTreeMap::from([("T".to_owned(), "t".to_owned())])
}

fn stack(vmid: u32, memory: u32) -> String {
    format!("proxmox: {{node: pve1}}\nvms: {{app: {{vmId: {vmid}, memory: {memory}}}}}\n")
}

fn said(range: &Range) -> Vec<(&str, Change)> {
    range.changed.iter().map(|one| (one.key.stack.as_str(), one.change)).collect()
}

#[test]
fn a_range_is_what_the_head_did_since_it_left_the_base() {
    for root in ["", "infra/strata"] {
        let clone = Clone::new(root);
        clone.git(&["checkout", "-q", "-b", "request"]);
        clone.write("stacks/web/stack.yaml", &stack(9100, 1024));
        clone.write("stacks/new/stack.yaml", &stack(9300, 512));
        clone.commit("request");
        // The base moves on in the meantime, and elsewhere in the clone something else does.
        clone.git(&["checkout", "-q", "main"]);
        clone.write("stacks/db/stack.yaml", &stack(9200, 2048));
        fs::write(clone.folder.path().join("elsewhere.txt"), "x").unwrap();
        clone.commit("main");
        let range = clone.range("main", "request").unwrap();
        assert_eq!(said(&range), [("new", Change::Added), ("web", Change::Changed)]);
        assert!(range.remark.unwrap().contains("`main` has moved on"));
        // Merged, the range is the same, and nothing is left to remark.
        clone.git(&["merge", "-q", "--no-edit", "request"]);
        let range = clone.range("HEAD^1", "HEAD").unwrap();
        assert_eq!(said(&range), [("new", Change::Added), ("web", Change::Changed)]);
        assert_eq!(range.remark, None);
        // Backwards it is the other way around.
        clone.git(&["checkout", "-q", "-b", "back"]);
        clone.git(&["revert", "--no-edit", "-m", "1", "HEAD"]);
        let range = clone.range("main", "HEAD").unwrap();
        assert_eq!(said(&range), [("new", Change::Removed), ("web", Change::Changed)]);
    }
}

#[test]
fn a_shallow_clone_without_the_base_says_so_and_takes_everything() {
    let clone = Clone::new("");
    let first = clone.git(&["rev-parse", "HEAD"]);
    clone.write("stacks/web/stack.yaml", &stack(9100, 1024));
    clone.commit("second");
    let shallow = tempfile::tempdir().unwrap();
    let from = format!("file://{}", clone.folder.path().display());
    run(shallow.path(), &["clone", "-q", "--depth", "1", &from, "."]);
    let git = Git::open(shallow.path()).unwrap();
    let range = Range::read(&git, &first, "HEAD", &variables()).unwrap();
    assert_eq!(said(&range), [("db", Change::Changed), ("web", Change::Changed)]);
    assert_eq!(range.unknown.unwrap(), format!("this clone is shallow and does not have `{first}`"));
    // With the base fetched it knows more.
    run(shallow.path(), &["fetch", "-q", "--depth", "2", "origin", "main"]);
    let range = Range::read(&git, &first, "HEAD", &variables()).unwrap();
    assert_eq!(said(&range), [("web", Change::Changed)]);
}

#[test]
fn a_base_that_is_not_valid_makes_everything_changed_and_a_head_that_is_not_is_refused() {
    let clone = Clone::new("");
    clone.write("stacks/web/stack.yaml", "vms: [\n");
    clone.commit("broken");
    let refused = clone.range("HEAD~1", "HEAD").unwrap_err();
    assert!(matches!(refused, RangeError::Invalid { .. }), "{refused}");
    clone.write("stacks/web/stack.yaml", &stack(9100, 512));
    clone.commit("whole");
    let range = clone.range("HEAD~1", "HEAD").unwrap();
    assert_eq!(said(&range), [("db", Change::Changed), ("web", Change::Changed)]);
    assert!(range.unknown.unwrap().contains("is not valid"));
    // Over both of them nothing changed at all.
    assert_eq!(said(&clone.range("HEAD~2", "HEAD").unwrap()), []);
}

#[test]
fn names_are_names_and_never_options() {
    let clone = Clone::new("");
    let git = clone.open();
    for name in ["--upload-pack=touch x", "-x", "", "a\nb"] {
        assert_eq!(git.commit(name), Err(GitError::BadName(name.to_owned())));
    }
    assert_eq!(git.commit("nowhere"), Err(GitError::NoCommit { name: "nowhere".to_owned(), shallow: false }));
    assert!(matches!(Git::open(tempfile::tempdir().unwrap().path()), Err(GitError::NoRepository(_))));
}

#[test]
fn the_files_of_a_commit_are_those_of_the_folder() {
    let clone = Clone::new("infra");
    clone.write("stacks/web/größe \"x\".txt", "with\nlines\n\n");
    std::os::unix::fs::symlink("../web/stack.yaml", clone.folder.path().join("infra/stacks/db/link.yaml"))
        .unwrap();
    std::os::unix::fs::symlink("round", clone.folder.path().join("infra/round")).unwrap();
    let commit = clone.commit("names");
    let files = clone.open().files(&commit, variables()).unwrap();
    assert_eq!(files.read("stacks/web/größe \"x\".txt").unwrap(), b"with\nlines\n\n");
    assert_eq!(files.read("stacks/db/link.yaml").unwrap(), stack(9100, 512).into_bytes());
    assert_eq!(files.read("stacks/../strata.yaml").unwrap(), files.read("strata.yaml").unwrap());
    assert!(files.read("round").is_err() && files.read("none").is_err() && files.read("../../x").is_err());
    let names = |folder: &str| -> Vec<String> {
        files.list(folder).unwrap().into_iter().map(|entry| entry.name).collect()
    };
    assert_eq!(names("stacks"), ["db", "web"]);
    assert_eq!(names("stacks/web"), ["größe \"x\".txt", "stack.yaml"]);
    assert_eq!(names("nowhere"), Vec::<String>::new());
}

#[test]
fn what_git_ignores_is_the_same_for_every_commit() {
    let clone = Clone::new("infra");
    clone.write(".gitignore", "*.key\n");
    let commit = clone.commit("ignore");
    clone.write("age.key", "k");
    clone.write("notes.txt", "in no commit");
    let files = clone.open().files(&commit, variables()).unwrap();
    assert_eq!(files.read("age.key").unwrap(), b"k");
    assert!(files.read("notes.txt").is_err());
}
