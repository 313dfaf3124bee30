//! Random stories of requests: pushes, force-pushes, rebases, merges in any order, drift, changed and swapped files of plans, approvals that are
//! used again, two runners, kills. After each run whatever changed in the datacenter is what somebody approved, from the values that the
//! approved plan showed, with the source that was reviewed; and whatever is refused says what moved.
//!
//! A story is a seed. `STRATA_SEED` runs one, `STRATA_COUNT` so many from there on.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};
use strata_testkit::Output;

use super::desk::{Desk, guest, stack};
use super::git;
use crate::cluster::dice::{Dice, number};

const STACKS: [&str; 2] = ["web", "data"];
const REQUESTS: [&str; 2] = ["request", "other"];

/// VMID → memory, of all guests.
type Guests = BTreeMap<u32, String>;

/// A plan that a pipeline made, as the test itself knows it.
struct Made {
    digest: String,
    sealed: String,
    /// The datacenter when it was planned.
    seen: Guests,
    /// What the planned commit asks for.
    wanted: Guests,
    /// The guests of the stacks that the request changes.
    touched: BTreeSet<u32>,
    /// The files of these stacks.
    texts: BTreeMap<String, String>,
    approved: bool,
}

struct Story {
    desk: Desk,
    dice: Dice,
    /// Everything that happened, for the words of a failure.
    told: String,
    plans: Vec<Made>,
    numbers: u32,
    applied: u64,
    refused: u64,
    kills: u64,
}

fn file(stack: &str) -> String {
    format!("stacks/{stack}/stack.yaml")
}

/// What files ask for.
fn guests_in(text: &str) -> Guests {
    let value = |line: &str, key: &str| {
        let rest = line.split(&format!("{key}: ")).nth(1)?;
        Some(rest.split([',', '}']).next()?.to_owned())
    };
    text.lines()
        .filter_map(|line| Some((value(line, "vmId")?.parse().ok()?, value(line, "memory")?)))
        .collect()
}

impl Story {
    fn begin(seed: u64) -> Self {
        let desk = Desk::new("");
        git(&desk.repo, &["checkout", "-q", "main"]);
        desk.repo.write(&file("data"), &stack(&(guest("db", 9200, 512) + &guest("log", 9201, 256))));
        desk.commit("data");
        desk.strata().run(&["apply", "--yes"]).ok();
        for request in REQUESTS {
            git(&desk.repo, &["checkout", "-q", "-B", request, "main"]);
        }
        let told = format!("STRATA_SEED={seed}");
        let (plans, dice) = (Vec::new(), Dice(seed));
        Self { desk, dice, told, plans, numbers: 0, applied: 0, refused: 0, kills: 0 }
    }

    fn tell(&mut self, words: &str) {
        self.told.push_str("\n  ");
        self.told.push_str(words);
    }

    /// The datacenter as it is.
    fn live(&self) -> Guests {
        let guests = self.desk.sim.export()["guests"].clone();
        let all: Vec<Value> = match guests {
            Value::Array(list) => list,
            Value::Object(map) => map.into_iter().map(|(_, guest)| guest).collect(),
            _ => Vec::new(),
        };
        let own = all.iter().filter_map(|guest| {
            let vmid =
                u32::try_from(guest["vmid"].as_u64()?).ok().filter(|vmid| (9100..9300).contains(vmid))?;
            // Proxmox does not write its own default down.
            let memory = guest["config"]["memory"].to_string().replace('"', "").replace("null", "512");
            Some((vmid, memory))
        });
        own.collect()
    }

    fn source(&self) -> Guests {
        let texts = STACKS.iter().filter(|name| self.desk.repo.file(&file(name)).is_file());
        texts.flat_map(|name| guests_in(&self.desk.repo.read(&file(name)))).collect()
    }

    fn checkout(&self, branch: &str) {
        git(&self.desk.repo, &["checkout", "-q", "-f", branch]);
    }

    /// Whether git did it; a conflict is given up.
    fn tries(&self, arguments: &[&str], otherwise: &[&str]) -> bool {
        let own = ["-c", "user.name=t", "-c", "user.email=t@t.example", "-c", "commit.gpgsign=false"];
        let run = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.current_dir(self.desk.repo.path()).args(own).args(arguments);
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_EDITOR", "true").output().unwrap()
        };
        let done = run(arguments).status.success();
        if !done {
            run(otherwise);
        }
        done
    }

    /// Somebody changes a stack on the branch that is checked out.
    fn changes(&mut self) {
        let name = self.dice.one_of(&STACKS);
        let mut guests: Vec<(u32, u32)> = guests_in(&self.desk.repo.read(&file(name)))
            .into_iter()
            .filter_map(|(vmid, memory)| Some((vmid, memory.parse().ok()?)))
            .collect();
        let memory = 128 * (1 + self.dice.below(12)) as u32;
        let at = self.dice.below(guests.len() as u64) as usize;
        match self.dice.below(5) {
            0 => {
                self.numbers += 1;
                guests.push((if name == "web" { 9100 } else { 9200 } + 9 + self.numbers, memory));
            }
            1 if guests.len() > 1 => drop(guests.remove(at)),
            _ => guests[at].1 = memory,
        }
        let lines: String =
            guests.iter().map(|(vmid, memory)| guest(&format!("g{vmid}"), *vmid, *memory)).collect();
        let base = self.desk.repo.read(&file(name));
        let named = base.lines().filter(|line| line.contains("vmId")).fold(lines, |lines, line| {
            // Guests keep their names.
            let vmid = guests_in(line).into_keys().next().unwrap();
            let key = line.trim().split(':').next().unwrap();
            lines.replace(&format!("  g{vmid}:"), &format!("  {key}:"))
        });
        self.desk.repo.write(&file(name), &stack(&named));
        git(&self.desk.repo, &["add", "-A"]);
        git(&self.desk.repo, &["commit", "-q", "--allow-empty", "-m", "change"]);
        self.tell(&format!("{name} is changed: {guests:?}"));
    }

    fn plans(&mut self, request: &str) {
        self.checkout(request);
        let planned = self.desk.plan_again(&[]);
        assert!([0, 1, 3].contains(&planned.code), "{}\n{}", self.told, planned.all());
        if planned.code != 0 {
            return self.tell(&format!("{request} cannot be planned"));
        }
        let base = Command::new("git")
            .current_dir(self.desk.repo.path())
            .args(["merge-base", "main", "HEAD"])
            .output()
            .unwrap();
        let base = String::from_utf8(base.stdout).unwrap().trim().to_owned();
        let (mut touched, mut texts) = (BTreeSet::new(), BTreeMap::new());
        for name in STACKS {
            let now = self.desk.repo.read(&file(name));
            let before = Command::new("git")
                .current_dir(self.desk.repo.path())
                .args(["show", &format!("{base}:{}", file(name))])
                .output()
                .unwrap();
            let before = String::from_utf8(before.stdout).unwrap();
            if before != now {
                touched.extend(guests_in(&before).into_keys().chain(guests_in(&now).into_keys()));
                // What an earlier plan made and this one does not know any more.
                let range = if name == "web" { 9100..9200 } else { 9200..9300 };
                touched.extend(self.live().into_keys().filter(|vmid| range.contains(vmid)));
                texts.insert(file(name), now);
            }
        }
        let made = Made {
            digest: self.desk.digest(),
            sealed: self.desk.runner.read("plan.sealed"),
            seen: self.live(),
            wanted: self.source(),
            touched,
            texts,
            approved: false,
        };
        self.tell(&format!("{request} is planned: {}", &made.digest[..8]));
        self.plans.push(made);
    }

    fn approves(&mut self) {
        if self.plans.is_empty() {
            return;
        }
        // The newest, mostly; or whichever page was still open.
        let newest = self.plans.len() - 1;
        let at = if self.dice.once_in(4) { self.any_plan() } else { newest };
        self.plans[at].approved = true;
        self.tell(&format!("{} is approved", &self.plans[at].digest.clone()[..8]));
    }

    fn any_plan(&mut self) -> usize {
        self.dice.below(self.plans.len() as u64) as usize
    }

    fn merges(&mut self, request: &str) {
        self.checkout("main");
        let done = self.tries(&["merge", "-q", "--no-ff", "--no-edit", request], &["merge", "--abort"]);
        self.tell(&format!("{request} is {}", if done { "merged" } else { "in conflict" }));
    }

    fn drifts(&mut self) {
        let live: Vec<u32> = self.live().into_keys().collect();
        if live.is_empty() {
            return;
        }
        let vmid = self.dice.one_of(&live);
        let memory = 64 * (1 + self.dice.below(30));
        self.desk.drift(vmid, &json!({ "memory": memory }));
        self.tell(&format!("somebody sets {vmid} to {memory}"));
    }

    /// A run of the pipeline on the base, with this file and this digest.
    fn applies(&mut self, sealed: &str, digest: &str, genuine: Option<usize>) {
        self.checkout("main");
        self.desk.runner.write("plan.sealed", sealed);
        let before = self.live();
        let fault =
            json!({"kind": self.dice.one_of(&["hold-before", "hold-after"]), "nth": 1 + self.dice.below(24)});
        let path = self.desk.at("plan.sealed");
        let apply = ["review", "apply", &path, "--base", "HEAD^1", "--approve", digest];
        if self.dice.once_in(4) {
            if self.desk.strata().kill_at(&self.desk.sim.control(), &fault, &apply).struck {
                self.kills += 1;
                self.tell(&format!("an apply of {} is killed: {fault}", &digest[..8]));
            }
            self.allowed(genuine, &before, "a killed run");
        }
        if self.dice.once_in(6) {
            let mut both = [self.desk.strata().spawn(&apply), self.desk.strata().spawn(&apply)];
            for one in &mut both {
                one.wait().unwrap();
            }
            self.tell(&format!("two runners apply {}", &digest[..8]));
            self.allowed(genuine, &before, "two runners");
        }
        let between = self.live();
        let run = self.desk.strata().run(&apply);
        self.tell(&format!("an apply of {} ends with {}", &digest[..8], run.code));
        self.ended(genuine, &between, &run);
    }

    fn ended(&mut self, genuine: Option<usize>, before: &Guests, run: &Output) {
        assert!([0, 3].contains(&run.code), "{}\n{}", self.told, run.all());
        self.allowed(genuine, before, &run.all());
        if run.code == 3 {
            self.refused += 1;
            assert_eq!(self.live(), *before, "{}\na refused run changed something: {}", self.told, run.all());
            // What it is about, in quotes, or the digests that differ.
            let said = run.stderr.split("hint:").next().unwrap_or_default();
            assert!(said.contains('`') || said.contains("digest"), "{}\n{}", self.told, run.all());
            return;
        }
        self.applied += 1;
        let at = genuine.unwrap_or_else(|| panic!("{}\napplied: {}", self.told, run.all()));
        let (live, plan) = (self.live(), &self.plans[at]);
        for vmid in &plan.touched {
            assert_eq!(live.get(vmid), plan.wanted.get(vmid), "{}\n{vmid}: {}", self.told, run.all());
        }
    }

    /// Whatever changed was approved like this.
    fn allowed(&self, genuine: Option<usize>, before: &Guests, what: &str) {
        let live = self.live();
        let vmids: BTreeSet<&u32> = before.keys().chain(live.keys()).collect();
        let changed: Vec<u32> =
            vmids.into_iter().filter(|vmid| before.get(vmid) != live.get(vmid)).copied().collect();
        if changed.is_empty() {
            return;
        }
        let told = &self.told;
        let plan = genuine.map(|at| &self.plans[at]).filter(|plan| plan.approved);
        let plan =
            plan.unwrap_or_else(|| panic!("{told}\nnobody approved it, and it changed {changed:?}: {what}"));
        for (path, text) in &plan.texts {
            assert_eq!(self.desk.repo.read(path), *text, "{told}\n`{path}` is not what was reviewed: {what}");
        }
        for vmid in changed {
            assert!(plan.touched.contains(&vmid), "{told}\n{vmid} is not of the plan: {what}");
            let (was, wanted) = (before.get(&vmid), plan.wanted.get(&vmid));
            let shown = was == plan.seen.get(&vmid) || was == wanted;
            assert!(shown, "{told}\n{vmid} was {was:?} before, and the plan showed another value: {what}");
            // A guest that is being made or deleted may be there in between.
            let now = live.get(&vmid);
            let between = now == plan.seen.get(&vmid) || (what.starts_with('a') && now.is_some());
            assert!(now == wanted || between, "{told}\n{vmid} is {now:?}: {what}");
        }
    }

    /// The newest plan of those that were approved.
    fn applies_approved(&mut self) {
        let Some(at) = self.plans.iter().rposition(|plan| plan.approved) else { return };
        let (sealed, digest) = (self.plans[at].sealed.clone(), self.plans[at].digest.clone());
        self.applies(&sealed, &digest, Some(at));
    }

    /// A file that was changed or swapped, an approval that is used again, or one that nobody gave.
    fn cheats(&mut self) {
        if self.plans.is_empty() {
            return;
        }
        let (one, other) = (self.any_plan(), self.any_plan());
        let (sealed, digest) = (self.plans[one].sealed.clone(), self.plans[one].digest.clone());
        match self.dice.below(4) {
            0 => {
                // Anything but white space: that means nothing in JSON.
                let places: Vec<usize> = sealed
                    .char_indices()
                    .filter(|(_, one)| one.is_ascii_alphanumeric())
                    .map(|(at, _)| at)
                    .collect();
                let at = self.dice.one_of(&places);
                let mut changed = sealed.into_bytes();
                changed[at] = if changed[at] == b'a' { b'b' } else { b'a' };
                self.tell(&format!("somebody changes byte {at} of {}", &digest[..8]));
                self.applies(&String::from_utf8(changed).unwrap(), &digest, None);
            }
            1 => {
                let digest = self.plans[other].digest.clone();
                let genuine = (self.plans[one].digest == digest && self.plans[one].approved).then_some(one);
                self.tell("somebody swaps files");
                if genuine.is_some() || self.plans[one].digest != digest {
                    self.applies(&sealed, &digest, genuine);
                }
            }
            2 => {
                self.tell("somebody writes another digest into a file");
                let mut forged: Value = serde_json::from_str(&sealed).unwrap();
                let digest = self.plans[other].digest.clone();
                if forged["digest"] != digest.as_str() {
                    forged["digest"] = digest.clone().into();
                    self.applies(&forged.to_string(), &digest, None);
                }
            }
            _ => {
                let used: Vec<usize> = (0..self.plans.len()).filter(|at| self.plans[*at].approved).collect();
                if let Some(at) = used.first().copied() {
                    let (sealed, digest) = (self.plans[at].sealed.clone(), self.plans[at].digest.clone());
                    self.tell("an old approval is used again");
                    self.applies(&sealed, &digest, Some(at));
                }
            }
        }
    }

    fn step(&mut self) {
        let request = self.dice.one_of(&REQUESTS);
        match self.dice.below(12) {
            0 | 1 => {
                self.checkout(request);
                self.changes();
            }
            2 => {
                git(&self.desk.repo, &["checkout", "-q", "-f", "-B", request, "main"]);
                self.tell(&format!("{request} is pushed with force"));
                self.changes();
            }
            3 => {
                self.checkout(request);
                let done = self.tries(&["rebase", "-q", "main"], &["rebase", "--abort"]);
                self.tell(&format!("{request} is rebased: {done}"));
            }
            4 | 5 => self.plans(request),
            6 => self.approves(),
            7 => self.merges(request),
            8 => self.drifts(),
            9 => self.applies_approved(),
            10 => self.cheats(),
            _ => {
                self.plans(request);
                self.approves();
                self.merges(request);
                self.applies_approved();
            }
        }
    }
}

fn story(seed: u64, length: u64) -> (u64, u64, u64) {
    let mut story = Story::begin(seed);
    story.checkout(REQUESTS[0]);
    story.changes();
    story.plans(REQUESTS[0]);
    story.approves();
    for _ in 0..length {
        story.step();
    }
    story.merges(REQUESTS[0]);
    story.applies_approved();
    println!("{}", story.told);
    (story.applied, story.refused, story.kills)
}

#[test]
fn nothing_is_applied_that_was_not_approved_in_that_form() {
    let (mut applied, mut refused) = (0, 0);
    for seed in 1..=3 {
        let (done, not, _) = story(seed, 5);
        (applied, refused) = (applied + done, refused + not);
    }
    assert!(applied > 0 && refused > 0, "{applied} applied, {refused} refused: these seeds show nothing");
}

#[test]
#[ignore = "as long as you like: just review-stories"]
fn review_stories_from_a_seed() {
    let (seed, count) = (number("STRATA_SEED", 1000), number("STRATA_COUNT", 2000));
    let (mut applied, mut refused, mut kills, mut failed) = (0, 0, 0, Vec::new());
    for seed in seed..seed + count {
        match std::panic::catch_unwind(|| story(seed, number("STRATA_LENGTH", 8))) {
            Ok((done, not, killed)) => {
                (applied, refused, kills) = (applied + done, refused + not, kills + killed);
            }
            Err(_) => failed.push(seed),
        }
    }
    println!("{count} stories: {applied} applied, {refused} refused, {kills} kills");
    assert!(failed.is_empty(), "failed: STRATA_SEED={failed:?}");
}
