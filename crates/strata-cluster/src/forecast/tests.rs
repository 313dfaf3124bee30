use super::*;
use crate::cluster::{Cluster, Lease};
use crate::testing::{Nodes, change, cluster, config};

const PLAIN: &str = "machine: {type: controlplane}\n";

/// What is forecast for a change of a field: `-` if the node stays up.
fn of_change(cluster: &Cluster, seen: &Nodes, node: &str, field: &str) -> &'static str {
    let operation = [change(&format!("lab/machine/{node}"), field)];
    match of(seen.review(cluster, &operation), &operation[0]) {
        Some(FindingKind::Restarts) => "restarts",
        Some(FindingKind::MayRestart) => "may restart",
        _ => "-",
    }
}

#[test]
fn another_image_or_a_lost_membership_restarts_a_node() {
    let (lab, seen) = (cluster(|_| {}), Nodes::none());
    for field in ["version", "left_etcd", "stale_etcd_data", "installer"] {
        assert_eq!(of_change(&lab, &seen, "cp-1", field), "restarts", "{field}");
    }
    assert_eq!(of_change(&lab, &seen, "cp-1", "media"), "-");
}

#[test]
fn a_cordon_that_was_left_restarts_only_a_node_that_is_owed_a_reboot() {
    let lab = cluster(|_| {});
    assert_eq!(of_change(&lab, &Nodes::none(), "cp-1", "cordoned"), "-");
    let seen = Nodes::none().with("cp-1", config(PLAIN), true).with("cp-2", config(PLAIN), false);
    assert_eq!(of_change(&lab, &seen, "cp-1", "cordoned"), "restarts");
    assert_eq!(of_change(&lab, &seen, "cp-1", "media"), "-");
    assert_eq!(of_change(&lab, &seen, "cp-2", "cordoned"), "-");
}

#[test]
fn a_node_asks_for_its_new_address_when_it_starts() {
    let leased = cluster(|options| options.nodes[0].lease = Some(Lease { mac: None }));
    let seen = Nodes::none();
    assert_eq!(of_change(&leased, &seen, "cp-1", "address"), "restarts");
    assert_eq!(of_change(&leased, &seen, "cp-2", "address"), "-", "nobody saw what it has");
    assert_eq!(of_change(&leased, &seen, "cp-1", "media"), "-");
}
