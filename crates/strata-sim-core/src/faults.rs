//! Faults that tests order: requests refused, delayed, cut, or held, selected by method, path and count.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::Verb;

/// Nobody holds a request longer than this.
const MOST_HOLD: Duration = Duration::from_secs(600);

/// What happens to a request that matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Answered with `status` and `text`, not carried out.
    Refuse,
    /// Carried out after `seconds`.
    Delay,
    /// The connection is cut before it is carried out.
    Cut,
    /// Carried out, and the connection cut instead of the answer.
    Lost,
    /// The connection is cut at once, and it is carried out `seconds` later; by the Proxmox API alone, others forget it.
    Late,
    /// Kept waiting before it is carried out, until released.
    HoldBefore,
    /// Carried out, its answer kept back until released.
    HoldAfter,
    /// A task fails with `text` before it does anything. Its path is `/tasks/TYPE/ID`.
    FailTask,
    /// Carried out up to the task that it would start, and refused as that cannot be started.
    NoWorker,
    /// Answered with a task that does nothing and that nobody remembers.
    ForgetTask,
    /// Its task does its work and ends with a warning.
    WarnTask,
}

/// A fault as it is ordered.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultOrder {
    kind: Kind,
    /// One method; every method if left out.
    method: Option<String>,
    /// Every method but GET.
    #[serde(default)]
    writes: bool,
    /// A glob over the API path, `*` for any text; every path if left out.
    path: Option<String>,
    /// Only from the nth matching request on, counted from 1.
    nth: Option<u64>,
    /// How many requests it hits; 0 means all.
    count: Option<u64>,
    status: Option<u16>,
    text: Option<String>,
    seconds: Option<f64>,
    /// Of a task: whose it is, `user@realm` or `user@realm!token`.
    user: Option<String>,
}

#[derive(Debug)]
struct Fault {
    id: u64,
    order: FaultOrder,
    seen: u64,
    hit: u64,
    /// A request that it hit was carried out nevertheless.
    carried_out: bool,
    /// Held requests go on when this is true.
    released: bool,
    last: Option<String>,
}

/// What a test orders for the task of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskFault {
    /// Its worker does not start: the call fails after everything that it did before.
    NoWorker,
    /// Its worker dies at once, and the node does not remember it.
    Forgotten,
    /// It ends with a warning.
    Warns,
}

impl TaskFault {
    /// Whether nothing of the task's work is done.
    pub fn is_death(self) -> bool {
        self != Self::Warns
    }
}

/// What is to become of a request that arrived.
#[derive(Debug)]
pub enum Verdict {
    /// Carry it out; then ask `finish` if a fault is named.
    Pass(Option<After>),
    Cut,
    /// Cut it, and carry it out after this time.
    Late(Duration),
    Refuse(u16, String),
    /// Carry it out; this becomes of its task.
    Task(TaskFault),
}

/// The connection is cut without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection was cut by a fault")]
pub struct Cut;

/// A fault that strikes after the request was carried out.
#[derive(Debug)]
pub struct After {
    id: u64,
    kind: Kind,
}

/// What tests ordered, and what became of it.
#[derive(Debug, Default)]
pub struct Faults {
    state: Mutex<State>,
    bell: Notify,
}

#[derive(Debug, Default)]
struct State {
    faults: Vec<Fault>,
    next: u64,
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an ordered fault and gives its id.
    pub fn add(&self, order: &Value) -> Result<u64, String> {
        let order: FaultOrder = serde_json::from_value(order.clone()).map_err(|e| e.to_string())?;
        if order.method.as_deref().is_some_and(|m| Verb::parse(m).is_none() && m != "PATCH") {
            return Err("`method` is one of GET, POST, PUT, PATCH, DELETE".to_owned());
        }
        let mut state = self.state();
        state.next += 1;
        let id = state.next;
        state.faults.push(Fault {
            id,
            order,
            seen: 0,
            hit: 0,
            carried_out: false,
            released: false,
            last: None,
        });
        Ok(id)
    }

    /// Forgets all faults and lets held requests go on.
    pub fn clear(&self) {
        self.state().faults.clear();
        self.bell.notify_waiters();
    }

    pub fn release(&self, id: u64) -> bool {
        let mut state = self.state();
        let Some(fault) = state.faults.iter_mut().find(|f| f.id == id) else { return false };
        fault.released = true;
        drop(state);
        self.bell.notify_waiters();
        true
    }

    pub fn to_json(&self) -> Value {
        let list: Vec<Value> = self
            .state()
            .faults
            .iter()
            .map(|f| {
                json!({
                    "id": f.id, "kind": format!("{:?}", f.order.kind), "path": f.order.path,
                    "method": f.order.method, "seen": f.seen, "hit": f.hit, "carried-out": f.carried_out,
                    "released": f.released, "request": f.last,
                })
            })
            .collect();
        json!(list)
    }

    /// Counts a request against every fault; the first that strikes decides.
    fn strike(&self, verb: Verb, path: &str, connection: bool) -> Option<(u64, FaultOrder)> {
        let mut state = self.state();
        let mut struck = None;
        for fault in &mut state.faults {
            let order = &fault.order;
            let matches = order.kind != Kind::FailTask
                && order.method.as_deref().is_none_or(|m| m == verb.name())
                && (!order.writes || verb != Verb::Get)
                && order.path.as_deref().is_none_or(|glob| matches_glob(glob, path))
                && connection == order.path.as_deref().is_some_and(|glob| glob.starts_with("/connect/"));
            if !matches {
                continue;
            }
            fault.seen += 1;
            let first = order.nth.unwrap_or(1);
            let most = order.count.unwrap_or(1);
            if struck.is_none() && fault.seen >= first && (most == 0 || fault.hit < most) {
                fault.hit += 1;
                fault.last = Some(format!("{} {path}", verb.name()));
                struck = Some((fault.id, fault.order.clone()));
            }
        }
        drop(state);
        struck
    }

    /// Called when a task is about to begin: the text with which it fails.
    pub fn strike_task(&self, path: &str, user: &str) -> Option<String> {
        let mut state = self.state();
        let mut text = None;
        for fault in state.faults.iter_mut().filter(|fault| fault.order.kind == Kind::FailTask) {
            let order = &fault.order;
            if !order.path.as_deref().is_none_or(|glob| matches_glob(glob, path))
                || order.user.as_deref().is_some_and(|wanted| wanted != user)
            {
                continue;
            }
            fault.seen += 1;
            let most = order.count.unwrap_or(1);
            if text.is_none() && fault.seen >= order.nth.unwrap_or(1) && (most == 0 || fault.hit < most) {
                fault.hit += 1;
                fault.last = Some(format!("TASK {path}"));
                text = Some(order.text.clone().unwrap_or_else(|| "got timeout".to_owned()));
            }
        }
        drop(state);
        if text.is_some() {
            self.bell.notify_waiters();
        }
        text
    }

    /// Called when a request is complete and nothing was done about it yet.
    pub async fn arrive(&self, verb: Verb, path: &str) -> Verdict {
        let struck = self.strike(verb, path, false);
        self.verdict(struck).await
    }

    /// Called when someone wants to be connected. Only faults whose path begins with `/connect/` see that.
    pub async fn arrive_connection(&self, verb: Verb, path: &str) -> Verdict {
        let struck = self.strike(verb, path, true);
        self.verdict(struck).await
    }

    async fn verdict(&self, struck: Option<(u64, FaultOrder)>) -> Verdict {
        let Some((id, order)) = struck else { return Verdict::Pass(None) };
        if !matches!(order.kind, Kind::HoldAfter | Kind::Lost) {
            self.bell.notify_waiters();
        }
        match order.kind {
            Kind::Refuse => {
                let mut text = order.text.unwrap_or_else(|| "got timeout".to_owned());
                if !text.ends_with('\n') {
                    text.push('\n');
                }
                Verdict::Refuse(order.status.unwrap_or(500), text)
            }
            Kind::Delay => {
                tokio::time::sleep(Duration::from_secs_f64(order.seconds.unwrap_or(1.0).clamp(0.0, 600.0)))
                    .await;
                Verdict::Pass(None)
            }
            Kind::Cut => Verdict::Cut,
            Kind::Late => {
                Verdict::Late(Duration::from_secs_f64(order.seconds.unwrap_or(1.0).clamp(0.0, 600.0)))
            }
            Kind::FailTask => Verdict::Pass(None),
            Kind::NoWorker => Verdict::Task(TaskFault::NoWorker),
            Kind::ForgetTask => Verdict::Task(TaskFault::Forgotten),
            Kind::WarnTask => Verdict::Task(TaskFault::Warns),
            Kind::HoldBefore => {
                self.hold(id).await;
                Verdict::Pass(None)
            }
            kind @ (Kind::Lost | Kind::HoldAfter) => Verdict::Pass(Some(After { id, kind })),
        }
    }

    /// Called when such a request was carried out; true if its connection is to be cut.
    pub async fn finish(&self, after: After) -> bool {
        if let Some(fault) = self.state().faults.iter_mut().find(|f| f.id == after.id) {
            fault.carried_out = true;
        }
        self.bell.notify_waiters();
        if after.kind == Kind::Lost {
            return true;
        }
        self.hold(after.id).await;
        false
    }

    async fn hold(&self, id: u64) {
        let end = tokio::time::Instant::now() + MOST_HOLD;
        loop {
            let rung = self.bell.notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            let go = self.state().faults.iter().find(|f| f.id == id).is_none_or(|f| f.released);
            if go || tokio::time::timeout_at(end, rung).await.is_err() {
                return;
            }
        }
    }

    /// Waits until a fault (that one, or any) has struck; for a held or lost answer: until the request was carried out.
    pub async fn wait_hit(&self, id: Option<u64>, patience: Duration) -> bool {
        let end = tokio::time::Instant::now() + patience;
        loop {
            let rung = self.bell.notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            let struck = |f: &Fault| {
                let early = !matches!(f.order.kind, Kind::HoldAfter | Kind::Lost);
                f.hit > 0 && (early || f.carried_out) && id.is_none_or(|id| id == f.id)
            };
            if self.state().faults.iter().any(struck) {
                return true;
            }
            if tokio::time::timeout_at(end, rung).await.is_err() {
                return false;
            }
        }
    }
}

/// `*` stands for any text, also with slashes.
pub fn matches_glob(glob: &str, text: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let middle: Vec<&str> = parts.collect();
    let Some((last, between)) = middle.split_last() else { return rest.is_empty() };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_paths() {
        assert!(matches_glob("/nodes/*/qemu", "/nodes/pve1/qemu"));
        assert!(!matches_glob("/nodes/*/qemu", "/nodes/pve1/qemu/100"));
        assert!(matches_glob("/nodes/*/qemu/*/config", "/nodes/pve1/qemu/100/config"));
        assert!(matches_glob("*", "/anything"));
        assert!(matches_glob("/version", "/version") && !matches_glob("/version", "/versions"));
    }
}
