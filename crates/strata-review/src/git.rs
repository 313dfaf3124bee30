//! A repository of git, read through the program `git`: commits, where two of them parted, and the files of one.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_source::world::{Listed, World};

/// Links that lead to links are followed this far.
const MAX_LINKS: usize = 16;

/// Why git could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    #[error("the program `git` cannot be started: {0}")]
    NoGit(String),
    #[error("`{0}` is not in a repository of git")]
    NoRepository(String),
    #[error("`{0}` is not the name of a commit")]
    BadName(String),
    #[error("there is no commit `{name}` in this clone")]
    NoCommit {
        name: String,
        /// The clone does not have the whole history.
        shallow: bool,
    },
    #[error("git says: {0}")]
    Failed(String),
}

/// A clone, and the folder in it that is the repository of Strata.
#[derive(Debug, Clone)]
pub struct Git {
    root: PathBuf,
    /// From the top of the clone to the root, with a `/` at its end; empty if they are the same.
    prefix: String,
}

impl Git {
    /// `root` is the folder of `strata.yaml`.
    pub fn open(root: &Path) -> Result<Self, GitError> {
        let git = Self { root: root.to_owned(), prefix: String::new() };
        let no_repository = |_| GitError::NoRepository(root.display().to_string());
        let prefix = match git.ask(&["rev-parse", "--show-prefix"]) {
            Err(GitError::NoGit(reason)) => return Err(GitError::NoGit(reason)),
            prefix => prefix.map_err(no_repository)?,
        };
        Ok(Self { prefix, ..git })
    }

    /// The full id of a commit.
    pub fn commit(&self, name: &str) -> Result<String, GitError> {
        if name.is_empty() || name.starts_with('-') || name.contains(['\0', '\n']) {
            return Err(GitError::BadName(name.to_owned()));
        }
        let commit = format!("{name}^{{commit}}");
        match self.ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]) {
            Err(GitError::Failed(_)) => {
                Err(GitError::NoCommit { name: name.to_owned(), shallow: self.is_shallow()? })
            }
            found => found,
        }
    }

    /// Whether the clone lacks a part of the history.
    pub fn is_shallow(&self) -> Result<bool, GitError> {
        Ok(self.ask(&["rev-parse", "--is-shallow-repository"])? == "true")
    }

    /// Where two commits parted; none where this clone does not show it.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, GitError> {
        match self.ask(&["merge-base", one, other]) {
            Err(GitError::Failed(_)) => Ok(None),
            found => found.map(Some),
        }
    }

    /// The files that differ between two commits, from the root of the repository; others of the clone from its top.
    pub fn changed_paths(&self, from: &str, to: &str) -> Result<Vec<String>, GitError> {
        let listed = self.output(&["diff", "--name-only", "--no-renames", "-z", from, to])?;
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(|path| {
            let path = String::from_utf8_lossy(path).into_owned();
            path.strip_prefix(&self.prefix).map(str::to_owned).unwrap_or(path)
        });
        Ok(paths.collect())
    }

    /// The files of a commit below the root of the repository. Variables are those of the process that asks.
    pub fn files(&self, commit: &str, env: BTreeMap<String, String>) -> Result<CommitFiles, GitError> {
        let listed = self.output(&["ls-tree", "-r", "-z", "--full-tree", commit])?;
        let mut files = BTreeMap::new();
        for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let line = String::from_utf8_lossy(line);
            let Some((about, path)) = line.split_once('\t') else { continue };
            let mut about = about.split(' ');
            let (Some(mode), Some("blob"), Some(id)) = (about.next(), about.next(), about.next()) else {
                // A submodule has no files here.
                continue;
            };
            let is_link = mode == "120000";
            files.insert(path.to_owned(), Blob { id: id.to_owned(), is_link });
        }
        Ok(CommitFiles { git: self.clone(), files, env, reader: Mutex::new(self.reader()?) })
    }

    /// What git is told to leave out: keys and tokens that lie beside the source, the same whichever commit is looked at.
    fn ignored(&self, path: &str) -> io::Result<Vec<u8>> {
        let file = self.root.join(path);
        let is_ignored = file.is_file() && self.output(&["check-ignore", "--quiet", "--", path]).is_ok();
        if is_ignored { read_file(&file, LARGEST_FILE) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn reader(&self) -> Result<Reader, GitError> {
        let mut command = self.command(&["cat-file", "--batch"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| GitError::NoGit(error.to_string()))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(ask), Some(answer)) => Ok(Reader { child, ask: Some(ask), answer: BufReader::new(answer) }),
            _ => Err(GitError::Failed("it gives no pipes".to_owned())),
        }
    }

    fn ask(&self, arguments: &[&str]) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.output(arguments)?).trim().to_owned())
    }

    fn output(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        let output = self.command(arguments).stdin(Stdio::null()).output();
        let output = output.map_err(|error| GitError::NoGit(error.to_string()))?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(GitError::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        // It only looks: no lock is taken, no program of the repository's own configuration is started, nobody is asked for a password.
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        command.arg("-C").arg(&self.root).args(["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]);
        command.args(arguments);
        command
    }
}

#[derive(Debug, Clone)]
struct Blob {
    id: String,
    is_link: bool,
}

/// The files of one commit, as a world that a repository is loaded from.
pub struct CommitFiles {
    git: Git,
    files: BTreeMap<String, Blob>,
    env: BTreeMap<String, String>,
    reader: Mutex<Reader>,
}

impl CommitFiles {
    /// A path of the source as one from the top of the clone, without detours.
    fn place(&self, path: &str) -> io::Result<String> {
        straight(&format!("{}{path}", self.git.prefix))
    }
}

/// A path without `.` and `..`.
fn straight(path: &str) -> io::Result<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

impl World for CommitFiles {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        if path.starts_with('/') {
            // What lies outside of the clone is in no commit.
            return read_file(Path::new(path), LARGEST_FILE);
        }
        let mut place = self.place(path)?;
        for _ in 0..MAX_LINKS {
            let Some(blob) = self.files.get(&place) else { return self.git.ignored(path) };
            let content = self.reader.lock().unwrap_or_else(PoisonError::into_inner).read(&blob.id)?;
            if !blob.is_link {
                return Ok(content);
            }
            let to = String::from_utf8_lossy(&content).into_owned();
            if to.starts_with('/') {
                return read_file(Path::new(&to), LARGEST_FILE);
            }
            let folder = place.rsplit_once('/').map_or("", |(folder, _)| folder);
            place = straight(&format!("{folder}/{to}"))?;
        }
        Err(io::Error::other("links lead in circles"))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Listed>> {
        let place = self.place(folder)?;
        let prefix = if place.is_empty() { place } else { format!("{place}/") };
        let mut listed: Vec<Listed> = Vec::new();
        for path in self.files.range(prefix.clone()..).map(|(path, _)| path) {
            let Some(rest) = path.strip_prefix(&prefix) else { break };
            let (name, is_folder) = rest.split_once('/').map_or((rest, false), |(name, _)| (name, true));
            let entry = Listed { name: name.to_owned(), is_folder };
            if listed.last() != Some(&entry) {
                listed.push(entry);
            }
        }
        listed.sort();
        listed.dedup();
        Ok(listed)
    }

    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }
}

/// One process that gives the content of objects.
struct Reader {
    child: Child,
    ask: Option<ChildStdin>,
    answer: BufReader<ChildStdout>,
}

impl Reader {
    fn read(&mut self, id: &str) -> io::Result<Vec<u8>> {
        let gone = || io::Error::other("git ended before it answered");
        let ask = self.ask.as_mut().ok_or_else(gone)?;
        writeln!(ask, "{id}")?;
        ask.flush()?;
        let mut head = String::new();
        self.answer.read_line(&mut head)?;
        // `<id> blob <size>`, or `<id> missing` in a clone that was made without it.
        let size: Option<u64> = head.trim_end().rsplit_once(' ').and_then(|(_, size)| size.parse().ok());
        let size = size.ok_or_else(|| io::Error::other(format!("git does not have the object {id}")))?;
        let mut content = vec![0; usize::try_from(size + 1).map_err(io::Error::other)?];
        self.answer.read_exact(&mut content)?;
        content.pop();
        if size > LARGEST_FILE {
            return Err(io::Error::other(format!("it is larger than {LARGEST_FILE} bytes")));
        }
        Ok(content)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // It ends when there is nobody left to ask.
        drop(self.ask.take());
        let _ = self.child.wait();
    }
}
