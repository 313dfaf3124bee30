//! `strata init --ci`.

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use strata_diagnostics::{LARGEST_FILE, read_file, read_text_file};
use strata_events::{Event, Terminal};
use strata_session::SessionError;
use strata_source::Repository;
use strata_source::settings::review::ForgeKind;
use strata_source::world::Disk;
use strata_views::text::diff;

use crate::{Forge, PipelineFile, Settings, files, variables};

/// No build of it is larger.
const LARGEST_PROGRAM: u64 = 1 << 30;

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Pipelines")]
#[group(id = "pipelines")]
pub struct Args {
    /// Writes the pipelines of this forge: a plan of each request, the apply of what was approved, drift every night, newer versions every quarter
    #[arg(long, value_name = "FORGE")]
    pub ci: Option<Forge>,
    /// The label of the runner on the control machine
    #[arg(long, value_name = "LABEL", default_value = "strata", requires = "ci")]
    runner: String,
    /// The label of the runner for requests from forks, which have no secrets; that of the control machine without it
    #[arg(long, value_name = "LABEL", requires = "ci")]
    fork_runner: Option<String>,
    /// The branch that is applied; the one that the clone takes for the remote's own, or `main`
    #[arg(long, value_name = "NAME", requires = "ci")]
    branch: Option<String>,
    /// The folder on the control machine for sealed plans and the audit log
    #[arg(long, value_name = "DIR", default_value = "/var/lib/strata", requires = "ci")]
    home: String,
    /// The checksum of the program that the jobs run; that of this one without it
    #[arg(long, value_name = "SHA256", requires = "ci")]
    sha256: Option<String>,
    /// Where the jobs download the program from, over https; without it, it is installed on the runner
    #[arg(long, value_name = "URL", requires = "ci")]
    program: Option<String>,
    /// Overwrites files that differ without asking
    #[arg(long, short, requires = "ci")]
    yes: bool,
}

/// A file that is not as it should be.
struct Change {
    file: PipelineFile,
    before: Option<String>,
}

/// Writes the pipelines into the repository of a folder. `program` is the one that runs.
pub fn run(
    forge: Forge,
    args: &Args,
    root: &Path,
    program: &Path,
    terminal: &dyn Terminal,
) -> Result<(), SessionError> {
    is_top(root)?;
    let (repository, _) = Repository::load(&Disk::new(root, []));
    let settings = settings(args, root, program, &repository)?;
    let mut changes = Vec::new();
    for file in files(forge, &settings) {
        let before = read(&root.join(&file.path))?;
        match (&before, file.shared) {
            (Some(text), _) if *text == file.text => report(terminal, &file.path, "unchanged"),
            (Some(text), Some(line)) => {
                if !text.contains(line) {
                    terminal.line(&format!(
                        "warning: `{}` was written by somebody else, and does not include `{line}`",
                        file.path
                    ));
                    terminal.line(&format!("  hint: add this to it:\n{}", file.text.trim_end()));
                }
            }
            _ => changes.push(Change { file, before }),
        }
    }
    write(&changes, args.yes, root, terminal)?;
    advise(forge, &settings, &repository, terminal);
    Ok(())
}

fn settings(
    args: &Args,
    root: &Path,
    program: &Path,
    repository: &Repository,
) -> Result<Settings, SessionError> {
    let sha256 = match &args.sha256 {
        Some(given) => given.to_ascii_lowercase(),
        None => checksum(program)?,
    };
    if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(SessionError::usage(
            "`--sha256` takes 64 hexadecimal digits, as `sha256sum` prints them",
        ));
    }
    let branch = args.branch.clone().unwrap_or_else(|| own_branch(root));
    let fork_runner = args.fork_runner.as_ref().unwrap_or(&args.runner);
    let url = args.program.as_deref().map(|url| url.strip_prefix("https://").ok_or(url)).transpose();
    let url = url
        .map_err(|url| SessionError::usage(format!("`--program` takes an address of https, not `{url}`")))?;
    for (option, text) in [
        ("runner", Some(args.runner.as_str())),
        ("fork-runner", Some(fork_runner.as_str())),
        ("branch", Some(branch.as_str())),
        ("home", Some(args.home.as_str())),
        ("program", url),
    ] {
        // These texts stand in YAML and in scripts.
        let is_plain = |text: &str| {
            let of_word = |letter: char| letter.is_ascii_alphanumeric() || "._/-+~%=?&:,".contains(letter);
            !text.is_empty() && !text.starts_with('-') && text.chars().all(of_word)
        };
        if !text.is_none_or(is_plain) {
            return Err(SessionError::usage(format!("`--{option}` takes letters, digits and `._/-`")));
        }
    }
    let kind = repository.settings.review.as_ref().and_then(|review| review.forge.as_ref()?.kind);
    let woodpecker_token = match kind {
        Some(ForgeKind::Github) => "GITHUB_TOKEN",
        Some(ForgeKind::Gitlab) => "GITLAB_TOKEN",
        Some(ForgeKind::Forgejo) => "FORGEJO_TOKEN",
        Some(ForgeKind::Gitea) | None => "GITEA_TOKEN",
    };
    Ok(Settings {
        runner: args.runner.clone(),
        fork_runner: fork_runner.clone(),
        branch,
        home: args.home.trim_end_matches('/').to_owned(),
        sha256,
        program: args.program.clone(),
        variables: variables(repository),
        woodpecker_token,
    })
}

/// A forge reads pipelines at the top of its repository, and the commands in them run there.
fn is_top(root: &Path) -> Result<(), SessionError> {
    let is_clone = |folder: &Path| folder.join(".git").exists();
    let above = root.ancestors().skip(1).find(|folder| is_clone(folder));
    match above {
        Some(clone) if !is_clone(root) => Err(SessionError::refused(format!(
            "`strata.yaml` is not at the top of its git repository, which is `{}`",
            clone.display()
        ))
        .hint("pipelines are written for a repository of its own")),
        _ => Ok(()),
    }
}

/// What the clone knows as the branch that its remote shows first.
fn own_branch(root: &Path) -> String {
    let head = read_text_file(&root.join(".git/refs/remotes/origin/HEAD"), LARGEST_FILE).unwrap_or_default();
    let branch = head.trim().strip_prefix("ref: refs/remotes/origin/");
    branch.unwrap_or("main").to_owned()
}

fn checksum(program: &Path) -> Result<String, SessionError> {
    let bytes = read_file(program, LARGEST_PROGRAM)
        .map_err(|error| SessionError::failed(format!("cannot read `{}`: {error}", program.display())))?;
    Ok(hex::encode(Sha256::digest(bytes)))
}

fn read(path: &Path) -> Result<Option<String>, SessionError> {
    match read_text_file(path, LARGEST_FILE) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SessionError::failed(format!("cannot read `{}`: {error}", path.display()))),
    }
}

/// Says what became of a file.
fn report(terminal: &dyn Terminal, path: &str, status: &'static str) {
    terminal.event(None, &Event::file(path, Some(status)));
    terminal.line(&format!("{status}: {path}"));
}

/// Shows what would be overwritten, asks, and writes. Nothing is written if somebody does not agree.
fn write(changes: &[Change], yes: bool, root: &Path, terminal: &dyn Terminal) -> Result<(), SessionError> {
    let mut overwritten = 0;
    for Change { file, before } in changes {
        if let Some(before) = before {
            terminal.line(diff(&file.path, before, &file.text).trim_end());
            overwritten += 1;
        }
    }
    if overwritten > 0 && !yes {
        let files =
            if overwritten == 1 { "this file".to_owned() } else { format!("these {overwritten} files") };
        terminal.ask(&format!("Overwrite {files}?"))?;
    }
    for Change { file, before } in changes {
        let path = root.join(&file.path);
        if read(&path)? != *before {
            return Err(
                SessionError::refused(format!("`{}` was changed meanwhile", file.path)).hint("run it again")
            );
        }
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        folder.and_then(|()| strata_secrets::replace(&path, file.text.as_bytes())).map_err(|error| {
            SessionError::failed(format!("cannot write `{}`: {error}", file.path))
                .hint("run it again: what was written stays, and the rest follows")
        })?;
        report(terminal, &file.path, if before.is_some() { "overwritten" } else { "written" });
    }
    if changes.is_empty() {
        terminal.line("the pipelines are as they should be");
    }
    Ok(())
}

/// What is still to be done by hand, at the forge and in `strata.yaml`.
fn advise(forge: Forge, settings: &Settings, repository: &Repository, terminal: &dyn Terminal) {
    let own = &repository.settings;
    let mut names: Vec<&str> = vec!["STRATA_REVIEW_KEY", "SOPS_AGE_KEY"];
    if forge != Forge::GitHub {
        names.push(if forge == Forge::GitLab { "GITLAB_TOKEN" } else { "STRATA_TOKEN" });
    }
    names.extend(settings.variables.iter().map(String::as_str));
    let names: Vec<String> = match forge {
        Forge::Woodpecker => names.iter().map(|name| format!("`{}`", name.to_lowercase())).collect(),
        _ => names.iter().map(|name| format!("`{name}`")).collect(),
    };
    let place = match forge {
        Forge::GitHub => "secrets of the environment `strata`, which only the base branch may use",
        Forge::GitLab => "variables with the scope `strata`, masked",
        _ => "secrets of the repository",
    };
    terminal.line(&format!("next: {} as {place}", names.join(", ")));
    terminal.line(&format!(
        "next: a runner with the label `{}` on the control machine; docs/review.md has the rest",
        settings.runner
    ));
    if own.review.as_ref().is_none_or(|review| review.runners.is_empty()) {
        terminal.line(
            "next: `strata review keygen FILE`, and its public key into `review.runners` of `strata.yaml`",
        );
    }
    if own.state.is_none() {
        terminal.line("warning: states are files of this folder, which the jobs of a pipeline do not share: `state:` names a store");
    }
}
