//! Calls until an object is what its operation says, each of them worked out from what is live.
//!
//! A call whose answer was lost, or a run that died between two calls, changes nothing about that: the next look tells.

use std::collections::BTreeSet;

use futures::FutureExt;
use strata_engine::{ErrorClass, Outcome, ProviderError};
use strata_resource::{CommentMark, FieldChange, Spec, Value, diff_specs};
use strata_state::Action;

use super::family::{Family, Job, LiveObject, NextCall};
use super::ownership::is_just_that;
use super::visible;
use crate::api::ApiErrorKind;
use crate::execute::{Call, StepError, Work};
use crate::firewall::{KnownRules, canonical_rules};

pub(crate) async fn converge(work: &Work<'_>, family: &dyn Family) -> Result<Outcome, ProviderError> {
    let mut live = read(work, family).await?;
    check_first(work, family, live.as_ref())?;
    let known = KnownItems::new(&work.operation.spec, live.as_ref());
    let mut history = History::default();
    let (mut sent, mut wrote, mut made) = (BTreeSet::new(), false, false);
    // Each call brings it closer; a bound for the case that somebody else works against us.
    for _ in 0..most(work, live.as_ref()) {
        let job = Job { work, outstanding: outstanding(work, live.as_ref(), &sent) };
        let Some(NextCall { call, sends }) = family.next(&job, live.as_ref())? else {
            if live.is_none() && work.operation.action == Action::Delete {
                visible::prove_gone(work, family).await?;
            }
            return Ok(Outcome::default());
        };
        if history.was_changed_by_others(live.as_ref(), &job.outstanding) {
            return Err(changed_meanwhile(work, family));
        }
        if history.has_answer_to(&call) {
            return Err(no_effect(work, family));
        }
        // What the call was worked out from must still be so when it is sent a second time, after a lock that held it up.
        let unchanged = || still_is(work, family, live.as_ref()).boxed();
        let mut lost = None;
        match family.send(work, call.clone(), &unchanged).await {
            Ok(()) => {
                made |= live.is_none() && work.operation.action == Action::Create;
                wrote = true;
                sent.extend(sends);
                history.answered.push(call);
            }
            Err(error @ StepError::Lost { .. }) => (wrote, lost) = (true, Some(error)),
            // Another object of the same file was changed, perhaps by us.
            Err(error) if error.kind() == Some(&ApiErrorKind::Changed) => {}
            Err(error) if is_gone(work, &error) => {}
            Err(error) => return Err(error.into()),
        }
        history.seen = live.is_some().then_some(job.outstanding);
        live = match (read(work, family).await, lost) {
            (Ok(live), _) => live,
            (Err(_), Some(error)) => return Err(error.into()),
            (Err(error), None) => return Err(error),
        };
        if wrote && live.as_ref().is_some_and(|live| known.lack_one_of(live)) {
            let message =
                format!("somebody else added something to {} at the same time", named(work, family));
            return Err(
                ProviderError::new(ErrorClass::Conflict, message).hint("it was not touched; plan again")
            );
        }
        if made {
            // The server said that we made it. What it writes in its own way is for the next plan to tell.
            if live.is_some() && work.operation.address.kind().table().at_once {
                return Ok(Outcome::default());
            }
        } else if wrote {
            check_ours(work, family, live.as_ref())?;
        } else {
            check_first(work, family, live.as_ref())?;
        }
    }
    Err(no_effect(work, family))
}

fn no_effect(work: &Work<'_>, family: &dyn Family) -> ProviderError {
    let message = match work.operation.action {
        Action::Delete => format!("{} is there again, or still, after it was deleted", named(work, family)),
        _ => format!("{} does not become what was sent", named(work, family)),
    };
    ProviderError::new(ErrorClass::Conflict, message)
        .hint("the server may write it in another way than the source does, or somebody else changes it at the same time; plan again")
}

fn changed_meanwhile(work: &Work<'_>, family: &dyn Family) -> ProviderError {
    let message = format!("somebody else changed {} at the same time", named(work, family));
    let mut error =
        ProviderError::new(ErrorClass::Conflict, message).hint("what they did was not undone; plan again");
    // Of the call that was about to be sent; the engine knows of those before it.
    error.nothing_done = true;
    error
}

/// What this operation has sent, and what it saw before that. A field is written once: one that is neither as it was nor as it was sent
/// has been changed by somebody else, and so has one that went back to what it was.
#[derive(Default)]
struct History {
    answered: Vec<Call>,
    /// What still differed before the last call, where the object was there.
    seen: Option<Vec<FieldChange>>,
}

impl History {
    fn has_answer_to(&self, call: &Call) -> bool {
        self.answered.iter().any(|other| other.is_same_as(call))
    }

    /// Lists that are edited item by item are looked at item by item ([`KnownItems`]).
    fn was_changed_by_others(&self, live: Option<&LiveObject>, outstanding: &[FieldChange]) -> bool {
        let (Some(seen), Some(_)) = (&self.seen, live) else { return false };
        let as_before = |change: &FieldChange| {
            seen.iter().any(|other| other.path == change.path && other.before == change.before)
        };
        let apart = |field: &str| LISTS.contains(&field) || field == WAITING;
        let whole = |change: &&FieldChange| !change.path.first().is_some_and(apart);
        outstanding.iter().filter(whole).any(|change| !as_before(change))
    }
}

/// Fields whose items have calls of their own.
const LISTS: [&str; 2] = ["rules", "addresses"];
/// Says that calls of ours wait for the last one, which brings them into effect.
const WAITING: &str = "staged";

/// The object that a call was worked out from, looked at once more.
pub(crate) async fn still_is(
    work: &Work<'_>,
    family: &dyn Family,
    before: Option<&LiveObject>,
) -> Result<(), ProviderError> {
    let now = read(work, family).await?;
    let same = now.as_ref().map(|live| &live.digest) == before.map(|live| &live.digest);
    if same { Ok(()) } else { Err(changed_meanwhile(work, family)) }
}

/// What may be in a list that is edited item by item. What somebody else puts in meanwhile is in no plan, and not ours to remove.
struct KnownItems {
    rules: KnownRules,
    addresses: Vec<Value>,
}

impl KnownItems {
    fn new(wanted: &Spec, live: Option<&LiveObject>) -> Self {
        let there = |field: &str| live.map(|live| list(&live.spec, field)).unwrap_or_default();
        let addresses = there("addresses").iter().chain(list(wanted, "addresses")).cloned().collect();
        let wanted = canonical_rules(wanted).unwrap_or_default();
        Self { rules: KnownRules::new(there("rules"), &wanted), addresses }
    }

    fn lack_one_of(&self, live: &LiveObject) -> bool {
        let foreign = |address: &Value| !self.addresses.contains(address);
        self.rules.lack_one_of(list(&live.spec, "rules")) || list(&live.spec, "addresses").iter().any(foreign)
    }
}

fn list<'s>(spec: &'s Spec, field: &str) -> &'s [Value] {
    spec.get(field).and_then(Value::as_list).unwrap_or_default()
}

/// Lists of rules and addresses take a call for each.
fn most(work: &Work<'_>, live: Option<&LiveObject>) -> usize {
    let items = |spec: &Spec| LISTS.map(|field| list(spec, field).len()).iter().sum::<usize>();
    12 + 4 * (items(&work.operation.spec) + live.map_or(0, |live| items(&live.spec)))
}

fn is_gone(work: &Work<'_>, error: &StepError) -> bool {
    work.operation.action == Action::Delete && error.kind() == Some(&ApiErrorKind::Missing)
}

pub(crate) fn named(work: &Work<'_>, family: &dyn Family) -> String {
    format!("{} `{}`", family.word(), family.key(&work.operation.spec).unwrap_or_default())
}

pub(crate) async fn read(work: &Work<'_>, family: &dyn Family) -> Result<Option<LiveObject>, ProviderError> {
    let spec = &work.operation.spec;
    let key = family.key(spec).ok_or_else(|| work.internal("its spec has no identity"))?;
    let listed = family.list(work.client, &[spec]).await;
    let mut listed = listed.map_err(|error| error.explain(&format!("look at {}", named(work, family))))?;
    Ok(listed.remove(&key))
}

/// Before anything is written: the object must be the one that the plan saw.
pub(crate) fn check_first(
    work: &Work<'_>,
    family: &dyn Family,
    live: Option<&LiveObject>,
) -> Result<(), ProviderError> {
    let (operation, named) = (work.operation, named(work, family));
    let conflict = |message: String| {
        let mut error =
            ProviderError::new(ErrorClass::Conflict, message).hint("nothing of it was touched; plan again");
        error.nothing_done = true;
        Err(error)
    };
    match (operation.action, live) {
        (Action::Create, None) | (Action::Delete, None) => Ok(()),
        (Action::Create, Some(live)) if is_marked(work, live) => Ok(()),
        (Action::Create, Some(_)) => conflict(format!("{named} came into being since the plan was made")),
        (Action::Update, None) => conflict(format!("{named} is gone since the plan was made")),
        (Action::Update | Action::Delete, Some(live)) => match &operation.observed {
            Some(seen) if seen.digest != live.digest => {
                conflict(format!("somebody else changed {named} since the plan was made"))
            }
            _ => Ok(()),
        },
    }
}

/// After a write: what is there must be what we made.
fn check_ours(work: &Work<'_>, family: &dyn Family, live: Option<&LiveObject>) -> Result<(), ProviderError> {
    let operation = work.operation;
    let Some(live) = live.filter(|_| operation.action == Action::Create) else { return Ok(()) };
    let kind = operation.address.kind();
    let ours = match operation.spec.contains_key("mark") {
        true => is_marked(work, live),
        // What takes several calls is not all there after the first.
        false => !kind.table().at_once || is_just_that(kind, &operation.spec, live),
    };
    if ours {
        return Ok(());
    }
    let message = format!("{} was made by somebody else at the same moment", named(work, family));
    Err(ProviderError::new(ErrorClass::Conflict, message).hint("it was not touched; plan again"))
}

pub(crate) fn is_marked(work: &Work<'_>, live: &LiveObject) -> bool {
    live.mark == Some(our_mark(work))
}

fn our_mark(work: &Work<'_>) -> CommentMark {
    CommentMark::new(&work.operation.lineage, &work.operation.address)
}

/// What still differs, of what the operation changes.
fn outstanding(
    work: &Work<'_>,
    live: Option<&LiveObject>,
    sent: &BTreeSet<&'static str>,
) -> Vec<FieldChange> {
    let (operation, Some(live)) = (work.operation, live) else { return Vec::new() };
    let rules = operation.address.kind().rules();
    let creates = operation.action == Action::Create;
    let applied = operation.recorded.as_ref().filter(|_| !creates).map(|recorded| &recorded.spec);
    let mut changes = diff_specs(rules, &operation.spec, applied, &live.spec).changes;
    changes.retain(|change| {
        let planned = |other: &FieldChange| other.path.first() == change.path.first();
        if rules.rule(&change.path).write_only {
            // Sent together with the request that makes the object.
            let open = change.path.first().is_some_and(|field| !sent.contains(field));
            return !creates && open && operation.changes.iter().any(planned);
        }
        creates || operation.changes.iter().any(planned)
    });
    changes
}
