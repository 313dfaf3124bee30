//! Branches of git, one for each group, made beside the files on the disk: nothing is checked out, and a run that is killed leaves no branch
//! behind that is not whole.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why no branch was made.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    /// The program does not start.
    #[error("the program `git` cannot be started: {0}")]
    NoGit(#[source] std::io::Error),
    /// What git said.
    #[error("git says: {0}")]
    Failed(String),
    /// A file that would change has changes that nobody committed.
    #[error("`{0}` is not as the last commit has it")]
    Uncommitted(String),
    /// Somebody has a branch of this name.
    #[error("the branch `{0}` is there already, with something else")]
    Exists(String),
}

/// A branch, and its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// `outdated/talos`.
    pub branch: String,
    /// Its hash.
    pub commit: String,
    /// It was there already, with the same files.
    pub was_there: bool,
}

/// The clone that branches are made in.
pub struct Branches {
    root: PathBuf,
    head: String,
    prefix: String,
}

impl Branches {
    /// `root` is the folder of `strata.yaml`.
    pub fn open(root: &Path) -> Result<Self, BranchError> {
        let mut own = Self { root: root.to_owned(), head: String::new(), prefix: String::new() };
        own.head = own.ask(&["rev-parse", "--verify", "HEAD^{commit}"], None, None)?;
        own.prefix = own.ask(&["rev-parse", "--show-prefix"], None, None)?;
        Ok(own)
    }

    /// A branch upon the checked-out commit with some files changed. `before` are they as they were read.
    pub fn commit(
        &self,
        branch: &str,
        message: &str,
        before: &BTreeMap<String, String>,
        after: &BTreeMap<String, String>,
    ) -> Result<Committed, BranchError> {
        let scratch = self.ask(
            &["rev-parse", "--git-path", &format!("strata-outdated-{}", std::process::id())],
            None,
            None,
        )?;
        let index = Scratch(self.root.join(scratch));
        let at = Some(index.0.as_path());
        self.ask(&["read-tree", &self.head], None, at)?;
        for (path, text) in after {
            let full = format!("{}{path}", self.prefix);
            let known = self.ask(&["ls-files", "--stage", "--full-name", "--", path], None, at)?;
            let mut about = known.split([' ', '\t']);
            let (mode, id) = (about.next().unwrap_or_default(), about.next().unwrap_or_default());
            let was = before.get(path).map(|text| self.blob(text)).transpose()?;
            if mode != "100644" && mode != "100755" || was.as_deref() != Some(id) {
                return Err(BranchError::Uncommitted(path.clone()));
            }
            let blob = self.blob(text)?;
            self.ask(&["update-index", "--cacheinfo", &format!("{mode},{blob},{full}")], None, at)?;
        }
        let tree = self.ask(&["write-tree"], None, at)?;
        let name = format!("refs/heads/{branch}");
        if let Ok(there) = self.ask(&["rev-parse", "--verify", "--quiet", &name], None, None) {
            let its = self.ask(&["rev-parse", &format!("{there}^{{tree}}")], None, None)?;
            let parent = self.ask(&["rev-parse", "--verify", "--quiet", &format!("{there}^")], None, None);
            if its == tree && parent.is_ok_and(|parent| parent == self.head) {
                return Ok(Committed { branch: branch.to_owned(), commit: there, was_there: true });
            }
            return Err(BranchError::Exists(branch.to_owned()));
        }
        let commit = self.ask(&["commit-tree", &tree, "-p", &self.head], Some(message), None)?;
        // With the old value of a branch that is not there: somebody else's is never moved.
        self.ask(&["update-ref", &name, &commit, &"0".repeat(commit.len())], None, None)?;
        Ok(Committed { branch: branch.to_owned(), commit, was_there: false })
    }

    fn blob(&self, text: &str) -> Result<String, BranchError> {
        self.ask(&["hash-object", "-w", "--stdin", "--no-filters"], Some(text), None)
    }

    fn ask(
        &self,
        arguments: &[&str],
        input: Option<&str>,
        index: Option<&Path>,
    ) -> Result<String, BranchError> {
        let mut command = Command::new("git");
        command.current_dir(&self.root).args(arguments).env("LC_ALL", "C");
        if let Some(index) = index {
            command.env("GIT_INDEX_FILE", index);
        }
        let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
        let command = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(BranchError::NoGit)?;
        if let (Some(text), Some(mut pipe)) = (input, child.stdin.take()) {
            // Who does not read to the end says why on its own.
            let _ = pipe.write_all(text.as_bytes());
        }
        let output = child.wait_with_output().map_err(BranchError::NoGit)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(BranchError::Failed(said));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// An index of our own, beside that of the clone.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
