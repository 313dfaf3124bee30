//! What becomes of a repository: nothing is overwritten unseen, and a second run finds nothing to do.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use clap::Parser;
use strata_events::{Event, Terminal};
use strata_pipelines::verb::{Args, run};
use strata_session::SessionError;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// Somebody who agrees or not, and what was said to them.
#[derive(Default)]
struct Person {
    agrees: bool,
    said: Mutex<String>,
}

impl Terminal for Person {
    fn line(&self, text: &str) {
        self.said.lock().unwrap().push_str(&format!("{text}\n"));
    }

    fn note(&self, text: &str) {
        self.line(text);
    }

    fn event(&self, _: Option<&str>, _: &Event<'_>) {}

    fn ask(&self, question: &str) -> Result<(), SessionError> {
        self.line(question);
        if self.agrees { Ok(()) } else { Err(SessionError::refused("not confirmed")) }
    }
}

const TOKEN: &str =
    "targets: {pve: {proxmox: {endpoint: 'https://192.0.2.1:8006', token: {env: PVE_TOKEN}}}}\n";

fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("strata.yaml"), format!("repository: demo1\n{TOKEN}")).unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    fs::write(folder.path().join("program"), "a program").unwrap();
    folder
}

fn init(root: &Path, words: &[&str], agrees: bool) -> (Result<(), SessionError>, String) {
    let line = Line::try_parse_from(["init"].iter().chain(words)).unwrap();
    let person = Person { agrees, ..Person::default() };
    let done = run(line.args.ci.unwrap(), &line.args, root, &root.join("program"), &person);
    (done, person.said.into_inner().unwrap())
}

#[test]
fn a_second_run_finds_nothing_to_do() {
    let folder = repository();
    let (done, said) = init(folder.path(), &["--ci", "gitea"], false);
    done.unwrap();
    assert_eq!(said.matches("written: .gitea/workflows/strata-").count(), 4, "{said}");
    // What the source reads is given to the jobs, and what is still to be done is said.
    let plan = fs::read_to_string(folder.path().join(".gitea/workflows/strata-plan.yml")).unwrap();
    assert!(plan.contains("PVE_TOKEN: ${{ secrets.PVE_TOKEN }}"), "{plan}");
    // The checksum is that of the program that runs.
    assert!(plan.contains(&checksum()), "{plan}");
    assert!(said.contains("`PVE_TOKEN`") && said.contains("strata review keygen"), "{said}");
    let (done, said) = init(folder.path(), &["--ci", "gitea"], false);
    done.unwrap();
    assert!(said.contains("as they should be") && said.matches("unchanged: ").count() == 4, "{said}");
}

fn checksum() -> String {
    use std::process::Command;
    let said = Command::new("sh").args(["-c", "printf 'a program' | sha256sum"]).output().unwrap();
    String::from_utf8_lossy(&said.stdout)[..64].to_owned()
}

#[test]
fn what_somebody_wrote_is_shown_and_stays_until_they_agree() {
    let folder = repository();
    init(folder.path(), &["--ci", "github"], false).0.unwrap();
    let path = folder.path().join(".github/workflows/strata-drift.yml");
    let before = fs::read_to_string(&path).unwrap();
    let mine = before.replace("17 3 * * *", "5 5 * * *");
    fs::write(&path, &mine).unwrap();
    fs::remove_file(folder.path().join(".github/workflows/strata-plan.yml")).unwrap();
    let (done, said) = init(folder.path(), &["--ci", "github"], false);
    assert!(
        done.is_err()
            && said.contains("-    - cron: '5 5 * * *'")
            && said.contains("+    - cron: '17 3 * * *'"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), mine);
    assert!(!folder.path().join(".github/workflows/strata-plan.yml").exists(), "all of it or nothing");
    init(folder.path(), &["--ci", "github"], true).0.unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    fs::write(&path, &mine).unwrap();
    let (done, said) = init(folder.path(), &["--ci", "github", "--yes"], false);
    done.unwrap();
    assert!(
        !said.contains("Overwrite") && said.contains("overwritten: .github/workflows/strata-drift.yml"),
        "{said}"
    );
}

#[test]
fn gitlab_s_own_file_is_never_overwritten() {
    let folder = repository();
    let path = folder.path().join(".gitlab-ci.yml");
    fs::write(&path, "test:\n  script: make test\n").unwrap();
    let (done, said) = init(folder.path(), &["--ci", "gitlab", "--yes"], true);
    done.unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "test:\n  script: make test\n");
    assert!(
        said.contains("does not include `.gitlab/strata.yml`")
            && said.contains("- local: .gitlab/strata.yml"),
        "{said}"
    );
    fs::write(&path, "include: [{local: .gitlab/strata.yml}]\ntest:\n  script: make test\n").unwrap();
    let (_, said) = init(folder.path(), &["--ci", "gitlab", "--yes"], true);
    assert!(!said.contains("does not include"), "{said}");
}

#[test]
fn options_stand_in_scripts_and_are_looked_at() {
    let folder = repository();
    for wrong in [
        ["--branch", "main'; rm -rf /"],
        ["--home", "/var/lib/my strata"],
        ["--runner", "${{ secrets.A }}"],
        ["--sha256", "5f"],
        ["--program", "http://files.example.org/strata"],
    ] {
        let (done, _) = init(folder.path(), &[&["--ci", "gitea"][..], &wrong].concat(), true);
        assert!(done.is_err(), "{wrong:?}");
    }
    assert!(!folder.path().join(".gitea").exists());
}

#[test]
fn pipelines_are_written_at_the_top_of_a_clone() {
    let folder = repository();
    let below = folder.path().join("infra");
    fs::create_dir(&below).unwrap();
    fs::write(below.join("strata.yaml"), TOKEN).unwrap();
    fs::write(below.join("program"), "").unwrap();
    let (done, _) = init(&below, &["--ci", "gitea"], true);
    assert!(done.unwrap_err().message.contains("not at the top"));
    // The branch that the remote shows first is the one that is applied.
    let remote = folder.path().join(".git/refs/remotes/origin");
    fs::create_dir_all(&remote).unwrap();
    fs::write(remote.join("HEAD"), "ref: refs/remotes/origin/trunk\n").unwrap();
    init(folder.path(), &["--ci", "woodpecker"], true).0.unwrap();
    let apply = fs::read_to_string(folder.path().join(".woodpecker/strata-apply.yaml")).unwrap();
    assert!(apply.contains("branch: 'trunk'"), "{apply}");
}
