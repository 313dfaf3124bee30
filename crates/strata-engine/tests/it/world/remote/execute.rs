//! How an operation is carried out: small writes, one after the other, each of which may be the last one.

use std::collections::BTreeSet;

use strata_engine::{Action, ErrorClass, Observed, Operation, OperationContext, ProviderError};
use strata_resource::{ChangeEffect, FieldChange, Spec, Value};

use super::provider::{FakeProvider, failed, vmid_of, volid_of};
use super::{Guest, Inner, set};

type Done = Result<Option<Observed>, ProviderError>;

/// Counts an operation while it runs, for each thing that can bear only so much at once.
pub(super) struct Busy<'a> {
    provider: &'a FakeProvider,
    keys: Vec<String>,
    pub(super) ended: bool,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut inner = self.provider.remote.inner();
        inner.cut_off += usize::from(!self.ended);
        for key in &self.keys {
            *inner.running.get_mut(key).unwrap() -= 1;
        }
    }
}

impl FakeProvider {
    pub(super) fn count(&self, operation: &Operation) -> Busy<'_> {
        let mut keys = vec!["all".to_owned(), format!("target:{}", self.target)];
        if operation.action != Action::Delete && operation.address.kind().table().is_proven_by_facts() {
            keys.push("storage".to_owned());
            let template = operation.spec.get("clone").and_then(Value::as_map);
            keys.extend(template.map(|clone| format!("template:{:?}", clone["template"])));
        }
        let mut inner = self.remote.inner();
        for key in &keys {
            let running = inner.running.entry(key.clone()).or_default();
            *running += 1;
            let running = *running;
            let most = inner.most_at_once.entry(key.clone()).or_default();
            *most = running.max(*most);
        }
        Busy { provider: self, keys, ended: false }
    }

    pub(super) async fn carry_out(&self, operation: &Operation, context: &dyn OperationContext) -> Done {
        match (operation.address.kind().table().is_proven_by_facts(), operation.action) {
            (true, Action::Create) => self.create_guest(operation, context).await,
            (true, Action::Update) => self.update_guest(operation, context).await,
            (true, Action::Delete) => self.delete_guest(operation, context).await,
            (false, Action::Create) => self.create_volume(operation, context).await,
            (false, Action::Delete) => self.delete_volume(operation, context).await,
            (false, Action::Update) => Err(failed(ErrorClass::BadInput, "a volume cannot be changed")),
        }
    }

    async fn create_guest(&self, operation: &Operation, context: &dyn OperationContext) -> Done {
        let vmid = vmid_of(&operation.spec);
        self.write(&format!("create guest {vmid}"), operation, context, |inner| {
            inner.make_guest(vmid, &operation.spec)
        })
        .await?;
        context.task_started(&format!("UPID:create:{vmid}")).await?;
        self.look("wait for the create", |inner| {
            if let Some(guest) = inner.guests.get_mut(&vmid) {
                guest.task = None;
            }
        })
        .await?;
        self.write(&format!("configure guest {vmid}"), operation, context, |inner| {
            inner.check_drives(&operation.spec)?;
            let guest = inner.guest(vmid)?;
            // The source of a clone is nothing that a guest remembers.
            let kept = ["power", "template", "clone"];
            guest.fields.extend(
                operation.spec.iter().filter(|(name, _)| !kept.contains(&name.as_str())).map(clone_pair),
            );
            Ok(())
        })
        .await?;
        self.bring_up(operation, context).await
    }

    /// What comes last: a template is made one, a guest is started or stopped.
    async fn bring_up(&self, operation: &Operation, context: &dyn OperationContext) -> Done {
        let vmid = vmid_of(&operation.spec);
        for (name, doing) in [("template", "make a template of"), ("power", "switch power of")] {
            let Some(value) = operation.spec.get(name).cloned() else { continue };
            let now = self
                .look("look", |inner| inner.guest(vmid).map(|guest| guest.fields.get(name).cloned()))
                .await??;
            if now.as_ref() == Some(&value) {
                continue;
            }
            self.write(&format!("{doing} guest {vmid}"), operation, context, |inner| {
                let guest = inner.guest(vmid)?;
                guest.fields.insert(name.to_owned(), value);
                guest.pending.clear();
                Ok(())
            })
            .await?;
        }
        self.look("look", |inner| {
            let guest = inner.guest(vmid)?.clone();
            Ok(Some(inner.observed_guest(&guest)))
        })
        .await?
    }

    async fn update_guest(&self, operation: &Operation, context: &dyn OperationContext) -> Done {
        let vmid = vmid_of(&operation.spec);
        let seen = operation.observed.as_ref().map(|observed| observed.digest.clone());
        let last = ["power", "template"];
        let changes: Vec<&FieldChange> = operation
            .changes
            .iter()
            .filter(|change| !last.contains(&change.path.first().unwrap_or_default()))
            .collect();
        if !changes.is_empty() {
            let rules = operation.address.kind().rules();
            self.write(&format!("configure guest {vmid}"), operation, context, |inner| {
                inner.check_drives(&operation.spec)?;
                let guest = inner.guest(vmid)?.clone();
                if seen != Some(inner.observed_guest(&guest).digest) {
                    return Err(failed(
                        ErrorClass::Conflict,
                        format!("guest {vmid} was changed by somebody else"),
                    ));
                }
                let guest = inner.guest(vmid)?;
                let runs = guest.fields.get("power") == Some(&"running".into());
                for change in changes {
                    let path = change.path.to_string();
                    set(&mut guest.fields, &path, change.after.clone());
                    if runs && rules.rule(&change.path).effect == ChangeEffect::Restart {
                        guest.pending.insert(path);
                    }
                }
                Ok(())
            })
            .await?;
        }
        if operation.restart {
            self.write(&format!("restart guest {vmid}"), operation, context, |inner| {
                inner.guest(vmid)?.pending.clear();
                Ok(())
            })
            .await?;
        }
        self.bring_up(operation, context).await
    }

    async fn delete_guest(&self, operation: &Operation, context: &dyn OperationContext) -> Done {
        let vmid = vmid_of(&operation.spec);
        let is_there = |inner: &mut Inner| inner.guests.get(&vmid).cloned();
        let Some(guest) = self.look("look", is_there).await? else { return Ok(None) };
        if guest.fields.get("power") == Some(&"running".into()) {
            self.write(&format!("stop guest {vmid}"), operation, context, |inner| {
                inner.guest(vmid)?.fields.insert("power".into(), "stopped".into());
                Ok(())
            })
            .await?;
        }
        self.write(&format!("delete guest {vmid}"), operation, context, |inner| {
            let guest =
                inner.guests.remove(&vmid).ok_or_else(|| failed(ErrorClass::Missing, "it is gone"))?;
            let recorded = operation.recorded.as_ref().and_then(|recorded| recorded.facts.get("uuid"));
            let mark = guest.fields.get("mark").and_then(Value::as_text).unwrap_or_default();
            if recorded != Some(&guest.uuid.as_str().into())
                && !mark.contains(&format!("{} {} vmid={vmid}", operation.lineage, operation.address))
            {
                inner.violations.push(format!("guest {vmid} was deleted and is not ours"));
            }
            Ok(None)
        })
        .await
    }

    async fn create_volume(&self, operation: &Operation, context: &dyn OperationContext) -> Done {
        let volid = volid_of(&operation.spec);
        let is_there = |inner: &mut Inner| inner.volumes.contains_key(&volid);
        if !self.look("look", is_there).await? {
            self.write(&format!("upload `{volid}`"), operation, context, |inner| {
                if inner.volumes.insert(volid.clone(), operation.spec.clone()).is_some() {
                    inner.violations.push(format!("volume `{volid}` was overwritten"));
                }
                Ok(())
            })
            .await?;
        }
        self.look("look", |inner| inner.volumes.get(&volid).map(|fields| inner.observed_volume(fields))).await
    }

    async fn delete_volume(&self, operation: &Operation, context: &dyn OperationContext) -> Done {
        let volid = volid_of(&operation.spec);
        self.write(&format!("delete `{volid}`"), operation, context, |inner| {
            let users = inner.users_of(&volid);
            if !users.is_empty() {
                inner.violations.push(format!("volume `{volid}` was deleted while {users:?} use it"));
            }
            if !volid.contains(operation.lineage.short()) {
                inner.violations.push(format!("volume `{volid}` was deleted and is not ours"));
            }
            inner.volumes.remove(&volid);
            Ok(None)
        })
        .await
    }
}

impl Inner {
    fn guest(&mut self, vmid: i64) -> Result<&mut Guest, ProviderError> {
        self.guests
            .get_mut(&vmid)
            .ok_or_else(|| failed(ErrorClass::Missing, format!("there is no guest {vmid}")))
    }

    /// The first request of a create: from now on the VMID is taken, and the mark is there once the task has ended.
    fn make_guest(&mut self, vmid: i64, spec: &Spec) -> Result<(), ProviderError> {
        if self.guests.contains_key(&vmid) {
            return Err(failed(ErrorClass::Conflict, format!("guest {vmid} already exists")));
        }
        let mut fields = Spec::new();
        if let Some(clone) = spec.get("clone").and_then(Value::as_map) {
            let template = self.guests.get(&vmid_of(&[("vmid".into(), clone["template"].clone())].into()));
            let template = template.filter(|guest| guest.fields.get("template") == Some(&true.into()));
            let template =
                template.ok_or_else(|| failed(ErrorClass::Missing, "there is no such template"))?;
            fields.extend(template.fields.iter().filter(|(name, _)| *name == "cpu").map(clone_pair));
        }
        let own = ["vmid", "node", "name", "mark"];
        fields.extend(spec.iter().filter(|(name, _)| own.contains(&name.as_str())).map(clone_pair));
        let made = self.made.entry(vmid).or_default();
        *made += 1;
        let uuid = format!("uuid-{vmid}-{made}");
        let task = Some("create".to_owned());
        self.guests.insert(vmid, Guest { fields, uuid, task, pending: BTreeSet::new() });
        Ok(())
    }

    fn check_drives(&self, spec: &Spec) -> Result<(), ProviderError> {
        let drives = spec.get("cdroms").and_then(Value::as_map);
        for drive in drives.into_iter().flat_map(|drives| drives.values()) {
            let volid = drive.as_map().map(volid_of).unwrap_or_default();
            if !self.volumes.contains_key(&volid) {
                return Err(failed(ErrorClass::Missing, format!("there is no volume `{volid}`")));
            }
        }
        Ok(())
    }
}

fn clone_pair((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}
