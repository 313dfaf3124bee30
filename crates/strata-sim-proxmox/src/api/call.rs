//! One call as its endpoint sees it: who calls, with what, on which world; and the tasks it starts.

use serde_json::Value;
use strata_sim_core::TaskFault;

use super::answer::{Refusal, forbidden, no};
use super::args::Args;
use crate::fetch::Fetched;
use crate::task::{Cont, LockKey};
use crate::upload::Upload;
use crate::world::World;

/// Who calls.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// `user@realm`, or `user@realm!token`; none before a login.
    pub id: Option<String>,
    pub is_token: bool,
}

impl Caller {
    /// Only root's ticket is root; a token of root is not.
    pub fn is_root(&self) -> bool {
        self.id.as_deref() == Some("root@pam")
    }
}

/// What the outside gave to this call: an uploaded file, and the content of URLs it asked for.
#[derive(Debug, Default)]
pub struct Effects {
    pub upload: Option<Upload>,
    pub fetched: Option<Fetched>,
    /// What goes wrong with the task that it starts.
    pub task: Option<TaskFault>,
}

/// Stands for a task that was not started; it never leaves the simulator.
pub const NO_WORKER: &str = "no worker";

pub struct Call<'w> {
    pub world: &'w mut World,
    pub caller: Caller,
    pub args: Args,
    pub effects: &'w Effects,
}

impl Call<'_> {
    pub fn user(&self) -> &str {
        self.caller.id.as_deref().unwrap_or_default()
    }

    pub fn node(&self) -> String {
        self.args.must("node").to_owned()
    }

    pub fn vmid(&self) -> u32 {
        self.args.int("vmid").and_then(|id| u32::try_from(id).ok()).unwrap_or_default()
    }

    /// All of these privileges on that path, or 403 that names the first one missing.
    pub fn check(&self, path: &str, privs: &[&str]) -> Result<(), Refusal> {
        if self.caller.is_root() {
            return Ok(());
        }
        self.world.access_check(self.user(), Some(path), privs, false)
    }

    /// One of these privileges on that path.
    pub fn check_any(&self, path: &str, privs: &[&str]) -> Result<(), Refusal> {
        if self.caller.is_root() {
            return Ok(());
        }
        self.world.access_check(self.user(), Some(path), privs, true)
    }

    pub fn may(&self, path: &str, privilege: &str) -> bool {
        self.caller.is_root() || self.world.may(self.user(), path, privilege)
    }

    /// A privilege on a guest, or on the pool it is to be in.
    pub fn check_vm(&self, vmid: u32, pool: Option<&str>, privs: &[&str]) -> Result<(), Refusal> {
        if let Some(pool) = pool
            && self.check(&format!("/pool/{pool}"), privs).is_ok()
        {
            return Ok(());
        }
        self.check(&format!("/vms/{vmid}"), privs)
    }

    /// 403 unless the pool exists.
    pub fn check_pool(&self, pool: &str) -> Result<(), Refusal> {
        if self.world.pools.contains_key(pool) {
            return Ok(());
        }
        Err(forbidden(format!("pool '{pool}' does not exist")))
    }

    /// 500 unless the digest (if one was given) is the current one.
    pub fn check_digest(&self, current: &str) -> Result<(), Refusal> {
        match self.args.text("digest") {
            Some(given) if given != current => {
                Err(no("detected modified configuration - file changed by other user? Try again."))
            }
            _ => Ok(()),
        }
    }

    /// Fails over to waiting if a task holds this lock; the call then runs again from its start, so take locks before
    /// changing anything.
    pub fn lock(&self, key: LockKey) -> Result<(), Refusal> {
        if self.world.tasks.is_locked(&key) { Err(Refusal::Busy(key)) } else { Ok(()) }
    }

    /// Starts a task on a node and answers with its UPID. The work runs after this call, at the simulator's pace.
    pub fn spawn(&mut self, node: &str, kind: &str, id: impl Into<String>, work: Cont) -> Value {
        let user = self.user().to_owned();
        if self.effects.task == Some(TaskFault::NoWorker) {
            return Value::String(NO_WORKER.to_owned());
        }
        let upid = self.world.start_task(node, kind, &id.into(), &user, work);
        match self.effects.task {
            Some(TaskFault::Forgotten) => self.world.tasks.forget(&upid),
            Some(TaskFault::Warns) => self.world.tasks.warn(&upid),
            _ => {}
        }
        Value::String(upid)
    }

    /// The content of a URL, fetched between two runs of this call.
    pub fn fetch(&self, url: &str, head: bool) -> Result<&Fetched, Refusal> {
        match &self.effects.fetched {
            Some(fetched) if fetched.url == url => Ok(fetched),
            _ => Err(Refusal::Fetch { url: url.to_owned(), head }),
        }
    }
}
