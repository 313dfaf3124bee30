//! `strata fmt`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use strata_diagnostics::{LARGEST_FILE, read_text_file};
use strata_events::Event;
use strata_session::SessionError;
use strata_views::text::diff;

use crate::{Left, format};

/// Writes YAML files in one layout: comments, order and meaning stay
///
/// Two spaces for each level, quotes only where they are needed, one blank line at most, and what stands in brackets in lines of its own where it is
/// longer than 120 columns. Encrypted files and templates are left alone. Without a path, every YAML file of the folder, but what `.gitignore` names.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files and folders; `-` reads standard input and writes standard output
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Writes nothing; exit code 2 if a file has another layout
    #[arg(long)]
    check: bool,
    /// Writes nothing, and shows what would change
    #[arg(long)]
    diff: bool,
}

/// Where texts come from and go.
pub struct Terminal<'t> {
    pub line: &'t dyn Fn(&str),
    pub raw: &'t dyn Fn(&str),
    pub note: &'t dyn Fn(&str),
    /// What is said with `-v`.
    pub detail: &'t dyn Fn(&str),
    pub event: &'t dyn Fn(&Event<'_>),
    pub input: &'t dyn Fn() -> std::io::Result<String>,
}

/// Formats what is named; true if a check found something.
pub fn run(args: &Args, folder: &Path, terminal: &Terminal<'_>) -> Result<bool, SessionError> {
    if args.paths.iter().any(|path| path.as_os_str() == "-") {
        return input(args, terminal);
    }
    let mut files = BTreeSet::new();
    if args.paths.is_empty() {
        walk(folder, Path::new(""), &Ignored::default(), &mut files)?;
    }
    for path in &args.paths {
        if folder.join(path).is_dir() {
            walk(folder, path, &Ignored::default(), &mut files)?;
        } else {
            files.insert(path.clone());
        }
    }
    let (mut changed, mut failed) = (0, 0);
    for path in &files {
        match one(args, folder, path, terminal)? {
            Outcome::Same => {}
            Outcome::Changed => changed += 1,
            Outcome::Failed => failed += 1,
        }
    }
    let writes = !args.check && !args.diff;
    (terminal.note)(&match (changed, writes) {
        (0, _) => format!("{} in Strata's layout", counted(files.len() - failed)),
        (_, true) => format!("{changed} of {} formatted", counted(files.len())),
        (_, false) => format!("{changed} of {} would be formatted", counted(files.len())),
    });
    match failed {
        0 => Ok(args.check && changed > 0),
        1 => Err(SessionError::failed("1 file could not be read as YAML, and is left as it is")),
        _ => Err(SessionError::failed(format!(
            "{failed} files could not be read as YAML, and are left as they are"
        ))),
    }
}

fn counted(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

enum Outcome {
    Same,
    Changed,
    Failed,
}

fn one(args: &Args, folder: &Path, path: &Path, terminal: &Terminal<'_>) -> Result<Outcome, SessionError> {
    let (place, name) = (folder.join(path), path.display().to_string());
    let failed = |verb: &str, error: std::io::Error| {
        SessionError::failed(format!("cannot {verb} `{name}`: {error}")).because(error)
    };
    let before = read_text_file(&place, LARGEST_FILE).map_err(|error| failed("read", error))?;
    let after = match format(&before) {
        Ok(after) => after,
        Err(left) => {
            let message = format!("`{name}` is left as it is: {left}");
            if left.is_expected() {
                (terminal.detail)(&message);
                return Ok(Outcome::Same);
            }
            (terminal.event)(&Event::Note {
                message: &message,
                address: None,
                file: Some(&name),
                line: line(&left),
            });
            (terminal.note)(&format!("warning: {message}"));
            let is_broken = matches!(left, Left::Syntax { .. });
            return Ok(if is_broken { Outcome::Failed } else { Outcome::Same });
        }
    };
    if before == after {
        return Ok(Outcome::Same);
    }
    let status = if args.check || args.diff { "unformatted" } else { "formatted" };
    (terminal.event)(&Event::file(&name, Some(status)));
    if args.diff {
        (terminal.line)(diff(&name, &before, &after).trim_end());
    } else {
        (terminal.line)(&name);
    }
    if !args.check && !args.diff {
        strata_secrets::replace(&place, after.as_bytes()).map_err(|error| failed("write", error))?;
    }
    Ok(Outcome::Changed)
}

fn line(left: &Left) -> Option<usize> {
    match left {
        Left::Syntax { line, .. } | Left::Unusual { line, .. } => Some(*line),
        _ => None,
    }
}

/// What is left alone goes through as it is.
fn input(args: &Args, terminal: &Terminal<'_>) -> Result<bool, SessionError> {
    if args.paths.len() > 1 {
        return Err(SessionError::usage("`-` is standard input, and stands alone"));
    }
    let before = (terminal.input)().map_err(|error| {
        SessionError::failed(format!("cannot read standard input: {error}")).because(error)
    })?;
    let after = match format(&before) {
        Err(left @ Left::Syntax { .. }) => {
            return Err(SessionError::failed(format!("standard input is no YAML: {left}")));
        }
        formatted => formatted.unwrap_or_else(|_| before.clone()),
    };
    if args.diff {
        (terminal.raw)(&diff("-", &before, &after));
    } else if !args.check {
        (terminal.raw)(&after);
    }
    Ok(args.check && before != after)
}

/// What the `.gitignore` files from the top to a folder name, as far as they are names and paths without further signs.
#[derive(Debug, Default, Clone)]
struct Ignored(Vec<(PathBuf, String)>);

impl Ignored {
    fn with(&self, folder: &Path, below: &Path) -> Self {
        let mut all = self.clone();
        let text = read_text_file(&folder.join(below).join(".gitignore"), LARGEST_FILE).unwrap_or_default();
        let lines =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
        all.0.extend(lines.map(|line| (below.to_owned(), line.trim_end_matches('/').to_owned())));
        all
    }

    fn names(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.0.iter().any(|(from, pattern)| match pattern.trim_start_matches('/') {
            inner if pattern.contains('/') => path == from.join(inner),
            _ => match pattern.split_once('*') {
                Some((begin, end)) => {
                    name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
                }
                None => *name == *pattern,
            },
        })
    }
}

/// The YAML files below a folder. Hidden folders belong to programs; links lead out of the repository.
fn walk(
    folder: &Path,
    below: &Path,
    ignored: &Ignored,
    found: &mut BTreeSet<PathBuf>,
) -> Result<(), SessionError> {
    let ignored = ignored.with(folder, below);
    let failed = |error: std::io::Error| {
        SessionError::failed(format!("cannot read the folder `{}`: {error}", below.display())).because(error)
    };
    for entry in fs::read_dir(folder.join(below)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let name = entry.file_name();
        let path = below.join(&name);
        if name.to_string_lossy().starts_with('.') || ignored.names(&path) {
            continue;
        }
        if kind.is_dir() {
            walk(folder, &path, &ignored, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|is| is == "yaml" || is == "yml") {
            found.insert(path);
        }
    }
    Ok(())
}
