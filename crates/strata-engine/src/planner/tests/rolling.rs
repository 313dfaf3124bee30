use serde_json::json;

use super::*;

/// Machines without VMs that leave a cluster whose etcd is planned as `etcd` says, and what each waits for.
fn leaving(etcd: impl Fn(&mut Table)) -> Vec<(String, Vec<String>)> {
    let mut table = Table::new();
    table
        .knows("bootstrap/lab", json!({"etcd": "lab"}), &[])
        .sees("bootstrap/lab", seen(json!({"etcd": "lab"})));
    etcd(&mut table);
    for (name, role) in [("cp-1", "controlplane"), ("cp-2", "controlplane"), ("w-1", "worker")] {
        let spec = json!({"machine": name, "role": role});
        table.knows(&format!("machine/{name}"), spec.clone(), &[]);
        let sighting = if name == "cp-2" { unreachable() } else { seen(spec) };
        table.sees(&format!("machine/{name}"), sighting);
    }
    let plan = table.plan();
    let machines = plan.steps.iter().filter(|step| step.address.kind() == strata_cluster::kinds::MACHINE);
    let named = |index: &usize| plan.steps[*index].address.name().to_owned();
    machines.map(|step| (step.address.name().to_owned(), step.needs.iter().map(named).collect())).collect()
}

/// Workers go before control planes, and who is dead before who votes: a dead member only weighs on the majority.
#[test]
fn nodes_leave_one_after_the_other_and_the_dead_control_plane_first() {
    let expected = |names: [(&str, &[&str]); 3]| -> Vec<(String, Vec<String>)> {
        let owned = |(name, needs): (&str, &[&str])| {
            (name.to_owned(), needs.iter().map(|need| (*need).to_owned()).collect())
        };
        names.into_iter().map(owned).collect()
    };
    let one_by_one = expected([("w-1", &[]), ("cp-2", &["w-1"]), ("cp-1", &["cp-2"])]);
    let stays = |table: &mut Table| {
        table.wants("bootstrap/lab", json!({"etcd": "lab"}), &[]);
    };
    assert_eq!(leaving(stays), one_by_one);
    // Its record changes with it, which ends nothing.
    let recorded = |table: &mut Table| {
        table.wants_with("bootstrap/lab", json!({"etcd": "lab"}), &[], |etcd| etcd.protect = true);
    };
    assert_eq!(leaving(recorded), one_by_one);
    // With the whole cluster nobody has to be asked.
    assert!(leaving(|_| {}).iter().all(|(_, needs)| needs.is_empty()));
}
