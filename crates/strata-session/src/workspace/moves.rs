//! `moved:` entries of the source against the states: what is still to be moved, what goes along with it, and what cannot move.
//!
//! A move is between two states, or within one. A run that is about one of the stacks opens the other one too, for the move alone.

use std::collections::{BTreeMap, BTreeSet};

use strata_blueprint::Origin;
use strata_engine::{Move, Problem, ProblemKind, is_same_but_for_lineage, is_same_object, keep_origin};
use strata_resource::{Address, Lineage, ResourceGraph, Value};
use strata_source::EffectiveStack;
use strata_state::{MadeAs, ReplayedState, StateDocument, StateResource};

use super::{Before, Workspace, is_removed, key};
use crate::connections::Connections;
use crate::error::SessionError;
use crate::stack_session::OpenStack;

/// What moves are asked for of one stack, resolved against its state.
#[derive(Default)]
pub(crate) struct StackMoves {
    pub(crate) moves: Vec<Move>,
    pub(crate) unmovable: Vec<Problem>,
    /// It was opened for its moves alone.
    pub(crate) partner: bool,
}

/// One entry of the source, in the environment of the stack that says it.
struct Entry<'w> {
    from: &'w str,
    to: &'w str,
    environment: &'w str,
    origin: String,
}

impl Entry<'_> {
    fn left_key(&self) -> String {
        format!("{}/{}", self.environment, stack_of(self.from))
    }

    fn entered_key(&self) -> String {
        format!("{}/{}", self.environment, stack_of(self.to))
    }

    fn is_of(&self, keys: &BTreeSet<String>) -> bool {
        keys.contains(&self.left_key()) || keys.contains(&self.entered_key())
    }

    /// Whether it means an object of the stack that it moves from.
    fn means(&self, address: &Address) -> bool {
        match object_of(self.from) {
            Some((kind, name)) => address.kind().as_str() == kind && address.name() == name,
            None => true,
        }
    }
}

fn stack_of(subject: &str) -> &str {
    subject.split('/').next().unwrap_or(subject)
}

/// Kind and name, unless a whole stack is meant.
fn object_of(subject: &str) -> Option<(&str, &str)> {
    let mut parts = subject.splitn(3, '/').skip(1);
    parts.next().zip(parts.next())
}

/// One object and where it goes.
struct Wish {
    from: usize,
    to: usize,
    old: Address,
    new: Address,
    origin: Option<String>,
}

/// Where objects were made that were moved, in a state and in what an interrupted run began there.
pub(crate) fn origins(state: &ReplayedState, moves: &[Move]) -> BTreeMap<Address, MadeAs> {
    let mut moved = state.document.clone();
    moves.iter().for_each(|one| one.apply_to(&mut moved));
    let open = state.open.iter().filter_map(|entry| Some((&entry.address, entry.becomes.as_deref()?)));
    let known = open.chain(&moved.resources);
    known
        .filter_map(|(address, record)| Some((address.clone(), (**record.made_as.as_ref()?).clone())))
        .collect()
}

/// What is new, and would be called as something that was made before it and lives elsewhere.
pub(crate) fn made_again(
    state: &ReplayedState,
    moves: &[Move],
    graph: &ResourceGraph,
) -> BTreeMap<Address, MadeAs> {
    let mut moved = state.document.clone();
    moves.iter().for_each(|one| one.apply_to(&mut moved));
    let begun = state.open.iter().filter(|entry| entry.becomes.is_some());
    let begun = begun.map(|entry| entry.address.clone()).collect();
    strata_engine::made_again(&moved, &begun, graph)
}

/// Origins for a blueprint.
pub(crate) fn drawn_origins(origins: &BTreeMap<Address, MadeAs>) -> BTreeMap<Address, Origin> {
    let origin = |made: &MadeAs| Origin {
        address: made.address.clone(),
        lineage: made.lineage.clone(),
        again: made.again,
    };
    origins.iter().map(|(address, made)| (address.clone(), origin(made))).collect()
}

impl Workspace {
    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.repository().effective().flat_map(|stack| {
            stack.moved().iter().map(|entry| Entry {
                from: &entry.from,
                to: &entry.to,
                environment: &stack.environment,
                origin: self.origin(entry.from.span),
            })
        })
    }

    /// Whether the source moves something out of a stack that it does not have any more.
    pub(super) fn moves_out_of_removed(&self) -> bool {
        self.entries()
            .any(|entry| self.repository().stack(stack_of(entry.from), Some(entry.environment)).is_none())
    }

    /// Names of stacks that something moves out of.
    pub(super) fn moved_stacks(&self) -> Vec<String> {
        self.entries().map(|entry| stack_of(entry.from).to_owned()).collect()
    }

    /// The stacks that have to be opened beside these, as something moves between them.
    pub(super) async fn move_partners(
        &self,
        selected: &[&EffectiveStack],
    ) -> Result<Vec<&EffectiveStack>, SessionError> {
        let keys: BTreeSet<String> = selected.iter().map(|stack| key(stack)).collect();
        let mut partners: BTreeMap<String, &EffectiveStack> = BTreeMap::new();
        for entry in self.entries().filter(|entry| entry.is_of(&keys)) {
            let (from, to) = (entry.left_key(), entry.entered_key());
            let missing = [(&from, entry.from), (&to, entry.to)];
            let Some((wanted, subject)) = missing.into_iter().find(|(key, _)| !keys.contains(*key)) else {
                continue;
            };
            // What was moved long ago needs nobody.
            let pending = match self.store()?.read(&from).await {
                Ok(known) => {
                    known.is_some_and(|state| state.resources.keys().any(|address| entry.means(address)))
                }
                // Nobody can say, and whoever opens it says why.
                Err(error) if error.is_of_one_state() => true,
                Err(error) => return Err(error.into()),
            };
            let name = stack_of(subject);
            let stack = self
                .repository()
                .stack(name, Some(entry.environment))
                .or_else(|| self.removed_stack(name).map(|removed| &removed.stack));
            if let Some(stack) = stack.filter(|stack| pending && key(stack) == *wanted) {
                partners.insert(wanted.clone(), stack);
            }
        }
        Ok(partners.into_values().collect())
    }

    /// Which of these stacks something moves between, by their places. Where the state that it would leave cannot be read, nobody can say.
    pub(super) fn move_links(
        &self,
        stacks: &[&EffectiveStack],
        states: &[Option<&StateDocument>],
    ) -> Vec<(usize, usize)> {
        let at = |key: &str| stacks.iter().position(|stack| super::key(stack) == key);
        let link = |entry: Entry<'_>| {
            let (from, to) = at(&entry.left_key()).zip(at(&entry.entered_key()))?;
            let pending =
                states[from].is_none_or(|state| state.resources.keys().any(|address| entry.means(address)));
            (pending && from != to).then_some((from, to))
        };
        self.entries().filter_map(link).collect()
    }

    /// Finds what moves among stacks whose states are read, and gives it to each of them. Gives the key of a stack that cannot
    /// be drawn, where there is one: it has to be left out first.
    pub(super) fn resolve_moves(
        &self,
        open: &mut [OpenStack<'_>],
        connections: &Connections,
    ) -> Result<Option<(String, SessionError)>, SessionError> {
        let mut wishes = self.wishes(open);
        if wishes.is_empty() {
            return Ok(None);
        }
        self.assign(open, &wishes)?;
        let involved: BTreeSet<usize> = wishes.iter().flat_map(|wish| [wish.from, wish.to]).collect();
        let mut graphs: BTreeMap<usize, ResourceGraph> = BTreeMap::new();
        for index in involved {
            let one = &open[index];
            let graph = match is_removed(one.stack) {
                true => ResourceGraph::default(),
                false => {
                    let origins = origins(one.state.replayed(), &one.moves.moves);
                    let drawn = drawn_origins(&origins);
                    let before = Before { origins: drawn, homes: one.homes() };
                    match self.draw(one.stack, connections.shared_storages(), None, &before) {
                        Ok(drawn) => drawn.graph,
                        Err(error) => return Ok(Some((key(one.stack), error))),
                    }
                }
            };
            graphs.insert(index, graph);
        }
        let refused = refused(open, &wishes, &graphs);
        wishes.retain(|wish| !refused.contains(&wish.old));
        wishes.extend(companions(self, open, &wishes, &graphs)?);
        self.assign(open, &wishes)?;
        Ok(None)
    }

    fn wishes(&self, open: &[OpenStack<'_>]) -> Vec<Wish> {
        let at = |key: &str| open.iter().position(|one| super::key(one.stack) == key);
        let entries: Vec<Entry<'_>> = self.entries().collect();
        let named: BTreeSet<(String, &str)> =
            entries.iter().map(|entry| (entry.environment.to_owned(), entry.from)).collect();
        let mut wishes: Vec<Wish> = Vec::new();
        for entry in &entries {
            let Some((from, to)) = at(&entry.left_key()).zip(at(&entry.entered_key())) else { continue };
            let known = open[from].state.document().resources.keys();
            for old in known.filter(|address| entry.means(address)) {
                let (kind, name) = (old.kind(), object_of(entry.to).map_or(old.name(), |(_, name)| name));
                let own = format!("{}/{kind}/{}", stack_of(entry.from), old.name());
                // An object that is named for itself goes where that says.
                let elsewhere =
                    entry.from != own && named.contains(&(entry.environment.to_owned(), own.as_str()));
                if elsewhere || wishes.iter().any(|wish| wish.old == *old) {
                    continue;
                }
                let home = open[to].stack;
                let environment = (!home.is_default_environment).then_some(home.environment.as_str());
                let new = Address::new(environment, &home.name, kind, name);
                wishes.push(Wish { from, to, old: old.clone(), new, origin: Some(entry.origin.clone()) });
            }
        }
        wishes
    }

    /// Gives each stack its side of the moves.
    fn assign(&self, open: &mut [OpenStack<'_>], wishes: &[Wish]) -> Result<(), SessionError> {
        let mut assigned: BTreeMap<usize, Vec<Move>> = BTreeMap::new();
        for wish in wishes {
            let Wish { from, to, old, new, .. } = wish;
            if from == to {
                let within = Move::Within { from: old.clone(), to: new.clone() };
                assigned.entry(*from).or_default().push(within);
                continue;
            }
            let record = self.arriving(open, wishes, wish)?;
            let (from_key, to_key) = (key(open[*from].stack), key(open[*to].stack));
            if !open[*to].state.document().resources.contains_key(new) {
                let (from, to, record) = (old.clone(), new.clone(), Box::new(record));
                let arrival = Move::Arrival { from, from_key, to, record };
                assigned.entry(wish.to).or_default().push(arrival);
            }
            let departure = Move::Departure { from: old.clone(), to: new.clone(), to_key };
            assigned.entry(*from).or_default().push(departure);
        }
        for (index, one) in open.iter_mut().enumerate() {
            one.moves.moves = assigned.remove(&index).unwrap_or_default();
        }
        Ok(())
    }

    /// The record of an object as the state will have it that it goes to.
    fn arriving(
        &self,
        open: &[OpenStack<'_>],
        wishes: &[Wish],
        wish: &Wish,
    ) -> Result<StateResource, SessionError> {
        let (source, target) = (&open[wish.from], open[wish.to].state.document());
        let document = source.state.document();
        let mut record = document.resources[&wish.old].clone();
        leave(&mut record, &wish.old, document, target, &self.lineage(source.stack)?);
        let along = |old: &Address| {
            let mut others = wishes.iter().filter(|other| other.to == wish.to && other.from == wish.from);
            others.find(|other| other.old == *old).map(|other| other.new.clone())
        };
        record.depends_on = record.depends_on.iter().filter_map(along).collect();
        Ok(record)
    }
}

/// Notes on a record where it comes from, with the key of its digests where the other state keeps another.
pub(crate) fn leave(
    record: &mut StateResource,
    address: &Address,
    from: &StateDocument,
    to: &StateDocument,
    lineage: &Lineage,
) {
    let differs = from.digest_key != to.digest_key && record.spec.values().any(Value::has_secret);
    keep_origin(record, address, lineage, from.digest_key.clone().filter(|_| differs));
}

/// What cannot move, told at the stack that it would move to.
fn refused(
    open: &mut [OpenStack<'_>],
    wishes: &[Wish],
    graphs: &BTreeMap<usize, ResourceGraph>,
) -> BTreeSet<Address> {
    let mut refused = BTreeSet::new();
    for wish in wishes {
        let Wish { from, to, old, new, origin } = wish;
        let source = open[*from].state.replayed();
        let (record, there) =
            (&source.document.resources[old], open[*to].state.document().resources.get(new));
        let wanted = |index: &usize, address: &Address| graphs[index].get(address).is_some();
        let (message, hint) = if wanted(from, old) {
            (
                format!("`{old}` is moved here, and is still in the source"),
                "remove the old one, or the `moved` entry",
            )
        } else if there.is_some_and(|there| !is_same_object(new, there, record)) {
            (
                format!("`{old}` is moved here, and the state has another object under this address"),
                "give one of them another address",
            )
        } else if !wanted(to, new) && !is_removed(open[*to].stack) {
            (
                format!("`{old}` is moved here, and the source has nothing of this name"),
                "write it, or correct the `moved` entry",
            )
        } else if source.open.iter().any(|entry| entry.address == *old && entry.to.is_none()) {
            (
                format!("`{old}` is moved here, and an interrupted run left work open on it"),
                "apply again: what was begun is looked at first",
            )
        } else {
            continue;
        };
        refused.insert(old.clone());
        let (kind, hint) = (ProblemKind::Refused, hint.to_owned());
        let problem = Problem { kind, address: new.clone(), message, hint, origin: origin.clone() };
        open[*to].moves.unmovable.push(problem);
    }
    refused
}

/// What goes along: objects that nobody wants where they are, and that are wanted where something moves to, such as the image of a guest.
fn companions(
    workspace: &Workspace,
    open: &[OpenStack<'_>],
    wishes: &[Wish],
    graphs: &BTreeMap<usize, ResourceGraph>,
) -> Result<Vec<Wish>, SessionError> {
    let pairs: BTreeSet<(usize, usize)> = wishes.iter().map(|wish| (wish.from, wish.to)).collect();
    let mut found: Vec<Wish> = Vec::new();
    for (from, to) in pairs {
        let (own, other) = (workspace.lineage(open[from].stack)?, workspace.lineage(open[to].stack)?);
        for (old, record) in &open[from].state.document().resources {
            let moves = wishes.iter().chain(&found).any(|wish| wish.old == *old);
            if moves || graphs[&from].get(old).is_some() {
                continue;
            }
            let taken = |address: &Address| wishes.iter().chain(&found).any(|wish| wish.new == *address);
            let twin_in = |home: usize, lineage: &Lineage| {
                let known = &open[home].state.document().resources;
                let mut drawn = graphs[&home].iter().map(|resource| (&resource.address, resource));
                drawn.find(|(address, resource)| {
                    address.kind() == old.kind()
                        && !known.contains_key(*address)
                        && !taken(address)
                        && is_same_but_for_lineage(
                            old,
                            (record, &own),
                            (&resource.target, &resource.spec, lineage),
                        )
                })
            };
            // An image is called by the first guest that uses it. Where others still do it stays, under another address.
            let stays = twin_in(from, &own).map(|twin| (from, twin));
            if let Some((to, (new, _))) = stays.or_else(|| Some((to, twin_in(to, &other)?))) {
                found.push(Wish { from, to, old: old.clone(), new: new.clone(), origin: None });
            }
        }
    }
    Ok(found)
}
