use super::*;
use crate::testing::{change, operation};

#[test]
fn an_alarm_stops_what_disturbs_a_node_and_nothing_else() {
    let (machine, vm, kubernetes) = ("lab/machine/cp-1", "lab/vm/cp-1", "lab/kubernetes/lab");
    let restarts = |at| Operation { restart: true, ..operation(Action::Update, at, &[]) };
    for (one, disturbed) in [
        (operation(Action::Delete, machine, &[]), Some(true)),
        (operation(Action::Create, machine, &[]), Some(false)),
        (operation(Action::Update, kubernetes, &[]), Some(false)),
        (restarts(machine), Some(false)),
        (change(machine, "version"), Some(false)),
        (restarts(vm), Some(false)),
        (change(vm, "power"), Some(false)),
        (change(machine, "config.v1alpha1"), None),
        (change(vm, "cpu.cores"), None),
        (operation(Action::Create, vm, &[]), None),
        (operation(Action::Delete, vm, &[]), None),
        (operation(Action::Create, kubernetes, &[]), None),
        (restarts("lab/container/dns"), None),
    ] {
        assert_eq!(disturbs(&one), disturbed, "{:?} of {}", one.action, one.address);
    }
}

#[test]
fn an_alarm_keeps_its_kind_and_says_what_to_do() {
    let node = Some("cp-2".to_owned());
    for kind in [EtcdAlarmKind::NoSpace, EtcdAlarmKind::Corrupt, EtcdAlarmKind::Other(7)] {
        assert_eq!(kind_of(number(kind)), kind);
    }
    let full = Alarm { kind: EtcdAlarmKind::NoSpace, node: node.clone() };
    assert!(full.meaning().contains("its database is full") && full.meaning().contains("`cp-2`"));
    assert!(full.way_out("lab").contains("talosctl etcd defrag"));
    let corrupt = Alarm { kind: EtcdAlarmKind::Corrupt, node };
    assert!(corrupt.meaning().contains("do not agree about their data"));
    assert!(corrupt.way_out("lab").contains("`strata talos reset lab cp-2`"));
    // Whose data differs is not known: no node is named to be reset.
    let nobodys = Alarm { kind: EtcdAlarmKind::Corrupt, node: None };
    assert!(!nobodys.way_out("lab").contains("reset") && !nobodys.meaning().contains("alarm of"));
    let other = Alarm { kind: EtcdAlarmKind::Other(7), node: None };
    assert!(other.meaning().contains("number 7") && other.way_out("lab").contains("snapshot lab"));
}
