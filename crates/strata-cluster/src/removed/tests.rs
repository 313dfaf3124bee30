use super::*;
use crate::testing::operation;

/// What runs in a VM goes with it; a machine of metal would keep the keys of a cluster that is gone.
#[tokio::test]
async fn only_what_has_a_vm_goes_without_its_keys() {
    let gone = RemovedCluster::new("lab");
    let operations = [
        operation(Action::Delete, "lab/machine/cp-1", &[("vm", "lab/vm/cp-1")]),
        operation(Action::Delete, "lab/machine/metal", &[]),
        operation(Action::Delete, "lab/bootstrap/lab", &[]),
    ];
    let live = std::collections::BTreeMap::new();
    let found = gone.review(Review { operations: &operations, live: &live }).await.unwrap_or_default();
    let found: Vec<String> = found.iter().map(|one| one.address.to_string()).collect();
    assert_eq!(found, ["lab/machine/metal"]);
}
