//! Random lives: guests are renamed, moved, adopted, promoted, replaced, changed by others and removed, in whatever order, by runs that are
//! refused and killed. After each step the datacenter is what a first apply of the same source makes, everything of ours is in a state,
//! nothing foreign is touched, and no guest went down that the plan did not name.
//!
//! A life is a seed. `STRATA_SEED` runs one, `STRATA_COUNT` so many from there on.

mod checks;
mod source;
mod steps;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cluster::dice::{Dice, number};
use crate::world::World;
use source::Entry;

struct Life {
    world: World,
    dice: Dice,
    /// Everything that happened, for the words of a failure.
    told: String,
    entries: Vec<Entry>,
    /// What the source says was moved, until the next step.
    moved: Vec<(String, String)>,
    /// Stacks and keys that guests had before they were moved.
    left: Vec<(String, String)>,
    /// Guests whose tags are left to others.
    ignored: Vec<u64>,
    /// The cores that a promotion gave a guest.
    promoted: BTreeMap<u64, u64>,
    numbers: u64,
    foreign: Value,
    kills: u64,
    refusals: u64,
}

impl Life {
    fn begin(seed: u64) -> Self {
        let world = World::instant("");
        world.repo.remove("stacks/web/stack.yaml");
        world.repo.remove("stacks/web/own.yaml");
        let mut life = Self {
            world,
            dice: Dice(seed),
            told: format!("STRATA_SEED={seed}"),
            entries: Vec::new(),
            moved: Vec::new(),
            left: Vec::new(),
            ignored: Vec::new(),
            promoted: BTreeMap::new(),
            numbers: 0,
            foreign: Value::Null,
            kills: 0,
            refusals: 0,
        };
        life.foreign = life.foreign();
        for _ in 0..2 + life.dice.below(3) {
            life.adds();
        }
        life.converge(&[]);
        life
    }

    fn tell(&mut self, words: &str) {
        self.told.push_str(words);
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn fresh_key(&mut self) -> String {
        format!("g{}", self.next_number())
    }

    fn any(&mut self) -> Option<usize> {
        let count = self.entries.len() as u64;
        (count > 0).then(|| self.dice.below(count) as usize)
    }

    /// A guest was at another address before.
    fn moves(&mut self, from: String, at: usize) {
        let to = self.entries[at].address();
        self.tell(&format!("\n  {from} is {to}"));
        let parts: Vec<&str> = from.split('/').collect();
        self.left.push((parts[0].to_owned(), parts[2].to_owned()));
        self.moved.push((from, to));
    }

    /// A stack and a key for something new: now and then those of a guest that has others by now.
    fn new_place(&mut self) -> (String, String) {
        let fresh = self.fresh_key();
        let stack = self.dice.one_of(&["web", "data"]).to_owned();
        let is_free = |(_, key): &&(String, String)| self.entries.iter().all(|one| one.key != *key);
        let left: Vec<(String, String)> = self.left.iter().filter(is_free).cloned().collect();
        match left.is_empty() || self.dice.once_in(2) {
            true => (stack, fresh),
            false => self.dice.one_of(&left),
        }
    }

    fn new_entry(&mut self) -> Entry {
        let ((stack, key), vmid) = (self.new_place(), 9100 + self.next_number());
        let image = self.dice.one_of(&["rescue", "other"]);
        let started = self.dice.once_in(2);
        let (section, own) = if self.dice.once_in(3) {
            let image = "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst";
            ("containers", format!("    image: {{url: \"{image}\"}}\n    password: {{env: APP_PASSWORD}}\n"))
        } else {
            let login = "    cloudInit: {user: debian, password: {env: APP_PASSWORD}}\n";
            ("vms", format!("    iso: {{url: \"https://images.example/{image}.iso\"}}\n{login}"))
        };
        let body = format!(
            "    vmId: {vmid}\n{own}    disk: 2\n    network: [{{bridge: vmbr0}}]\n    memory: 256\n    started: {started}\n"
        );
        Entry { stack, section, key, body }
    }

    fn write_source(&self) {
        let _ = std::fs::remove_dir_all(self.world.repo.file("stacks"));
        let mut stacks: Vec<&str> = self.entries.iter().map(|one| one.stack.as_str()).collect();
        stacks.sort_unstable();
        stacks.dedup();
        for (number, stack) in stacks.iter().enumerate() {
            // Any file may say it.
            let moved = if number == 0 { self.moved.as_slice() } else { &[] };
            self.world.repo.write(&source::file(stack), &source::text(stack, &self.entries, moved));
        }
        let promoted = self.entries.iter().filter_map(|one| Some((one, self.promoted.get(&one.vmid())?)));
        let mut overlay: BTreeMap<&str, String> = BTreeMap::new();
        for (entry, cores) in promoted {
            let vms = overlay.entry(&entry.stack).or_default();
            vms.push_str(&format!("      {}: {{cores: {cores}}}\n", entry.key));
        }
        let mut text = "tags: []\n".to_owned();
        for (number, (stack, vms)) in overlay.iter().enumerate() {
            text.push_str(if number == 0 { "stacks:\n" } else { "" });
            text.push_str(&format!("  {stack}:\n    vms:\n{vms}"));
        }
        self.world.repo.write("environments/test.yaml", &text);
    }

    /// What Strata wrote into the files.
    fn read_source(&mut self) {
        let mut stacks: Vec<String> = self.entries.iter().map(|one| one.stack.clone()).collect();
        stacks.extend(["web".to_owned()]);
        let files = stacks.into_iter().filter_map(|stack| {
            let path = self.world.repo.file(&source::file(&stack));
            Some((stack, std::fs::read_to_string(path).ok()?))
        });
        self.entries = source::entries(&files.collect());
    }

    /// A run that may be killed once or twice.
    fn killed(&mut self, arguments: &[&str]) {
        for _ in 0..self.dice.below(3) {
            let k = 1 + self.dice.below(40);
            let kind = self.dice.one_of(&["hold-before", "hold-after"]);
            let fault = json!({"kind": kind, "nth": k});
            if self.world.strata().kill_at(&self.world.sim.control(), &fault, arguments).struck {
                self.tell(&format!(", killed: {kind} {k}"));
                self.kills += 1;
            }
        }
    }

    /// A run in which the server refuses something.
    fn refused(&mut self, arguments: &[&str]) {
        let k = 1 + self.dice.below(8);
        let status = self.dice.one_of(&[403, 500, 400]);
        let fault = json!({"kind": "refuse", "status": status, "text": "not now", "writes": true, "nth": k});
        let control = self.world.sim.control();
        let id = control.fault(&fault);
        let run = self.world.strata().run(arguments);
        assert!(!run.all().contains("panicked"), "{}\n{}", self.told, run.all());
        if control.wait_fault(id, 0.0) {
            self.tell(&format!(", refused: {status} at write {k}"));
            self.refusals += 1;
        }
        control.clear_faults();
    }

    /// Brings the world to the source, disturbed or not, and looks at everything.
    fn converge(&mut self, also: &[&str]) {
        self.write_source();
        let (before, named) = (self.processes(), self.named(also));
        let apply = ["apply", "--yes", "--allow-removed-stacks"];
        let first: Vec<&str> = apply.iter().chain(also).copied().collect();
        let disturbed = self.dice.below(3);
        match disturbed {
            0 => self.killed(&first),
            1 => self.refused(&first),
            _ => {}
        }
        let last = self.world.strata().run(if disturbed == 2 { &first } else { &apply });
        assert_eq!(last.code, 0, "{}\n{}", self.told, last.all());
        let plan = self.world.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{}\nnot settled: {}", self.told, plan.all());
        let after = self.processes();
        for (vmid, process) in &before {
            let same = after.get(vmid) == Some(process);
            assert!(same || named.contains(vmid), "{}\n{vmid} went down, and no plan said so", self.told);
        }
        assert_eq!(self.foreign(), self.foreign, "{}", self.told);
        self.assert_all_known();
        self.assert_apart();
        self.assert_as_fresh();
        self.moved.clear();
    }

    fn step(&mut self, kind: u64) {
        match kind {
            0 => self.renames(),
            1 => self.moves_between_stacks(),
            2 => self.splits(),
            3 => self.renames_a_stack(),
            4 => self.removes(),
            5 => self.adopts(),
            6 => self.promotes(),
            7 => self.replaces(),
            8 => self.drifts(),
            9 => self.changes(),
            _ => self.adds(),
        }
        self.converge(&[]);
    }
}

/// How many kinds of steps there are.
const KINDS: u64 = 11;

fn life(seed: u64, length: u64) -> (u64, u64) {
    let mut life = Life::begin(seed);
    for _ in 0..length {
        let kind = life.dice.below(KINDS);
        life.step(kind);
    }
    println!("{}", life.told);
    (life.kills, life.refusals)
}

#[test]
fn lives_end_as_their_source_says() {
    for seed in 1..=3 {
        life(seed, 3);
    }
}

#[test]
#[ignore = "as long as you like: just lives"]
fn lives_from_a_seed() {
    let (seed, count) = (number("STRATA_SEED", 1000), number("STRATA_COUNT", 500));
    let (mut kills, mut refusals, mut failed) = (0, 0, Vec::new());
    for seed in seed..seed + count {
        match std::panic::catch_unwind(|| life(seed, number("STRATA_LENGTH", 6))) {
            Ok((killed, refused)) => (kills, refusals) = (kills + killed, refusals + refused),
            Err(_) => failed.push(seed),
        }
    }
    println!("{count} lives, {kills} kills, {refusals} refusals");
    assert!(failed.is_empty(), "failed: STRATA_SEED={failed:?}");
}
