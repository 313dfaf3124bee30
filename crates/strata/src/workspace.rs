//! The repository that a command works in: a session's workspace, with a terminal beside it.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::json;
use strata_diagnostics::{Color, Diagnostic, SourceMap};
use strata_providers::{AllProviders, Clusters, Look, Orphan, Takeover};
pub(crate) use strata_session::{KnownOutputs, find_root};

use crate::command_error::{CommandError, ErrorKind, render};
use crate::context::Context;
use crate::printer::Printer;

pub(crate) struct Workspace<'c> {
    pub(crate) context: &'c Context,
    session: strata_session::Workspace,
    providers: Arc<AllProviders>,
}

impl Deref for Workspace<'_> {
    type Target = strata_session::Workspace;

    fn deref(&self) -> &Self::Target {
        &self.session
    }
}

impl<'c> Workspace<'c> {
    /// Finds and reads the repository. Every mistake in it is shown; with one of them the command ends here.
    pub(crate) fn load(context: &'c Context) -> Result<Self, CommandError> {
        Self::read(context, |_| false)
    }

    /// The same, with some warnings shown too.
    pub(crate) fn read(
        context: &'c Context,
        tells: impl Fn(&Diagnostic) -> bool,
    ) -> Result<Self, CommandError> {
        let providers = Arc::new(AllProviders::default());
        let surroundings = context.surroundings(Arc::clone(&providers) as _);
        let (session, diagnostics) = strata_session::Workspace::load(surroundings)?;
        let shown: Vec<&Diagnostic> =
            diagnostics.iter().filter(|found| found.is_error() || tells(found)).collect();
        show(context.printer, &shown, &session.repository().sources);
        if diagnostics.has_errors() {
            if !context.printer.is_json() {
                context.printer.note(match diagnostics.error_count() {
                    1 => "1 error".to_owned(),
                    errors => format!("{errors} errors"),
                });
            }
            return Err(CommandError::silent(ErrorKind::Failed));
        }
        crate::bug::keep_secret(session.redactor());
        Ok(Self { context, session, providers })
    }

    /// The repository, and what the store has of stacks that left it. `names` are those that the command line names: a store that
    /// cannot list is asked for them.
    pub(crate) async fn load_with_removed(
        context: &'c Context,
        names: &[String],
    ) -> Result<Self, CommandError> {
        let workspace = Self::load(context)?;
        workspace.find_removed(names).await?;
        Ok(workspace)
    }

    pub(crate) fn clusters(&self) -> Clusters<'_> {
        Clusters::of(&self.session)
    }

    pub(crate) fn takeover(&self) -> Takeover<'_> {
        Takeover::of(&self.session)
    }

    /// Guests that carry an ownership mark of this repository and are in no state.
    pub(crate) async fn orphans(&self, look: Look) -> Result<Vec<Orphan>, CommandError> {
        self.providers.orphans(&self.session, look).await
    }

    /// Records orphans of one stack in its state.
    pub(crate) async fn recover(&self, stack: &str) -> Result<Vec<Orphan>, CommandError> {
        self.providers.recover(&self.session, stack).await
    }

    /// Says it under a run. That nobody could look must not fail what was done.
    pub(crate) async fn tell_orphans(&self) -> usize {
        let Ok(orphans) = self.orphans(Look::Near).await else { return 0 };
        let printer = self.context.printer;
        for orphan in &orphans {
            printer.event(&json!({
                "event": "orphan", "address": orphan.address, "vmid": orphan.guest.vmid, "target": orphan.target,
                "message": orphan.message(), "hint": orphan.hint(),
            }));
            printer.note(format!("warning: {}\n  hint: {}", orphan.message(), orphan.hint()));
        }
        orphans.len()
    }

    /// Says what a plan cannot show: code of OpenTofu that is gone, states of environments that are gone.
    pub(crate) fn tell_removed(&self, selected: &[String]) {
        let printer = self.context.printer;
        for removed in self.removed().iter().filter(|removed| removed.tofu.is_some()) {
            if selected.is_empty() {
                let problem = removed.problem();
                printer
                    .event(&json!({"event": "removed-stack", "stack": removed.stack.name, "error": problem}));
                printer.note(render(&problem).replacen("error:", "warning:", 1));
            }
        }
        for key in self.states_elsewhere() {
            let environment = key.split('/').next().unwrap_or_default();
            printer.event(&json!({"event": "unplanned-state", "key": key}));
            printer.note(format!(
                "warning: the store has the state `{key}`, which is in no stack of the source; `strata -e {environment} plan` shows what is left of it"
            ));
        }
    }
}

pub(crate) fn show(printer: Printer, found: &[&Diagnostic], sources: &SourceMap) {
    for diagnostic in found {
        if printer.is_json() {
            printer.event(&strata_diagnostics::to_json(diagnostic, sources));
        } else {
            printer.note(strata_diagnostics::render(diagnostic, sources, Color::Always));
        }
    }
}
