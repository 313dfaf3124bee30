//! The protocol of OpenTofu's and Terraform's `http` backend.

use http::StatusCode;
use serde_json::Value;

use super::answer::{self, Answer, Problem};
use super::body;
use super::call::Call;
use crate::access::Action;
use strata_storage::{Command, Lock, LockKind, Outcome, Replaces, StateName};

/// A LockInfo is a few hundred bytes.
const MAX_INFO: usize = 16 * 1024;
const MAX_ID: usize = 256;

impl Call<'_> {
    pub(super) async fn write_tofu(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Write, name)?;
        let lock = self.query("ID").filter(|id| !id.is_empty()).map(str::to_owned);
        let received = self.receive(name).await?;
        match self.store(name, received, lock, Replaces::Whatever).await {
            Ok(_) => Ok(answer::ok()),
            Err(problem) => Err(problem.for_tofu()),
        }
    }

    pub(super) async fn lock_tofu(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Lock, name)?;
        let info = self.lock_info().await?.ok_or_else(|| Problem::bad("a lock needs a LockInfo"))?;
        let id = read_id(&info)?.ok_or_else(|| Problem::bad("the LockInfo has no `ID`"))?;
        self.audit.lock = Some(id.clone());
        let user = self.user.name.clone();
        let lock = Lock { id, kind: LockKind::Tofu, user, owner: None, info: Some(info), ttl: None, beat: 0 };
        match self.shared.service.execute(name, Command::Lock { lock, lapsed: None }).await? {
            Ok(outcome) => {
                if let Outcome::Locked { from: Some(former) } = outcome {
                    self.audit.taken = Some(former.id);
                }
                Ok(answer::ok())
            }
            Err(refusal) => Err(self.refused(name, refusal).for_tofu()),
        }
    }

    pub(super) async fn unlock_tofu(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require_unlock(name)?;
        let id = match self.lock_info().await? {
            Some(info) => read_id(&info)?,
            None => self.query("ID").filter(|id| !id.is_empty()).map(check_id).transpose()?,
        };
        self.unlock(name, id).await.map(|_| answer::ok())
    }

    /// Their own lock with the action `lock`, that of others with `unlock`.
    pub(super) fn require_unlock(&self, name: &StateName) -> Result<(), Problem> {
        self.require(Action::Lock, name).or_else(|_| self.require(Action::Unlock, name))
    }

    pub(super) async fn unlock(
        &mut self,
        name: &StateName,
        id: Option<String>,
    ) -> Result<Option<Lock>, Problem> {
        let user = self.user.name.clone();
        let may_break = self.user.may(Action::Unlock, name);
        self.audit.lock = id.clone();
        match self.shared.service.execute(name, Command::Unlock { id, user, may_break }).await? {
            Ok(Outcome::Unlocked(held)) => {
                let of_another = held.as_ref().filter(|held| held.user != self.user.name);
                self.audit.taken = of_another.map(|held| held.id.clone());
                Ok(held)
            }
            Ok(_) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the unlock had no outcome")),
            Err(refusal) => Err(self.refused(name, refusal)),
        }
    }

    pub(super) async fn holder_tofu(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Read, name)?;
        match self.shared.service.holder(name).await? {
            Some(lock) => Ok(answer::json(&self.visible(name, &lock).lock_info())),
            None => Err(Problem::new(StatusCode::NOT_FOUND, format!("`{name}` is not locked"))),
        }
    }

    /// The LockInfo of the request, none if it is empty.
    async fn lock_info(&mut self) -> Result<Option<Value>, Problem> {
        let bytes = body::small(self.body, MAX_INFO).await?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        match serde_json::from_slice(&bytes) {
            Ok(Value::Null) => Ok(None),
            Ok(info @ Value::Object(_)) => Ok(Some(info)),
            // Some send the bare id.
            Ok(Value::String(id)) => Ok(Some(serde_json::json!({"ID": id}))),
            _ => Err(Problem::bad("a LockInfo is a JSON object")),
        }
    }
}

pub(super) fn read_id(info: &Value) -> Result<Option<String>, Problem> {
    match info.get("ID") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if id.is_empty() => Ok(None),
        Some(Value::String(id)) => check_id(id).map(Some),
        Some(_) => Err(Problem::bad("the `ID` of a LockInfo is a text")),
    }
}

pub(super) fn check_id(id: &str) -> Result<String, Problem> {
    if id.is_empty() || id.len() > MAX_ID || id.chars().any(char::is_control) {
        return Err(Problem::bad(format!(
            "the id of a lock has 1 to {MAX_ID} bytes and no control characters"
        )));
    }
    Ok(id.to_owned())
}
