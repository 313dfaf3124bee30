//! What is done to one guest of ours outside any plan: backups and snapshots.
//!
//! Each act is given the operation that changes nothing of the guest, which says whose it is, and the context that its writes are counted in. It proves
//! first that the guest is ours, and afterwards that what it was to do is there.

use strata_engine::{Operation, OperationContext, ProviderError};
use strata_resource::{Spec, Value};

use crate::ProxmoxProvider;
use crate::archives::{self, Archive, Archives, Verified};
use crate::execute::{Work, backup, restore, snapshot};

/// A backup to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupRequest {
    /// The only one that takes backups, where none is named.
    pub storage: Option<String>,
    /// `snapshot`, `suspend` or `stop`.
    pub mode: String,
    pub notes: String,
    /// It is neither removed nor pruned.
    pub protected: bool,
}

/// A snapshot of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub name: String,
    /// Seconds since 1970.
    pub created: i64,
    /// Without the ownership mark.
    pub notes: String,
    /// It has the memory, too: a rollback continues where the guest was.
    pub memory: bool,
    pub parent: Option<String>,
    /// It carries our ownership mark.
    pub ours: bool,
    /// It is being made or deleted, or that failed.
    pub unfinished: Option<String>,
}

impl ProxmoxProvider {
    /// Every backup with the VMID of the guest, whether it is still there or not.
    pub async fn archives(&self, operation: &Operation) -> Result<Archives, ProviderError> {
        archives::archives(self.client(), operation, vmid(operation)).await
    }

    /// Proves that a backup is there, readable, and of this guest.
    pub async fn verify_archive(
        &self,
        operation: &Operation,
        archive: &Archive,
    ) -> Result<Verified, ProviderError> {
        archives::verify(self.client(), operation, vmid(operation), archive).await
    }

    pub async fn back_up(
        &self,
        operation: &Operation,
        request: &BackupRequest,
        context: &dyn OperationContext,
    ) -> Result<Archive, ProviderError> {
        backup::run(&self.work(operation, context), request).await
    }

    /// Gives the facts of the guest that is there then.
    pub async fn restore(
        &self,
        operation: &Operation,
        volume: &str,
        context: &dyn OperationContext,
    ) -> Result<Spec, ProviderError> {
        restore::restore(&self.work(operation, context), volume).await
    }

    pub async fn snapshots(
        &self,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Vec<Snapshot>, ProviderError> {
        snapshot::list(&self.work(operation, context)).await
    }

    pub async fn take_snapshot(
        &self,
        operation: &Operation,
        (name, notes, memory): (&str, &str, bool),
        context: &dyn OperationContext,
    ) -> Result<Snapshot, ProviderError> {
        snapshot::create(&self.work(operation, context), name, notes, memory).await
    }

    pub async fn delete_snapshot(
        &self,
        operation: &Operation,
        name: &str,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        snapshot::delete(&self.work(operation, context), name).await
    }

    /// Gives the facts of the guest that is there then.
    pub async fn roll_back(
        &self,
        operation: &Operation,
        name: &str,
        context: &dyn OperationContext,
    ) -> Result<Spec, ProviderError> {
        snapshot::roll_back(&self.work(operation, context), name).await
    }

    fn work<'a>(&'a self, operation: &'a Operation, context: &'a dyn OperationContext) -> Work<'a> {
        Work { client: self.client(), operation, context }
    }
}

fn vmid(operation: &Operation) -> u32 {
    operation
        .spec
        .get("vmid")
        .and_then(Value::as_int)
        .and_then(|vmid| u32::try_from(vmid).ok())
        .unwrap_or_default()
}
