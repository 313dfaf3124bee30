//! The repository that a command works in: a session's workspace, with a terminal beside it.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use strata_diagnostics::{Color, Diagnostic, SourceMap};
use strata_engine::ApplyOptions;
use strata_events::Event;
use strata_providers::{
    Acceptance, Adopted, AllProviders, Clusters, GroupBy, Look, Orphan, Orphans, Proposal, Takeover, Wish,
};
pub(crate) use strata_session::{KnownOutputs, find_root};

use crate::command_error::{CommandError, ErrorKind, render};
use crate::context::Context;
use crate::printer::Printer;
use crate::style::{self, paint};

pub(crate) struct Workspace<'c> {
    pub(crate) context: &'c Context,
    session: strata_session::Workspace,
    pub(crate) providers: Arc<AllProviders>,
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
        shows: impl Fn(&Diagnostic) -> bool,
    ) -> Result<Self, CommandError> {
        let providers = Arc::new(AllProviders::default());
        let surroundings = context.surroundings(Arc::clone(&providers) as _);
        let (session, diagnostics) = strata_session::Workspace::load(surroundings)?;
        let shown: Vec<&Diagnostic> =
            diagnostics.iter().filter(|found| found.is_error() || shows(found)).collect();
        show(context.printer, &shown, &session.repository().sources);
        if diagnostics.has_errors() {
            if !context.printer.is_json() {
                context.printer.note(match diagnostics.error_count() {
                    1 => "1 error".to_owned(),
                    errors => format!("{errors} errors"),
                });
            }
            return Err(CommandError::already_shown(ErrorKind::Failed));
        }
        crate::bug::keep_secret(session.redactor());
        crate::commands::schema::put_missing(session.root());
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

    /// What adopting guests would write; nothing is written.
    pub(crate) async fn propose(&self, wishes: &[Wish]) -> Result<Proposal, CommandError> {
        self.providers.propose(&self.session, wishes).await
    }

    /// The same, for every guest of a target.
    pub(crate) async fn propose_all(
        &self,
        target: Option<&str>,
        by: GroupBy,
        marks: bool,
    ) -> Result<Proposal, CommandError> {
        self.providers.propose_all(&self.session, target, by, marks).await
    }

    /// Records and marks what was proposed, once its files are written.
    pub(crate) async fn adopt(
        &self,
        proposal: &Proposal,
        marks: bool,
        options: &ApplyOptions,
    ) -> Result<Adopted, CommandError> {
        self.providers.adopt(&self.session, proposal, marks, options).await
    }

    /// What accepting drift would write; nothing is written.
    pub(crate) async fn propose_acceptance(&self, arguments: &[String]) -> Result<Acceptance, CommandError> {
        self.providers.propose_acceptance(&self.session, arguments).await
    }

    /// Records what was accepted, once the files say it.
    pub(crate) async fn accept(
        &self,
        acceptance: &Acceptance,
        options: &ApplyOptions,
    ) -> Result<(), CommandError> {
        self.providers.accept(&self.session, acceptance, options).await
    }

    /// What carries an ownership mark of this repository and is in no state.
    pub(crate) async fn orphans(&self, look: Look) -> Result<Orphans, CommandError> {
        self.providers.orphans(&self.session, look).await
    }

    /// Records orphans of one stack in its state.
    pub(crate) async fn recover(&self, stack: &str) -> Result<Vec<Orphan>, CommandError> {
        self.providers.recover(&self.session, stack).await
    }

    /// Says it under a run. That nobody could look must not fail what was done.
    pub(crate) async fn report_orphans(&self) -> usize {
        let Ok(orphans) = self.orphans(Look::Near).await else { return 0 };
        for orphan in &orphans.found {
            self.report_orphan(orphan);
            let text = format!("warning: {}\n  hint: {}", orphan.message(), orphan.hint());
            self.context.printer.note(text);
        }
        orphans.found.len()
    }

    /// Says it to programs.
    pub(crate) fn report_orphan(&self, orphan: &Orphan) {
        let event = Event::Orphan {
            address: orphan.address.as_ref().map(ToString::to_string),
            vmid: orphan.guest.as_ref().map(|guest| guest.vmid.into()),
            object: &orphan.described,
            target: &orphan.target,
            message: orphan.message(),
            hint: orphan.hint(),
        };
        self.context.printer.event_of(&orphan.key, &event);
    }

    /// Looks at every target, and says what is in no state; of some states only, where `keys` names them. How many objects that are, and
    /// whether anything could not be looked at.
    pub(crate) async fn list_orphans(
        &self,
        keys: Option<&BTreeSet<String>>,
    ) -> Result<(usize, bool), CommandError> {
        self.connect_everything().await?;
        let orphans = self.orphans(Look::Everywhere).await?;
        let printer = self.context.printer;
        let (own, others): (Vec<&Orphan>, Vec<&Orphan>) =
            orphans.found.iter().partition(|orphan| keys.is_none_or(|keys| keys.contains(&orphan.key)));
        for orphan in &own {
            self.report_orphan(orphan);
            printer.line(format!("  {} {}", paint(style::WARNING, "!"), orphan.message()));
            printer.line(format!("      {} {}", paint(style::HINT, "hint:"), orphan.hint()));
        }
        for what in &orphans.unseen {
            printer.event(&Event::Unseen { what });
            printer.line(format!("  {} cannot be seen: {what}", paint(style::WARNING, "?")));
        }
        if !others.is_empty() {
            let count = strata_session::counted(others.len());
            printer.note(format!("{count} of other states in no state: `strata drift --orphans` lists them"));
        }
        Ok((own.len(), !orphans.unseen.is_empty()))
    }

    /// Says what a plan cannot show: code of OpenTofu that is gone, states of environments that are gone.
    pub(crate) fn report_removed(&self, selected: &[String]) {
        let printer = self.context.printer;
        for removed in self.removed().iter().filter(|removed| removed.tofu.is_some()) {
            if selected.is_empty() {
                let problem = removed.problem();
                printer.event_of(&removed.key(), &Event::RemovedStack { error: &problem });
                printer.note(render(&problem).replacen("error:", "warning:", 1));
            }
        }
        for key in self.states_elsewhere() {
            let environment = key.split('/').next().unwrap_or_default();
            printer.event_of(key, &Event::UnplannedState { key });
            printer.note(format!(
                "warning: the store has the state `{key}`, which is in no stack of the source; `strata -e {environment} plan` shows what is left of it"
            ));
        }
    }
}

pub(crate) fn show(printer: Printer, found: &[&Diagnostic], sources: &SourceMap) {
    for diagnostic in found {
        if printer.is_json() {
            printer.event(&Event::diagnostic(diagnostic, sources));
        } else {
            printer.note(strata_diagnostics::render(diagnostic, sources, Color::Always));
        }
    }
}
