//! Staging beside others.
//!
//! A reload brings everything into effect that is staged, whoever staged it. So nothing is begun while changes wait that no open entry of
//! ours explains, and directly before the reload it is looked whether anything but ours would come along. What somebody else stages under
//! a name of ours is not ours, whatever it looks like: ours is what the server says that we made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use http::Method;
use strata_engine::{ErrorClass, Outcome, ProviderError};
use strata_resource::{FieldPath, Spec, Value};
use strata_state::Action;

use super::host::{Host, Networks, STAGED, interfaces, is, path, reload};
use super::{interface, staged};
use crate::api::{Params, encode_path_part};
use crate::client::{CallError, Client};
use crate::datacenter::{Family, Job, LiveObject, NextCall, converge, spec_text};
use crate::execute::{Call, StepError, Unchanged, Work};

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

/// What the server said to the request for a new interface. One that it refused is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Made,
    Lost,
}

/// The family, with an eye on what others stage meanwhile.
struct Watched {
    before: Host,
    ours: BTreeSet<String>,
    own: BTreeMap<String, Own>,
    /// The interfaces that this operation has staged as new ones, or may have.
    made: Mutex<BTreeMap<String, Answer>>,
    reloads: AtomicBool,
}

impl Watched {
    fn made(&self) -> MutexGuard<'_, BTreeMap<String, Answer>> {
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
        if let (None, Some(now)) = (&before, &now) {
            match self.made().get(name) {
                Some(Answer::Made) => {}
                // Nobody knows who made it: ours is what we sent.
                Some(Answer::Lost) => {
                    return !own.wanted.as_ref().is_some_and(|wanted| interface::is_just_that(wanted, now));
                }
                // It has the name of one that we are about to make.
                None => return true,
            }
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
        if self.before.changes.is_some() {
            // They waited already: those of others were refused by the plan, and are looked for once more. What is in effect by now waits
            // no longer, and its difference fits to interfaces that may be gone.
            let changes = now.changes.as_deref().unwrap_or_default();
            return staged::foreign(changes, &now.order(), &self.ours);
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
        let hosts = Host::read_all(client, asked).await?;
        let with_foreign = |(node, host): (String, Host)| {
            let mut live = host.live(&node);
            let foreign = self.foreign(&host);
            if !foreign.is_empty() {
                live.spec.insert("foreign".to_owned(), Value::Text(foreign.join(", ")));
            }
            (node, live)
        };
        Ok(hosts.into_iter().map(with_foreign).collect())
    }

    async fn send(&self, work: &Work<'_>, call: Call, unchanged: Unchanged<'_>) -> Result<(), StepError> {
        let made = call.params.pairs().find(|(key, _)| *key == "iface" && call.method == Method::POST);
        let made = made.map(|(_, name)| name.to_owned());
        let path = path(work);
        let is_of = |name: &&String| call.path == format!("{path}/{}", encode_path_part(name));
        let name = made.clone().or_else(|| self.own.keys().find(is_of).cloned());
        let sent = work.run_while(call, unchanged).await;
        let answer = match &sent {
            Ok(()) => Answer::Made,
            Err(StepError::Lost { .. }) => Answer::Lost,
            Err(_) => return sent,
        };
        if let Some(name) = name {
            work.context.adds(&FieldPath::root().child("interfaces").child(&name));
        }
        self.made().extend(made.map(|name| (name, answer)));
        sent
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
        if next
            .as_ref()
            .is_some_and(|next| next.call.path == path(job.work) && next.call.method == Method::PUT)
        {
            self.reloads.store(true, Ordering::Relaxed);
        }
        Ok(next)
    }
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
