use std::collections::BTreeSet;

use async_trait::async_trait;
use strata_engine::{OperationContext, ProviderError};
use strata_resource::Address;
use strata_state::Action;

use crate::testing::{cluster, node, operation};

/// A run in which these did not come up.
struct GivenUp(BTreeSet<Address>);

#[async_trait]
impl OperationContext for GivenUp {
    fn before_write(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn task_started(&self, _: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    fn progress(&self, _: &str) {}

    fn given_up(&self, address: &Address) -> bool {
        self.0.contains(address)
    }
}

fn addresses(nodes: &[super::NodePlace]) -> Vec<(&str, &str)> {
    nodes.iter().map(|node| (node.name.as_str(), node.address.as_str())).collect()
}

/// Who left the source is still part of the cluster, and who moves still answers where it was.
#[test]
fn nodes_are_those_of_the_source_and_of_the_state_where_they_answer() {
    let lab = cluster(|options| {
        options.nodes.truncate(2);
        options.nodes[1].address = "192.0.2.102".to_owned();
    });
    let all = [("cp-1", "192.0.2.1"), ("cp-2", "192.0.2.2"), ("cp-3", "192.0.2.3"), ("w-1", "192.0.2.11")];
    assert_eq!(addresses(&lab.places()), all);
    assert_eq!(addresses(&lab.control_planes()), all[..3]);
    assert_eq!(lab.node_names(), ["cp-1", "cp-2", "cp-3", "w-1"]);
    assert_eq!(lab.place("cp-3").map(|node| node.address).as_deref(), Some("192.0.2.3"));
    assert_eq!(lab.place("cp-9"), None);
    lab.answers_at("cp-2", "192.0.2.102");
    assert_eq!(lab.place("cp-2").map(|node| node.address).as_deref(), Some("192.0.2.102"));
    assert_eq!(lab.now(&node("cp-1", "192.0.2.1", true)).address, "192.0.2.1");
}

/// A worker is given up only when every control plane was: one that may still come up gives it its certificate.
#[test]
fn there_is_no_control_plane_when_each_was_given_up() {
    let lab = cluster(|_| {});
    let machine = operation(Action::Create, "lab/machine/w-2", &[]).address;
    let without = |names: &[&str]| {
        let given_up = names.iter().map(|name| machine.named(name)).collect();
        lab.has_no_control_plane(&machine, &GivenUp(given_up))
    };
    assert!(!without(&["cp-1", "w-1", "cp-2"]));
    assert!(without(&["cp-1", "w-1", "cp-2", "cp-3"]));
}

/// Where somebody said that etcd begins again, there is none to look after until one is seen.
#[test]
fn etcd_is_alive_by_the_state_and_not_where_it_begins_again() {
    assert!(cluster(|_| {}).is_alive() && !cluster(|_| {}).may_begin_again());
    let young = cluster(|options| options.bootstrapped = false);
    assert!(!young.is_alive());
    young.now_alive();
    assert!(young.is_alive());
    let fresh = cluster(|options| options.new_cluster = true);
    assert!(!fresh.is_alive() && fresh.may_begin_again());
    let restored = cluster(|options| {
        options.restoring = Some(std::sync::Arc::new(strata_secret::SecretBytes::new(vec![1])));
    });
    assert!(!restored.is_alive() && restored.may_begin_again());
}

/// A node that moves is asked at both addresses, and nobody twice.
#[test]
fn the_api_of_kubernetes_is_asked_at_each_control_plane_once() {
    let mut endpoints = Vec::new();
    let _ = cluster(|options| {
        options.nodes[1].address = "2001:db8::2".to_owned();
        options.endpoint = "https://192.0.2.3:6443".to_owned();
        endpoints = super::endpoints(options);
    });
    assert_eq!(
        endpoints,
        [
            "https://192.0.2.3:6443",
            "https://192.0.2.1:6443",
            "https://[2001:db8::2]:6443",
            "https://192.0.2.2:6443"
        ]
    );
}

#[test]
fn an_address_with_colons_is_put_in_brackets() {
    assert_eq!(super::place("192.0.2.1"), "192.0.2.1:50000");
    assert_eq!(super::place("2001:db8::1"), "[2001:db8::1]:50000");
}
