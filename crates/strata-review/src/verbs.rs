//! The verbs of `strata review`. What they print goes through [`Terminal`]; what they are given is in [`Surroundings`].

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use clap::Subcommand;
use strata_diagnostics::{LARGEST_DOCUMENT, LARGEST_FILE, read_file, read_text_file};
use strata_events::Terminal;
use strata_secret::SecretString;
use strata_session::{ErrorKind, SessionError, Surroundings, Workspace, find_root};

use crate::base::Base;
use crate::git::Git;
use crate::range::Range;
use crate::signing::RunnerKey;

mod apply;
mod drift;
mod keygen;
mod plan;
pub mod policy;
mod show;

pub use apply::Run;

/// Runs plans that were approved, and says what comes of it.
#[async_trait]
pub trait Runner: Send + Sync {
    async fn apply(&self, run: &Run<'_>) -> Result<(), SessionError>;
}

/// How a verb ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Done,
    /// There are changes, and the caller asked for an exit code that says so.
    Changes,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    Changed(ChangedArgs),
    Plan(plan::Args),
    Apply(apply::Args),
    Show(show::Args),
    Drift(drift::Args),
    Keygen(keygen::Args),
}

/// Says which stacks a commit range can change, in which environments, and why
///
/// A stack counts as changed when anything that it is made from does: its files, defaults and profiles, its environment, its target, files
/// that it names, files of secrets (nothing is decrypted), outputs and templates of other stacks, code of OpenTofu. Where the clone does not
/// have the base, every stack counts, and the command says so. No target is asked.
#[derive(Debug, clap::Args)]
pub struct ChangedArgs {
    /// The commit, branch or tag that the change is made upon
    #[arg(long, value_name = "REF")]
    base: String,
    /// The commit, branch or tag with the change
    #[arg(long, value_name = "REF", default_value = "HEAD")]
    head: String,
    /// Exit code 2 if anything can change
    #[arg(long)]
    detailed_exitcode: bool,
}

/// Runs a verb in a repository.
pub async fn run(verb: &Verb, desk: &Desk<'_>) -> Result<Ended, SessionError> {
    match verb {
        Verb::Changed(args) => changed(args, desk),
        Verb::Plan(args) => plan::run(args, desk).await,
        Verb::Apply(args) => apply::run(args, desk).await,
        Verb::Show(args) => show::run(args, desk),
        Verb::Drift(args) => drift::run(args, desk).await,
        Verb::Keygen(args) => keygen::run(args, desk),
    }
}

/// What a verb works with.
pub struct Desk<'d> {
    pub surroundings: Surroundings,
    pub terminal: &'d dyn Terminal,
    pub runner: &'d dyn Runner,
}

impl Desk<'_> {
    fn git(&self) -> Result<Git, SessionError> {
        Ok(Git::open(&find_root(&self.surroundings.start)?)?)
    }

    fn base(&self, git: &Git, name: &str) -> Result<Base, SessionError> {
        Base::read(git, name, &self.surroundings.variables)
    }

    /// The repository, for its secrets and keys. Its mistakes are told by whoever plans it.
    fn workspace(&self) -> Result<Workspace, SessionError> {
        Ok(Workspace::load(self.surroundings.clone())?.0)
    }

    /// The private key of this runner: a file, a variable or a secret of the repository.
    fn key(&self, given: Option<&str>) -> Result<RunnerKey, SessionError> {
        const VARIABLE: &str = "STRATA_REVIEW_KEY";
        let variable =
            |name: &str| self.surroundings.variable(name).map(|text| SecretString::new(text.clone()));
        let text = match given.map(|given| given.split_once(':').unwrap_or(("file", given))) {
            None => variable(VARIABLE).ok_or_else(|| {
                SessionError::failed("there is no key to sign the plan with")
                    .hint(format!("`--key FILE`, `--key secret:NAME`, or the variable `{VARIABLE}`"))
                    .hint("`strata review keygen FILE` makes one")
            })?,
            Some(("env", name)) => variable(name)
                .ok_or_else(|| SessionError::failed(format!("the variable `{name}` is not set")))?,
            Some(("secret", name)) => self
                .workspace()?
                .secret(name)
                .map_err(|error| SessionError::failed(error.to_string()).because(error))?,
            Some(_) => {
                let path = given.unwrap_or_default();
                let text = read_text_file(Path::new(path), LARGEST_FILE)
                    .map_err(|error| SessionError::failed(format!("cannot read `{path}`: {error}")))?;
                SecretString::new(text)
            }
        };
        RunnerKey::parse(&text).map_err(|error| {
            SessionError::failed(error.to_string()).hint("`strata review keygen FILE` makes one")
        })
    }

    /// Writes what a verb was asked for.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), SessionError> {
        strata_secrets::replace_private(path, bytes)
            .map_err(|error| SessionError::failed(format!("cannot write `{}`: {error}", path.display())))
    }
}

fn changed(args: &ChangedArgs, desk: &Desk<'_>) -> Result<Ended, SessionError> {
    let range = Range::read(&desk.git()?, &args.base, &args.head, &desk.surroundings.variables)?;
    tell(&range, desk.terminal);
    desk.terminal.line(&format!("{}{}", crate::changed::render(&range.changed), range.line()));
    Ok(if !range.changed.is_empty() && args.detailed_exitcode { Ended::Changes } else { Ended::Done })
}

/// The range for programs, and what a reader should know of it.
fn tell(range: &Range, terminal: &dyn Terminal) {
    for one in &range.changed {
        terminal.event(Some(&one.key.state_key()), &one.event());
    }
    terminal.event(None, &range.event());
    for said in range.unknown.iter().chain(&range.remark) {
        terminal.note(&format!("warning: {said}"));
    }
}

/// Reads a file that the command line names.
fn read(path: &Path) -> Result<Vec<u8>, SessionError> {
    read_file(path, LARGEST_DOCUMENT)
        .map_err(|error| SessionError::failed(format!("cannot read `{}`: {error}", path.display())))
}

/// The file of a sealed plan: in a folder that keeps several, by its digest.
fn place(path: &Path, digest: &str) -> PathBuf {
    if path.is_dir() { path.join(format!("{digest}.sealed")) } else { path.to_owned() }
}

fn refused(path: &Path, error: &dyn std::error::Error) -> SessionError {
    SessionError::new(ErrorKind::Refused, format!("`{}` is not taken: {error}", path.display()))
}
