//! Waiting for readiness instead of for time: conditions, a deadline, and a word now and then on what is still missing.

use std::convert::Infallible;
use std::time::Duration;

use serde_json::Value;
use strata_net::Clock;

use crate::{Guarded, KubeClient, KubeError, Object, ObjectRef, Trouble};

/// How long to wait, and how often to look.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    pub deadline: Duration,
    pub first: Duration,
    pub longest: Duration,
}

impl Patience {
    pub fn seconds(deadline: u64) -> Self {
        Self {
            deadline: Duration::from_secs(deadline),
            first: Duration::from_millis(100),
            longest: Duration::from_secs(2),
        }
    }

    pub(crate) fn begin<'w>(
        self,
        clock: &'w dyn Clock,
        waiting_for: &'w str,
        progress: &'w (dyn Fn(&Progress<'_>) + Send + Sync),
    ) -> Waiting<'w> {
        Waiting { patience: self, clock, waiting_for, progress, begun: clock.monotonic(), step: self.first }
    }
}

/// What is told while waiting.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'p> {
    pub waiting_for: &'p str,
    /// What was seen last.
    pub seen: &'p str,
    pub waited: Duration,
}

/// A wait that has begun.
pub(crate) struct Waiting<'w> {
    patience: Patience,
    clock: &'w dyn Clock,
    waiting_for: &'w str,
    progress: &'w (dyn Fn(&Progress<'_>) + Send + Sync),
    begun: Duration,
    step: Duration,
}

impl Waiting<'_> {
    /// Tells what was seen and sleeps; false if the time is over.
    pub(crate) async fn again(&mut self, seen: &str) -> bool {
        let waited = self.clock.monotonic().saturating_sub(self.begun);
        (self.progress)(&Progress { waiting_for: self.waiting_for, seen, waited });
        if waited + self.step > self.patience.deadline {
            return false;
        }
        self.clock.sleep(self.step).await;
        self.step = (self.step * 2).min(self.patience.longest);
        true
    }
}

/// What to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Until {
    /// The object is there.
    Exists,
    /// The object is gone.
    Gone,
    /// The server serves the kind of a CustomResourceDefinition.
    Established,
    /// All replicas of a Deployment run the newest version.
    Available,
    /// Nodes, and the objects of Flux.
    Ready,
    /// A status condition of this type is true.
    Condition(String),
}

/// How an object stands to what is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    Met,
    NotYet(String),
    /// Its controller has given up.
    Never(String),
}

impl KubeClient {
    /// Waits until an object is as wanted. The answer is the object, or nothing if it was to be gone.
    ///
    /// An API server that is away for a while is waited for too.
    pub async fn wait_until(
        &self,
        what: &ObjectRef,
        until: &Until,
        patience: Patience,
        progress: &(dyn Fn(&Progress<'_>) + Send + Sync),
    ) -> Result<Option<Object>, KubeError> {
        let free = || Ok::<(), Infallible>(());
        match self.wait_guarded(what, until, patience, &free, progress).await {
            Ok(object) => Ok(object),
            Err(Guarded::Kube(error)) => Err(error),
            Err(Guarded::Stopped(never)) => match never {},
        }
    }

    /// As [`Self::wait_until`], as long as `go_on` lets it: asked at each look.
    pub(crate) async fn wait_guarded<G>(
        &self,
        what: &ObjectRef,
        until: &Until,
        patience: Patience,
        go_on: &(dyn Fn() -> Result<(), G> + Send + Sync),
        progress: &(dyn Fn(&Progress<'_>) + Send + Sync),
    ) -> Result<Option<Object>, Guarded<G>> {
        let waiting_for = what.to_string();
        let mut waiting = patience.begin(self.clock(), &waiting_for, progress);
        let action = || format!("wait for {waiting_for}");
        loop {
            go_on().map_err(Guarded::Stopped)?;
            let seen = match self.get(what).await {
                Ok(object) => match until.standing(object.as_ref()) {
                    Standing::Met => return Ok(object),
                    Standing::NotYet(seen) => seen,
                    Standing::Never(seen) => {
                        return Err(KubeError::new(Trouble::NotReady, action(), self.endpoint(), seen).into());
                    }
                },
                Err(error) if error.is_transient() => error.reason().to_owned(),
                Err(error) => return Err(error.into()),
            };
            if !waiting.again(&seen).await {
                let seconds = patience.deadline.as_secs();
                let reason = format!("not within {seconds} s; last seen: {seen}");
                return Err(KubeError::new(Trouble::NotReady, action(), self.endpoint(), reason).into());
            }
        }
    }
}

impl Until {
    /// Whether an object is as wanted.
    pub(crate) fn is_met(&self, object: Option<&Object>) -> bool {
        self.standing(object) == Standing::Met
    }

    fn standing(&self, object: Option<&Object>) -> Standing {
        let Some(object) = object else {
            return if *self == Self::Gone {
                Standing::Met
            } else {
                Standing::NotYet("it is not there".to_owned())
            };
        };
        match self {
            Self::Exists => Standing::Met,
            Self::Gone => Standing::NotYet("it is still there".to_owned()),
            Self::Established => condition(object, "Established"),
            Self::Ready => match condition(object, "Stalled") {
                Standing::Met => Standing::Never(told(object, "Stalled")),
                _ => condition(object, "Ready"),
            },
            Self::Available => match rolled_out(object) {
                Some(missing) => Standing::NotYet(missing),
                None => condition(object, "Available"),
            },
            Self::Condition(kind) => condition(object, kind),
        }
    }
}

/// A condition counts only if it speaks of the object as it is now.
fn condition(object: &Object, kind: &str) -> Standing {
    let Some(condition) = object.condition(kind) else {
        return Standing::NotYet(format!("it has no condition `{kind}` yet"));
    };
    let observed = condition.get("observedGeneration").or_else(|| object.at("/status/observedGeneration"));
    let old = observed.and_then(Value::as_i64).zip(object.generation()).is_some_and(|(seen, now)| seen < now);
    if old {
        return Standing::NotYet("its controller has not seen the change yet".to_owned());
    }
    match condition.get("status").and_then(Value::as_str) {
        Some("True") => Standing::Met,
        _ => Standing::NotYet(told(object, kind)),
    }
}

/// What a condition says for people.
fn told(object: &Object, kind: &str) -> String {
    let condition = object.condition(kind);
    let text = |key: &str| condition?.get(key)?.as_str().filter(|text| !text.is_empty());
    match (text("reason"), text("message")) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (Some(only), None) | (None, Some(only)) => only.to_owned(),
        (None, None) => format!("the condition `{kind}` is {}", text("status").unwrap_or("unknown")),
    }
}

/// What a Deployment still lacks before its conditions speak of the newest version.
fn rolled_out(deployment: &Object) -> Option<String> {
    let number = |pointer: &str| deployment.at(pointer).and_then(Value::as_i64);
    if number("/status/observedGeneration").zip(deployment.generation()).is_some_and(|(seen, now)| seen < now)
    {
        return Some("its controller has not seen the change yet".to_owned());
    }
    let wanted = number("/spec/replicas").unwrap_or(1);
    let updated = number("/status/updatedReplicas").unwrap_or(0);
    (updated < wanted).then(|| format!("{updated} of {wanted} replicas run the newest version"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, rest: Value) -> Object {
        let mut value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "generation": 2}});
        value.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        Object::new(value).unwrap()
    }

    #[test]
    fn a_condition_of_an_older_version_does_not_count() {
        let ready = |generation: i64| {
            object(
                "Kustomization",
                json!({"status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": generation}]}}),
            )
        };
        assert!(Until::Ready.is_met(Some(&ready(2))));
        assert!(!Until::Ready.is_met(Some(&ready(1))));
        assert!(!Until::Ready.is_met(None));
        assert!(Until::Gone.is_met(None));
    }

    #[test]
    fn a_stalled_object_is_not_waited_for() {
        let stalled = object(
            "GitRepository",
            json!({"status": {"conditions": [
                {"type": "Stalled", "status": "True", "reason": "URLInvalid", "message": "no scheme"},
                {"type": "Ready", "status": "False"},
            ]}}),
        );
        assert_eq!(
            Until::Ready.standing(Some(&stalled)),
            Standing::Never("URLInvalid: no scheme".to_owned())
        );
    }

    #[test]
    fn a_deployment_is_available_when_the_newest_replicas_are() {
        let deployment = |updated: i64| {
            object(
                "Deployment",
                json!({"spec": {"replicas": 2}, "status": {"observedGeneration": 2, "updatedReplicas": updated,
                "conditions": [{"type": "Available", "status": "True"}]}}),
            )
        };
        assert!(Until::Available.is_met(Some(&deployment(2))));
        assert_eq!(
            Until::Available.standing(Some(&deployment(1))),
            Standing::NotYet("1 of 2 replicas run the newest version".to_owned())
        );
    }
}
