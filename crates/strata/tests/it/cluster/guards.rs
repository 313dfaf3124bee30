//! What is refused, with exit code 3 and before anything is changed.

use super::lab::{Lab, Shape};
use crate::kill::assert_same;

/// Asks for something that must be refused; nothing changes, and the words are these.
#[track_caller]
fn refused(lab: &Lab, shape: &Shape, said: &[&str]) {
    lab.source(shape);
    refused_as_it_is(lab, said);
}

#[track_caller]
fn refused_as_it_is(lab: &Lab, said: &[&str]) {
    let before = lab.machines();
    // Whoever reviews the plan sees the same as whoever applies it.
    for arguments in
        [&["plan"][..], &["--json", "plan"], &["plan", "-o", "refused.plan"], &["apply", "--yes"]]
    {
        let output = lab.run(arguments).code(3);
        let plain = output.all().replace("\\\"", "\"");
        for words in said {
            assert!(plain.contains(words), "no `{words}` in {arguments:?}:\n{}", output.all());
        }
    }
    assert!(!lab.repo.file("refused.plan").exists(), "what is refused is not saved");
    assert_same(&lab.machines(), &before, "a refusal changes nothing");
}

/// Versions that do not go together are a mistake of the source: nothing is asked and nothing is touched.
fn invalid(lab: &Lab, shape: &Shape, said: &str) {
    let before = lab.machines();
    lab.source(shape);
    for verb in ["validate", "plan"] {
        let output = lab.run(&[verb]).code(1);
        assert!(output.stderr.contains(said), "{}", output.all());
    }
    assert_same(&lab.machines(), &before, "a mistake changes nothing");
}

#[test]
fn what_would_harm_a_cluster_is_refused() {
    let shape = Shape::new(1, 0);
    let lab = Lab::booted(&shape);
    refused(
        &lab,
        &Shape { control_planes: 2, ..shape.clone() },
        &[
            "2 control planes are asked for: an even number survives no more losses than 1",
            "ask for an odd number, or set `topology.allowEven: true`",
        ],
    );
    refused(&lab, &shape.clone().versions("v1.11.6", "v1.34.1"), &["from v1.13.9 to v1.11.6"]);
    invalid(&lab, &shape.clone().versions("v1.14.0", "v1.31.0"), "does not run Kubernetes `v1.31.0`");
    refused(
        &lab,
        &Shape::new(1, 0).versions("v1.13.9", "v1.34.0"),
        &["Kubernetes", "choose versions that fit, one minor version after the other"],
    );
    lab.source(&shape);
    lab.assert_settled("after the refusals");
    lab.assert_sound("after the refusals");
}

#[test]
fn a_minor_version_is_not_skipped() {
    let shape = Shape::new(1, 0).versions("v1.11.6", "v1.33.0");
    let lab = Lab::booted(&shape);
    refused(
        &lab,
        &shape.clone().versions("v1.13.9", "v1.33.0"),
        &[
            "Talos goes up one minor version at a time: from v1.11.6 to v1.12 first, then on to v1.13.9",
            "go one minor version at a time, and apply each",
        ],
    );
    let before = Shape::new(1, 0).versions("v1.11.6", "v1.32.0");
    let lab = Lab::booted(&before);
    refused(
        &lab,
        &before.clone().versions("v1.11.6", "v1.34.1"),
        &["Kubernetes goes up one minor version at a time: from v1.32.0 to v1.33 first, then on to v1.34.1"],
    );
    invalid(&lab, &before.clone().versions("v1.11.6", "v1.35.0"), "does not run Kubernetes `v1.35.0`");
}

#[test]
fn the_only_control_plane_is_not_rebuilt_as_another_cluster() {
    let lab = Lab::booted(&Shape::new(1, 1));
    let (node, vmid) = lab.vm("lab-cp-1");
    lab.lose(&node, vmid);
    refused_as_it_is(
        &lab,
        &[
            "the etcd of `lab` does not answer",
            "etcd has lost its majority",
            "strata talos restore lab --snapshot FILE",
        ],
    );
}

#[test]
fn without_a_majority_nothing_is_rebuilt() {
    let lab = Lab::booted(&Shape::new(3, 0));
    for name in ["lab-cp-1", "lab-cp-3"] {
        let (node, vmid) = lab.vm(name);
        lab.lose(&node, vmid);
    }
    refused_as_it_is(&lab, &["majority", "strata talos restore"]);
}

#[test]
fn nobody_leaves_while_another_is_away() {
    let lab = Lab::booted(&Shape::new(5, 0));
    let (node, vmid) = lab.vm("lab-cp-1");
    lab.lose(&node, vmid);
    refused(
        &lab,
        &Shape::new(3, 0),
        &[
            "would be removed from the cluster while etcd's member on `lab-cp-1` is unhealthy",
            "bring it back first",
        ],
    );
    // Brought back first, then smaller.
    lab.becomes(&Shape::new(5, 0));
    lab.becomes(&Shape::new(3, 0));
    lab.assert_is(&Shape::new(3, 0), "smaller");
    lab.assert_sound("smaller");
}
