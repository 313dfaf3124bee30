//! Random disasters of etcd: whatever happens to control planes in whatever order, etcd is bootstrapped once, what it held is never lost while
//! somebody holds it, and the way that a refusal names leads back.
//!
//! A disaster is a seed. `STRATA_SEED` runs one, `STRATA_COUNT` so many from there on.

use serde_json::json;

use super::{NAMES, etcd, lose_state, power, remember, remembers, reset, snapshots, until};
use crate::cluster::dice::{Dice, number};
use crate::cluster::lab::{FILE, Lab, Shape};

/// What happens to one control plane; says whether its data are gone by it.
fn happens(lab: &Lab, name: &str, dice: &mut Dice) -> (String, bool) {
    match dice.below(6) {
        0 => {
            reset(lab, &[name]);
            (format!("{name} is reset"), true)
        }
        1 => {
            lab.change(&json!({"reset": {"machine": name, "partitions": ["STATE"]}}));
            until(lab, name, "maintenance");
            (format!("{name} loses its configuration"), false)
        }
        2 => {
            lab.change(&json!({"reset": {"machine": name, "partitions": ["EPHEMERAL"]}}));
            (format!("{name} loses its data"), true)
        }
        3 => {
            power(lab, name, false);
            (format!("{name} is switched off"), false)
        }
        4 => {
            lab.change(&json!({"alarm": {"machine": name, "alarm": "corrupt"}}));
            (format!("{name} raises an alarm"), false)
        }
        _ => {
            lab.change(&json!({"reboot": {"machine": name}}));
            (format!("{name} reboots"), false)
        }
    }
}

fn disaster(seed: u64) {
    let mut dice = Dice(seed);
    let count = [1, 3, 3, 5][dice.below(4) as usize];
    let shape = Shape::new(count, 0);
    let lab = Lab::booted(&shape);
    // Nobody waits a quarter of an hour for what does not come.
    lab.repo.edit(
        FILE,
        "  kubernetes: {",
        "  timeouts: {boot: 90s, join: 90s, reboot: 90s}\n  kubernetes: {",
    );
    let names = &NAMES[..count as usize];
    remember(&lab, "precious");
    lab.run(&["talos", "snapshot", "lab"]).ok();
    let old = snapshots(&lab).pop().unwrap();
    let mut told = format!("STRATA_SEED={seed}\n  {count} control planes");
    let mut wiped = 0;
    for name in names {
        if dice.below(3) > 0 {
            let (what, gone) = happens(&lab, name, &mut dice);
            wiped += u32::from(gone);
            told.push_str(&format!("\n  {what}"));
        }
    }
    if dice.below(3) == 0 {
        lose_state(&lab);
        told.push_str("\n  the state is lost");
    }
    // Whoever applies in the night: nothing that is there may be lost by it.
    for _ in 0..2 {
        let output = lab.run(&["apply", "--yes"]);
        assert!(!output.all().contains("panicked"), "{told}\n{}", output.all());
        told.push_str(&format!("\n  apply: {}", output.code));
        let (bootstraps, holders) = etcd(&lab);
        assert!(bootstraps <= 1 || wiped == count, "{told}: etcd was bootstrapped twice\n{}", output.all());
        assert!(!holders.is_empty() || wiped == count, "{told}: all data are gone\n{}", output.all());
    }
    // A person does what the refusals say: switches on, ends alarms, restores.
    for name in names {
        power(&lab, name, true);
    }
    // Alarms are of a cluster: any member ends them. One that lost its configuration is none, and does not know its name.
    for machine in lab.talos()["machines"].as_array().unwrap() {
        if !machine["etcd"].is_null() {
            lab.change(&json!({"disarm": {"machine": machine["machine"]}}));
        }
    }
    if lab.run(&["apply", "--yes"]).code != 0 {
        // Unless etcd has recovered in the meantime, which the restore says.
        let restored = lab.run(&["talos", "restore", "lab", "--snapshot", &old, "--yes"]);
        told.push_str(&format!("\n  restore: {}", restored.code));
    }
    let failed = lab.converges_telling(4, &told);
    told.push_str(&format!("\n  {} more applies", failed.len()));
    lab.assert_is(&shape, &told);
    assert!(remembers(&lab, "precious") || wiped == count, "{told}: what it held is lost");
    println!("{told}");
}

#[test]
fn disasters_end_well() {
    for seed in 1..=3 {
        disaster(seed);
    }
}

#[test]
#[ignore = "as long as you like: just etcd-disasters"]
fn disasters_from_a_seed() {
    let (seed, count) = (number("STRATA_SEED", 1000), number("STRATA_COUNT", 10));
    let failed: Vec<u64> =
        (seed..seed + count).filter(|seed| std::panic::catch_unwind(|| disaster(*seed)).is_err()).collect();
    assert!(failed.is_empty(), "failed: STRATA_SEED={failed:?}");
}
