//! `strata sync`.

use std::path::Path;
use std::process::ExitCode;

use strata_events::Event;
use strata_session::generated::{FileStatus as Status, compare, is_inside};
use strata_tofu::Files;

use super::CommandResult;
use crate::command_error::{CommandError, ErrorKind, render};
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

fn word(status: Status) -> &'static str {
    match status {
        Status::Current => "current",
        Status::Missing => "missing",
        Status::Stale => "stale",
        Status::LineEnds => "has other line ends; a line `*.tf* text eol=lf` in .gitattributes keeps them",
        Status::Edited => "edited by hand",
        Status::Kept => "written by hand, kept",
        Status::Superfluous => "no longer wanted",
    }
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let files = workspace.rendered(&args.stacks, args.import_blocks).await?;
    let found = compare(workspace.root(), &files, args.stacks.is_empty())
        .map_err(|(path, error)| CommandError::failed(format!("cannot read `{path}`: {error}")))?;
    for gap in &files.gaps {
        context.printer.event(&Event::Gap { what: &gap.what, reason: &gap.reason });
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
    for (path, text) in strata_providers::missing_infrastructure(workspace)? {
        let place = workspace.root().join(&path);
        let failed = |error: std::io::Error| {
            CommandError::failed(format!("cannot write `{}`: {error}", path.display()))
        };
        if let Some(folder) = place.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        strata_secrets::replace(&place, text.as_bytes()).map_err(failed)?;
        context.printer.event(&Event::file(path.display(), Some("begun")));
        context.printer.line(format!(
            "{} {}: begun, and yours from now on",
            paint(style::CREATE, "+"),
            path.display()
        ));
    }
    Ok(())
}

fn check(context: &Context, found: &[(String, Status)]) -> CommandResult {
    let mut bad = 0;
    for (path, status) in found {
        context.printer.event(&Event::file(path, Some(word(*status))));
        match status {
            Status::Current => {}
            Status::Kept => context.printer.note(format!("{path}: {}", word(*status))),
            _ => {
                bad += 1;
                context.printer.line(format!("{} {path}: {}", paint(style::ERROR, "✗"), word(*status)));
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
            Status::Kept => context.printer.note(format!("{path}: {}", word(*status))),
            Status::Edited if !force => {
                refused += 1;
                context.printer.note(format!("{} {path}: {}", paint(style::ERROR, "✗"), word(*status)));
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
                if !is_inside(root, &place) {
                    let message = format!("`{path}` leads out of the repository: it was not written");
                    return Err(CommandError::refused(message)
                        .hint("a link stands in its place; remove that and sync again"));
                }
                let text = files.get(path).unwrap_or_default();
                strata_secrets::replace(&place, text.as_bytes()).map_err(failed)?;
                context.printer.line(format!("{} {path}", paint(style::CREATE, "+")));
            }
        }
        context.printer.event(&Event::file(path, Some(word(*status))));
    }
    context.printer.event(&Event::Synced { written, removed, refused });
    if refused > 0 {
        context.printer.note(render(
            &CommandError::refused(match refused {
                1 => "1 generated file was edited by hand and is left as it is".to_owned(),
                many => format!("{many} generated files were edited by hand and are left as they are"),
            })
            .hint("move the change to the source, then `strata sync --force`"),
        ));
        return Err(CommandError::already_shown(ErrorKind::Refused));
    }
    let kept = files.len() - written.min(files.len());
    context.printer.line(format!(
        "{} {written} written, {removed} removed, {kept} as they were",
        paint(style::CREATE, "synced:")
    ));
    Ok(ExitCode::SUCCESS)
}
