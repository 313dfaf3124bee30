//! Interfaces of hosts. Edits are staged, and come into effect together with one reload.
//!
//! A reload brings everything into effect that is staged, whoever staged it. So nothing is begun while changes wait that no open entry of
//! ours explains, and directly before the reload it is looked whether anything but ours would come along.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use http::Method;
use strata_engine::{ErrorClass, Observed, Outcome, ProviderError, Sighting, Wanted};
use strata_resource::{FieldChange, Spec, Value};
use strata_state::Action;

use super::{interface, staged};
use crate::absence;
use crate::api::{Params, encode_path_part};
use crate::client::{CallError, Client};
use crate::datacenter::{Family, Job, LiveObject, NextCall, Row, converge, digest_of, row_text, spec_text};
use crate::execute::{Call, StepError, Work};

pub(super) struct Networks;

/// Whether changes wait for a reload.
const STAGED: &str = "staged";

/// The interfaces of a host, and the names of those that waiting changes are about.
pub(super) struct Host {
    pub(super) rows: BTreeMap<String, Row>,
    pub(super) changes: Option<String>,
}

impl Host {
    pub(super) async fn read(client: &Client, node: &str) -> Result<Option<Self>, CallError> {
        let path = format!("/nodes/{node}/network");
        let (rows, changes): (Vec<Row>, Option<String>) = match client.get_staged(&path).await {
            // The name does not resolve, and the cluster has no such member.
            Err(error) if absence::is_no_member(client, &error, node).await? => return Ok(None),
            other => other?,
        };
        let named = rows.into_iter().filter_map(|row| Some((row_text(&row, "iface")?, row)));
        Ok(Some(Self { rows: named.collect(), changes: changes.filter(|text| !text.trim().is_empty()) }))
    }

    pub(super) fn order(&self) -> Vec<String> {
        let place = |row: &Row| row_text(row, "priority").and_then(|place| place.parse::<u32>().ok());
        let mut names: Vec<(Option<u32>, &String)> =
            self.rows.iter().map(|(name, row)| (place(row), name)).collect();
        names.sort();
        names.into_iter().map(|(_, name)| name.clone()).collect()
    }

    fn live(&self, node: &str) -> LiveObject {
        let mut live = LiveObject::default();
        let interfaces: Spec =
            self.rows.iter().map(|(name, row)| (name.clone(), Value::Map(interface::read(row)))).collect();
        live.spec.insert("network".to_owned(), Value::text(node));
        live.spec.insert("interfaces".to_owned(), Value::Map(interfaces));
        live.spec.insert(STAGED.to_owned(), Value::Bool(self.changes.is_some()));
        live.digest = digest_of(&live.spec);
        live.staged.clone_from(&self.changes);
        live.order = self.order();
        live
    }
}

#[async_trait]
impl Family for Networks {
    fn word(&self) -> &'static str {
        "network of"
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get("network").and_then(Value::as_text).map(str::to_owned)
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let mut found = BTreeMap::new();
        for node in asked.iter().filter_map(|spec| self.key(spec)) {
            if let Some(host) = Host::read(client, &node).await? {
                let live = host.live(&node);
                found.insert(node, live);
            }
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let Some(live) = live else {
            let message = format!("there is no host `{}`", spec_text(job.spec(), "network"));
            return Err(ProviderError::new(ErrorClass::Missing, message));
        };
        if let Some(call) = next_edit(job, live)? {
            return Ok(Some(call.into()));
        }
        let staged = live.spec.get(STAGED).and_then(Value::as_bool) == Some(true);
        Ok(staged.then(|| reload(job.work).into()))
    }
}

fn path(work: &Work<'_>) -> String {
    format!("/nodes/{}/network", spec_text(&work.operation.spec, "network"))
}

fn reload(work: &Work<'_>) -> Call {
    let doing = format!("reload the network of `{}`", spec_text(&work.operation.spec, "network"));
    work.call(Method::PUT, path(work), Params::new(), doing)
}

pub(super) fn interfaces(spec: &Spec) -> BTreeMap<&str, &Spec> {
    let map = spec.get("interfaces").and_then(Value::as_map).into_iter().flatten();
    map.filter_map(|(name, interface)| Some((name.as_str(), interface.as_map()?))).collect()
}

pub(super) fn is(interface: &Spec, flag: &str) -> bool {
    interface.get(flag).and_then(Value::as_bool) == Some(true)
}

/// It is hardware, or was there before us: it is configured, and never made or deleted.
pub(super) fn only_configured(interface: &Spec) -> bool {
    is(interface, "adopt") || spec_text(interface, "type") == "eth"
}

/// The next change to stage: first what goes, then what changes, then what comes, each before what stands on it.
fn next_edit(job: &Job<'_>, live: &LiveObject) -> Result<Option<Call>, ProviderError> {
    let (work, there) = (job.work, interfaces(&live.spec));
    let node = spec_text(job.spec(), "network");
    let delete = |name: &str| {
        let path = format!("{}/{}", path(work), encode_path_part(name));
        work.call(Method::DELETE, path, Params::new(), format!("stage the removal of `{name}` on `{node}`"))
    };
    if work.operation.action == Action::Delete {
        let own = interfaces(job.spec());
        let ours = own.iter().filter(|(name, own)| !only_configured(own) && there.contains_key(*name));
        let last = ours.max_by_key(|(name, _)| (interface::depth(name, &there), **name));
        return Ok(last.map(|(name, _)| delete(name)));
    }
    let changed =
        |change: &&FieldChange| change.path.keys().len() > 1 && change.path.first() == Some("interfaces");
    let touched: BTreeSet<&str> =
        job.outstanding.iter().filter(changed).map(|change| change.path.keys()[1].as_str()).collect();
    let wanted = interfaces(job.spec());
    let gone = touched.iter().filter(|name| !wanted.contains_key(*name) && there.contains_key(*name));
    if let Some(name) = gone.max_by_key(|name| (interface::depth(name, &there), **name)) {
        return Ok(Some(delete(name)));
    }
    let order =
        |name: &&&str| (!there.contains_key(**name), interface::depth(name, &wanted), (**name).to_owned());
    let Some(name) = touched.iter().filter(|name| wanted.contains_key(*name)).min_by_key(order) else {
        return Ok(None);
    };
    let own = wanted[name];
    let Some(before) = there.get(name) else {
        if spec_text(own, "type") == "eth" {
            let message = format!(
                "there is no interface `{name}` on `{node}`: an `eth` is hardware, and cannot be made"
            );
            return Err(ProviderError::new(ErrorClass::Missing, message).field(format!("interfaces.{name}")));
        }
        let params = interface::create(name, own);
        return Ok(Some(work.call(Method::POST, path(work), params, format!("stage `{name}` on `{node}`"))));
    };
    let changes: Vec<&FieldChange> = job
        .outstanding
        .iter()
        .filter(|change| change.path.keys().get(1).map(String::as_str) == Some(name))
        .collect();
    let params = interface::update(own, before, &changes);
    let path = format!("{}/{}", path(work), encode_path_part(name));
    Ok(Some(work.call(Method::PUT, path, params, format!("stage changes of `{name}` on `{node}`"))))
}

/// Stages, looks whether only that is staged, and reloads. What was staged is taken back if the server refuses a part of it.
pub(super) async fn execute(work: &Work<'_>) -> Result<Outcome, ProviderError> {
    let node = spec_text(&work.operation.spec, "network");
    let before = Host::read(work.client, node)
        .await
        .map_err(|error| error.explain(&format!("look at the network of `{node}`")))?;
    let Some(before) = before else {
        return Err(ProviderError::new(ErrorClass::Missing, format!("there is no host `{node}`")));
    };
    let clean = before.changes.is_none();
    let watched = Watched {
        before,
        ours: ours(work),
        own: own(work),
        made: Mutex::default(),
        reloads: AtomicBool::new(false),
    };
    let outcome = match converge::converge(work, &watched).await {
        // An earlier run may have put the file in place without a reload that went well.
        Ok(outcome) if clean && reload_is_due(work) && !watched.reloads.swap(true, Ordering::Relaxed) => {
            work.run(reload(work)).await.map(|()| outcome).map_err(ProviderError::from)
        }
        outcome => outcome,
    };
    match outcome {
        Err(mut error)
            if clean && error.class != ErrorClass::Stopped && error.class != ErrorClass::Unreachable =>
        {
            if watched.take_back(work, node).await {
                work.context.writes_undone();
                error.nothing_done = true;
            }
            Err(watched.explain(error, node))
        }
        outcome => outcome.map_err(|error| watched.explain(error, node)),
    }
}

/// Whether the plan shows that something is to come into effect.
fn reload_is_due(work: &Work<'_>) -> bool {
    work.operation.observed.as_ref().is_some_and(|seen| is(&seen.spec, STAGED))
}

/// An interface that an operation changes: as it is to be, and as it was recorded.
#[derive(Default)]
struct Own {
    wanted: Option<Spec>,
    recorded: Option<Spec>,
}

fn own(work: &Work<'_>) -> BTreeMap<String, Own> {
    let operation = work.operation;
    let deletes = operation.action == Action::Delete;
    let wanted = interfaces(&operation.spec);
    let recorded = operation.recorded.as_ref().map(|recorded| interfaces(&recorded.spec)).unwrap_or_default();
    let names: BTreeSet<&str> = if operation.action == Action::Update {
        operation.changes.iter().filter_map(|change| Some(change.path.keys().get(1)?.as_str())).collect()
    } else {
        wanted.keys().copied().collect()
    };
    names
        .into_iter()
        .map(|name| {
            let wanted = wanted.get(name).filter(|_| !deletes).map(|own| (*own).clone());
            (name.to_owned(), Own { wanted, recorded: recorded.get(name).map(|own| (*own).clone()) })
        })
        .collect()
}

/// The interfaces that the source or the state speaks of.
fn ours(work: &Work<'_>) -> BTreeSet<String> {
    let recorded =
        work.operation.recorded.as_ref().map(|recorded| interfaces(&recorded.spec)).unwrap_or_default();
    interfaces(&work.operation.spec).into_keys().chain(recorded.into_keys()).map(str::to_owned).collect()
}

/// The family, with an eye on what others stage meanwhile.
struct Watched {
    before: Host,
    ours: BTreeSet<String>,
    own: BTreeMap<String, Own>,
    /// The interfaces that this operation has staged as new ones.
    made: Mutex<BTreeSet<String>>,
    reloads: AtomicBool,
}

impl Watched {
    fn made(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something about an interface is neither as it was nor as we make it. Only what decides who reaches the host is compared:
    /// a server may fill in the rest.
    fn strays(&self, name: &str, now: &Host) -> bool {
        let Some(own) = self.own.get(name) else { return true };
        let read = |host: &Host| interface::settings(host.rows.get(name));
        let (before, now) = (read(&self.before), read(now));
        if now.is_none() {
            return own.wanted.is_some();
        }
        if before.is_none() && !self.made().contains(name) {
            // It has the name of one that we are about to make.
            return true;
        }
        let value = |spec: Option<&Spec>, field: &str| spec.and_then(|spec| interface::reach(spec, field));
        interface::REACH.iter().any(|field| {
            let (is, was) = (value(now.as_ref(), field), value(before.as_ref(), field));
            let wanted = value(own.wanted.as_ref(), field);
            let ours = wanted.is_some() || value(own.recorded.as_ref(), field).is_some();
            is != was && !(ours && is == wanted)
        })
    }

    /// A reload puts the new file in place before it makes it active: a failed one is not undone, and nothing is staged any more.
    fn explain(&self, mut error: ProviderError, node: &str) -> ProviderError {
        let failed = error.class == ErrorClass::TaskFailed && !error.nothing_done;
        if failed && self.reloads.load(Ordering::Relaxed) && error.hint.is_none() {
            error.message = format!(
                "{}; the new configuration of `{node}` is in its file, and not or only partly active",
                error.message
            );
            let hint = format!(
                "see the log of the task, or run `ifreload -a` on `{node}`; the next apply reloads once more"
            );
            error = error.hint(hint);
        }
        error
    }

    /// The interfaces of others that a reload would change.
    fn foreign(&self, now: &Host) -> Vec<String> {
        if let Some(changes) = &self.before.changes {
            // They waited already: those of others were refused by the plan, and are looked for once more.
            let text = now.changes.as_ref().unwrap_or(changes);
            return staged::foreign(text, &now.order(), &self.ours);
        }
        let differs = |name: &&String| {
            interface::settings(self.before.rows.get(*name)) != interface::settings(now.rows.get(*name))
        };
        let names: BTreeSet<&String> = self.before.rows.keys().chain(now.rows.keys()).collect();
        names.into_iter().filter(differs).filter(|name| self.strays(name, now)).cloned().collect()
    }

    /// Nothing was staged before, so whatever is now is ours, unless it shows otherwise. Gives whether all is as it was.
    async fn take_back(&self, work: &Work<'_>, node: &str) -> bool {
        let Ok(Some(now)) = Host::read(work.client, node).await else { return false };
        if now.changes.is_some() {
            if !self.foreign(&now).is_empty() {
                return false;
            }
            // What stays is shown by the next plan.
            let doing = format!("take back what is staged on `{node}`");
            let taken_back = work.call(Method::DELETE, path(work), Params::new(), doing);
            if let Err(StepError::Stop(_)) = work.write(&taken_back).await {
                return false;
            }
        }
        let Ok(Some(now)) = Host::read(work.client, node).await else { return false };
        let settings = |host: &Host| -> Vec<Spec> { host.rows.values().map(interface::read).collect() };
        now.changes.is_none() && settings(&now) == settings(&self.before)
    }
}

#[async_trait]
impl Family for Watched {
    fn word(&self) -> &'static str {
        Networks.word()
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        Networks.key(spec)
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let mut found = BTreeMap::new();
        for node in asked.iter().filter_map(|spec| self.key(spec)) {
            if let Some(host) = Host::read(client, &node).await? {
                let mut live = host.live(&node);
                let foreign = self.foreign(&host);
                if !foreign.is_empty() {
                    live.spec.insert("foreign".to_owned(), Value::Text(foreign.join(", ")));
                }
                found.insert(node, live);
            }
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let foreign = live.map(|live| spec_text(&live.spec, "foreign")).unwrap_or_default();
        if !foreign.is_empty() {
            let node = spec_text(job.spec(), "network");
            let message = format!(
                "somebody else stages changes of the network of `{node}` ({foreign}): a reload would bring them along"
            );
            return Err(ProviderError::new(ErrorClass::Conflict, message).hint(staged::HINT));
        }
        let next = Networks.next(job, live)?;
        if let Some(call) = next.as_ref().map(|next| &next.call).filter(|call| call.method == Method::POST) {
            let names = call.params.pairs().filter(|(key, _)| *key == "iface");
            self.made().extend(names.map(|(_, name)| name.to_owned()));
        }
        if next
            .as_ref()
            .is_some_and(|next| next.call.path == path(job.work) && next.call.method == Method::PUT)
        {
            self.reloads.store(true, Ordering::Relaxed);
        }
        Ok(next)
    }
}

/// A host always has a network: it is ours as far as the source or the state speak of its interfaces.
pub(super) fn judge(wanted: &Wanted<'_>, live: Option<&LiveObject>) -> Sighting {
    let Some(live) = live else { return Sighting::Absent };
    let node = spec_text(wanted.spec, "network");
    let there = interfaces(&live.spec);
    let (asked, none) = (interfaces(wanted.spec), BTreeMap::new());
    let recorded = wanted.recorded.map_or_else(|| none.clone(), |recorded| interfaces(&recorded.spec));
    let begun = wanted.begun.map_or(none, interfaces);
    // Something of ours is open: only then can anything that is staged be ours.
    let unfinished = wanted.begun.is_some() || wanted.recorded.is_some_and(|recorded| recorded.partial);
    if let Some(changes) = &live.staged {
        let ours: BTreeSet<String> = recorded
            .keys()
            .chain(begun.keys())
            .filter(|_| unfinished)
            .map(|name| (*name).to_owned())
            .collect();
        let foreign = staged::foreign(changes, &live.order, &ours);
        if !unfinished || !foreign.is_empty() {
            let names = foreign.join("`, `");
            return Sighting::Busy(format!(
                "changes of the network of `{node}` are staged that are not ours (`{names}`): a reload would bring them along"
            ));
        }
    }
    for (name, own) in &asked {
        let Some(live) = there.get(name) else { continue };
        let begun_here = begun.get(name).is_some_and(|begun| interface::is_just_that(begun, live));
        if !recorded.contains_key(name) && !only_configured(own) && !begun_here {
            return Sighting::Unmanaged(format!(
                "the interface `{name}` of `{node}` is there already, and nothing says that it is ours"
            ));
        }
    }
    // What was only configured is left as it is when it leaves the source.
    let kept = |name: &&str| {
        asked.contains_key(*name) || recorded.get(*name).is_some_and(|recorded| !only_configured(recorded))
    };
    let shown: Spec = there
        .iter()
        .filter(|(name, _)| kept(name))
        .map(|(name, live)| ((*name).to_owned(), Value::Map((*live).clone())))
        .collect();
    let mut spec = live.spec.clone();
    spec.insert("interfaces".to_owned(), Value::Map(shown));
    // Whether the last reload went well is not seen anywhere, so that it is done again.
    spec.insert(STAGED.to_owned(), Value::Bool(live.staged.is_some() || unfinished));
    Sighting::Ours(Observed {
        spec,
        facts: Spec::new(),
        digest: live.digest.clone(),
        pending: Vec::new(),
        running: None,
        evidence: Default::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_reload_is_told_as_what_it_is() {
        let watched = Watched {
            before: Host { rows: BTreeMap::new(), changes: None },
            ours: BTreeSet::new(),
            own: BTreeMap::new(),
            made: Mutex::default(),
            reloads: AtomicBool::new(false),
        };
        let failed = || ProviderError::new(ErrorClass::TaskFailed, "cannot reload");
        assert_eq!(watched.explain(failed(), "pve1").message, "cannot reload");
        watched.reloads.store(true, Ordering::Relaxed);
        let told = watched.explain(failed(), "pve1");
        assert!(told.message.contains("is in its file"), "{}", told.message);
        assert!(told.hint.unwrap().contains("`ifreload -a` on `pve1`"));
    }
}
