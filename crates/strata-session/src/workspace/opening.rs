//! From names of stacks to stacks that can be planned: what is wrong without asking anybody, states, targets, then each stack by itself.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt};
use strata_resource::Address;
use strata_source::{EffectiveStack, Model};
use strata_state::StateDocument;

use super::parts::Selected;
use super::{Workspace, key, plannable, removed};
use crate::connections::Connections;
use crate::error::SessionError;
use crate::selection::Pattern;
use crate::stack_session::{OpenStack, Purpose, StackSession, StateAccess};

/// How many states are read at once.
const AT_ONCE: usize = 8;

/// A stack that can be planned, whoever makes it.
pub enum Opened<'w> {
    Native(Box<StackSession>),
    /// [`Workspace::open_driven`] opens its code: it may need what is applied before it.
    Driven(Box<OpenStack<'w>>),
}

impl Opened<'_> {
    /// Whether something of it is called like this.
    fn has(&self, pattern: &Pattern) -> bool {
        self.known().any(|address| pattern.matches(address))
    }

    /// Whether it replaces what is called like this.
    fn replaces(&self, pattern: &Pattern) -> bool {
        matches!(self, Self::Native(session) if session.view().replace.iter().any(|address| pattern.matches(address)))
    }

    /// What can be called by its address.
    fn known(&self) -> impl Iterator<Item = &Address> {
        let session = match self {
            Self::Native(session) => Some(session),
            Self::Driven(_) => None,
        };
        session.into_iter().flat_map(|session| session.known())
    }

    pub async fn release(self) -> Result<(), SessionError> {
        match self {
            Self::Native(session) => session.release().await,
            Self::Driven(stack) => stack.release().await,
        }
    }
}

/// A stack that can be planned, or why not.
pub(crate) type Attempt<'w> = Result<Opened<'w>, SessionError>;

/// Stacks of a run, each with what came of opening it.
pub(crate) struct OpenedStacks<'w> {
    pub(crate) stacks: Vec<&'w EffectiveStack>,
    pub(crate) opened: Vec<Attempt<'w>>,
    /// Places of stacks that something moves between: where one of them fails, the other one has to wait.
    pub(crate) links: Vec<(usize, usize)>,
}

impl<'w> OpenedStacks<'w> {
    /// The error of a pattern that nothing is called like. What could not be opened may have it.
    fn unmatched(&self, patterns: &[Pattern], purpose: &Purpose) -> Option<SessionError> {
        let failed = |pattern: &Pattern| {
            let mut stacks = self.stacks.iter().zip(&self.opened);
            stacks.any(|(stack, one)| one.is_err() && pattern.can_match_in(&stack.name))
        };
        let good = || self.opened.iter().flatten();
        let replaced: Vec<Pattern> =
            purpose.replace.iter().map(|address| Pattern::exactly(address)).collect();
        let named = |pattern: &Pattern| failed(pattern) || good().any(|one| one.has(pattern));
        let is_replaced = |pattern: &Pattern| failed(pattern) || good().any(|one| one.replaces(pattern));
        let unnamed = patterns.iter().find(|pattern| !named(pattern));
        let unmatched = unnamed.or_else(|| replaced.iter().find(|pattern| !is_replaced(pattern)));
        unmatched.map(|pattern| pattern.unmatched(good().flat_map(Opened::known)))
    }

    /// All of them, or the first error.
    async fn all(self) -> Result<Vec<Opened<'w>>, SessionError> {
        let (mut opened, mut first) = (Vec::new(), None);
        for one in self.opened {
            match one {
                Ok(one) => opened.push(one),
                Err(error) => first = first.or(Some(error)),
            }
        }
        let Some(error) = first else { return Ok(opened) };
        for one in opened {
            let _ = one.release().await;
        }
        Err(error)
    }
}

impl Workspace {
    /// The stacks that the arguments select, in the order in which they are applied or destroyed: each with its state, and ready to be
    /// planned where Strata makes it itself. All states are read, and locked, before anything else is asked.
    pub async fn open(
        &self,
        stacks: &[String],
        purpose: &Purpose,
        access: StateAccess<'_>,
    ) -> Result<Vec<Opened<'_>>, SessionError> {
        let selected = self.selected(stacks, purpose.destroy)?;
        self.open_selected(selected, purpose, access).await?.all().await
    }

    /// What the arguments select and can be planned, in the order in which it is shown.
    pub(crate) fn selected(&self, arguments: &[String], destroy: bool) -> Result<Selected<'_>, SessionError> {
        let mut selected = self.select_parts(arguments)?;
        selected.stacks = removed::in_order(selected.stacks, destroy);
        selected.stacks.retain(|stack| plannable(stack) || is_driven(stack));
        Ok(selected)
    }

    /// The same without those that OpenTofu makes.
    pub async fn open_native(
        &self,
        stacks: &[String],
        purpose: &Purpose,
        access: StateAccess<'_>,
    ) -> Result<Vec<StackSession>, SessionError> {
        let mut selected = self.select(stacks)?;
        selected.retain(|stack| plannable(stack));
        let opened = self.open_selected(Selected::whole(selected), purpose, access).await?.all().await?;
        let native = |opened| match opened {
            Opened::Native(session) => Some(*session),
            Opened::Driven(_) => None,
        };
        Ok(opened.into_iter().filter_map(native).collect())
    }

    /// These, and those that something moves to or from: their states are needed too. What fails for one of them is told with it; an error
    /// concerns all of them.
    pub(crate) async fn open_selected<'w>(
        &'w self,
        selected: Selected<'w>,
        purpose: &Purpose,
        access: StateAccess<'_>,
    ) -> Result<OpenedStacks<'w>, SessionError> {
        let Selected { stacks: selected, patterns, whole } = selected;
        self.refuse_removed_code(&selected)?;
        // What moves to or from another stack needs that one's state too.
        let partners = self.move_partners(&selected).await?;
        let stacks: Vec<&EffectiveStack> = selected.iter().copied().chain(partners.iter().copied()).collect();
        let native: Vec<&EffectiveStack> = stacks.iter().copied().filter(|stack| !is_driven(stack)).collect();
        self.surroundings.providers.check(self, &native)?;
        let states = self.open_states(&stacks, purpose, access).await?;
        let links = self.move_links(&stacks, &states.iter().map(document).collect::<Vec<_>>());
        let connections = self.connect(&native).await;
        let mut opened: Vec<Option<Attempt<'w>>> = stacks.iter().map(|_| None).collect();
        let mut open: Vec<OpenStack<'w>> = Vec::new();
        for (place, state) in states.into_iter().enumerate() {
            match state {
                Ok(mut one) => {
                    one.moves.partner = place >= selected.len();
                    let in_part = !patterns.is_empty() && !whole.contains(&key(one.stack));
                    one.patterns = in_part.then(|| patterns.clone());
                    open.push(one);
                }
                Err(error) => opened[place] = Some(Err(error)),
            }
        }
        let place_of = |name: &str| stacks.iter().position(|stack| key(stack) == name);
        loop {
            // What has no state, or cannot be drawn, takes part in no move; who moves something with it is left out, too.
            let failed = |place: usize| opened[place].is_some();
            let mut linked = links.iter().flat_map(|(from, to)| [(*from, *to), (*to, *from)]);
            let broken = linked.find(|(one, other)| !failed(*one) && failed(*other));
            let cannot = match broken {
                Some((one, other)) => Some((key(stacks[one]), moves_with_failed(&stacks[other].name))),
                None => match self.resolve_moves(&mut open, &connections) {
                    Ok(cannot) => cannot,
                    Err(error) => {
                        release(open).await;
                        return Err(error);
                    }
                },
            };
            let Some((name, error)) = cannot else { break };
            let at = open.iter().position(|one| key(one.stack) == name);
            if let (Some(at), Some(place)) = (at, place_of(&name)) {
                release(vec![open.remove(at)]).await;
                opened[place] = Some(Err(error));
            }
        }
        for one in open {
            let Some(place) = place_of(&key(one.stack)) else { continue };
            opened[place] = Some(match is_driven(one.stack()) {
                true => Ok(Opened::Driven(Box::new(one))),
                false => one.prepare().await.map(|session| Opened::Native(Box::new(session))),
            });
        }
        let opened = OpenedStacks { stacks, opened: opened.into_iter().flatten().collect(), links };
        match opened.unmatched(&patterns, purpose) {
            Some(error) => {
                for one in opened.opened.into_iter().flatten() {
                    let _ = one.release().await;
                }
                Err(error)
            }
            None => Ok(opened),
        }
    }

    /// The states of all stacks, in their order. Locks are taken one after the other and always in the order of their keys, so that two runs
    /// never hold what the other one waits for; states that are only looked at are read side by side.
    async fn open_states<'w>(
        &'w self,
        selected: &[&'w EffectiveStack],
        purpose: &Purpose,
        access: StateAccess<'_>,
    ) -> Result<Vec<Result<OpenStack<'w>, SessionError>>, SessionError> {
        let at_once = if access == StateAccess::Look { AT_ONCE } else { 1 };
        let mut by_key: Vec<(usize, &EffectiveStack)> = selected.iter().copied().enumerate().collect();
        by_key.sort_by_key(|(_, stack)| key(stack));
        let states = by_key.into_iter().map(|(place, stack)| {
            let open = OpenStack::open(self, stack, purpose.clone(), access);
            async move { open.await.map(|open| (place, open)) }
        });
        let mut states = stream::iter(states.collect::<Vec<_>>()).buffered(at_once);
        let mut open = Vec::new();
        while let Some(state) = states.next().await {
            match state {
                Ok(one) => open.push(one),
                Err(error) => {
                    drop(states);
                    release(open.into_iter().filter_map(|(_, one)| one.ok()).collect()).await;
                    return Err(error);
                }
            }
        }
        open.sort_by_key(|(place, _)| *place);
        Ok(open.into_iter().map(|(_, one)| one).collect())
    }

    /// The states of stacks, each by itself: what is wrong with one says nothing of the others.
    pub async fn look(
        &self,
        stacks: &[String],
    ) -> Result<Vec<(String, Result<OpenStack<'_>, SessionError>)>, SessionError> {
        let mut found = Vec::new();
        for stack in self.select(stacks)?.into_iter().filter(|stack| plannable(stack)) {
            let open = OpenStack::open(self, stack, Purpose::LOOK, StateAccess::Look).await;
            found.push((stack.name.clone(), open.and_then(|open| open)));
        }
        Ok(found)
    }

    /// Connects the targets of these stacks, as far as this run has not tried, and gives everything that it has connected.
    pub(crate) async fn connect(&self, stacks: &[&EffectiveStack]) -> Connections {
        let mut connections = self.connections.lock().await;
        for stack in stacks {
            self.surroundings.providers.connect(self, stack, &mut connections).await;
        }
        let mut all = connections.clone();
        all.expect_shared(self.repository.shared_storages());
        all
    }

    /// Whether there is anything to connect to.
    pub fn has_targets(&self) -> bool {
        let settings = self.repository.settings(self.surroundings.environment.as_deref().unwrap_or_default());
        settings.targets.iter().next().is_some()
            || self.repository.effective().any(|stack| stack.own_endpoint().is_some())
    }

    /// Connects every target of the environments at hand, whatever stacks there are.
    pub async fn connect_everything(&self) -> Result<(), SessionError> {
        let environments: BTreeSet<String> = match &self.surroundings.environment {
            Some(environment) => [environment.clone()].into(),
            None => {
                let entries = self.repository.stacks().iter().map(|entry| entry.default_environment.clone());
                entries.chain([strata_source::DEFAULT_ENVIRONMENT.to_owned()]).collect()
            }
        };
        for environment in environments {
            let nobody = strata_source::stack::Layer::Workloads;
            let stack = self.repository.removed("", &environment, false, nobody);
            self.connect(&[&stack]).await.complete()?;
        }
        Ok(())
    }
}

pub(super) fn is_driven(stack: &EffectiveStack) -> bool {
    matches!(stack.model, Model::Tofu(_))
}

fn document<'s>(state: &'s Result<OpenStack<'_>, SessionError>) -> Option<&'s StateDocument> {
    state.as_ref().ok().map(|open| open.state.document())
}

fn moves_with_failed(other: &str) -> SessionError {
    SessionError::failed(format!("something moves between it and `{other}`, which cannot be opened"))
}

/// Gives locks back after an error; that is the one to tell.
async fn release(open: Vec<OpenStack<'_>>) {
    for one in open {
        let _ = one.release().await;
    }
}
