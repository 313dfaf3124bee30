//! Leases and journals of Strata's own runs.

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, Answer, Problem};
use super::body;
use super::call::Call;
use super::tofu::check_id;
use crate::access::Action;
use strata_storage::{Command, Lock, LockKind, Outcome, StateName};

const DEFAULT_TTL: u32 = 60;
const TTL: std::ops::RangeInclusive<u32> = 10..=3600;
const MAX_OWNER: usize = 16 * 1024;
/// One request's lines.
const MAX_LINES: usize = 8 * 1024 * 1024;

#[derive(Deserialize)]
struct LeaseRequest {
    owner: Option<Value>,
    ttl: Option<u32>,
}

impl Call<'_> {
    pub(super) async fn take_lease(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Lock, name)?;
        let bytes = body::small(self.body, MAX_OWNER).await?;
        let wanted: LeaseRequest = serde_json::from_slice(&bytes)
            .map_err(|_| Problem::bad("a lease is asked for with `{\"owner\": {…}, \"ttl\": SECONDS}`"))?;
        let ttl = wanted.ttl.unwrap_or(DEFAULT_TTL);
        if !TTL.contains(&ttl) {
            return Err(Problem::bad(format!("`ttl` is {} to {} seconds", TTL.start(), TTL.end())));
        }
        let id = match wanted.owner.as_ref().and_then(|owner| owner.get("id")).and_then(Value::as_str) {
            Some(id) if !id.is_empty() => check_id(id)?,
            _ => new_id()?,
        };
        self.audit.lock = Some(id.clone());
        let lock = Lock {
            id: id.clone(),
            kind: LockKind::Lease,
            user: self.user.name.clone(),
            owner: wanted.owner,
            info: None,
            ttl: Some(ttl),
            beat: 0,
        };
        match self.shared.service.execute(name, Command::Lock { lock, lapsed: None }).await? {
            Ok(Outcome::Locked { from }) => {
                self.audit.taken = from.map(|former| former.id);
                Ok(answer::json(&json!({"id": id, "ttl": ttl})))
            }
            Ok(_) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the lease had no outcome")),
            Err(refusal) => Err(self.refused(name, refusal)),
        }
    }

    pub(super) async fn heartbeat(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Lock, name)?;
        let id = self.query("id").ok_or_else(|| Problem::bad("a heartbeat names its `id`"))?;
        let id = check_id(id)?;
        self.audit.lock = Some(id.clone());
        let user = self.user.name.clone();
        match self.shared.service.execute(name, Command::Heartbeat { id, user }).await? {
            Ok(Outcome::Renewed(lock)) => Ok(answer::json(&json!({"ttl": lock.ttl}))),
            Ok(_) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the heartbeat had no outcome")),
            Err(refusal) => Err(self.refused(name, refusal)),
        }
    }

    pub(super) async fn release_lease(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require_unlock(name)?;
        let id = self.query("id").map(check_id).transpose()?;
        let taken = self.unlock(name, id).await?;
        let taken = taken.map(|lock| lock.describe(false));
        Ok(answer::json(&json!({"taken": taken})))
    }

    pub(super) async fn holder_native(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Read, name)?;
        match self.shared.service.holder(name).await? {
            Some(lock) => Ok(answer::json(&self.describe(name, &lock))),
            None => Err(Problem::new(StatusCode::NOT_FOUND, format!("`{name}` is not locked"))),
        }
    }

    pub(super) async fn read_journal(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Read, name)?;
        let lines = self.shared.service.storage.journal(name).await?;
        Ok(http::Response::new(answer::full(lines)))
    }

    pub(super) async fn append_journal(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Write, name)?;
        let lock = self.journal_lock()?;
        let lines = body::small(self.body, MAX_LINES).await?;
        if !lines.ends_with(b"\n") {
            return Err(Problem::bad("lines of a journal end with a newline"));
        }
        let user = self.user.name.clone();
        self.journal(name, Command::AppendJournal { lock, user, lines }).await
    }

    pub(super) async fn clear_journal(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Write, name)?;
        let lock = self.journal_lock()?;
        let user = self.user.name.clone();
        self.journal(name, Command::ClearJournal { lock, user }).await
    }

    fn journal_lock(&mut self) -> Result<String, Problem> {
        let lock = self.lock_header().ok_or_else(|| Problem::bad("`Strata-Lock` names the lock"))?;
        self.audit.lock = Some(lock.clone());
        Ok(lock)
    }

    async fn journal(&mut self, name: &StateName, command: Command) -> Result<Answer, Problem> {
        match self.shared.service.execute(name, command).await? {
            Ok(_) => Ok(answer::ok()),
            Err(refusal) => Err(self.refused(name, refusal)),
        }
    }
}

fn new_id() -> Result<String, Problem> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(hex::encode(bits))
}
