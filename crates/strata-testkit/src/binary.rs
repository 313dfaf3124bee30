//! The program under test, run as a user runs it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;

use crate::{Control, Repo};

/// The binary, in a repository, with an environment of its own.
pub struct Strata {
    binary: PathBuf,
    folder: PathBuf,
    environment: Vec<(String, String)>,
}

pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Fails the test unless the command succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Both streams, as a person sees them.
    pub fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// What came of a run that was to be killed.
pub struct Killed {
    /// The fault struck. How often a task is asked for its end depends on the machine, so the number of requests is not always the same.
    pub struck: bool,
    /// How the run ended by itself, where it was not killed before that.
    pub ended: Option<ExitStatus>,
}

impl Killed {
    /// Whether the fault struck; a run that ended before it must have gone well.
    #[track_caller]
    pub fn struck_or_good(&self, what: &str) -> bool {
        if let Some(status) = self.ended {
            assert!(status.success(), "{what}: {status}");
        }
        self.struck
    }
}

impl Strata {
    /// `binary` is `env!("CARGO_BIN_EXE_strata")` of the test.
    pub fn new(binary: &str, repo: &Repo) -> Self {
        Self::at(binary, repo.path())
    }

    /// `STRATA_TEST_BINARY` names another program that is tested in its place, say one of an earlier commit.
    pub fn at(binary: &str, folder: &Path) -> Self {
        let binary = std::env::var_os("STRATA_TEST_BINARY").unwrap_or_else(|| binary.into()).into();
        Self { binary, folder: folder.to_owned(), environment: Vec::new() }
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The command, ready to be spawned; nothing of the tester's environment reaches it but the search path.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.current_dir(&self.folder).env_clear().env("HOME", &self.folder).env("USER", "tester");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Kills a run when a fault strikes, which holds the request that it strikes. No other fault is left afterwards.
    pub fn kill_at(&self, control: &Control, fault: &Value, arguments: &[&str]) -> Killed {
        let id = control.fault(fault);
        let mut child = self.spawn(arguments);
        let mut ended = None;
        let struck = loop {
            if control.wait_fault(id, 0.5) {
                break true;
            }
            ended = child.try_wait().unwrap();
            if ended.is_some() {
                break control.wait_fault(id, 0.0);
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        // What is held before it is carried out goes with the connection of the dead run. Released, it could arrive first, while the next
        // run looks.
        if !(struck && fault["kind"] == "hold-before") {
            control.release(id);
            control.clear_faults();
        }
        Killed { struck, ended }
    }

    /// Starts it in the background, without its output.
    pub fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}
