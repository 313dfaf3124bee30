//! Emptying a node: pods are asked to leave through evictions, so that disruption budgets are kept.

use std::collections::BTreeMap;
use std::fmt;

use http::Method;
use serde_json::{Value, json};
use strata_net::{Request, WritePermit};

use crate::client::{JSON, encoded, json_body};
use crate::{KubeClient, KubeError, Object, Patience, Progress, Selector, Trouble};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl fmt::Display for PodRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}/{}`", self.namespace, self.name)
    }
}

#[derive(Debug, Clone)]
pub struct DrainOptions {
    pub patience: Patience,
    /// Evicts pods that nothing would start again elsewhere. Otherwise they block.
    pub unmanaged: bool,
    /// Evicts pods with data in an `emptyDir`, which is then lost. Otherwise they block.
    pub local_data: bool,
    /// Instead of what each pod says.
    pub grace_seconds: Option<u32>,
}

impl DrainOptions {
    pub fn new(patience: Patience) -> Self {
        Self { patience, unmanaged: false, local_data: true, grace_seconds: None }
    }
}

/// What draining a node means for each of its pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainPlan {
    pub evict: Vec<PodRef>,
    /// Evicted already, and on their way out.
    pub leaving: Vec<PodRef>,
    /// They stay: a DaemonSet's, a static one, or one that has ended.
    pub stay: Vec<PodRef>,
    /// They would be lost, and the options do not allow it.
    pub block: Vec<Remaining>,
}

/// A pod that is still there, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remaining {
    pub pod: PodRef,
    pub why: String,
}

/// What became of one eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Eviction {
    Begun,
    AlreadyGone,
    /// A disruption budget does not allow it now.
    Blocked(String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainReport {
    pub node: String,
    /// Those that have gone.
    pub evicted: Vec<PodRef>,
    pub remaining: Vec<Remaining>,
}

/// Why a node could not be emptied. `G` is the error of the caller's own look before each write.
#[derive(Debug)]
pub enum DrainError<G> {
    /// The caller said that nothing more may be written.
    Stopped(G),
    Kube(KubeError),
    /// The time is over, or a pod must not be evicted at all.
    Blocked(Box<DrainReport>),
}

impl<G: fmt::Display> fmt::Display for DrainError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(error) => error.fmt(f),
            Self::Kube(error) => error.fmt(f),
            Self::Blocked(report) => {
                write!(f, "node `{}` cannot be drained:", report.node)?;
                for (index, Remaining { pod, why }) in report.remaining.iter().enumerate() {
                    write!(f, "{} pod {pod}: {why}", if index == 0 { "" } else { ";" })?;
                }
                Ok(())
            }
        }
    }
}

impl<G: fmt::Debug + fmt::Display> std::error::Error for DrainError<G> {}

impl<G> DrainError<G> {
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Stopped(_) => None,
            Self::Kube(error) => error.hint(),
            Self::Blocked(_) => Some(
                "give the pods another place or relax their disruption budget, and run it again: what has left stays away",
            ),
        }
    }
}

impl KubeClient {
    /// What draining a node would do now. Reads only.
    pub async fn plan_drain(&self, node: &str, options: &DrainOptions) -> Result<DrainPlan, KubeError> {
        let selector = Selector::all().fields(&format!("spec.nodeName={node}"));
        let mut plan = DrainPlan::default();
        for pod in self.list("v1", "Pod", &selector).await? {
            // A server that does not know the selector answers with all pods.
            if pod.text("/spec/nodeName").is_some_and(|on| on != node) {
                continue;
            }
            plan.sort_in(&pod, options);
        }
        Ok(plan)
    }

    /// Asks one pod to leave. One write; can be repeated.
    pub async fn evict(
        &self,
        permit: &WritePermit<'_>,
        pod: &PodRef,
        grace_seconds: Option<u32>,
    ) -> Result<Eviction, KubeError> {
        let mut delete = json!({"preconditions": {"uid": pod.uid}});
        if let Some(seconds) = grace_seconds {
            delete["gracePeriodSeconds"] = json!(seconds);
        }
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": delete,
        });
        let path =
            format!("/api/v1/namespaces/{}/pods/{}/eviction", encoded(&pod.namespace), encoded(&pod.name));
        let request = Request { body: json_body(JSON, &eviction), ..Request::new(Method::POST, path) };
        match self.write_once(permit, &format!("evict pod {pod}"), &request).await {
            Ok(_) => Ok(Eviction::Begun),
            // Gone, or another pod has its name by now.
            Err(error) if matches!(error.trouble(), Trouble::NotFound | Trouble::Conflict) => {
                Ok(Eviction::AlreadyGone)
            }
            Err(error) if is_budget(&error) => Ok(Eviction::Blocked(error.reason().to_owned())),
            Err(error) => Err(error),
        }
    }

    /// Evicts pods until only those are left that stay. The node should be cordoned. A permit is asked for before each write, and at each
    /// look while it waits.
    pub async fn drain<'p, G>(
        &self,
        node: &str,
        options: &DrainOptions,
        permit: &(dyn Fn() -> Result<WritePermit<'p>, G> + Send + Sync),
        progress: &(dyn Fn(&Progress<'_>) + Send + Sync),
    ) -> Result<DrainReport, DrainError<G>> {
        let waiting_for = format!("the pods of node `{node}`");
        let mut waiting = options.patience.begin(self.clock(), &waiting_for, progress);
        let mut asked = BTreeMap::new();
        loop {
            permit().map_err(DrainError::Stopped)?;
            let plan = match self.plan_drain(node, options).await {
                Ok(plan) => plan,
                // The API may be away for a moment: on a control plane, because of this very node.
                Err(error) if error.is_transient() && waiting.again(error.reason()).await => continue,
                Err(error) => return Err(DrainError::Kube(error)),
            };
            let mut remaining = plan.block;
            let hopeless = !remaining.is_empty();
            remaining.extend(plan.leaving.iter().map(|pod| Remaining::new(pod, "it is still ending")));
            for pod in plan.evict {
                if hopeless {
                    break;
                }
                let permit = permit().map_err(DrainError::Stopped)?;
                match self.evict(&permit, &pod, options.grace_seconds).await {
                    Ok(Eviction::AlreadyGone) => {}
                    Ok(Eviction::Begun) => remaining.push(Remaining::new(&pod, "it is still ending")),
                    Ok(Eviction::Blocked(why)) => remaining.push(Remaining::new(&pod, &why)),
                    Err(error) if error.is_transient() => {
                        remaining.push(Remaining::new(&pod, error.reason()))
                    }
                    Err(error) => return Err(DrainError::Kube(error)),
                }
                asked.insert((pod.namespace.clone(), pod.name.clone(), pod.uid.clone()), pod);
            }
            let report = |remaining: Vec<Remaining>| {
                let there = |pod: &PodRef| remaining.iter().any(|left| left.pod == *pod);
                let evicted = asked.values().filter(|pod| !there(pod)).cloned().collect();
                DrainReport { node: node.to_owned(), evicted, remaining }
            };
            if remaining.is_empty() {
                return Ok(report(remaining));
            }
            let seen = describe(&remaining);
            if hopeless || !waiting.again(&seen).await {
                return Err(DrainError::Blocked(Box::new(report(remaining))));
            }
        }
    }
}

/// A budget says no with 429.
fn is_budget(error: &KubeError) -> bool {
    error.trouble() == Trouble::Throttled || error.is_about_budgets()
}

fn describe(remaining: &[Remaining]) -> String {
    let first = &remaining[0];
    match remaining.len() {
        1 => format!("pod {}: {}", first.pod, first.why),
        count => format!("{count} pods; {}: {}", first.pod, first.why),
    }
}

impl Remaining {
    fn new(pod: &PodRef, why: &str) -> Self {
        Self { pod: pod.clone(), why: why.to_owned() }
    }
}

impl DrainPlan {
    fn sort_in(&mut self, pod: &Object, options: &DrainOptions) {
        let reference = PodRef {
            namespace: pod.namespace().unwrap_or_default().to_owned(),
            name: pod.name().to_owned(),
            uid: pod.uid().unwrap_or_default().to_owned(),
        };
        let ended = matches!(pod.text("/status/phase"), Some("Succeeded" | "Failed"));
        let mirror = pod.annotation("kubernetes.io/config.mirror").is_some();
        let controller = controller(pod);
        if ended || mirror || controller == Some("DaemonSet") {
            self.stay.push(reference);
        } else if pod.at("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
            self.leaving.push(reference);
        } else if controller.is_none() && !options.unmanaged {
            self.block.push(Remaining::new(&reference, "no controller would start it again elsewhere"));
        } else if has_local_data(pod) && !options.local_data {
            self.block.push(Remaining::new(&reference, "its data in an `emptyDir` would be lost"));
        } else {
            self.evict.push(reference);
        }
    }
}

/// The kind of what keeps the pod alive.
fn controller(pod: &Object) -> Option<&str> {
    let owners = pod.at("/metadata/ownerReferences")?.as_array()?;
    let controls = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    owners.iter().find(controls)?.get("kind")?.as_str()
}

fn has_local_data(pod: &Object) -> bool {
    let volumes = pod.at("/spec/volumes").and_then(Value::as_array);
    volumes.into_iter().flatten().any(|volume| volume.get("emptyDir").is_some())
}
