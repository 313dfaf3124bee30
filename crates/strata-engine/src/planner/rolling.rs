//! The members of a group that works, such as the nodes of a cluster, change one after the other: what disturbs one waits until the one before it is done.
//!
//! New nodes come first, so that there are enough before one goes; then changes, control planes before workers, and among these those that do not do
//! their part before the others, which may not go down without them; then removals, the
//! other way round, and those that do not answer any more before the others: a member that is dead only weighs on the majority. Before the cluster runs there is nothing to disturb, and all nodes go side by side.

use std::collections::{BTreeMap, BTreeSet};

use strata_resource::{Address, FieldChange, Purpose, RestartGroup, Rollout, Spec, Value};
use strata_state::StateDocument;

use super::runs;
use super::unreachable::UNREACHABLE;
use crate::plan::{Step, StepAction};

/// The place of a node in a rollout: what happens to it, whether it is a worker, whether it does its part, whether it answers, its name.
type RolloutRank = (u8, bool, bool, bool, usize, String);

/// For each step the steps that it should come after.
pub(super) fn waits(steps: &[Step], state: &StateDocument) -> Vec<(usize, BTreeSet<usize>)> {
    let runs = state.resources.keys().any(|address| address.kind().table().is_gate());
    let ends = |step: &Step| step.address.kind().table().is_gate() && step.action == StepAction::Delete;
    if !runs || steps.iter().any(ends) {
        return Vec::new();
    }
    let mut nodes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate().filter(|(_, step)| disturbs(step)) {
        nodes.entry(step.address.name()).or_default().push(index);
    }
    let mut turns: Vec<(RolloutRank, Vec<usize>)> = nodes
        .into_iter()
        .map(|(name, indices)| (rollout_rank(name, &indices, steps, state), indices))
        .collect();
    turns.sort();
    let pairs = turns.windows(2).map(|pair| (&pair[0].1, &pair[1].1));
    pairs
        .flat_map(|(before, after)| {
            after.iter().map(|index| (*index, before.iter().copied().collect::<BTreeSet<_>>()))
        })
        .collect()
}

/// A step that restarts an object, and the steps that its equals have to be done with first.
pub(super) struct RestartTurn {
    pub(super) step: usize,
    pub(super) after: BTreeSet<usize>,
    /// The one that it comes after, and how many may be down at once.
    pub(super) reason: String,
}

/// A group of equals: how many may be down at once, those that are down already and come up, and those that go down.
#[derive(Default)]
struct Equals<'s> {
    at_once: usize,
    up: Vec<(&'s Address, Vec<usize>)>,
    down: Vec<(&'s Address, Vec<usize>)>,
}

/// Equals restart so many at a time: each waits until the one before it works again. Where that fails, the rest of them are not begun. Those
/// that are down already, as a run died or somebody stopped them, come first.
pub(super) fn restarts(steps: &[Step]) -> Vec<RestartTurn> {
    let mut members: BTreeMap<&Address, (Option<RestartGroup>, Vec<usize>)> = BTreeMap::new();
    let felt = |step: &Step| goes_down(step) || comes_up(step);
    for (index, step) in steps.iter().enumerate().filter(|(_, step)| felt(step)) {
        let Rollout::Member { group, .. } = step.address.kind().table().rollout else { continue };
        let (known, indices) = members.entry(&step.address).or_default();
        // What a replacement removes may have been made before it had a group.
        *known = known.take().or_else(|| group(&step.spec));
        indices.push(index);
    }
    let mut groups: BTreeMap<String, Equals<'_>> = BTreeMap::new();
    for (address, (group, indices)) in members {
        let Some(RestartGroup { name, max_unavailable }) = group else { continue };
        let equals = groups.entry(name).or_default();
        equals.at_once = max_unavailable.max(equals.at_once);
        let goes = indices.iter().any(|index| goes_down(&steps[*index]));
        if goes { &mut equals.down } else { &mut equals.up }.push((address, indices));
    }
    groups.into_values().flat_map(Equals::turns).collect()
}

impl Equals<'_> {
    fn turns(self) -> Vec<RestartTurn> {
        let Self { at_once, mut up, mut down } = self;
        // `web-10` comes after `web-9`.
        for equals in [&mut up, &mut down] {
            equals.sort_by_key(|(address, _)| (address.name().len(), address.name().to_owned()));
        }
        let mut turns = Vec::new();
        for (place, (_, indices)) in down.iter().enumerate() {
            let before: Vec<&(&Address, Vec<usize>)> = match place.checked_sub(at_once) {
                Some(before) => vec![&down[before]],
                None => up.iter().collect(),
            };
            if before.is_empty() {
                continue;
            }
            let names: Vec<&str> = before.iter().map(|(address, _)| address.name()).collect();
            let works = if names.len() == 1 { "works" } else { "work" };
            let most = if at_once == 1 { String::new() } else { format!(", at most {at_once} at once") };
            let reason = format!("goes down after {} {works} again{most}", names.join(", "));
            let after: BTreeSet<usize> = before.iter().flat_map(|(_, after)| after).copied().collect();
            turns.extend(indices.iter().map(|step| RestartTurn {
                step: *step,
                after: after.clone(),
                reason: reason.clone(),
            }));
        }
        turns
    }
}

/// Whether an object that works does not while the step runs.
fn goes_down(step: &Step) -> bool {
    match step.action {
        StepAction::Update => step.restart,
        StepAction::Create | StepAction::Delete => step.replacement,
        StepAction::DeleteFormer | StepAction::Record | StepAction::Forget => false,
    }
}

/// Whether an object that does not work does when the step is done.
fn comes_up(step: &Step) -> bool {
    let power = |spec: &Spec| step.address.kind().table().value_for(Purpose::Power, spec).is_some_and(runs);
    let stopped = || step.observed.as_ref().is_some_and(|observed| !power(&observed.spec));
    match step.action {
        StepAction::Create => !step.replacement && power(&step.spec),
        StepAction::Update => power(&step.spec) && stopped(),
        _ => false,
    }
}

/// Whether a node cannot do its work while the step runs, or joins a cluster that others work in.
fn disturbs(step: &Step) -> bool {
    let Rollout::Member { always, .. } = step.address.kind().table().rollout else { return false };
    let rules = step.address.kind().rules();
    match step.action {
        _ if always => step.action.is_remote(),
        StepAction::Update => step.restart || step.changes.iter().any(|change| rules.is_felt(&change.path)),
        StepAction::Create => step.replacement,
        StepAction::Delete | StepAction::DeleteFormer => true,
        StepAction::Record | StepAction::Forget => false,
    }
}

/// Whether a member does not do its part, and does when the step is done: what was seen of it says yes where it should say no.
fn is_put_right(step: &Step) -> bool {
    let always = matches!(step.address.kind().table().rollout, Rollout::Member { always: true, .. });
    let ends = |change: &FieldChange| {
        change.before == Some(Value::Bool(true)) && change.after == Some(Value::Bool(false))
    };
    always && step.action == StepAction::Update && step.changes.iter().any(ends)
}

/// Whether a part of a member says that it comes after the others.
fn follows(address: &Address, spec: &Spec) -> bool {
    matches!(address.kind().table().rollout, Rollout::Member { follows, .. } if follows(spec))
}

fn rollout_rank(name: &str, indices: &[usize], steps: &[Step], state: &StateDocument) -> RolloutRank {
    let of_node = || indices.iter().map(|index| &steps[*index]);
    let goes = of_node().any(|step| step.action == StepAction::Delete && !step.replacement);
    let is_new = of_node().all(|step| step.action == StepAction::Create && !step.replacement);
    // Not every part of a member says it; the state knows all of them.
    let known = || state.resources.iter().filter(|(address, _)| address.name() == name);
    let worker = of_node().any(|step| follows(&step.address, &step.spec))
        || known().any(|(address, record)| follows(address, &record.spec));
    let (what, worker) = match (goes, is_new) {
        (true, _) => (2, !worker),
        (false, true) => (0, worker),
        (false, false) => (1, worker),
    };
    let unreachable =
        |step: &Step| step.observed.as_ref().is_some_and(|observed| observed.digest == UNREACHABLE);
    let answers = !(goes && of_node().any(unreachable));
    let works = !of_node().any(is_put_right);
    // `cp-10` comes after `cp-9`.
    (what, worker, works, answers, name.len(), name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use strata_resource::{Address, Lineage, Resource, ResourceGraph, RestartPolicy, Spec, Stage};
    use strata_state::{StateDocument, StateResource};

    use crate::plan::{Plan, ProblemKind, StepAction};
    use crate::planner::PlanRequest;
    use crate::{Live, Observed, Sighting};

    fn address(text: &str) -> Address {
        crate::test_kinds::address(&format!("lab/{text}"))
    }

    /// Control planes and a worker, each a VM and a machine on it.
    struct Cluster {
        graph: ResourceGraph,
        state: StateDocument,
        live: Live,
    }

    fn resource(name: &str, spec: serde_json::Value, needs: &[String]) -> Resource {
        Resource {
            address: address(name),
            target: "t".to_owned(),
            spec: serde_json::from_value(spec).unwrap(),
            depends_on: needs.iter().map(|need| address(need)).collect(),
            stage: Stage::Config,
            protect: false,
            on_change: RestartPolicy::default(),
            ignore: Vec::new(),
            limits: Vec::new(),
            origin: None,
        }
    }

    impl Cluster {
        fn new() -> Self {
            let graph = ResourceGraph::default();
            let state = StateDocument::new(Lineage::derive("r", "dev/lab"), "dev/lab");
            Self { graph, state, live: Live::default() }
        }

        fn put(&mut self, resource: Resource, known: bool, sighting: Sighting) {
            if known {
                let record = json!({"target": "t", "spec": {}, "stage": "config"});
                let record: StateResource = serde_json::from_value(record).unwrap();
                let (spec, depends_on) = (resource.spec.clone(), resource.depends_on.clone());
                let record = StateResource { spec, depends_on, ..record };
                self.state.resources.insert(resource.address.clone(), record);
            }
            self.live.current.insert(resource.address.clone(), sighting);
            self.graph.insert(resource).unwrap();
        }

        fn node(&mut self, name: &str, role: &str, vm: Sighting, machine: Sighting) {
            let known = !matches!((&vm, &machine), (Sighting::Absent, Sighting::Absent));
            self.put(resource(&format!("vm/{name}"), json!({"vmid": name.len()}), &[]), known, vm);
            let spec = json!({"machine": name, "role": role, "version": "v2"});
            self.put(resource(&format!("machine/{name}"), spec, &[format!("vm/{name}")]), known, machine);
        }

        fn bootstrapped(mut self, known: bool) -> Self {
            let sighting = if known { seen(json!({"etcd": "lab"})) } else { Sighting::Absent };
            self.put(resource("bootstrap/lab", json!({"etcd": "lab"}), &[]), known, sighting);
            self
        }

        fn plan(&self) -> Plan {
            self.plan_of(None)
        }

        fn plan_of(&self, selected: Option<&str>) -> Plan {
            let lineage = Lineage::derive("r", "dev/lab");
            let (graph, state, live) = (&self.graph, &self.state, &self.live);
            let selected = selected.map(|name| [address(name)].into());
            let plan =
                PlanRequest { selected: selected.as_ref(), ..PlanRequest::of(graph, state, &lineage, live) }
                    .plan();
            assert_eq!(plan.lint(), Vec::<String>::new());
            plan
        }
    }

    fn seen(spec: serde_json::Value) -> Sighting {
        let spec: Spec = serde_json::from_value(spec).unwrap();
        Sighting::Ours(Observed {
            spec,
            facts: Spec::new(),
            digest: String::new(),
            pending: Vec::new(),
            running: None,
            evidence: Default::default(),
        })
    }

    fn vm(name: &str) -> Sighting {
        seen(json!({"vmid": name.len()}))
    }

    fn machine(name: &str, role: &str, version: &str) -> Sighting {
        seen(json!({"machine": name, "role": role, "version": version}))
    }

    fn unreachable() -> Sighting {
        Sighting::Unreachable("it does not answer".to_owned())
    }

    /// For each step, the steps that it waits for, by address.
    fn needs(plan: &Plan) -> BTreeMap<String, Vec<String>> {
        let name = |index: &usize| plan.steps[*index].address.to_string();
        plan.steps
            .iter()
            .map(|step| (step.address.to_string(), step.needs.iter().map(name).collect()))
            .collect()
    }

    #[test]
    fn nodes_of_a_running_cluster_change_one_after_the_other_and_new_ones_come_first() {
        let mut cluster = Cluster::new();
        for name in ["cp-10", "cp-2", "cp-1"] {
            cluster.node(name, "controlplane", vm(name), machine(name, "controlplane", "v1"));
        }
        cluster.node("a-worker", "worker", vm("a-worker"), machine("a-worker", "worker", "v1"));
        cluster.node("w-new", "worker", Sighting::Absent, Sighting::Absent);
        let plan = cluster.bootstrapped(true).plan();
        let needs = needs(&plan);
        assert_eq!(needs["lab/machine/w-new"], ["lab/vm/w-new"]);
        assert_eq!(needs["lab/machine/cp-1"], ["lab/machine/w-new"]);
        assert_eq!(needs["lab/machine/cp-2"], ["lab/machine/cp-1"]);
        assert_eq!(needs["lab/machine/cp-10"], ["lab/machine/cp-2"]);
        assert_eq!(needs["lab/machine/a-worker"], ["lab/machine/cp-10"]);
    }

    #[test]
    fn a_selected_node_keeps_its_place_in_the_rollout() {
        let mut cluster = Cluster::new();
        for name in ["cp-1", "cp-2"] {
            cluster.node(name, "controlplane", vm(name), machine(name, "controlplane", "v1"));
        }
        cluster.node("worker", "worker", vm("worker"), machine("worker", "worker", "v1"));
        let cluster = cluster.bootstrapped(true);
        let changed =
            |plan: &Plan| -> Vec<String> { plan.steps.iter().map(|step| step.address.to_string()).collect() };
        let second = cluster.plan_of(Some("vm/cp-2"));
        assert_eq!(
            changed(&second),
            ["lab/machine/cp-1", "lab/machine/cp-2"],
            "its VM and its machine are one"
        );
        assert_eq!(second.left_out, [address("machine/worker")].into());
        assert_eq!(second.summary().left_out, 1);
        let worker = cluster.plan_of(Some("machine/worker"));
        assert_eq!(changed(&worker), changed(&cluster.plan()), "control planes go first, selected or not");
        assert!(worker.left_out.is_empty());
    }

    #[test]
    fn a_part_of_a_cluster_is_not_destroyed() {
        let mut cluster = Cluster::new();
        cluster.node("cp-1", "controlplane", vm("cp-1"), machine("cp-1", "controlplane", "v2"));
        cluster.node("worker", "worker", vm("worker"), machine("worker", "worker", "v2"));
        let mut cluster = cluster.bootstrapped(true);
        cluster.graph = ResourceGraph::default();
        let plan = cluster.plan_of(Some("vm/worker"));
        assert_eq!(plan.problems[0].kind, ProblemKind::Refused);
        assert!(plan.problems[0].hint.contains("`strata destroy lab`"), "{:?}", plan.problems);
        assert!(cluster.plan().problems.is_empty(), "all of it is");
    }

    #[test]
    fn f11_what_a_vm_feels_is_done_node_by_node_and_workers_last() {
        let change = |field: &str, before: serde_json::Value, after: serde_json::Value| {
            let mut cluster = Cluster::new();
            for (name, role) in [("cp-10", "controlplane"), ("cp-2", "controlplane"), ("a", "worker")] {
                let seen = seen(json!({"vmid": name.len(), field: before}));
                cluster.node(name, role, seen, machine(name, role, "v2"));
                let mut wanted = cluster.graph.get(&address(&format!("vm/{name}"))).unwrap().clone();
                wanted.spec.insert(field.to_owned(), serde_json::from_value(after.clone()).unwrap());
                let mut graph = ResourceGraph::default();
                for one in cluster.graph.iter().filter(|one| one.address != wanted.address) {
                    graph.insert(one.clone()).unwrap();
                }
                graph.insert(wanted).unwrap();
                cluster.graph = graph;
            }
            let plan = cluster.bootstrapped(true).plan();
            assert_eq!(plan.steps.len(), 3, "{field}: {:?}", plan.steps);
            needs(&plan)
        };
        let nic = |bridge: &str| json!({"net0": {"mac": "00:00:00:00:00:01", "bridge": bridge}});
        let disk = |storage: &str| json!({"scsi0": {"storage": storage, "size": 1}});
        for (field, before, after) in [
            ("networks", nic("vmbr0"), nic("vmbr1")),
            ("node", json!("pve1"), json!("pve2")),
            ("disks", disk("a"), disk("b")),
            ("cpu", json!({"limit": "1"}), json!({"limit": "2"})),
            ("firewall", json!({"options": {"enable": false}}), json!({"options": {"enable": true}})),
        ] {
            let needs = change(field, before, after);
            assert_eq!(needs["lab/vm/cp-2"], Vec::<String>::new(), "{field}");
            assert_eq!(needs["lab/vm/cp-10"], ["lab/vm/cp-2"], "{field}");
            assert_eq!(needs["lab/vm/a"], ["lab/vm/cp-10"], "{field}");
        }
        // What nobody feels is done at once.
        let needs = change("notes", json!("a"), json!("b"));
        assert!(needs.values().all(Vec::is_empty), "{needs:?}");
    }

    #[test]
    fn before_the_cluster_runs_nothing_waits() {
        let mut cluster = Cluster::new();
        for name in ["cp-1", "cp-2"] {
            cluster.node(name, "controlplane", Sighting::Absent, unreachable());
        }
        let plan = cluster.bootstrapped(false).plan();
        assert_eq!(needs(&plan)["lab/machine/cp-2"], ["lab/vm/cp-2"]);
        assert!(plan.problems.is_empty() && plan.steps.len() == 5);
    }

    #[test]
    fn etcd_whose_machines_are_gone_is_not_begun_again() {
        let mut cluster = Cluster::new();
        cluster.node("cp-1", "controlplane", Sighting::Absent, unreachable());
        let etcd = resource("bootstrap/lab", json!({"etcd": "lab"}), &["machine/cp-1".to_owned()]);
        cluster.put(etcd, true, unreachable());
        // A worker cannot answer without control planes: it is looked at when they are back.
        cluster.node("worker", "worker", vm("worker"), unreachable());
        let plan = cluster.plan();
        assert_eq!(plan.unseen.keys().map(Address::name).collect::<Vec<_>>(), ["worker"]);
        assert_eq!(plan.problems.len(), 1);
        assert_eq!(plan.problems[0].kind, ProblemKind::Lost);
        assert!(plan.problems[0].hint.contains("strata talos restore lab --snapshot"));
        assert!(plan.steps.iter().all(|step| step.address.name() == "cp-1"));
    }

    #[test]
    fn a_machine_of_a_lost_vm_is_made_again_and_silence_alone_is_a_problem() {
        let mut cluster = Cluster::new();
        cluster.node("cp-1", "controlplane", Sighting::Absent, unreachable());
        cluster.state.resources.insert(
            address("vm/cp-1"),
            serde_json::from_value(json!({"target": "t", "spec": {"vmid": 4}, "stage": "compute"})).unwrap(),
        );
        let mut cluster = cluster.bootstrapped(true);
        let plan = cluster.plan();
        assert!(plan.problems.is_empty());
        assert!(plan.steps.iter().all(|step| step.action == StepAction::Create));

        // With the machine goes what was made once on it.
        let mut etcd = cluster.graph.get(&address("bootstrap/lab")).unwrap().clone();
        etcd.depends_on.insert(address("machine/cp-1"));
        let mut graph = ResourceGraph::default();
        for name in ["vm/cp-1", "machine/cp-1"] {
            graph.insert(cluster.graph.get(&address(name)).unwrap().clone()).unwrap();
        }
        graph.insert(etcd).unwrap();
        cluster.graph = graph;
        cluster.live.current.insert(address("bootstrap/lab"), unreachable());
        let plan = cluster.plan();
        assert_eq!(plan.problems[0].kind, ProblemKind::Lost);

        let mut cluster = Cluster::new();
        cluster.node("cp-1", "controlplane", vm("cp-1"), unreachable());
        let plan = cluster.bootstrapped(true).plan();
        assert_eq!(plan.problems[0].kind, ProblemKind::Unreachable);
        assert!(plan.steps.is_empty());
    }

    #[test]
    fn what_is_silent_while_its_vm_is_changed_waits_for_the_next_plan() {
        let mut cluster = Cluster::new();
        cluster.node("cp-1", "controlplane", vm("cp-1"), unreachable());
        let stopped = seen(json!({"vmid": 4, "onboot": true}));
        cluster.live.current.insert(address("vm/cp-1"), stopped);
        let mut started = cluster.graph.get(&address("vm/cp-1")).unwrap().clone();
        started.spec.insert("onboot".to_owned(), false.into());
        let mut graph = ResourceGraph::default();
        graph.insert(started).unwrap();
        graph.insert(cluster.graph.get(&address("machine/cp-1")).unwrap().clone()).unwrap();
        cluster.graph = graph;
        let plan = cluster.bootstrapped(true).plan();
        assert_eq!(plan.unseen.keys().map(Address::name).collect::<Vec<_>>(), ["cp-1"]);
        assert_eq!((plan.problems.len(), plan.steps.len()), (0, 1));
    }

    #[test]
    fn a_silent_node_that_left_the_source_is_removed_without_its_help() {
        let mut cluster = Cluster::new();
        cluster.node("cp-1", "controlplane", vm("cp-1"), unreachable());
        cluster.graph = ResourceGraph::default();
        let plan = cluster.bootstrapped(true).plan();
        let steps: Vec<_> =
            plan.steps.iter().map(|step| (step.address.kind().as_str(), step.action)).collect();
        assert_eq!(steps, [("machine", StepAction::Delete), ("vm", StepAction::Delete)]);
    }
}
