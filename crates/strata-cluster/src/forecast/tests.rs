use super::*;
use crate::cluster::Lease;
use crate::testing::{change, cluster};

fn of_change(cluster: &Cluster, field: &str) -> Option<Forecast> {
    of(cluster, &change("lab/machine/cp-1", field))
}

#[test]
fn another_image_or_a_lost_membership_restarts_a_node() {
    let lab = cluster(|_| {});
    for field in ["version", "left_etcd", "installer"] {
        assert_eq!(of_change(&lab, field), Some(Forecast::Restarts), "{field}");
    }
    assert_eq!(of_change(&lab, "media"), Some(Forecast::StaysUp));
}

#[test]
fn a_cordon_that_was_left_restarts_only_a_node_that_is_owed_a_reboot() {
    let lab = cluster(|_| {});
    assert_eq!(of_change(&lab, "cordoned"), Some(Forecast::StaysUp));
    lab.due.lock().unwrap_or_else(PoisonError::into_inner).insert("cp-1".to_owned());
    assert_eq!(of_change(&lab, "cordoned"), Some(Forecast::Restarts));
    assert_eq!(of_change(&lab, "media"), Some(Forecast::StaysUp));
    assert_eq!(of(&lab, &change("lab/machine/cp-2", "cordoned")), Some(Forecast::StaysUp));
}

#[test]
fn a_node_asks_for_its_new_address_when_it_starts() {
    let leased = cluster(|options| options.nodes[0].lease = Some(Lease { mac: None }));
    assert_eq!(of_change(&leased, "address"), Some(Forecast::Restarts));
    assert_eq!(of(&leased, &change("lab/machine/cp-2", "address")), None, "nobody saw what it has");
    assert_eq!(of_change(&leased, "media"), Some(Forecast::StaysUp));
}
