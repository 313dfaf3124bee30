//! Staging under the lock of the SDN, where the server has one.
//!
//! Everything that is staged comes into effect together, whoever staged it. Under the lock nobody else can stage anything. A server without it
//! (before Proxmox VE 9) is looked at directly before that, as the networks of hosts are.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use http::Method;
use strata_engine::{ErrorClass, Outcome, ProviderError};
use strata_resource::{FieldPath, Spec, Value};

use super::class::CLASSES;
use super::config::{self, Networks, PATH, STAGED, items};
use super::ours::{foreign, named};
use crate::api::Params;
use crate::client::{CallError, Client};
use crate::datacenter::{Family, Job, LiveObject, NextCall, converge};
use crate::execute::{Call, StepError, Unchanged, Work};

const LOCK: &str = "/cluster/sdn/lock";

/// Stages, and brings that into effect. What was staged is taken back if the server refuses a part of it.
pub(super) async fn execute(work: &Work<'_>) -> Result<Outcome, ProviderError> {
    let due = work
        .operation
        .observed
        .as_ref()
        .is_some_and(|seen| seen.spec.get(STAGED).and_then(Value::as_bool) == Some(true));
    let looked = config::read(work.client).await.map_err(|error| error.explain("look at the SDN"))?;
    let clean = looked.staged.is_none();
    let locked = Locked { token: lock(work, due).await?, ours: ours(work) };
    let done = match converge::converge(work, &locked).await {
        // An earlier run may have been killed before it saw that all came into effect.
        Ok(outcome) if due && clean => {
            work.run(locked.with_token(config::apply(work))).await.map(|()| outcome).map_err(Into::into)
        }
        done => done,
    };
    match done {
        // A lock that stays would be taken for somebody else's by whoever finds nothing open.
        Ok(outcome) => locked.release(work).await.map(|()| outcome).map_err(|error| {
            let mut error = ProviderError::from(error);
            error.message =
                format!("everything is in effect, and the SDN is still locked: {}", error.message);
            error.hint("apply again: the lock of an interrupted run is taken over, and freed")
        }),
        Err(mut error) => {
            // Who comes next finds an open entry, and goes on from there.
            if matches!(error.class, ErrorClass::Stopped | ErrorClass::Unreachable) {
                return Err(error);
            }
            let undone = clean && locked.take_back(work, &looked).await;
            if locked.release(work).await.is_ok() && undone {
                work.context.writes_undone();
                error.nothing_done = true;
            }
            Err(error)
        }
    }
}

/// Takes the lock; none where the server has none. One that a killed run of ours left is taken over.
async fn lock(work: &Work<'_>, unfinished: bool) -> Result<Option<String>, ProviderError> {
    let pending = if unfinished { Params::new().with("allow-pending", 1) } else { Params::new() };
    let take = work.call(Method::POST, LOCK.to_owned(), pending, "lock the SDN configuration");
    match work.write_for::<String>(&take).await {
        Ok(token) => Ok(Some(token)),
        Err(StepError::Refused { error: CallError::Api(error), .. }) if matches!(error.status, 404 | 501) => {
            Ok(None)
        }
        Err(error @ StepError::Refused { .. }) if !unfinished => Err(ProviderError::from(error).hint(
            "somebody else changes it: wait for them, or `pvesh delete /cluster/sdn/lock --force 1` if nobody does",
        )),
        Err(StepError::Refused { .. }) => {
            let force = Params::new().with("force", 1);
            let free = work.call(Method::DELETE, LOCK.to_owned(), force, "take over the lock of the SDN");
            work.write(&free).await.map_err(ProviderError::from)?;
            work.write_for::<String>(&take).await.map(Some).map_err(ProviderError::from)
        }
        Err(error) => Err(error.into()),
    }
}

/// Everything that the source or the state speaks of.
fn ours(work: &Work<'_>) -> BTreeSet<String> {
    let recorded = work.operation.recorded.as_ref().map(|recorded| &recorded.spec);
    let specs = [Some(&work.operation.spec), recorded].into_iter().flatten();
    let all = specs.flat_map(|spec| {
        CLASSES.iter().flat_map(move |class| {
            items(spec, class).into_keys().map(|name| named(class, name)).collect::<Vec<_>>()
        })
    });
    all.collect()
}

struct Locked {
    token: Option<String>,
    ours: BTreeSet<String>,
}

impl Locked {
    fn with_token(&self, mut call: Call) -> Call {
        if let Some(token) = &self.token {
            call.params.set("lock-token", token);
        }
        call
    }

    /// What is left of it after a failure is taken over by the next run.
    async fn release(&self, work: &Work<'_>) -> Result<(), StepError> {
        if self.token.is_some() {
            let free = work.call(Method::DELETE, LOCK.to_owned(), Params::new(), "free the lock of the SDN");
            let free = self.with_token(free);
            match work.write(&free).await {
                // Freeing what is free does no harm.
                Err(StepError::Lost { .. }) => work.write(&free).await?,
                freed => freed?,
            };
        }
        Ok(())
    }

    /// Nothing was staged before: whatever is now is ours. Gives whether all is as it was; what came into effect already is not taken back.
    async fn take_back(&self, work: &Work<'_>, before: &LiveObject) -> bool {
        if self.token.is_none() {
            return false;
        }
        let path = format!("{PATH}/rollback");
        let call = work.call(Method::POST, path, Params::new(), "take back what is staged of the SDN");
        if work.write(&self.with_token(call)).await.is_err() {
            return false;
        }
        config::read(work.client).await.is_ok_and(|now| now.staged.is_none() && now.spec == before.spec)
    }
}

#[async_trait]
impl Family for Locked {
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
        Networks.list(client, asked).await
    }

    async fn send(&self, work: &Work<'_>, call: Call, unchanged: Unchanged<'_>) -> Result<(), StepError> {
        let staged = CLASSES.iter().find_map(|class| {
            let own = items(&work.operation.spec, class);
            let name = own.into_keys().find(|name| {
                call.method == Method::POST
                    && call.path == class.path(name)
                    && class
                        .create(name, &Spec::new())
                        .pairs()
                        .all(|pair| call.params.pairs().any(|own| own == pair))
            })?;
            Some(FieldPath::root().child(class.field).child(name))
        });
        let sent = work.run_while(self.with_token(call), unchanged).await;
        if let (Some(path), Ok(()) | Err(StepError::Lost { .. })) = (&staged, &sent) {
            work.context.adds(path);
        }
        sent
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let foreign = live.map(|live| foreign(&live.order, &self.ours)).unwrap_or_default();
        if !foreign.is_empty() {
            let message = format!(
                "somebody else stages changes of the SDN ({}): they would be brought into effect along with this one",
                foreign.join(", ")
            );
            return Err(ProviderError::new(ErrorClass::Conflict, message)
                .hint("apply or revert them in Proxmox, under SDN of the datacenter, then plan again"));
        }
        Networks.next(job, live)
    }
}
