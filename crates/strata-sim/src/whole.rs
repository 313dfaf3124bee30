//! The parts of a simulator, put together: what is exported, and who carries a change out.

use std::sync::Arc;

use serde_json::Value;
use strata_sim_core::Shared;
use strata_sim_core::control::{Changing, Whole};
use strata_sim_kubernetes::Clusters;
use strata_sim_proxmox::Datacenter;
use strata_sim_talos::Machines;
use strata_sim_truenas::StorageServer;

use crate::host::Guests;

/// Every part, each with its own lock.
pub(crate) struct Parts {
    pub(crate) shared: Arc<Shared>,
    pub(crate) datacenter: Arc<Datacenter>,
    pub(crate) machines: Arc<Machines>,
    pub(crate) clusters: Arc<Clusters>,
    pub(crate) nas: Arc<StorageServer>,
}

impl Parts {
    /// Every live object, at one moment.
    pub(crate) fn export(&self) -> Value {
        self.shared.advance();
        let talos = self.machines.talos();
        let mut datacenter = self.datacenter.world();
        let mut all = datacenter.export();
        let world = self.machines.world_of(talos, Box::new(Guests(&mut *datacenter)));
        all["talos"] = world.export_talos();
        all["kubernetes"] = world.kubernetes.export();
        all["truenas"] = self.nas.export();
        all
    }

    pub(crate) fn talos(&self) -> Value {
        self.shared.advance();
        self.machines.report()
    }

    /// Carries out one change or a list of them, each after the other; stops at the first that is refused.
    pub(crate) async fn apply(&self, input: &Value) -> Result<Value, String> {
        let Some(list) = input.as_array() else { return self.apply_one(input).await };
        let mut done = Vec::new();
        for change in list {
            let result = self.apply_one(change).await?;
            let refused = result.get("status").and_then(Value::as_u64).is_some_and(|s| s != 200);
            done.push(result);
            if refused {
                break;
            }
        }
        Ok(Value::Array(done))
    }

    async fn apply_one(&self, change: &Value) -> Result<Value, String> {
        if let Some(change) = change.get("kubernetes") {
            return self.clusters.change(change);
        }
        if let Some(change) = change.get("truenas") {
            return self.nas.change(change);
        }
        if let Some(change) = change.get("talos").filter(|_| change.get("path").is_none()) {
            return self.machines.change(change);
        }
        self.datacenter.change(change).await
    }
}

impl Whole for Parts {
    fn look(&self, name: &str) -> Option<Value> {
        match name {
            "export" => Some(self.export()),
            "talos" => Some(self.talos()),
            _ => None,
        }
    }

    fn change<'a>(&'a self, change: &'a Value) -> Changing<'a> {
        Box::pin(self.apply(change))
    }
}
