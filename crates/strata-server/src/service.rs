//! States as the handlers see them: the storage, with an eye on leases.

use std::sync::Arc;
use std::time::Duration;

use strata_net::Clock;

use crate::leases::Leases;
use strata_storage::{Command, Lock, Outcome, Refusal, StateName, Storage, StorageError};

pub(crate) struct StateService {
    pub(crate) storage: Arc<dyn Storage>,
    leases: Leases,
    clock: Arc<dyn Clock>,
}

impl StateService {
    /// Leases that are there already begin again.
    pub(crate) async fn start(
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StorageError> {
        let service = Self { storage, leases: Leases::default(), clock };
        let heads = match service.storage.heads().await {
            // One state that cannot be read does not keep the others from being served. Their leases are seen when they are asked for.
            Err(StorageError::Damaged(_)) => Vec::new(),
            heads => heads?,
        };
        for (name, head) in heads {
            service.leases.see(&name, head.lock.as_ref(), service.monotonic());
        }
        Ok(service)
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    pub(crate) fn unix(&self) -> i64 {
        self.clock.unix()
    }

    pub(crate) async fn execute(
        &self,
        name: &StateName,
        mut command: Command,
    ) -> Result<Result<Outcome, Refusal>, StorageError> {
        if let Command::Lock { lapsed, .. } = &mut command {
            *lapsed = self.leases.lapsed(name, self.monotonic());
        }
        let wanted = match &command {
            Command::Lock { lock, .. } => Some(lock.clone()),
            _ => None,
        };
        let outcome = self.storage.execute(name, command).await?;
        let now = self.monotonic();
        match &outcome {
            Ok(Outcome::Locked { .. }) => self.leases.see(name, wanted.as_ref(), now),
            Ok(Outcome::Renewed(lock)) => self.leases.see(name, Some(lock), now),
            Ok(Outcome::Unlocked(_)) => self.leases.see(name, None, now),
            Err(Refusal::Held(lock)) => self.leases.see(name, Some(lock), now),
            _ => {}
        }
        Ok(outcome)
    }

    pub(crate) async fn holder(&self, name: &StateName) -> Result<Option<Lock>, StorageError> {
        let lock = self.storage.head(name).await?.lock;
        self.leases.see(name, lock.as_ref(), self.monotonic());
        Ok(lock)
    }

    /// How long ago this lock lapsed, if it has.
    pub(crate) fn lapsed_for(&self, name: &StateName, lock: &Lock) -> Option<Duration> {
        self.has_lapsed(name, lock).then(|| self.leases.lapsed_for(name, self.monotonic())).flatten()
    }

    pub(crate) fn has_lapsed(&self, name: &StateName, lock: &Lock) -> bool {
        self.leases.lapsed(name, self.monotonic()).is_some_and(|beat| lock.is_at(&beat))
    }
}
