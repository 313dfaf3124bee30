//! What the planner decides, on graphs, states and sightings that are written down: no remote, no time.

mod made_from;
mod order;
mod refusals;
mod restarts;
mod rolling;
mod taken_over;
mod unknown;
mod unreachable;

use serde_json::{Value as Json, json};
use strata_resource::{Address, Lineage, Resource, ResourceGraph, RestartPolicy, Spec, Stage};
use strata_state::{StateDocument, StateResource};

use super::PlanRequest;
use crate::plan::{Plan, ProblemKind, Step, StepAction};
use crate::{Live, Observed, Sighting, Unseen};

struct Table {
    graph: ResourceGraph,
    state: StateDocument,
    live: Live,
}

fn address(name: &str) -> Address {
    crate::test_kinds::address(&format!("s/{name}"))
}

fn spec(json: Json) -> Spec {
    serde_json::from_value(json).unwrap_or_else(|error| panic!("{error}"))
}

fn observed(json: Json) -> Observed {
    let digest = "digest".to_owned();
    Observed {
        spec: spec(json),
        facts: Spec::new(),
        digest,
        pending: Vec::new(),
        running: None,
        evidence: Default::default(),
    }
}

fn seen(json: Json) -> Sighting {
    Sighting::Ours(observed(json))
}

fn unreachable() -> Sighting {
    Sighting::Unreachable("it does not answer".to_owned())
}

fn hidden() -> Sighting {
    Sighting::Unknown(Unseen::new("it cannot be seen", "give the login the privilege"))
}

fn record(json: Json) -> StateResource {
    let record = json!({"target": "t", "spec": json, "stage": "compute"});
    serde_json::from_value(record).unwrap_or_else(|error| panic!("{error}"))
}

impl Table {
    fn new() -> Self {
        let state = StateDocument::new(Lineage::derive("r", "dev/s"), "dev/s");
        Self { graph: ResourceGraph::default(), state, live: Live::default() }
    }

    fn wants(&mut self, name: &str, json: Json, needs: &[&str]) -> &mut Self {
        self.wants_with(name, json, needs, |_| {})
    }

    fn wants_with(
        &mut self,
        name: &str,
        json: Json,
        needs: &[&str],
        edit: impl Fn(&mut Resource),
    ) -> &mut Self {
        let mut resource = Resource {
            address: address(name),
            target: "t".to_owned(),
            spec: spec(json),
            depends_on: needs.iter().map(|need| address(need)).collect(),
            stage: Stage::Compute,
            protect: false,
            on_change: RestartPolicy::default(),
            ignore: Vec::new(),
            limits: Vec::new(),
            origin: None,
        };
        edit(&mut resource);
        self.graph.insert(resource).unwrap_or_else(|error| panic!("{error}"));
        self
    }

    fn knows(&mut self, name: &str, json: Json, needs: &[&str]) -> &mut Self {
        let depends_on = needs.iter().map(|need| address(need)).collect();
        self.state.resources.insert(address(name), StateResource { depends_on, ..record(json) });
        self
    }

    fn known(&mut self, name: &str) -> &mut StateResource {
        self.state.resources.get_mut(&address(name)).unwrap_or_else(|| panic!("{name} is not known"))
    }

    fn sees(&mut self, name: &str, sighting: Sighting) -> &mut Self {
        self.live.current.insert(address(name), sighting);
        self
    }

    fn plan(&self) -> Plan {
        let lineage = Lineage::derive("r", "dev/s");
        let (graph, state, live) = (&self.graph, &self.state, &self.live);
        let plan = PlanRequest::of(graph, state, &lineage, live).plan();
        assert_eq!(plan.lint(), Vec::<String>::new());
        plan
    }
}

/// The steps of a plan, sorted: `create vm/web`.
fn steps(plan: &Plan) -> Vec<String> {
    let mut steps: Vec<String> = plan.steps.iter().map(told).collect();
    steps.sort();
    steps
}

fn told(step: &Step) -> String {
    let action = match step.action {
        StepAction::Create => "create",
        StepAction::Update => "update",
        StepAction::Delete => "delete",
        StepAction::DeleteFormer => "delete former",
        StepAction::Record => "record",
        StepAction::Forget => "forget",
    };
    format!("{action} {}/{}", step.address.kind().as_str(), step.address.name())
}

fn step<'p>(plan: &'p Plan, action: StepAction, name: &str) -> &'p Step {
    let found = plan.steps.iter().find(|step| step.action == action && step.address == address(name));
    found.unwrap_or_else(|| panic!("no {action:?} of {name} in {:?}", steps(plan)))
}

fn problems(plan: &Plan) -> Vec<(ProblemKind, &str)> {
    plan.problems.iter().map(|problem| (problem.kind, problem.address.name())).collect()
}
