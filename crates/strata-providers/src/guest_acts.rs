//! Backups and snapshots of one guest: what is done to it outside any plan.
//!
//! [`AllProviders::open_guest`] locks its stack, closes what an interrupted run left open, and gives the guest. An act is written ahead; what it
//! disturbs is refused where the source protects the guest.

use std::sync::Arc;

use strata_engine::{
    Action, Operation, OperationContext, Provider, ProviderError, Sighting, StopSignal, Wanted,
};
use strata_proxmox::{Archive, Archives, BackupRequest, ProxmoxProvider, Snapshot, Verified, Whose};
use strata_resource::{Address, Spec, Value, claimed_spec};
use strata_session::{Opened, Purpose, SessionError, StackSession, StateAccess, Workspace};
use strata_state::StateResource;

use crate::AllProviders;

/// One guest of ours.
pub struct GuestSession {
    session: StackSession,
    provider: Arc<ProxmoxProvider>,
    pub address: Address,
    operation: Operation,
    record: StateResource,
    /// A machine of a cluster: etcd and Kubernetes would meet their own past.
    is_node: bool,
}

impl AllProviders {
    /// Opens the stack of a guest: to look, or under its lock.
    pub async fn open_guest(
        &self,
        workspace: &Workspace,
        address: &str,
        access: StateAccess<'_>,
    ) -> Result<GuestSession, SessionError> {
        let named: Address = address.parse().map_err(|error| {
            SessionError::usage(format!("`{address}` is no address of a guest: {error}")).hint(
                "a guest is called like `web/vm/db` or `web/container/dns`: `strata state list` has them",
            )
        })?;
        if !strata_proxmox::kinds::is_guest(named.kind()) {
            return Err(SessionError::usage(format!("`{named}` is neither a VM nor a container")));
        }
        let locked = access != StateAccess::Look;
        let mut own = None;
        for opened in workspace.open(&[named.to_string()], &Purpose::LOOK, access).await? {
            match opened {
                Opened::Native(session) if own.is_none() && session.name == named.stack() => {
                    own = Some(session)
                }
                other => other.release().await?,
            }
        }
        let Some(mut session) = own.map(|session| *session) else {
            return Err(SessionError::refused(format!("`{}` is made by OpenTofu", named.stack()))
                .hint("Strata makes backups of what it manages itself"));
        };
        let ready = async {
            if locked {
                session.recover().await?;
                if let Some(unseen) = session.left_open(&named) {
                    return Err(SessionError::failed(unseen.what.clone()).hint(unseen.hint.clone()));
                }
            }
            let is_node = workspace.one(named.stack())?.cluster().is_some();
            let (operation, record) = session.operation_on(&named).ok_or_else(|| {
                SessionError::failed(format!("neither the source nor the state has `{named}`"))
            })?;
            let provider = self.proxmox().get(&operation.target).cloned().ok_or_else(|| {
                SessionError::failed(format!("the target `{}` is not connected", operation.target))
            })?;
            Ok((operation, record, provider, is_node))
        };
        match ready.await {
            Ok((operation, record, provider, is_node)) => {
                Ok(GuestSession { session, provider, address: named, operation, record, is_node })
            }
            Err(error) => {
                // The first error is the one to tell.
                let _ = session.release().await;
                Err(error)
            }
        }
    }
}

impl GuestSession {
    /// The key of its state.
    pub fn key(&self) -> &str {
        &self.session.view().key
    }

    pub async fn release(self) -> Result<(), SessionError> {
        self.session.release().await
    }

    /// Every backup of the guest, and of others that had its VMID.
    pub async fn archives(&self) -> Result<Archives, SessionError> {
        Ok(self.provider.archives(&self.operation).await?)
    }

    /// The backup that is named, or `latest`: one of this guest.
    pub async fn archive(&self, named: &str) -> Result<Archive, SessionError> {
        let Archives { found, unseen } = self.archives().await?;
        let ours: Vec<Archive> = found.iter().filter(|one| one.whose == Whose::Ours).cloned().collect();
        let chosen = match named {
            "latest" => ours.first().cloned(),
            named => found.iter().find(|one| one.volume == named).cloned(),
        };
        let Some(chosen) = chosen else {
            let message = match named {
                "latest" => format!("no backup of `{}` is listed", self.address),
                named => format!("no backup `{named}` with the VMID of `{}` is listed", self.address),
            };
            let mut error = SessionError::failed(message);
            error.details = unseen.into_iter().map(|what| format!("cannot be seen: {what}")).collect();
            return Err(error.hint(format!("`strata backup list {}` shows what there is", self.address)));
        };
        match &chosen.whose {
            Whose::Ours => Ok(chosen),
            Whose::Another(why) | Whose::Unknown(why) => Err(SessionError::refused(format!(
                "`{}` is no backup of `{}`: {why}",
                chosen.volume, self.address
            ))
            .hint("only a backup of this very guest is verified or restored")),
        }
    }

    pub async fn verify(&self, archive: &Archive) -> Result<Verified, SessionError> {
        Ok(self.provider.verify_archive(&self.operation, archive).await?)
    }

    pub async fn back_up(
        &mut self,
        request: &BackupRequest,
        stop: &StopSignal,
    ) -> Result<Archive, SessionError> {
        let (provider, operation) = (Arc::clone(&self.provider), self.operation.clone());
        let act = async |context: &dyn OperationContext| {
            Ok((provider.back_up(&operation, request, context).await?, None))
        };
        self.session.act(&self.operation, self.record.clone(), stop, act).await
    }

    /// Refuses to put the guest back to an earlier time: what is protected, what a cluster would not survive, what has no earlier time.
    pub fn refuse_disturbed(&self, doing: &str) -> Result<(), SessionError> {
        let address = &self.address;
        if self.session.is_protected(address) {
            return Err(SessionError::refused(format!(
                "`{address}` is protected, and to {doing} it would lose data"
            ))
            .hint("set `protect: false`, apply that, then try again"));
        }
        if self.is_node {
            let message = format!(
                "`{address}` is a node of a cluster: etcd and Kubernetes cannot go back in time alone"
            );
            return Err(SessionError::refused(message).hint(format!(
                "`strata apply --replace {address}` makes it again; `strata talos restore` brings etcd back"
            )));
        }
        if address.kind() == strata_blueprint::kinds::TEMPLATE {
            return Err(SessionError::refused(format!("`{address}` is a template"))
                .hint("`strata apply --replace` makes it again from its image"));
        }
        Ok(())
    }

    /// Whether the guest is there; one that is somebody else's by now, or cannot be seen, is an error.
    async fn is_there(&self) -> Result<bool, SessionError> {
        let Operation { address, spec, recorded, lineage, .. } = &self.operation;
        let wanted = Wanted { address, spec, recorded: recorded.as_ref(), begun: None, lineage };
        let sighting = self.provider.observe_all(&[wanted]).await?.pop();
        match sighting {
            Some(Sighting::Ours(_)) => Ok(true),
            Some(Sighting::Absent) => Ok(false),
            Some(Sighting::Unmanaged(who)) => {
                Err(SessionError::refused(who.to_string()).hint("it was not touched; move it away first"))
            }
            Some(Sighting::Unknown(unseen)) => Err(SessionError::failed(unseen.what).hint(unseen.hint)),
            Some(Sighting::Busy(what) | Sighting::Unreachable(what)) => {
                Err(SessionError::failed(what).hint("try again when it can be seen"))
            }
            None => Err(SessionError::failed(format!("the target gave no answer about `{address}`"))),
        }
    }

    /// Restores the guest from a backup of it. Afterwards the state has it as it is: what the source has changed since then is in the next plan.
    pub async fn restore(&mut self, archive: &Archive, stop: &StopSignal) -> Result<(), SessionError> {
        self.refuse_disturbed("restore")?;
        let over = self.is_there().await?;
        let action = if over { Action::Update } else { Action::Create };
        let operation = Operation { action, ..self.operation.clone() };
        let becomes = self.as_it_was(archive.created).await;
        let (provider, record) = (Arc::clone(&self.provider), becomes.clone());
        let act = async |context: &dyn OperationContext| {
            let facts = provider.restore(&operation, &archive.volume, context).await?;
            Ok(((), Some(StateResource { facts, ..record })))
        };
        self.session.act(&operation, becomes, stop, act).await
    }

    pub async fn snapshots(&self) -> Result<Vec<Snapshot>, SessionError> {
        Ok(self.provider.snapshots(&self.operation, &Looking).await?)
    }

    pub async fn take_snapshot(
        &mut self,
        name: &str,
        notes: &str,
        memory: bool,
        stop: &StopSignal,
    ) -> Result<Snapshot, SessionError> {
        let (provider, operation) = (Arc::clone(&self.provider), self.operation.clone());
        let act = async |context: &dyn OperationContext| {
            Ok((provider.take_snapshot(&operation, (name, notes, memory), context).await?, None))
        };
        self.session.act(&self.operation, self.record.clone(), stop, act).await
    }

    pub async fn delete_snapshot(&mut self, name: &str, stop: &StopSignal) -> Result<(), SessionError> {
        let (provider, operation) = (Arc::clone(&self.provider), self.operation.clone());
        let act = async |context: &dyn OperationContext| {
            provider.delete_snapshot(&operation, name, context).await?;
            Ok(((), None))
        };
        self.session.act(&self.operation, self.record.clone(), stop, act).await
    }

    /// Puts the guest back to a snapshot of it.
    pub async fn roll_back(&mut self, snapshot: &Snapshot, stop: &StopSignal) -> Result<(), SessionError> {
        self.refuse_disturbed("roll back")?;
        let becomes = self.as_it_was(snapshot.created).await;
        let (provider, operation, record) =
            (Arc::clone(&self.provider), self.operation.clone(), becomes.clone());
        let act = async |context: &dyn OperationContext| {
            let facts = provider.roll_back(&operation, &snapshot.name, context).await?;
            Ok(((), Some(StateResource { facts, ..record })))
        };
        self.session.act(&self.operation, becomes, stop, act).await
    }

    /// The record of the guest once it is as it was then: what had been applied by that time and has left the source since is ours
    /// again, so that the plan removes it, and a secret that was another one then is written again. Where the store keeps no state from
    /// then, every secret is.
    async fn as_it_was(&self, seconds: i64) -> StateResource {
        let (record, rules) = (&self.record, self.address.kind().rules());
        let then = self.session.applied_at(&self.address, seconds).await;
        let vmid = |spec: &Spec| spec.get("vmid").and_then(Value::as_int);
        let then = then.filter(|then| vmid(&then.spec) == vmid(&record.spec));
        let spec = claimed_spec(rules, &record.spec, &then.map(|then| then.spec).unwrap_or_default());
        StateResource { spec, partial: false, ..record.clone() }
    }
}

/// Looks only.
struct Looking;

#[async_trait::async_trait]
impl OperationContext for Looking {
    fn before_write(&self) -> Result<(), ProviderError> {
        Err(ProviderError::new(strata_engine::ErrorClass::Internal, "looking writes nothing"))
    }

    async fn task_started(&self, _: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    fn progress(&self, _: &str) {}
}
