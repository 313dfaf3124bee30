use strata_engine::Observed;

use super::*;
use crate::testing::{Nodes, change, cluster, config, observed, operation, recorded, spec};

const LIVE: &str = "machine: {type: controlplane}
cluster:
  network: {dnsDomain: cluster.local, podSubnets: [10.244.0.0/16], serviceSubnets: [10.96.0.0/12]}
";

/// What is refused when `nodes` have what is live and are asked for the wanted configuration.
fn refused(cluster: &Cluster, live: &[(&str, &str)], operations: &[Operation]) -> Vec<(String, String)> {
    let seen = live.iter().fold(Nodes::none(), |seen, (name, text)| seen.with(name, config(text), false));
    let found = preconditions(seen.review(cluster, operations)).into_iter();
    found
        .map(|one| {
            let message = one.refusal().unwrap_or_default();
            (one.address.to_string(), message.split(" cannot").next().unwrap_or_default().to_owned())
        })
        .collect()
}

fn asking(text: &str) -> Cluster {
    cluster(|options| {
        for node in ["cp-1", "cp-2", "cp-3"] {
            options.configs.insert(node.to_owned(), config(text));
        }
    })
}

fn one(address: &str, what: &str) -> Vec<(String, String)> {
    vec![(address.to_owned(), what.to_owned())]
}

#[test]
fn what_a_running_cluster_cannot_change_is_refused_once() {
    let domain = LIVE.replace("cluster.local", "other.local");
    let all = [("cp-1", LIVE), ("cp-2", LIVE), ("cp-3", LIVE)];
    let updates = ["cp-1", "cp-2", "cp-3"].map(|node| change(&format!("lab/machine/{node}"), "config.a"));
    let expected = one("lab/machine/cp-1", "the DNS domain of `lab`");
    assert_eq!(refused(&asking(&domain), &all, &updates), expected);
    assert_eq!(refused(&asking(LIVE), &all, &updates), []);
    // A node that is not told its configuration stays as it is.
    let power = [change("lab/machine/cp-1", "cordoned")];
    assert_eq!(refused(&asking(&domain), &all, &power), []);
    // Before etcd runs everything may still change.
    let young = cluster(|options| {
        options.bootstrapped = false;
        options.configs.insert("cp-1".to_owned(), config(&domain));
    });
    assert_eq!(refused(&young, &all, &updates), []);
}

#[test]
fn one_node_that_differs_is_brought_back_to_what_most_have() {
    let other = LIVE.replace("cluster.local", "other.local");
    let update = [change("lab/machine/cp-1", "config.a")];
    let strayed = [("cp-1", other.as_str()), ("cp-2", LIVE), ("cp-3", LIVE)];
    assert_eq!(refused(&asking(LIVE), &strayed, &update), []);
    let half = [("cp-1", other.as_str()), ("cp-2", LIVE)];
    assert_eq!(refused(&asking(LIVE), &half, &update).len(), 1, "one of two is not most");
    let worker = LIVE.replace("controlplane", "worker");
    let workers = [("cp-1", other.as_str()), ("w-1", worker.as_str()), ("w-2", worker.as_str())];
    assert_eq!(
        refused(&asking(LIVE), &workers, &update).len(),
        1,
        "workers say nothing about control planes"
    );
}

#[test]
fn drift_is_put_back_whatever_it_is() {
    let other = LIVE.replace("cluster.local", "other.local");
    let all = [("cp-1", other.as_str()), ("cp-2", other.as_str()), ("cp-3", other.as_str())];
    let with = |applied: &str, partial| {
        let mut update = change("lab/machine/cp-1", "config.a");
        update.spec = spec(&[("config", "wanted")]);
        update.recorded = Some(recorded(spec(&[("config", applied)]), partial));
        [update]
    };
    assert_eq!(refused(&asking(LIVE), &all, &with("wanted", false)), []);
    assert_eq!(refused(&asking(LIVE), &all, &with("former", false)).len(), 1);
    assert_eq!(refused(&asking(LIVE), &all, &with("wanted", true)).len(), 1, "it was never applied");
}

#[test]
fn a_machine_that_stays_on_its_vm_keeps_its_role() {
    let machine = "lab/machine/cp-1";
    let delete = |role| operation(Action::Delete, machine, &[("role", role)]);
    let create = |role| operation(Action::Create, machine, &[("role", role)]);
    let role = one(machine, "the role of `cp-1`");
    let asked = |operations: &[Operation]| refused(&asking(LIVE), &[], operations);
    assert_eq!(asked(&[delete("controlplane"), create("worker")]), role);
    assert_eq!(asked(&[delete("controlplane"), create("controlplane")]), []);
    assert_eq!(asked(&[delete("controlplane")]), [], "it goes for good");
    let other = operation(Action::Create, "lab/machine/cp-9", &[("role", "worker")]);
    assert_eq!(asked(&[delete("controlplane"), other]), []);
    let vm = |action, name: &str| operation(action, &format!("lab/vm/{name}"), &[]);
    let replaced = [delete("controlplane"), create("worker"), vm(Action::Delete, "cp-1")];
    assert_eq!(asked(&replaced), [], "its disk goes with its VM");
    for stays in [vm(Action::Delete, "cp-2"), vm(Action::Update, "cp-1"), vm(Action::Create, "cp-1")] {
        assert_eq!(asked(&[delete("controlplane"), create("worker"), stays]), role);
    }
}

#[test]
fn boot_keys_and_architecture_of_a_node_stay() {
    let machine = "lab/machine/cp-1";
    let installer = |from: Option<&str>, to: &str| {
        let mut update = change(machine, "installer");
        update.spec = spec(&[("installer", to)]);
        update.observed = from.map(|from| -> Observed { observed(&[("installer", from)]) });
        refused(&asking(LIVE), &[], &[update])
    };
    let (plain, secure) =
        ("factory/metal-installer/a:v1.12.4", "factory/metal-installer-secureboot/a:v1.12.4");
    assert_eq!(installer(Some(plain), secure), one(machine, "Secure Boot of `cp-1`"));
    assert_eq!(installer(Some(secure), plain), one(machine, "Secure Boot of `cp-1`"));
    assert_eq!(installer(Some(plain), "factory/metal-installer/b:v1.12.5"), []);
    assert_eq!(installer(None, secure), [], "what nobody saw is no difference");
    let arch = refused(&asking(LIVE), &[], &[change(machine, "arch")]);
    assert_eq!(arch.len(), 1, "{arch:?}");
    assert_eq!(refused(&asking(LIVE), &[], &[change("lab/vm/cp-1", "arch")]), []);
}

#[test]
fn a_cluster_keeps_its_name() {
    let gone = |name: &str| [operation(Action::Delete, &format!("lab/bootstrap/{name}"), &[])];
    let known_as = |names: &[&str]| {
        cluster(|options| options.bootstrapped_as = names.iter().map(|name| (*name).to_owned()).collect())
    };
    let renamed = refused(&known_as(&["former"]), &[], &gone("former"));
    assert_eq!(renamed.len(), 1, "{renamed:?}");
    assert_eq!(renamed[0].0, "lab/bootstrap/former");
    // The state knows the cluster under its own name too: the other one is only left over.
    assert_eq!(refused(&known_as(&["former", "lab"]), &[], &gone("former")), []);
    assert_eq!(refused(&known_as(&["former"]), &[], &gone("lab")), []);
    let other = [operation(Action::Create, "lab/bootstrap/former", &[])];
    assert_eq!(refused(&known_as(&["former"]), &[], &other), []);
    let other = [operation(Action::Delete, "lab/kubernetes/former", &[])];
    assert_eq!(refused(&known_as(&["former"]), &[], &other), []);
}
