use super::*;
use crate::removed::RemovedCluster;
use crate::testing::{change, cluster, observed, operation};

fn guarded(ending: bool) -> GuardedProvider {
    let cluster = Arc::new(cluster(|options| options.ending = ending));
    GuardedProvider::new(Arc::new(RemovedCluster::new("lab")), vec![("lab".to_owned(), cluster)])
}

fn disturbance(operation: &Operation) -> Option<Disturbance> {
    guarded(false).disturbed(operation).map(|(_, what)| what)
}

#[test]
fn what_a_node_feels_of_its_vm_waits_for_its_turn() {
    let restart = Operation { restart: true, ..operation(Action::Update, "lab/vm/cp-1", &[]) };
    assert_eq!(disturbance(&restart), Some(Disturbance::Restart));
    assert_eq!(disturbance(&change("lab/vm/cp-1", "power")), Some(Disturbance::Restart));
    assert_eq!(disturbance(&change("lab/vm/cp-1", "networks.net0")), Some(Disturbance::Jolt));
    assert_eq!(disturbance(&change("lab/vm/cp-1", "hypervisor")), Some(Disturbance::Jolt));
    assert_eq!(disturbance(&change("lab/vm/cp-1", "tags")), None, "nobody feels a tag");
    for action in [Action::Create, Action::Delete] {
        let one = Operation { restart: true, ..operation(action, "lab/vm/cp-1", &[]) };
        assert_eq!(disturbance(&one), None);
    }
    assert_eq!(disturbance(&change("other/vm/cp-1", "power")), None, "it is no node of this cluster");
    assert_eq!(disturbance(&change("lab/container/dns", "power")), None);
    assert!(guarded(true).disturbed(&change("lab/vm/cp-1", "power")).is_none(), "the whole cluster goes");
}

#[test]
fn only_what_is_known_to_be_down_is_stopped() {
    let seen = |fields: &[(&str, &str)]| Operation {
        observed: Some(observed(fields)),
        ..operation(Action::Update, "lab/vm/cp-1", &[])
    };
    assert!(is_stopped(&seen(&[("power", "stopped")])));
    assert!(!is_stopped(&seen(&[("power", "running")])) && !is_stopped(&seen(&[])));
    assert!(!is_stopped(&operation(Action::Update, "lab/vm/cp-1", &[("power", "stopped")])));
}
