//! How a step is put together, and what the state will say when it is done.

use strata_resource::{Address, Kind, Resource, RestartPolicy, Value, stored_spec};
use strata_state::StateResource;

use super::Planner;
use super::made_from::keep_sources;
use crate::Observed;
use crate::plan::{Step, StepAction};

impl Planner<'_> {
    pub(super) fn step(
        &self,
        resource: &Resource,
        action: StepAction,
        recorded: Option<&StateResource>,
    ) -> Step {
        let mut becomes = self.becomes(resource, recorded);
        if action != StepAction::Create {
            keep_sources(&resource.address, &mut becomes.spec, recorded.map(|recorded| &recorded.spec));
        }
        Step {
            address: resource.address.clone(),
            action,
            target: resource.target.clone(),
            stage: resource.stage,
            replacement: false,
            awaited: false,
            changes: Vec::new(),
            restart: false,
            stays_pending: false,
            reasons: Vec::new(),
            needs: Vec::new(),
            limits: resource.limits.clone(),
            spec: resource.spec.clone(),
            recorded: recorded.cloned(),
            observed: None,
            origin: resource.origin.clone(),
            becomes: Some(becomes),
            on_change: resource.on_change,
            payload: None,
        }
    }

    pub(super) fn bare_step(&self, address: &Address, recorded: &StateResource, action: StepAction) -> Step {
        Step {
            address: address.clone(),
            action,
            target: recorded.target.clone(),
            stage: recorded.stage,
            replacement: false,
            awaited: false,
            changes: Vec::new(),
            restart: false,
            stays_pending: false,
            reasons: Vec::new(),
            needs: Vec::new(),
            limits: Vec::new(),
            spec: recorded.spec.clone(),
            recorded: Some(recorded.clone()),
            observed: None,
            origin: None,
            becomes: None,
            on_change: RestartPolicy::default(),
            payload: None,
        }
    }

    pub(super) fn removal(
        &self,
        address: &Address,
        recorded: &StateResource,
        observed: Observed,
        action: StepAction,
    ) -> Step {
        Step { observed: Some(observed), ..self.bare_step(address, recorded, action) }
    }

    /// What the state says of a resource once it is applied. Former objects are known until they are deleted.
    pub(super) fn becomes(&self, resource: &Resource, recorded: Option<&StateResource>) -> StateResource {
        StateResource {
            target: resource.target.clone(),
            spec: stored_spec(&resource.spec),
            facts: recorded.map(|recorded| recorded.facts.clone()).unwrap_or_default(),
            depends_on: resource.depends_on.clone(),
            stage: resource.stage,
            protect: resource.protect,
            partial: false,
            deposed: self.former.get(&resource.address).cloned().unwrap_or_default(),
            made_as: self.request.origins.get(&resource.address).cloned().map(Box::new),
        }
    }
}

/// Facts such as digests move without anybody's doing; they are no reason to write the state.
pub(super) fn same_record(kind: Kind, one: &StateResource, other: &StateResource) -> bool {
    let lasting = kind.table().lasting_facts;
    let proof = |record: &'_ StateResource| -> Vec<Option<Value>> {
        lasting.iter().map(|fact| record.facts.get(*fact).cloned()).collect()
    };
    one.target == other.target
        && one.spec == other.spec
        && one.depends_on == other.depends_on
        && one.stage == other.stage
        && one.protect == other.protect
        && one.partial == other.partial
        && one.deposed == other.deposed
        && one.made_as == other.made_as
        && proof(one) == proof(other)
}
