//! `strata promote`.

use std::process::ExitCode;

use serde_json::{Value, json};
use strata_diagnostics::nearest;
use strata_events::Event;
use strata_source::Repository;
use strata_source::promote::{Difference, Promoted, Promotion, SECRET};
use strata_source::world::{Edited, World as _};

use super::CommandResult;
use super::execute::ask;
use crate::command_error::{CommandError, ErrorKind};
use crate::context::Context;
use crate::style::{self, paint};
use crate::views;
use crate::workspace::{Workspace, show};

/// Brings what one environment has to another: shows what differs, and writes it to environments/TO.yaml
///
/// What the file of FROM says and the file of TO does not is written there, with its comments kept. What is meant to differ stays: offsets, numbers,
/// addresses, names, places and secrets, and what only TO says. `--also KEY` takes such a value along as well; what only TO says is then removed.
/// Nothing remote is asked or changed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The environment that has it
    #[arg(value_name = "FROM")]
    from: String,
    /// The environment that gets it
    #[arg(value_name = "TO")]
    to: String,
    /// Only what the two say of this stack
    #[arg(value_name = "STACK")]
    stack: Option<String>,
    /// What is brought over although it is meant to differ, such as `stacks.web.vms.app.vmId`
    #[arg(long, value_name = "KEY")]
    also: Vec<String>,
    /// Writes without asking
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let repository = workspace.repository();
    for name in [&args.from, &args.to] {
        repository.select(&[], Some(name)).map_err(|error| refused(error.message, error.hint))?;
    }
    if let Some(stack) = &args.stack
        && !repository.stacks().iter().any(|entry| entry.name.value == *stack)
    {
        let known = repository.stacks().iter().map(|entry| entry.name.value.as_str());
        let hint = nearest(stack, known).map(|meant| format!("did you mean `{meant}`?"));
        return Err(refused(format!("there is no stack `{stack}`"), hint));
    }
    let path = |name: &str| format!("environments/{name}.yaml");
    let disk = workspace.world();
    // An environment that stacks name and that changes nothing has no file.
    let text = |name: &str| -> String {
        disk.read(&path(name)).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    };
    let (from, to) = (text(&args.from), text(&args.to));
    let asked = Promotion { from: &from, to: &to, stack: args.stack.as_deref(), also: &args.also };
    let promoted = asked.compare().map_err(|error| {
        CommandError::failed(format!("`{}` cannot be edited: {error}", path(&args.to)))
            .hint("write it as a mapping without anchors, or make the change by hand")
    })?;
    if let Some(path) = promoted.unmatched.first() {
        let known = promoted.differences.iter().map(|one| one.path.as_str());
        let hint = nearest(path, known).map(|meant| format!("did you mean `{meant}`?"));
        return Err(refused(format!("nothing differs at `{path}`"), hint));
    }
    tell(context, args, &promoted.differences);
    if promoted.text == to {
        context.printer.line(format!("nothing to bring from `{}` to `{}`", args.from, args.to));
        return Ok(ExitCode::SUCCESS);
    }
    check(&workspace, &path(&args.to), &promoted)?;
    context.printer.line(views::text::diff(&path(&args.to), &to, &promoted.text).trim_end());
    if !args.yes {
        ask(&format!("Write this to {}?", path(&args.to)))?;
    }
    let place = workspace.root().join(path(&args.to));
    strata_secrets::replace(&place, promoted.text.as_bytes())
        .map_err(|error| CommandError::failed(format!("cannot write `{}`: {error}", path(&args.to))))?;
    let file = path(&args.to);
    context.printer.event(&Event::Promoted { from: &args.from, to: &args.to, file: &file });
    context.printer.line(format!("{} {}", paint(style::CREATE, "written:"), path(&args.to)));
    context.printer.line(format!("next: `strata -e {} plan`", args.to));
    Ok(ExitCode::SUCCESS)
}

fn refused(message: String, hint: Option<String>) -> CommandError {
    let error = CommandError::failed(message);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// What differs, one line each.
fn tell(context: &Context, args: &Args, differences: &[Difference]) {
    for one in differences {
        let is_secret = one.kept == Some(SECRET);
        let shown = |value: &Option<Value>| {
            value.clone().map(|value| if is_secret { json!("(secret)") } else { value })
        };
        let (from, to) = (shown(&one.from), shown(&one.to));
        let text = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
        context.printer.line(match one.kept {
            None => format!("{} {}: {} → {}", paint(style::CHANGE, "~"), one.path, text(&to), text(&from)),
            Some(reason) => {
                let both = format!("{} in `{}`, {} in `{}`", text(&from), args.from, text(&to), args.to);
                paint(style::FAINT, format!("  {}: {both} ({reason})", one.path))
            }
        });
        context.printer.event(&Event::EnvironmentDifference { path: &one.path, from, to, kept: one.kept });
    }
}

/// The repository with the new file must be as good as before.
fn check(workspace: &Workspace<'_>, path: &str, promoted: &Promoted) -> Result<(), CommandError> {
    let edited = Edited::new(workspace.world(), path, promoted.text.as_bytes());
    let (repository, found) = Repository::load(&edited);
    let errors: Vec<_> = found.iter().filter(|one| one.is_error()).collect();
    if errors.is_empty() {
        return Ok(());
    }
    let printer = workspace.context.printer;
    show(printer, &errors, &repository.sources);
    printer.note(format!("`{path}` would not be valid and was not written"));
    Err(CommandError::already_shown(ErrorKind::Failed))
}
