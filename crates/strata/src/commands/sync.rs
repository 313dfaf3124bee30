//! `strata sync`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use strata_tofu::{Files, Found};

use super::CommandResult;
use crate::command_error::{CommandError, ErrorKind};
use crate::context::Context;
use crate::style::{self, paint};
use crate::workspace::Workspace;

/// Writes everything that is generated: OpenTofu projects and modules, talconfig.yaml, Taskfile.yml, justfile; begins infrastructure/
///
/// Files that were written by hand are never overwritten. A generated file that somebody edited is left alone unless --force is given.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, or `layer:NAME`; all stacks without one
    #[arg(value_name = "STACK")]
    stacks: Vec<String>,
    /// Writes nothing; fails if a generated file is missing, stale or edited
    #[arg(long)]
    check: bool,
    /// Adds `import` blocks, so that OpenTofu takes over what Strata has built, in every environment; the next sync without it removes them
    #[arg(long)]
    import_blocks: bool,
    /// Overwrites generated files that somebody edited
    #[arg(long)]
    force: bool,
}

/// What is to be done about one file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Current,
    Missing,
    Stale,
    /// As it was rendered, but for its line ends.
    LineEnds,
    /// A generated file that was edited.
    Edited,
    /// Written by hand: not ours.
    Kept,
    /// Generated once, and wanted no more.
    Superfluous,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Missing => "missing",
            Self::Stale => "stale",
            Self::LineEnds => "has other line ends; a line `*.tf* text eol=lf` in .gitattributes keeps them",
            Self::Edited => "edited by hand",
            Self::Kept => "written by hand, kept",
            Self::Superfluous => "no longer wanted",
        }
    }
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let files = workspace.rendered(&args.stacks, args.import_blocks).await?;
    let found = compare(workspace.root(), &files, args.stacks.is_empty())?;
    for gap in &files.gaps {
        context.printer.event(&json!({"event": "gap", "what": gap.what, "reason": gap.reason}));
        context.printer.note(format!(
            "{} {}: {}",
            paint(style::WARNING, "not rendered:"),
            gap.what,
            gap.reason
        ));
    }
    if args.check {
        check(context, &found)
    } else {
        begin(context, &workspace)?;
        write(context, workspace.root(), &files, &found, args.force)
    }
}

/// The tree that Flux follows is begun here, and then belongs to its readers: what is there stays as it is.
fn begin(context: &Context, workspace: &Workspace<'_>) -> Result<(), CommandError> {
    for (path, text) in workspace.missing_infrastructure()? {
        let place = workspace.root().join(&path);
        let failed = |error: std::io::Error| {
            CommandError::failed(format!("cannot write `{}`: {error}", path.display()))
        };
        if let Some(folder) = place.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        crate::replace_file::replace(&place, text.as_bytes()).map_err(failed)?;
        context.printer.event(&json!({"event": "file", "path": path, "status": "begun"}));
        context.printer.line(format!(
            "{} {}: begun, and yours from now on",
            paint(style::CREATE, "+"),
            path.display()
        ));
    }
    Ok(())
}

fn compare(root: &Path, files: &Files, whole: bool) -> Result<Vec<(String, Status)>, CommandError> {
    let mut found = Vec::new();
    for (path, wanted) in files.iter() {
        let status = match std::fs::read_to_string(root.join(path)) {
            Ok(text) if text == wanted => Status::Current,
            // A checkout may have given it the line ends of Windows: nothing of that is anybody's work.
            Ok(text) => match strata_tofu::found(&text.replace("\r\n", "\n")) {
                Found::Generated if text.contains("\r\n") => Status::LineEnds,
                Found::Generated => Status::Stale,
                Found::Edited => Status::Edited,
                Found::HandWritten => Status::Kept,
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Status::Missing,
            Err(error) => return Err(CommandError::failed(format!("cannot read `{path}`: {error}"))),
        };
        found.push((path.to_owned(), status));
    }
    // What a part of the stacks does not want, another may.
    if whole {
        let wanted: BTreeSet<&str> = files.iter().map(|(path, _)| path).collect();
        for folder in ["modules", "stacks", "clusters", "infrastructure", "talos"] {
            superfluous(root, folder, 0, &wanted, &mut found);
        }
    }
    Ok(found)
}

/// Generated files that nothing renders any more.
fn superfluous(
    root: &Path,
    folder: &str,
    depth: usize,
    wanted: &BTreeSet<&str>,
    found: &mut Vec<(String, Status)>,
) {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return };
    let mut names: Vec<(String, bool)> = entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.file_type().ok()?.is_dir())))
        .filter(|(name, _)| !name.starts_with('.'))
        .collect();
    names.sort();
    for (name, is_folder) in names {
        let path = format!("{folder}/{name}");
        if is_folder && depth < 8 {
            superfluous(root, &path, depth + 1, wanted, found);
        } else if !wanted.contains(path.as_str())
            && !name.starts_with("taken_over.")
            && [".tf", ".tfvars", "README.md", "talconfig.yaml"].iter().any(|end| name.ends_with(end))
            && std::fs::read_to_string(root.join(&path))
                .is_ok_and(|text| strata_tofu::found(&text) == Found::Generated)
        {
            found.push((path, Status::Superfluous));
        }
    }
}

fn check(context: &Context, found: &[(String, Status)]) -> CommandResult {
    let mut bad = 0;
    for (path, status) in found {
        context.printer.event(&json!({"event": "file", "path": path, "status": status.word()}));
        match status {
            Status::Current => {}
            Status::Kept => context.printer.note(format!("{path}: {}", status.word())),
            _ => {
                bad += 1;
                context.printer.line(format!("{} {path}: {}", paint(style::ERROR, "✗"), status.word()));
            }
        }
    }
    if bad > 0 {
        let files =
            if bad == 1 { "1 generated file is".to_owned() } else { format!("{bad} generated files are") };
        let edited = found.iter().any(|(_, status)| *status == Status::Edited);
        let hint = if edited {
            "edit the source instead, then `strata sync --force`"
        } else {
            "run `strata sync` and commit what it wrote"
        };
        return Err(CommandError::failed(format!("{files} not as rendered")).hint(hint));
    }
    context.printer.line(format!("{} {} files", paint(style::CREATE, "current:"), found.len()));
    Ok(ExitCode::SUCCESS)
}

/// A link must not lead the pen to somewhere else on this machine.
fn stay_inside(root: &Path, place: &Path, path: &str) -> Result<(), CommandError> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let target = real(place).or_else(|| place.parent().and_then(real));
    match (real(root), target) {
        (Some(root), Some(target)) if target.starts_with(&root) => Ok(()),
        _ => Err(CommandError::refused(format!("`{path}` leads out of the repository: it was not written"))
            .hint("a link stands in its place; remove that and sync again")),
    }
}

fn write(
    context: &Context,
    root: &Path,
    files: &Files,
    found: &[(String, Status)],
    force: bool,
) -> CommandResult {
    let (mut written, mut removed, mut refused) = (0, 0, 0);
    for (path, status) in found {
        let place = root.join(path);
        let failed = |error: std::io::Error| CommandError::failed(format!("cannot write `{path}`: {error}"));
        match status {
            Status::Current => continue,
            Status::Kept => context.printer.note(format!("{path}: {}", status.word())),
            Status::Edited if !force => {
                refused += 1;
                context.printer.note(format!("{} {path}: {}", paint(style::ERROR, "✗"), status.word()));
            }
            Status::Superfluous => {
                removed += 1;
                std::fs::remove_file(&place).map_err(failed)?;
                context.printer.line(format!("{} {path}", paint(style::DESTROY, "-")));
            }
            Status::Missing | Status::Stale | Status::LineEnds | Status::Edited => {
                written += 1;
                if let Some(folder) = place.parent() {
                    std::fs::create_dir_all(folder).map_err(failed)?;
                }
                stay_inside(root, &place, path)?;
                let text = files.get(path).unwrap_or_default();
                crate::replace_file::replace(&place, text.as_bytes()).map_err(failed)?;
                context.printer.line(format!("{} {path}", paint(style::CREATE, "+")));
            }
        }
        context.printer.event(&json!({"event": "file", "path": path, "status": status.word()}));
    }
    context
        .printer
        .event(&json!({"event": "synced", "written": written, "removed": removed, "refused": refused}));
    if refused > 0 {
        context.printer.note(
            CommandError::refused(match refused {
                1 => "1 generated file was edited by hand and is left as it is".to_owned(),
                many => format!("{many} generated files were edited by hand and are left as they are"),
            })
            .hint("move the change to the source, then `strata sync --force`")
            .render(),
        );
        return Err(CommandError::silent(ErrorKind::Refused));
    }
    let kept = files.len() - written.min(files.len());
    context.printer.line(format!(
        "{} {written} written, {removed} removed, {kept} as they were",
        paint(style::CREATE, "synced:")
    ));
    Ok(ExitCode::SUCCESS)
}
