//! A stack that OpenTofu makes, as a part of Strata's own plans and applies.
//!
//! The plan that was shown is the plan that is applied: OpenTofu's saved plan is kept in memory between the two, or encrypted in a
//! plan file. What OpenTofu did is in its own state and nowhere else; after a crash, planning again is all there is to do.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value as Json, json};
use strata_engine::{PlanFile, StopSignal, Summary};
use strata_resource::Value;
use strata_source::EffectiveStack;
use strata_tofu::changes::{Action, Changes};
use strata_tofu::{Diagnosis, Held, Message};

use super::memory::MemoryFile;
use super::session::TofuSession;
use crate::error::SessionError;
use crate::observer::{SessionEvent, TofuProgress};
use crate::workspace::Workspace;

/// What a zip file begins with: a plan that nothing has encrypted.
const PLAIN: &[u8] = b"PK";

pub struct Driven<'w> {
    pub name: String,
    /// The key of Strata's own state of the stack, which has a lock and outputs, and no resources.
    pub key: String,
    /// What makes an address of OpenTofu one of ours.
    pub prefix: String,
    pub session: TofuSession<'w>,
    pub stack: &'w EffectiveStack,
}

/// What OpenTofu would do, and the plan that does it.
pub struct DrivenPlan {
    pub changes: Changes,
    sealed: MemoryFile,
    source_digest: String,
}

/// What is planned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    Apply,
    Destroy,
    /// Only what somebody else changed.
    Look,
}

/// What an apply came to.
#[derive(Default)]
pub struct Applied {
    pub done: usize,
    pub failed: usize,
    pub interrupted: bool,
    /// What the stack gives to others now; none where OpenTofu did not say it.
    pub outputs: Option<BTreeMap<String, Value>>,
    pub error: Option<SessionError>,
}

impl DrivenPlan {
    pub fn summary(&self) -> Summary {
        let count = |action| self.changes.count(action);
        Summary {
            create: count(Action::Create),
            update: count(Action::Update),
            replace: count(Action::Replace),
            delete: count(Action::Delete),
            restart: 0,
            unchanged: self.changes.unchanged,
            moved: 0,
            left_out: 0,
        }
    }

    /// The outputs as they are after the apply, as far as they are known.
    pub fn outputs(&self) -> BTreeMap<String, Value> {
        let values = self.changes.values.iter();
        values.filter_map(|(name, json)| Some((name.clone(), value_of(json.clone())?))).collect()
    }
}

impl Driven<'_> {
    /// What OpenTofu would do. Providers that are missing are fetched.
    pub async fn plan(&self, aim: Aim) -> Result<DrivenPlan, SessionError> {
        let session = &self.session;
        let sealed = MemoryFile::inherited().map_err(|error| session.lost(&error))?;
        let out = format!("-out={}", sealed.path());
        let mut arguments = vec!["plan", "-input=false", "-json", out.as_str()];
        arguments.extend(match aim {
            Aim::Apply => None,
            Aim::Destroy => Some("-destroy"),
            Aim::Look => Some("-refresh-only"),
        });
        let mut prepared = false;
        loop {
            let selected = session.select_workspace().await;
            let mut found = Vec::new();
            let ended = match selected {
                // The backend is not there before the first `init`.
                Err(_) if !prepared => None,
                Err(error) => return Err(error),
                Ok(()) => Some(session.run(&arguments, true, None, |line| hear(line, &mut found)).await?),
            };
            let unprepared = ended.is_none() || found.iter().any(Diagnosis::needs_init);
            if !prepared && unprepared {
                prepared = true;
                self.prepare_folder().await?;
                continue;
            }
            self.report(&found);
            if let Some(ended) = ended {
                session.judge(&ended, &found).map_err(|error| self.unplanned(error))?;
            }
            break;
        }
        if aim == Aim::Apply {
            session.warn_of_plain_state();
        }
        let changes = self.changes_of(&sealed).await?;
        let source_digest = self.workspace().source_digest(self.stack);
        Ok(DrivenPlan { changes, sealed, source_digest })
    }

    /// What is needed may be what the plan would make first.
    fn unplanned(&self, error: SessionError) -> SessionError {
        let needed: Vec<&str> = self.stack.needed().collect();
        if needed.is_empty() {
            return error;
        }
        let needed = needed.join(" ");
        error.hint(format!("if it looks at what is not made yet, make that first: `strata apply {needed}`"))
    }

    async fn changes_of(&self, sealed: &MemoryFile) -> Result<Changes, SessionError> {
        let said = self.said(&["show", "-json", &sealed.path()], "open the plan").await?;
        let redactor = self.workspace().redactor();
        Changes::parse(&said, &|text| redactor.redact(text).into_owned())
            .map_err(|reason| SessionError::failed(format!("`{}`: {reason}", self.name)))
    }

    /// What OpenTofu's state has.
    pub async fn held(&self) -> Result<Vec<Held>, SessionError> {
        let show = || async {
            self.session.select_workspace().await?;
            self.said(&["show", "-json"], "show the state").await
        };
        let said = match show().await {
            Ok(said) => said,
            // Providers tell what is sensitive: without them nothing can be shown.
            Err(_) => {
                self.prepare_folder().await?;
                show().await?
            }
        };
        let redactor = self.workspace().redactor();
        strata_tofu::held(&said, &|text| redactor.redact(text).into_owned())
            .map_err(|reason| SessionError::failed(format!("`{}`: {reason}", self.name)))
    }

    async fn prepare_folder(&self) -> Result<(), SessionError> {
        self.session_event(SessionEvent::PreparingTofu { stack: &self.name });
        self.session.init().await
    }

    /// Which state OpenTofu has, and its serial; none before the first apply.
    async fn position(&self) -> Result<Option<(String, u64)>, SessionError> {
        let said = self.said(&["state", "pull"], "read its state").await?;
        Ok(strata_tofu::position(&said))
    }

    /// The answer of a command that only looks.
    async fn said(&self, arguments: &[&str], what: &str) -> Result<Vec<u8>, SessionError> {
        let output = self.session.output(arguments).await?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let reason = String::from_utf8_lossy(&output.stderr);
        let redactor = self.workspace().redactor();
        Err(SessionError::failed(format!("OpenTofu cannot {what} of `{}`", self.name))
            .detail(redactor.redact(reason.trim()).into_owned()))
    }

    /// The plan for a plan file.
    pub async fn saved(&self, plan: &DrivenPlan) -> Result<strata_engine::DrivenPlan, SessionError> {
        let sealed = plan.sealed.read_from(0).map_err(|error| self.session.lost(&error))?;
        if sealed.starts_with(PLAIN) {
            let message = format!("the plan of `{}` would be saved in the clear", self.name);
            return Err(SessionError::refused(message)
                .hint("Terraform cannot encrypt plans; an `encryption` block of the code must have a `plan` of its own"));
        }
        let saved = strata_engine::DrivenPlan {
            stack: self.name.clone(),
            key: self.key.clone(),
            source_digest: plan.source_digest.clone(),
            position: self.position().await?,
            summary: plan.summary(),
            changes: json!(plan.changes),
            sealed: BASE64.encode(sealed),
            digest: String::new(),
        };
        Ok(saved.bound())
    }

    /// Plans; a saved plan must still be the plan of now, and is then the one that runs.
    pub async fn prepare(&self, destroy: bool, saved: Option<&PlanFile>) -> Result<DrivenPlan, SessionError> {
        let now = self.plan(if destroy { Aim::Destroy } else { Aim::Apply }).await?;
        let Some(saved) = saved else { return Ok(now) };
        let planned =
            saved.driven.iter().find(|planned| planned.stack == self.name).ok_or_else(|| {
                SessionError::refused(format!("the plan file has no stack `{}`", self.name))
            })?;
        let sealed = MemoryFile::inherited().map_err(|error| self.session.lost(&error))?;
        let bytes = BASE64.decode(&planned.sealed).map_err(|_| {
            SessionError::refused(format!("the plan of `{}` is damaged", self.name)).hint("plan again")
        })?;
        sealed.write(&bytes).map_err(|error| self.session.lost(&error))?;
        let changes = self.changes_of(&sealed).await.map_err(|error| {
            error.hint("plans are encrypted with `state.encryption.passphrase`; without one, only the machine that made a plan can open it")
        })?;
        let moved = changes.moved(&now.changes);
        planned.check(&now.source_digest, self.position().await?.as_ref(), moved)?;
        Ok(DrivenPlan { changes, sealed, source_digest: now.source_digest })
    }

    /// Applies the plan that was shown.
    pub async fn apply(&self, plan: &DrivenPlan, stop: &StopSignal) -> Result<Applied, SessionError> {
        let path = plan.sealed.path();
        let mut listener = Listener::new(self, &plan.changes);
        let arguments = ["apply", "-input=false", "-json", path.as_str()];
        let ended = self.session.run(&arguments, false, Some(stop), |line| listener.line(line)).await?;
        self.report(&listener.found);
        let Listener { found, outputs, ended: finished, failed, .. } = listener;
        // One that was made of a secret is one, whatever its code calls it: as those that OpenTofu marks, it is not handed on.
        let redactor = self.workspace().redactor();
        let is_open =
            |value: &Value| !redactor.is_in(serde_json::Value::from(value.clone()).to_string().as_bytes());
        let outputs = outputs.map(|all| all.into_iter().filter(|(_, value)| is_open(value)).collect());
        // What an interrupt stopped has not failed: it is left.
        let failed = if ended.interrupted { 0 } else { failed.len() };
        let mut applied = Applied { failed, interrupted: ended.interrupted, outputs, ..Applied::default() };
        match self.session.judge(&ended, &found) {
            Ok(()) => applied.done = plan.changes.resources.len(),
            Err(error) => {
                applied.done = plan
                    .changes
                    .resources
                    .iter()
                    .filter(|change| {
                        let needed = if change.action == Action::Replace { 2 } else { 1 };
                        finished.get(&change.address).is_some_and(|count| *count >= needed)
                    })
                    .count();
                let rescued = self.session.folder().join("errored.tfstate");
                applied.error = Some(match rescued.exists() {
                    true => error.hint(format!(
                        "OpenTofu could not save its state and left it in `errored.tfstate`: `strata tofu run {} -- state push errored.tfstate`",
                        self.name
                    )),
                    false => error,
                });
            }
        }
        Ok(applied)
    }

    /// What OpenTofu found wrong, in its words.
    fn report(&self, found: &[Diagnosis]) {
        for diagnosis in found {
            self.session_event(SessionEvent::Diagnosis { diagnosis, redactor: self.workspace().redactor() });
        }
    }

    fn session_event(&self, event: SessionEvent<'_>) {
        self.workspace().surroundings().observer.session_event(event);
    }

    fn workspace(&self) -> &Workspace {
        self.session.workspace()
    }
}

fn hear(line: &str, found: &mut Vec<Diagnosis>) {
    match Message::parse(line) {
        Some(Message::Diagnosis(one)) => found.push(one),
        Some(_) => {}
        // Some errors come before it speaks JSON.
        None => Diagnosis::hear_plain(found, line),
    }
}

/// Hears an apply, and tells it in Strata's words.
struct Listener<'d> {
    driven: &'d Driven<'d>,
    /// The places of the changes in the plan, by address.
    steps: BTreeMap<&'d str, usize>,
    found: Vec<Diagnosis>,
    /// How many operations ended well, by address: a replacement has two.
    ended: BTreeMap<String, usize>,
    failed: BTreeSet<String>,
    outputs: Option<BTreeMap<String, Value>>,
}

impl<'d> Listener<'d> {
    fn new(driven: &'d Driven<'_>, changes: &'d Changes) -> Self {
        let steps =
            changes.resources.iter().enumerate().map(|(step, change)| (change.address.as_str(), step));
        Self {
            driven,
            steps: steps.collect(),
            found: Vec::new(),
            ended: BTreeMap::new(),
            failed: BTreeSet::new(),
            outputs: None,
        }
    }

    fn line(&mut self, line: &str) {
        match Message::parse(line) {
            Some(Message::Started { address, action }) => {
                self.report(&address, TofuProgress::Started(action))
            }
            Some(Message::Running { address, seconds }) => {
                self.report(&address, TofuProgress::Running { seconds });
            }
            Some(Message::Done { address, action, seconds }) => {
                self.report(&address, TofuProgress::Done { action, seconds });
                *self.ended.entry(address).or_default() += 1;
            }
            Some(Message::Failed { address, action }) => {
                self.report(&address, TofuProgress::Failed(action));
                self.failed.insert(address);
            }
            Some(Message::Outputs(outputs)) => {
                let open = outputs.into_iter().filter_map(|(name, json)| Some((name, value_of(json?)?)));
                self.outputs = Some(open.collect());
            }
            _ => hear(line, &mut self.found),
        }
    }

    fn report(&self, address: &str, progress: TofuProgress) {
        let step = self.steps.get(address).copied();
        let address = format!("{}{address}", self.driven.prefix);
        let key = self.driven.key.as_str();
        self.driven.session_event(SessionEvent::TofuStep { key, step, address, progress });
    }
}

/// A value as Strata's state keeps outputs. Numbers with a fraction are text there; what is null is not there.
fn value_of(json: Json) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(bool) => Value::Bool(bool),
        Json::Number(number) => match number.as_i64() {
            Some(int) => Value::Int(int),
            None => Value::Text(number.to_string()),
        },
        Json::String(text) => Value::Text(text),
        Json::Array(list) => Value::List(list.into_iter().filter_map(value_of).collect()),
        Json::Object(map) => {
            Value::Map(map.into_iter().filter_map(|(name, json)| Some((name, value_of(json)?))).collect())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_become_values() {
        let json = json!({"a": [1, 1.5, null, true], "b": null, "c": {"d": "x"}});
        let value = value_of(json).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), r#"{"a":[1,"1.5",true],"c":{"d":"x"}}"#);
    }
}
