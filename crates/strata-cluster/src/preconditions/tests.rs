use super::*;
use crate::testing::{cluster, config, observed, operation};

fn update(at: &str, from: &str, to: &str) -> Operation {
    Operation {
        observed: Some(observed(&[("version", from)])),
        ..operation(Action::Update, at, &[("version", to)])
    }
}

fn refused(cluster: &Cluster, operations: &[Operation]) -> Vec<String> {
    versions(cluster, operations).into_iter().map(|one| one.address.to_string()).collect()
}

const RUNS_1_34: &str = "machine: {type: worker, kubelet: {image: 'ghcr.io/siderolabs/kubelet:v1.34.0'}}\n";

#[test]
fn talos_goes_one_minor_version_at_a_time() {
    let lab = cluster(|_| {});
    let of = |from, to| refused(&lab, &[update("lab/machine/cp-1", from, to)]);
    assert_eq!(of("v1.11.5", "v1.12.4"), [""; 0]);
    assert_eq!(of("v1.12.3", "v1.12.4"), [""; 0]);
    assert_eq!(of("v1.11.5", "v1.13.0"), ["lab/machine/cp-1"]);
    assert_eq!(of("v1.13.0", "v1.12.4"), ["lab/machine/cp-1"]);
    // Told once, at the first node.
    let all = ["cp-1", "cp-2"].map(|node| update(&format!("lab/machine/{node}"), "v1.11.5", "v1.13.0"));
    assert_eq!(refused(&lab, &all), ["lab/machine/cp-1"]);
    let other = ["cp-1", "cp-2"].map(|node| update(&format!("lab/vm/{node}"), "v1.11.5", "v1.13.0"));
    assert_eq!(refused(&lab, &other), [""; 0]);
    let joins = operation(Action::Create, "lab/machine/cp-1", &[("version", "v1.13.0")]);
    assert_eq!(refused(&lab, &[joins]), [""; 0], "a node that joins comes from no version");
    let stays = update("lab/machine/cp-1", "v9.9.9", "v9.9.9");
    assert_eq!(refused(&lab, &[stays]), [""; 0]);
}

#[test]
fn the_kubernetes_that_stays_fits_the_new_talos() {
    let running = |version: &str| {
        let text = RUNS_1_34.replace("1.34.0", version);
        cluster(move |options| {
            options.configs.insert("w-1".to_owned(), config(&text));
        })
    };
    let upgrade = update("lab/machine/cp-1", "v1.12.4", "v1.13.0");
    assert_eq!(refused(&running("1.34.0"), std::slice::from_ref(&upgrade)), [""; 0]);
    assert_eq!(refused(&running("1.20.0"), std::slice::from_ref(&upgrade)), ["lab/machine/cp-1"]);
    // Where Kubernetes changes with it, its own step is what is judged.
    let kubernetes = update("lab/kubernetes/lab", "1.33.0", "1.34.0");
    assert_eq!(refused(&running("1.20.0"), &[upgrade, kubernetes]), [""; 0]);
}

#[test]
fn kubernetes_goes_one_minor_version_at_a_time_and_fits_its_talos() {
    let lab = cluster(|_| {});
    let of = |from, to| refused(&lab, &[update("lab/kubernetes/lab", from, to)]);
    assert_eq!(of("1.33.0", "1.34.0"), [""; 0]);
    assert_eq!(of("1.32.0", "1.34.0"), ["lab/kubernetes/lab"]);
    assert_eq!(of("1.34.0", "1.33.0"), ["lab/kubernetes/lab"]);
    assert_eq!(of("1.34.0", "1.34.0"), [""; 0]);
    assert_eq!(of("1.20.0", "1.20.0"), ["lab/kubernetes/lab"], "this Talos cannot run it");
    let first =
        |version| refused(&lab, &[operation(Action::Create, "lab/kubernetes/lab", &[("version", version)])]);
    assert_eq!((first("1.34.0").len(), first("1.20.0").len()), (0, 1));
}

#[test]
fn an_even_number_of_control_planes_is_asked_for_by_name() {
    let create =
        |name: &str, role| operation(Action::Create, &format!("lab/machine/{name}"), &[("role", role)]);
    let (control_plane, worker) = (create("cp-2", "controlplane"), create("w-1", "worker"));
    let asked = |count: usize, allow_even, operations: &[Operation]| {
        let cluster = cluster(|options| {
            options
                .nodes
                .retain(|node| !node.control_plane || node.name.as_str() <= format!("cp-{count}").as_str());
            options.allow_even = allow_even;
        });
        majority(&cluster, operations).map(|one| one.address.to_string())
    };
    let both = [worker.clone(), control_plane.clone()];
    assert_eq!(asked(2, false, &both).as_deref(), Some("lab/machine/cp-2"), "it stands at a control plane");
    assert_eq!(
        asked(2, false, &[worker]).as_deref(),
        Some("lab/machine/w-1"),
        "or at any machine that changes"
    );
    assert_eq!((asked(2, true, &both), asked(3, false, &both), asked(1, false, &both)), (None, None, None));
    let stays = Operation { action: Action::Update, ..control_plane.clone() };
    assert_eq!(asked(2, false, &[stays]), None, "who only changes one is not asked about the number");
    let vm = operation(Action::Create, "lab/vm/cp-2", &[("role", "controlplane")]);
    assert_eq!(asked(2, false, &[vm]), None);
    let leaves = Operation { action: Action::Delete, ..control_plane };
    assert!(asked(2, false, &[leaves]).is_some());
}
