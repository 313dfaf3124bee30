//! `strata doctor`.

use std::process::ExitCode;

use strata_engine::{EarlierOperations, Problem};

use strata_events::Event;
use strata_providers::{Look, required_role};
use strata_session::{Purpose, StackSession, StateAccess};

use super::CommandResult;
use crate::command_error::{CommandError, ErrorKind, render};
use crate::context::Context;
use crate::style::{self, paint};
use crate::workspace::Workspace;

/// Says what is missing, and the command that fixes it
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Prints the smallest role that can apply and destroy the stacks, and the commands that give it to a token
    #[arg(long)]
    role: bool,
    /// The role is enough for `backup`, `snapshot` and `hypervisor`, too
    #[arg(long, requires = "role")]
    acts: bool,
    /// Stacks by name or path, or `layer:NAME`; all stacks without one
    #[arg(value_name = "STACK")]
    stacks: Vec<String>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    if args.role { role(&workspace, args).await } else { check(&workspace, &args.stacks).await }
}

/// The privileges of everything that the stacks can ask for: made from nothing, brought from what the state knows to what the source says,
/// and destroyed.
async fn role(workspace: &Workspace<'_>, args: &Args) -> CommandResult {
    let sessions = workspace.open_native(&args.stacks, &Purpose::LOOK, StateAccess::Look).await?;
    let names = required_role(&workspace.providers, &sessions, args.acts).await;
    if names.is_empty() {
        return Err(CommandError::failed(
            "no stack asks anything of a Proxmox, so no privilege is needed yet",
        )
        .hint("write a stack, for example with `strata init --example homelab`, then ask again"));
    }
    let printer = workspace.context.printer;
    printer.event(&Event::Role { privileges: names.iter().map(ToString::to_string).collect() });
    printer.line("# on a Proxmox host, as root:");
    printer.line(format!("pveum role add Strata --privs \"{}\"", names.join(" ")));
    printer.line("pveum user add strata@pve");
    printer.line("pveum acl modify / --users strata@pve --roles Strata");
    printer.line("pveum user token add strata@pve strata --privsep 0");
    Ok(ExitCode::SUCCESS)
}

async fn check(workspace: &Workspace<'_>, stacks: &[String]) -> CommandResult {
    let printer = workspace.context.printer;
    let mut bad = 0;
    let mut tell = |what: String, problem: Option<CommandError>| {
        let ok = problem.is_none();
        printer.event(&Event::Check { what: &what, ok, error: problem.as_ref() });
        let sign = if ok { paint(style::CREATE, "✓") } else { paint(style::ERROR, "✗") };
        printer.line(format!("{sign} {what}"));
        if let Some(problem) = problem {
            bad += 1;
            printer.line(render(&problem));
        }
    };
    tell("the repository is valid".to_owned(), None);
    let store = match workspace.store() {
        // A question makes the connection, and shows what kind of server it is.
        Ok(store) => match store.keys().await {
            Ok(_) => {
                tell(format!("states are kept in {}", store.describe()), None);
                Some(store)
            }
            Err(error) => {
                tell("the states' store".to_owned(), Some(error.into()));
                None
            }
        },
        Err(error) => {
            tell("the states' store".to_owned(), Some(error));
            None
        }
    };
    if let Some(caveat) = store.and_then(|store| store.caveat()) {
        printer.event(&Event::note(&caveat));
        printer.line(format!("{} {caveat}", paint(style::WARNING, "!")));
    }
    // That the store does not answer is told.
    if workspace.find_removed(stacks).await.is_ok() {
        for removed in workspace.removed() {
            let what = format!("`{}` is in the source", removed.stack.name);
            tell(what, Some(removed.problem()));
        }
        for (key, reason) in workspace.unreadable_states() {
            printer.event_of(key, &Event::note(reason));
            printer.line(format!(
                "{} `{key}` is in the store and in no stack of the source: {reason}",
                paint(style::WARNING, "!")
            ));
        }
        workspace.report_removed(&["-".to_owned()]);
    }
    if workspace.needs_tofu(stacks)? {
        tell("OpenTofu is there".to_owned(), workspace.program().err());
    }
    let (mut sessions, mut unread) = (Vec::new(), Vec::new());
    let mut targets = Ok(());
    for (name, open) in workspace.look(stacks).await? {
        match open {
            Err(error) => unread.push((name, error)),
            Ok(_) if targets.is_err() => {}
            Ok(open) => match open.prepare().await {
                Ok(session) => sessions.push(session),
                Err(error) => targets = Err(error),
            },
        }
    }
    // Also those that no stack is on.
    if targets.is_ok() {
        targets = workspace.connect_everything().await;
    }
    match targets {
        Ok(()) if !workspace.has_targets() => {
            tell("`strata.yaml` names no targets: none is asked".to_owned(), None)
        }
        Ok(()) => tell("every target answers, and the secrets can be read".to_owned(), None),
        Err(error) => {
            tell("targets and secrets".to_owned(), Some(error));
            sessions.clear();
        }
    }
    for (name, error) in unread {
        tell(format!("the state of `{name}`"), Some(error));
    }
    let look = strata_engine::Look::default();
    let mut earlier = EarlierOperations::default();
    for session in &mut sessions {
        tell(format!("the state of `{}`", session.name), open_operations(workspace, session).await?);
        let missing = match session.plan_in(&look).await {
            Ok(plan) => {
                let missing = session.preflight(&plan, &look, &mut earlier).await;
                // What apply would refuse is said here in the same words.
                let refused = |problem: &Problem| {
                    CommandError::refused(format!("`{}`: {}", problem.address, problem.message))
                        .origin(problem.origin.clone())
                        .hint(problem.hint.clone())
                };
                missing.map(|missing| plan.problems.iter().chain(&missing).map(refused).collect::<Vec<_>>())
            }
            Err(error) => Err(error),
        };
        match missing {
            Ok(missing) if missing.is_empty() => tell(format!("`{}` can be applied", session.name), None),
            Ok(missing) => {
                for problem in missing {
                    tell(format!("`{}` can be applied", session.name), Some(problem));
                }
            }
            Err(error) => tell(format!("`{}` can be planned", session.name), Some(error)),
        }
    }
    if !sessions.is_empty() {
        match workspace.orphans(Look::Everywhere).await {
            Ok(orphans) if orphans.found.is_empty() => {
                tell("every object with an ownership mark of this repository is in a state".to_owned(), None);
            }
            Ok(orphans) => {
                for orphan in orphans.found {
                    let problem = CommandError::failed(orphan.message()).hint(orphan.hint());
                    tell(format!("`{}` is in a state", orphan.name()), Some(problem));
                }
            }
            Err(error) => tell("objects with an ownership mark".to_owned(), Some(error)),
        }
    }
    if bad == 0 { Ok(ExitCode::SUCCESS) } else { Err(CommandError::already_shown(ErrorKind::Failed)) }
}

/// What an interrupted run left open. A run that works is no problem.
async fn open_operations(
    workspace: &Workspace<'_>,
    session: &StackSession,
) -> Result<Option<CommandError>, CommandError> {
    let open = session.state().open.len();
    if open == 0 {
        return Ok(None);
    }
    let holder = workspace.store()?.holder(&session.view().key).await?;
    Ok(match holder.filter(|holder| !holder.is_gone()) {
        Some(_) => None,
        None => Some(
            CommandError::failed(format!("{open} operations of an interrupted run are open"))
                .hint("`strata apply` finishes them; `strata destroy` does, where a destroy was interrupted"),
        ),
    })
}
