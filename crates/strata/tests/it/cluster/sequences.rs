//! Random histories of a cluster: whatever happens in whatever order, it converges; no majority and no data are lost by our doing, and
//! what is refused changes nothing.
//!
//! A history is a seed. `STRATA_SEED` runs one, `STRATA_COUNT` so many from there on.

mod changes;
mod damage;
mod invariants;
mod refusals;
mod siblings;

use std::collections::BTreeMap;

use serde_json::json;

use super::dice::{Dice, number};
use super::kill::kill_run;
use super::lab::{FILE, Lab, Shape};
use changes::{KUBERNETES, TALOS};

const APPLY: [&str; 2] = ["apply", "--yes"];

/// What a move leaves to be done.
enum Next {
    /// The source asks for something else, or something is to be put right: apply.
    Apply,
    /// The move has seen to it that everything is as the source says.
    Nothing,
}

/// Everything that happened is in the words of a failure.
struct History {
    lab: Lab,
    shape: Shape,
    dice: Dice,
    told: String,
    /// What was written into Kubernetes, and has to be there for ever.
    kept: Vec<String>,
    /// Nodes that an operator cordoned, with the identity of the Node.
    cordoned: BTreeMap<String, String>,
    /// The other environment of the cluster runs.
    sibling: bool,
    /// It is being made, or is made.
    sibling_begins: bool,
    /// How often it was begun.
    siblings_begun: u64,
    /// A snapshot of another cluster.
    foreign: Option<String>,
    counted: Counted,
}

#[derive(Default)]
struct Counted {
    moves: u64,
    kills: u64,
    refusals: u64,
}

impl std::ops::AddAssign for Counted {
    fn add_assign(&mut self, other: Self) {
        self.moves += other.moves;
        self.kills += other.kills;
        self.refusals += other.refusals;
    }
}

impl History {
    fn begin(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let shape = Shape::new(dice.one_of(&[1, 3, 3]), dice.below(3) as u32);
        let start = dice.below(3) as usize;
        let shape = shape.versions(TALOS[start], KUBERNETES[start + 1]);
        let lab = Lab::new(&shape);
        let told = format!(
            "STRATA_SEED={seed}\n  a cluster of {} + {}, {}",
            shape.control_planes, shape.workers, shape.talos
        );
        let mut history = Self {
            lab,
            shape,
            dice,
            told,
            kept: Vec::new(),
            cordoned: BTreeMap::new(),
            sibling: false,
            sibling_begins: false,
            siblings_begun: 0,
            foreign: None,
            counted: Counted::default(),
        };
        history.write_source();
        history.lab.apply();
        history.keep();
        history
    }

    fn tell(&mut self, words: &str) {
        self.told.push_str(words);
    }

    /// What the shape says. Nobody waits a quarter of an hour for what does not come.
    fn write_source(&self) {
        self.lab.source(&self.shape);
        self.lab.repo.edit(
            FILE,
            "  kubernetes: {",
            "  timeouts: {boot: 90s, join: 90s, reboot: 90s}\n  kubernetes: {",
        );
    }

    /// A run that may be killed once or twice on its way; how often it was.
    fn killed(&mut self, arguments: &[&str]) -> u64 {
        let mut killed = 0;
        for _ in 0..self.dice.below(3) {
            let k = 1 + self.dice.below(160);
            let kind = self.dice.one_of(&["hold-before", "hold-after"]);
            if kill_run(&self.lab, arguments, kind, k) {
                self.tell(&format!(", killed: {kind} {k}"));
                killed += 1;
            }
            self.assert_invariants();
        }
        self.counted.kills += killed;
        killed
    }

    /// Applies until the world is what the source says.
    fn converge(&mut self) {
        let failed = self.lab.converges_telling(4, &self.told);
        if !failed.is_empty() {
            self.tell(&format!(", {} more applies", failed.len()));
        }
        self.assert_invariants();
        self.assert_is_wanted();
        let journal = self.lab.repo.file(".strata/state/test/lab/journal");
        assert!(!journal.exists(), "{}: the journal is not empty", self.told);
        // What somebody broke is whole again: from here on everything counts.
        self.lab.change(&json!({"reset-counters": {}}));
    }

    /// One move, and everything that has to be true after it.
    fn step(&mut self, kind: u64) {
        self.counted.moves += 1;
        let next = match kind {
            0 => self.scales(),
            1 => self.patches(),
            2 => self.upgrades_talos(),
            3 => self.upgrades_kubernetes(),
            4 => self.installs_other_schematic(),
            5 => self.loses_a_vm(),
            6 => self.reboots_by_itself(),
            7 => self.raises_an_alarm(),
            8 => self.has_a_dead_node(),
            9 => self.is_cordoned(),
            10 => self.loses_the_majority(),
            11 => self.loses_its_state(),
            12 => self.resets_a_node(),
            13 => self.asks_the_impossible(),
            14 => self.copies_the_folder(),
            15 => self.loses_the_keys(),
            16 => self.has_another_environment(),
            _ => self.loses_a_node_object(),
        };
        if let Next::Apply = next {
            self.write_source();
            // Somebody in a hurry changes more before what was begun is done.
            if self.killed(&APPLY) > 0 && self.dice.once_in(4) && self.all_answer() {
                self.tell(", left as it is");
                let hurried = if self.dice.once_in(2) { self.scales() } else { self.patches() };
                if let Next::Apply = hurried {
                    self.write_source();
                    self.killed(&APPLY);
                }
            }
            self.converge();
        }
        self.keep();
    }
}

/// How many kinds of moves there are.
const KINDS: u64 = 18;

fn history(seed: u64, length: usize, first: Option<u64>) -> Counted {
    let mut history = History::begin(seed);
    for number in 0..length {
        let drawn = history.dice.below(KINDS);
        history.step(first.filter(|_| number == 0).unwrap_or(drawn));
    }
    history.ends();
    println!("{}", history.told);
    history.counted
}

/// Each begins with another kind of move.
fn sampled(seeds: &[(u64, u64)]) {
    for (seed, first) in seeds {
        history(*seed, 1, Some(*first));
    }
}

#[test]
fn histories_converge() {
    sampled(&[(1, 12), (2, 7)]);
}

#[test]
fn histories_with_others_converge() {
    sampled(&[(3, 10), (4, 8)]);
}

#[test]
#[ignore = "as long as you like: just cluster-histories"]
fn histories_from_a_seed() {
    let (seed, count) = (number("STRATA_SEED", 1000), number("STRATA_COUNT", 10));
    let first = std::env::var("STRATA_MOVE").ok().map(|text| text.parse().unwrap());
    let mut all = Counted::default();
    let mut failed = Vec::new();
    for seed in seed..seed + count {
        match std::panic::catch_unwind(|| history(seed, number("STRATA_LENGTH", 6) as usize, first)) {
            Ok(counted) => all += counted,
            Err(_) => failed.push(seed),
        }
    }
    println!("{count} histories, {} moves, {} kills, {} refusals", all.moves, all.kills, all.refusals);
    assert!(failed.is_empty(), "failed: STRATA_SEED={failed:?}");
}
