//! What must hold: after every run, and once a run has succeeded.

use std::collections::BTreeSet;

use strata_resource::{Address, Spec, Value};

use super::{Source, World, lineage};

/// The name under which [`super::Remote::ours`] lists an object.
fn name_of(spec: &Spec) -> String {
    match spec.get("vmid").filter(|_| !spec.contains_key("volume")) {
        Some(vmid) => vmid.as_int().unwrap_or_default().to_string(),
        None => spec.get("volume").and_then(Value::as_text).unwrap_or_default().to_owned(),
    }
}

impl World {
    /// Nothing forbidden was ever asked for, and everything of ours is known: in the state, or in the journal.
    pub(crate) fn assert_nothing_lost(&self, context: &str) {
        self.assert_no_violations(context);
        let state = self.memory().replayed();
        let mut known: BTreeSet<String> = state.open.iter().map(|entry| name_of(&entry.identity)).collect();
        for record in state.document.resources.values() {
            known.insert(name_of(&record.spec));
            known.extend(record.deposed.iter().map(|former| name_of(&former.spec)));
        }
        for object in self.pve.ours().into_iter().chain(self.lab.ours()) {
            assert!(
                known.contains(&object),
                "{context}: {object} is there and nobody knows it; known: {known:?}"
            );
        }
    }

    pub(crate) fn assert_no_violations(&self, context: &str) {
        for found in [self.pve.violations(), self.lab.violations(), self.memory().violations()] {
            assert_eq!(found, [] as [String; 0], "{context}");
        }
    }

    /// The same question gets the same answer, to the byte.
    pub(crate) async fn assert_plans_are_equal(&self, source: &Source, context: &str) {
        let bytes = |plan| serde_json::to_string(&plan).unwrap();
        let (one, other) = (self.plan(source).await.unwrap(), self.plan(source).await.unwrap());
        assert_eq!(bytes(one), bytes(other), "{context}: two plans of one source");
    }

    /// The source is what is there, the state says so, the journal is empty, and a plan has nothing to do.
    pub(crate) async fn assert_settled(&self, source: &Source, context: &str) {
        self.assert_nothing_lost(context);
        let plan = self.plan(source).await.unwrap();
        assert!(
            plan.steps.is_empty() && plan.problems.is_empty() && plan.open.is_empty(),
            "{context}: the plan still has\n{}",
            super::describe_plan(&plan)
        );
        assert!(self.memory().journal_is_empty(), "{context}: the journal is not empty");
        let document = self.memory().replayed().document;
        let known: Vec<Address> = document.resources.keys().cloned().collect();
        assert_eq!(known, source.addresses(), "{context}: the state");
        for (address, record) in &document.resources {
            assert!(!record.partial && record.deposed.is_empty(), "{context}: {address} is unfinished");
        }
        let wanted: BTreeSet<String> =
            source.stack().graph.iter().map(|resource| name_of(&resource.spec)).collect();
        let there: BTreeSet<String> = self.pve.ours().into_iter().chain(self.lab.ours()).collect();
        assert_eq!(there, wanted, "{context}: what is there of {}", lineage());
    }
}
