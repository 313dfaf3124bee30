//! One host after the other: emptied, worked on, proven healthy, filled again. Each stage is in the notes of the host before it begins.

use std::collections::BTreeMap;
use std::time::Duration;

use strata_engine::OperationContext;
use strata_providers::{GuestOnHost, HostSession, HostedByUs, MaintenanceMark, Movable, Stage};
use strata_session::SessionError;

use super::plan::{Departure, Leaving, Policy, Seen, depart};
use super::{Doing, stopped, tell};
use crate::Desk;

/// How often a host is asked that is waited for.
const LOOK: Duration = Duration::from_secs(2);

/// What is done to which hosts, and how.
pub(super) struct Campaign<'c> {
    pub(super) desk: &'c Desk<'c>,
    pub(super) nodes: &'c [String],
    pub(super) doing: Doing,
    pub(super) policy: Policy,
    pub(super) command: Option<&'c str>,
    /// In seconds.
    pub(super) wait: u64,
}

/// A host, and how far it is; none as long as nothing has begun.
pub(super) struct HostState {
    pub(super) node: String,
    pub(super) stage: Option<Stage>,
    mark: Option<MaintenanceMark>,
}

impl HostState {
    pub(super) fn of(node: &str, mark: MaintenanceMark) -> Self {
        Self { node: node.to_owned(), stage: Some(mark.stage), mark: Some(mark) }
    }
}

impl Campaign<'_> {
    pub(super) fn line(&self, text: &str) {
        self.desk.terminal.line(text);
    }

    fn tell(&self, host: &str, what: &str) {
        tell(self.desk, host, what, false);
    }

    fn may_go_on(&self) -> Result<(), SessionError> {
        match self.desk.stop.stopping() {
            true => Err(stopped(self.doing)),
            false => Ok(()),
        }
    }

    /// Every host that is named is one of the datacenter, once.
    pub(super) async fn check_names(&self, session: &HostSession) -> Result<(), SessionError> {
        let rows = session.provider().host_rows().await?;
        let known: Vec<String> = rows.hosts.iter().map(|host| format!("`{}`", host.name)).collect();
        for (place, node) in self.nodes.iter().enumerate() {
            if !rows.hosts.iter().any(|host| host.name == *node) {
                return Err(SessionError::usage(format!("there is no host `{node}`"))
                    .hint(format!("there are {}", known.join(", "))));
            }
            if self.nodes[..place].contains(node) {
                return Err(SessionError::usage(format!("`{node}` is named twice")));
            }
        }
        Ok(())
    }

    /// A mark of another repository, or of something else that this one does.
    pub(super) fn refuse_foreign(
        &self,
        session: &HostSession,
        node: &str,
        mark: &MaintenanceMark,
    ) -> Result<(), SessionError> {
        if mark.by == session.repository {
            return Ok(());
        }
        let message = format!("`{node}` is being maintained by `{}` ({})", mark.by, mark.verb);
        Err(SessionError::refused(message)
            .hint("it was not touched; the line is in the notes of the host, if nobody works on it any more"))
    }

    pub(super) async fn states(&self, session: &HostSession) -> Result<Vec<HostState>, SessionError> {
        self.check_names(session).await?;
        let mut states = Vec::new();
        for node in self.nodes {
            let mark = session.provider().host_notes(node).await?.mark();
            if let Some(mark) = &mark {
                self.refuse_foreign(session, node, mark)?;
                if mark.verb != self.doing.word() || mark.hosts != self.nodes {
                    let message = format!(
                        "`{node}` is in the middle of `strata hypervisor {} {}`",
                        mark.verb,
                        mark.hosts.join(" ")
                    );
                    return Err(SessionError::refused(message)
                        .hint(format!("run that again to its end, or `strata hypervisor return {node}`")));
                }
            }
            states.push(HostState { node: node.clone(), stage: mark.as_ref().map(|mark| mark.stage), mark });
        }
        Ok(states)
    }

    pub(super) async fn mark(
        &self,
        session: &HostSession,
        state: &mut HostState,
        stage: Stage,
    ) -> Result<(), SessionError> {
        state.mark = Some(MaintenanceMark {
            by: session.repository.clone(),
            verb: self.doing.word().to_owned(),
            hosts: self.nodes.to_vec(),
            stage,
        });
        self.restage(session, state, stage).await
    }

    /// The mark of a host, at another stage.
    pub(super) async fn restage(
        &self,
        session: &HostSession,
        state: &mut HostState,
        stage: Stage,
    ) -> Result<(), SessionError> {
        if let Some(mark) = &mut state.mark {
            mark.stage = stage;
        }
        let context = session.context(self.desk.stop);
        let notes = session.provider().host_notes(&state.node).await?;
        if notes.mark() != state.mark {
            session.provider().mark_host(&state.node, &notes, state.mark.as_ref(), &context).await?;
        }
        state.stage = Some(stage);
        Ok(())
    }

    pub(super) async fn remove_mark(&self, session: &HostSession, node: &str) -> Result<(), SessionError> {
        let context = session.context(self.desk.stop);
        let notes = session.provider().host_notes(node).await?;
        if notes.mark().is_some() {
            session.provider().mark_host(node, &notes, None, &context).await?;
        }
        Ok(())
    }

    pub(super) async fn unmark(&self, session: &HostSession) -> Result<(), SessionError> {
        for node in self.nodes {
            self.remove_mark(session, node).await?;
        }
        Ok(())
    }

    /// The plan: what becomes of each guest, and of each host. Everything that stands in the way of any of them.
    pub(super) async fn show(&self, session: &HostSession, states: &[HostState]) -> Result<(), SessionError> {
        let mut guests = session.provider().guests_on_hosts().await?;
        let ours = session.ours();
        let mut wrong = Vec::new();
        for state in states.iter().filter(|state| state.stage != Some(Stage::Done)) {
            let node = state.node.as_str();
            let say = |what: &str| tell(self.desk, node, what, true);
            if matches!(state.stage, None | Some(Stage::Planned | Stage::Leaving | Stage::Empty)) {
                if let Err(why) = self.may_be_without(session, node).await {
                    wrong.push(format!("{node}: {}", why.message));
                }
                match self.departures(session, node, &guests, &ours).await? {
                    Ok(departures) => {
                        for departure in &departures {
                            say(&departure.line());
                            if let (Leaving::Moves { to }, Doing::Drain) = (&departure.how, self.doing) {
                                let gone = guests.iter_mut().filter(|guest| guest.vmid == departure.vmid);
                                gone.for_each(|guest| guest.node.clone_from(to));
                            }
                        }
                    }
                    Err(all) => wrong.extend(all.into_iter().map(|why| format!("{node}: {why}"))),
                }
            }
            if let Doing::Update { .. } = self.doing {
                match self.command {
                    Some(command) => say(&format!("`{}` is run here", command.replace("{node}", node))),
                    None => {
                        say("a person updates it (`apt dist-upgrade` there): no call of Proxmox does that")
                    }
                }
                say("it is waited until it lists no pending updates");
            }
            if self.doing.reboots() {
                say("it reboots, and is waited for");
            }
            if self.doing != Doing::Drain {
                say("its guests come back");
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let mut error = SessionError::refused("the hosts cannot be worked on, nothing was changed");
        error.details = wrong;
        Err(error.hint("`--shut-down` shuts guests down that cannot be moved, `--leave-others` leaves those of others to their host"))
    }

    /// The others go on with a majority, and all of them are there.
    async fn may_be_without(&self, session: &HostSession, node: &str) -> Result<(), SessionError> {
        if !self.doing.reboots() {
            return Ok(());
        }
        let rows = session.provider().host_rows().await?;
        if !rows.can_do_without(node) {
            return Err(SessionError::refused(
                "without it the other hosts have no majority of the votes: the cluster would stand still",
            ));
        }
        match rows.hosts.iter().find(|host| !host.online && host.name != node) {
            Some(host) => Err(SessionError::refused(format!("`{}` is offline", host.name))),
            None => Ok(()),
        }
    }

    async fn departures(
        &self,
        session: &HostSession,
        node: &str,
        guests: &[GuestOnHost],
        ours: &BTreeMap<u32, HostedByUs>,
    ) -> Result<Result<Vec<Departure>, Vec<String>>, SessionError> {
        let mut hosts = BTreeMap::new();
        for host in session.provider().hosts().await?.hosts {
            let named = self.nodes.contains(&host.name);
            let marked = session.provider().host_notes(&host.name).await?.mark();
            let away = marked.is_some_and(|mark| {
                matches!(mark.stage, Stage::Leaving | Stage::Empty | Stage::Rebooting(_))
            });
            if host.name != node && !away && !(named && self.doing == Doing::Drain) {
                hosts.insert(host.name, host.memory);
            }
        }
        let mut movable: BTreeMap<u32, Movable> = BTreeMap::new();
        for guest in guests.iter().filter(|guest| guest.node == node && guest.running) {
            if ours.contains_key(&guest.vmid) {
                movable.insert(guest.vmid, session.provider().movable(guest).await?);
            }
        }
        Ok(depart(node, &Seen { guests, ours, movable: &movable, hosts: &hosts }, self.policy))
    }

    /// Takes a host through its stages, from the one that it is in.
    pub(super) async fn maintain(
        &self,
        session: &mut HostSession,
        state: &mut HostState,
    ) -> Result<(), SessionError> {
        self.may_go_on()?;
        let node = state.node.clone();
        if matches!(state.stage, None | Some(Stage::Planned | Stage::Leaving | Stage::Empty)) {
            if state.stage != Some(Stage::Empty) {
                self.restage(session, state, Stage::Leaving).await?;
            }
            self.empty(session, &node).await?;
            self.restage(session, state, Stage::Empty).await?;
            if self.doing == Doing::Drain {
                return Ok(());
            }
            if let Doing::Update { .. } = self.doing {
                self.update(session, &node).await?;
            }
            if self.doing.reboots() {
                self.may_be_without(session, &node).await.map_err(|error| {
                    SessionError::refused(format!("`{node}` is not rebooted: {}", error.message))
                        .hint("bring the others back, then run it again")
                })?;
                let since = session.provider().host_now(&node).await?.time;
                self.restage(session, state, Stage::Rebooting(since)).await?;
            }
        }
        if let Some(Stage::Rebooting(since)) = state.stage {
            self.reboot(session, &node, since).await?;
        }
        self.restage(session, state, Stage::Returning).await?;
        self.bring_home(session, &node).await?;
        self.restage(session, state, Stage::Done).await?;
        self.tell(&node, "healthy, with its guests");
        Ok(())
    }

    /// Moves and shuts down what is to leave. What it was told before may be otherwise by now: it looks again.
    async fn empty(&self, session: &mut HostSession, node: &str) -> Result<(), SessionError> {
        let guests = session.provider().guests_on_hosts().await?;
        let ours = session.ours();
        let departures = self.departures(session, node, &guests, &ours).await?.map_err(|wrong| {
            let mut error = SessionError::refused(format!("`{node}` cannot be emptied"));
            error.details = wrong;
            error.hint("what was moved stays where it is; remove the cause, then run it again")
        })?;
        for departure in departures {
            self.may_go_on()?;
            let Some(guest) = &departure.ours else { continue };
            match &departure.how {
                Leaving::Moves { to } => session.move_to(guest, to, self.desk.stop).await?,
                Leaving::ShutsDown => session.set_power(guest, false, self.desk.stop).await?,
                Leaving::Stays => continue,
            }
            self.tell(node, &departure.line());
        }
        Ok(())
    }

    async fn update(&self, session: &HostSession, node: &str) -> Result<(), SessionError> {
        let before = session.provider().host_now(node).await?.version;
        let pending = session.provider().pending_updates(node).await?;
        if !pending.is_empty() {
            match self.command {
                Some(command) => run_here(&command.replace("{node}", node))?,
                None => self.tell(
                    node,
                    &format!(
                        "is empty and waits for a person: `apt dist-upgrade` there ({} packages)",
                        pending.len()
                    ),
                ),
            }
        }
        let begun = session.provider().since_start();
        loop {
            // A host that is being upgraded restarts the services that answer.
            if let Ok(left) = session.provider().pending_updates(node).await
                && left.is_empty()
                && let Ok(now) = session.provider().host_now(node).await
            {
                self.tell(
                    node,
                    &match now.version == before {
                        true => format!("no updates are pending ({before})"),
                        false => format!("updated: {before} → {}", now.version),
                    },
                );
                return Ok(());
            }
            self.pause(session, begun, node, "still lists pending updates").await?;
        }
    }

    /// Reboots a host that has not booted since, and waits until it is a part of the cluster again.
    async fn reboot(&self, session: &HostSession, node: &str, since: i64) -> Result<(), SessionError> {
        let begun = session.provider().since_start();
        let context = session.context(self.desk.stop);
        if session.provider().host_now(node).await.is_ok_and(|now| !now.has_booted_since(since)) {
            context.may_go_on()?;
            session.provider().reboot_host(node, &context).await?;
            self.tell(node, "reboots");
        }
        loop {
            if let Ok(now) = session.provider().host_now(node).await
                && now.has_booted_since(since)
                && let Ok(rows) = session.provider().host_rows().await
                && rows.is_online(node)
                && rows.quorate != Some(false)
            {
                self.tell(node, &format!("is back ({}, {})", now.version, now.kernel));
                return Ok(());
            }
            self.pause(session, begun, node, "is not back").await?;
        }
    }

    async fn pause(
        &self,
        session: &HostSession,
        begun: Duration,
        node: &str,
        what: &str,
    ) -> Result<(), SessionError> {
        self.may_go_on()?;
        let waited = session.provider().since_start().saturating_sub(begun);
        if waited > Duration::from_secs(self.wait) {
            return Err(SessionError::failed(format!("`{node}` {what} after {} s", waited.as_secs())).hint(
                format!(
                    "look at it, then `strata hypervisor {}` with the same hosts goes on",
                    self.doing.word()
                ),
            ));
        }
        session.provider().pause(LOOK).await;
        Ok(())
    }

    /// The guests that the source puts there come back, and those that were shut down run again.
    pub(super) async fn bring_home(&self, session: &mut HostSession, node: &str) -> Result<(), SessionError> {
        let guests = session.provider().guests_on_hosts().await?;
        let ours = session.ours();
        for guest in guests.iter().filter(|guest| !guest.template) {
            let Some(own) = ours.get(&guest.vmid) else { continue };
            self.may_go_on()?;
            if own.home == node && guest.node != node {
                session.move_to(own, node, self.desk.stop).await?;
                self.tell(node, &format!("{} comes back from {}", own.address, guest.node));
            }
        }
        // A container is restarted for its move, and a run that died may have left it off: what is to run is looked at again.
        let guests = session.provider().guests_on_hosts().await?;
        for guest in guests.iter().filter(|guest| !guest.template) {
            let Some(own) = ours.get(&guest.vmid) else { continue };
            self.may_go_on()?;
            if own.runs && !guest.running && (guest.node == node || own.home == node) {
                session.set_power(own, true, self.desk.stop).await?;
                self.tell(node, &format!("{} runs again", own.address));
            }
        }
        Ok(())
    }
}

/// What somebody opted in to by naming it.
fn run_here(command: &str) -> Result<(), SessionError> {
    let ended =
        std::process::Command::new("sh").arg("-c").arg(command).stdin(std::process::Stdio::null()).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(SessionError::failed(format!("`{command}` ended with {status}"))
            .hint("the host stays empty; remove the cause, then run it again")),
        Err(error) => Err(SessionError::failed(format!("`{command}` cannot be run: {error}"))),
    }
}
