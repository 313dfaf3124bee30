//! `strata tofu`.

mod terminal;

use std::process::ExitCode;

use clap::Subcommand;
use strata_session::tofu::{Inputs, TofuSession};

use super::CommandResult;
use super::execute::ask;
use crate::command_error::CommandError;
use crate::context::Context;
use crate::workspace::{KnownOutputs, Workspace};
use terminal::{Shown, Terminal};

/// Drives OpenTofu for a stack that is rendered or written by hand
///
/// Secrets are decrypted in memory and handed over by the environment (TF_VAR_…, TF_HTTP_…, TF_ENCRYPTION) or by a pipe, never in a
/// file. `tofu` is taken from STRATA_TOFU, or else the search path has `tofu` or `terraform`; 1.11 is needed at least. What stands
/// after `--` is passed on.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Args)]
struct On {
    /// The stack; can be left out where there is only one
    stack: Option<String>,
    /// Passed on to OpenTofu, after `--`
    #[arg(last = true)]
    more: Vec<String>,
}

#[derive(clap::Args)]
struct Change {
    #[command(flatten)]
    on: On,
    /// Does not ask
    #[arg(short, long)]
    yes: bool,
}

#[derive(clap::Args)]
struct Plan {
    #[command(flatten)]
    on: On,
    /// Exit code 2 if there are changes
    #[arg(long)]
    detailed_exitcode: bool,
}

#[derive(clap::Args)]
struct State {
    #[command(subcommand)]
    verb: StateVerb,
}

#[derive(Subcommand)]
enum StateVerb {
    /// Lists what is in the state
    List(On),
}

#[derive(Subcommand)]
enum Verb {
    /// Fetches providers, and connects to the state
    Init(On),
    /// Shows what OpenTofu would change, and saves the plan
    Plan(Plan),
    /// Applies the saved plan; without one, plans and asks
    Apply(Change),
    /// Destroys everything that is in the state; plans and asks
    Destroy(Change),
    /// Shows the outputs
    Output(On),
    /// Checks the files with OpenTofu
    Validate(On),
    /// Formats files that were written by hand
    Fmt(On),
    /// Fails if a file is not formatted
    FmtCheck(On),
    State(State),
    /// Takes the lock of OpenTofu's state away: `strata tofu force-unlock STACK -- ID`
    ForceUnlock(On),
    /// Runs any other command of OpenTofu: `strata tofu run STACK -- show`
    Run(On),
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let on = match &args.verb {
        Verb::Init(on) | Verb::Output(on) | Verb::Validate(on) | Verb::Fmt(on) => on,
        Verb::FmtCheck(on) | Verb::ForceUnlock(on) | Verb::Run(on) => on,
        Verb::Plan(plan) => &plan.on,
        Verb::Apply(change) | Verb::Destroy(change) => &change.on,
        Verb::State(State { verb: StateVerb::List(on) }) => on,
    };
    let stack = workspace.tofu_stack(on.stack.as_deref())?;
    let known = KnownOutputs::new();
    let inputs = match &args.verb {
        Verb::Plan(_) | Verb::Apply(_) | Verb::Destroy(_) | Verb::Run(_) => Inputs::All(&known),
        _ => Inputs::Known,
    };
    let session = TofuSession::open(&workspace, stack, inputs).await?;
    let session = Terminal { session, printer: context.printer };
    let more: Vec<&str> = on.more.iter().map(String::as_str).collect();
    match &args.verb {
        Verb::Init(_) => session.plain("init", &["-input=false"], &more, false).await,
        Verb::Plan(plan) => {
            let shown = session.plan(false, &more).await?;
            let changed = shown.changes > 0 && plan.detailed_exitcode;
            Ok(if changed { ExitCode::from(super::CHANGES) } else { ExitCode::SUCCESS })
        }
        Verb::Apply(change) => apply(&session, &more, change.yes).await,
        Verb::Destroy(change) => {
            let shown = session.plan(true, &more).await?;
            consent(&session, &shown, change.yes, "Destroy all of this?")?;
            session.apply_saved(true).await
        }
        Verb::Output(_) if context.printer.is_json() => session.told(&["output", "-json"], &more).await,
        Verb::Output(_) => session.plain("output", &[], &more, true).await,
        Verb::Validate(_) => session.validate(&more).await,
        Verb::Fmt(_) => session.plain("fmt", &[], &more, false).await,
        Verb::FmtCheck(_) => session.check_format(&more).await,
        Verb::State(_) if context.printer.is_json() => session.told(&["state", "list"], &more).await,
        Verb::State(_) => session.plain("state", &["list"], &more, true).await,
        Verb::ForceUnlock(_) if more.is_empty() => {
            Err(CommandError::usage("there is no lock to take away: name its id").hint(format!(
                "a run that is locked out prints it; then `strata tofu force-unlock {} -- ID`",
                stack.name
            )))
        }
        Verb::ForceUnlock(_) => session.plain("force-unlock", &["-force"], &more, true).await,
        Verb::Run(_) if more.is_empty() => Err(CommandError::usage("there is no command to run")
            .hint("name it after `--`: `strata tofu run STACK -- show`")),
        Verb::Run(_) => session.any(&more).await,
    }
}

/// The plan that was reviewed, or else one that is shown now.
async fn apply(session: &Terminal<'_>, more: &[&str], yes: bool) -> CommandResult {
    if session.session.saved_plan().is_file() {
        if !more.is_empty() {
            return Err(CommandError::refused("a saved plan takes no further arguments")
                .hint("plan again with them: `strata tofu plan STACK -- …`"));
        }
        session.session.check_saved()?;
        return session.apply_saved(false).await;
    }
    let shown = session.plan(false, more).await?;
    if shown.changes == 0 {
        session.session.forget_plan();
        return Ok(ExitCode::SUCCESS);
    }
    consent(session, &shown, yes, "Do this?")?;
    session.apply_saved(false).await
}

/// What nobody agreed to is not kept: a later apply would do it without a word.
fn consent(session: &Terminal<'_>, shown: &Shown, yes: bool, question: &str) -> Result<(), CommandError> {
    if yes || shown.changes == 0 {
        return Ok(());
    }
    ask(question).inspect_err(|_| session.session.forget_plan())
}
