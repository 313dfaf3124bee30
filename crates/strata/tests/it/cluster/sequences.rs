//! Random histories of a cluster: whatever happens in whatever order, it converges, and the majority is never lost.
//!
//! A history is a seed. `STRATA_SEED` runs one, `STRATA_COUNT` so many from there on.

use serde_json::json;

use super::kill::kill_apply;
use super::lab::{Lab, Shape};

/// SplitMix64: small, and the same on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

const TALOS: [&str; 4] = ["v1.11.6", "v1.12.6", "v1.13.9", "v1.14.0"];
const KUBERNETES: [&str; 5] = ["v1.33.0", "v1.34.1", "v1.35.0", "v1.36.3", "v1.37.0"];

fn at(versions: &[&str], version: &str) -> usize {
    versions.iter().position(|one| *one == version).unwrap()
}

/// What happens, in words; the source and the datacenter are changed by it.
fn happens(lab: &Lab, shape: &mut Shape, dice: &mut Dice) -> String {
    match dice.below(8) {
        0 | 1 => {
            shape.control_planes = dice.one_of(&[1, 3, 3, 5]);
            shape.workers = dice.below(4) as u32;
            format!("scale to {} + {}", shape.control_planes, shape.workers)
        }
        2 => {
            let number = dice.below(1000);
            let patch = dice.one_of(&[
                "machine: {sysctls: {vm.max_map_count: \"N\"}}",
                "machine: {kubelet: {extraArgs: {v: \"N\"}}}",
                "machine: {files: [{path: /var/etc/a, content: \"N\", permissions: 0o600, op: create}]}",
                "machine: {nodeLabels: {number: \"N\"}}",
            ]);
            shape.patches = vec![patch.replace('N', &number.to_string())];
            format!("patch {:?}", shape.patches)
        }
        3 => match TALOS.get(at(&TALOS, &shape.talos) + 1) {
            Some(next) => {
                shape.talos = (*next).to_owned();
                format!("Talos {next}")
            }
            None => "nothing: Talos is the newest".to_owned(),
        },
        4 => {
            // The newest Kubernetes of each Talos is one minor higher than that of the one before.
            let next = at(&KUBERNETES, &shape.kubernetes) + 1;
            if next > at(&TALOS, &shape.talos) + 1 {
                return "nothing: Kubernetes is as new as Talos bears".to_owned();
            }
            shape.kubernetes = KUBERNETES[next].to_owned();
            format!("Kubernetes {}", shape.kubernetes)
        }
        5 | 6 => lost(lab, dice),
        _ => {
            let name = any_node(lab, dice);
            lab.change(&json!({"reboot": {"machine": name}}));
            format!("{name} reboots by itself")
        }
    }
}

/// The nodes that there are, not those that the source asks for.
fn nodes(lab: &Lab) -> Vec<String> {
    let talos = lab.talos();
    let machines = talos["machines"].as_array().unwrap();
    machines.iter().map(|machine| machine["hostname"].as_str().unwrap().to_owned()).collect()
}

fn any_node(lab: &Lab, dice: &mut Dice) -> String {
    let nodes = nodes(lab);
    nodes[dice.below(nodes.len() as u64) as usize].clone()
}

fn lost(lab: &Lab, dice: &mut Dice) -> String {
    let mut nodes = nodes(lab);
    if nodes.iter().filter(|name| name.contains("-cp-")).count() == 1 {
        nodes.retain(|name| !name.contains("-cp-"));
    }
    if nodes.is_empty() {
        return "nothing: only one is left".to_owned();
    }
    let name = &nodes[dice.below(nodes.len() as u64) as usize];
    let (node, vmid) = lab.vm(name);
    lab.lose(&node, vmid);
    format!("{name} is lost")
}

/// One history. Everything that happened is in the words of a failure.
fn history(seed: u64, length: usize) {
    let mut dice = Dice(seed);
    let mut shape = Shape::new(dice.one_of(&[1, 3]), dice.below(3) as u32);
    let start = dice.below(3) as usize;
    shape = shape.versions(TALOS[start], KUBERNETES[start + 1]);
    let lab = Lab::booted(&shape);
    let mut told = format!(
        "STRATA_SEED={seed}\n  a cluster of {} + {}, {}",
        shape.control_planes, shape.workers, shape.talos
    );
    for _ in 0..length {
        let what = happens(&lab, &mut shape, &mut dice);
        told.push_str(&format!("\n  {what}"));
        lab.source(&shape);
        for _ in 0..dice.below(3) {
            let k = 1 + dice.below(160);
            let kind = dice.one_of(&["hold-before", "hold-after"]);
            if kill_apply(&lab, kind, k) {
                told.push_str(&format!(", killed: {kind} {k}"));
            }
            lab.assert_sound(&told);
        }
        let failed = lab.converges_telling(3, &told);
        if !failed.is_empty() {
            told.push_str(&format!(", {} more applies", failed.len()));
        }
        lab.assert_sound(&told);
        lab.assert_is(&shape, &told);
        lab.assert_settled(&told);
    }
    println!("{told}");
}

#[test]
fn histories_converge() {
    for seed in 1..=3 {
        history(seed, 4);
    }
}

#[test]
#[ignore = "as long as you like: just cluster-histories"]
fn histories_from_a_seed() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (seed, count) = (number("STRATA_SEED", 1000), number("STRATA_COUNT", 10));
    for seed in seed..seed + count {
        history(seed, 6);
    }
}
