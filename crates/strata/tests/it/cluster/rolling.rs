//! Changes of a cluster that runs: more nodes, fewer nodes, other versions, other hardware; one node at a time.

use super::lab::{Lab, Shape};

/// The hostnames of nodes that rebooted since the counters were reset, in order.
pub(super) fn reboots(lab: &Lab) -> Vec<String> {
    let talos = lab.talos();
    let reboots = talos["reboots"].as_array().unwrap();
    reboots.iter().map(|reboot| reboot["hostname"].as_str().unwrap_or_default().to_owned()).collect()
}

fn goes(lab: &Lab, shape: &Shape, what: &str) {
    lab.becomes(shape);
    lab.assert_sound(what);
    lab.assert_is(shape, what);
    lab.assert_settled(what);
}

#[test]
fn a_cluster_grows_and_shrinks() {
    let lab = Lab::booted(&Shape::new(1, 1));
    goes(&lab, &Shape::new(3, 2), "1 + 1 → 3 + 2");
    goes(&lab, &Shape::new(5, 0), "3 + 2 → 5 + 0");
    goes(&lab, &Shape::new(1, 1), "5 + 0 → 1 + 1");
}

#[test]
fn versions_go_up_one_node_at_a_time() {
    let shape = Shape::new(3, 1).versions("v1.11.6", "v1.34.1");
    let lab = Lab::booted(&shape);
    for (talos, kubernetes) in
        [("v1.12.6", "v1.34.1"), ("v1.12.6", "v1.35.0"), ("v1.13.9", "v1.36.3"), ("v1.14.0", "v1.37.0")]
    {
        let shape = shape.clone().versions(talos, kubernetes);
        goes(&lab, &shape, &format!("Talos {talos}, Kubernetes {kubernetes}"));
    }
}

#[test]
fn new_nodes_do_not_run_ahead_of_the_api_servers() {
    let shape = Shape::new(1, 1).versions("v1.13.9", "v1.35.0");
    let lab = Lab::booted(&shape);
    let larger = Shape { workers: 2, ..shape.versions("v1.13.9", "v1.36.3") };
    lab.source(&larger);
    let said = lab.apply_telling();
    assert!(
        said.contains("kubelet of `lab-worker-2` becomes v1.36.3"),
        "it joined with the old version:\n{said}"
    );
    lab.assert_is(&larger, "larger and newer");
    lab.assert_settled("larger and newer");
}

#[test]
fn other_hardware_restarts_one_control_plane_at_a_time() {
    let shape = Shape::new(3, 0);
    let lab = Lab::booted(&shape);
    lab.change(&serde_json::json!({"reset-counters": {}}));
    let larger = Shape { cores: 6, ..shape };
    lab.source(&larger);
    let plan = lab.run(&["plan"]).ok();
    assert!(plan.stdout.contains("3 restarts"), "{}", plan.all());
    let said = lab.apply_telling();
    assert_eq!(said.matches("is drained").count(), 3, "{said}");
    let mut names = reboots(&lab);
    names.sort();
    assert_eq!(names, ["lab-cp-1", "lab-cp-2", "lab-cp-3"]);
    let counters = lab.talos()["counters"].to_string();
    assert!(counters.contains("\"most_down\":1") && counters.contains("\"quorum_lost\":false"), "{counters}");
    lab.assert_settled("larger");
}
