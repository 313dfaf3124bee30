//! The life of what was adopted: guests that were made by hand are moved, replaced, ignored in part, selected and brought back, and
//! every run of that is killed. Nothing is lost, and nothing else changes.

use serde_json::{Value, json};

use crate::adopt_all::LivedIn;

/// A guest of the lived-in datacenter that was adopted, with its address.
struct Life {
    world: LivedIn,
    vmid: u32,
    kind: &'static str,
    name: String,
    /// The stack that it is in now.
    stack: &'static str,
}

/// Ten of them: old and new ones, VMs and containers, with oddities of their own.
const TEN: [(u32, &str); 10] = [
    (100, "vm"),
    (101, "vm"),
    (103, "vm"),
    (112, "vm"),
    (118, "vm"),
    (127, "vm"),
    (132, "vm"),
    (200, "container"),
    (202, "container"),
    (216, "container"),
];

impl Life {
    fn new((vmid, kind): (u32, &'static str)) -> Self {
        let mut life = Self { world: LivedIn::new(), vmid, kind, name: String::new(), stack: "one" };
        let config = &life.guest()["config"];
        let name = if kind == "vm" { &config["name"] } else { &config["hostname"] };
        life.name = name.as_str().unwrap().to_owned();
        life.world.strata().run(&["adopt", "--yes", &format!("{}={vmid}", life.address())]).ok();
        life
    }

    fn address(&self) -> String {
        format!("{}/{}/{}", self.stack, self.kind, self.name)
    }

    fn file(&self) -> String {
        format!("stacks/{}/stack.yaml", self.stack)
    }

    fn edit(&self, edit: impl Fn(String) -> String) {
        self.world.repo.write(&self.file(), &edit(self.world.repo.read(&self.file())));
    }

    fn assert_empty_plan(&self, what: &str) {
        self.world.assert_empty_plan_of(self.stack, what);
    }

    fn guest(&self) -> Value {
        let export = self.world.sim.export();
        let mut guests = export["guests"].as_array().unwrap().iter();
        guests.find(|guest| guest["vmid"] == self.vmid).cloned().unwrap_or_default()
    }

    /// Sets a key of the guest behind Strata's back.
    fn set(&self, key: &str, value: &Value) {
        self.world.sim.control().change(&json!({"edit": {"vmid": self.vmid, "set": {key: value}}}));
    }

    /// The datacenter without this guest and what is its own.
    fn others(&self) -> Value {
        let mut export = self.world.world();
        let own = |one: &Value| one["vmid"] == self.vmid;
        for part in ["guests", "volumes"] {
            export[part].as_array_mut().unwrap().retain(|one| !own(one));
        }
        export
    }

    /// The guest as it is, but for its notes.
    fn but_notes(&self) -> Value {
        let mut guest = self.guest();
        for key in ["description", "digest"] {
            guest["config"].as_object_mut().unwrap().remove(key);
        }
        guest
    }

    /// Does something, kills it at each of the requests, and has the same command finish it. `prepare` makes that there is something to
    /// do, before every run.
    fn killed(
        &mut self,
        what: &str,
        some: &dyn Fn(u64) -> bool,
        arguments: &dyn Fn(&Self) -> Vec<String>,
        prepare: &dyn Fn(&mut Self),
        check: &dyn Fn(&Self, &str),
    ) {
        let others = self.others();
        for kind in ["hold-before", "hold-after"] {
            for request in (1..400).filter(|request| some(*request)) {
                let what = format!("{what} of {}, {kind} {request}", self.vmid);
                prepare(self);
                let arguments = arguments(self);
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let control = self.world.sim.control();
                let fault = json!({"kind": kind, "nth": request});
                let killed = self.world.strata().kill_at(&control, &fault, &arguments);
                let struck = killed.struck_or_good(&what);
                let again = self.world.strata().run(&["apply", self.stack, "--yes"]);
                assert_eq!(again.code, 0, "{what}: {}", again.all());
                self.assert_empty_plan(&what);
                check(self, &what);
                assert!(self.others() == others, "{what}: something else changed");
                if !struck {
                    break;
                }
            }
        }
    }

    /// Into another stack, and back.
    fn moved(&mut self, some: &dyn Fn(u64) -> bool) {
        let before = self.but_notes();
        let other = |life: &mut Self| {
            let text = life.world.repo.read(&life.file());
            let text: String =
                text.split_inclusive('\n').filter(|line| !line.starts_with("moved:")).collect();
            life.world.repo.remove(&life.file());
            let from = life.address();
            life.stack = if life.stack == "one" { "two" } else { "one" };
            let moved = format!("moved: [{{from: {from}, to: {}}}]\n", life.address());
            life.world.repo.write(&life.file(), &format!("{text}{moved}"));
        };
        self.killed("moved", some, &apply, &other, &|life, what| {
            let notes = life.world.notes(life.vmid);
            assert!(notes.contains(&format!("{} vmid={}", life.address(), life.vmid)), "{what}: {notes}");
            assert_eq!(life.but_notes(), before, "{what}");
        });
    }

    /// Somebody else changes something, and it is brought back.
    fn drifted(&mut self, some: &dyn Fn(u64) -> bool) {
        let tags = self.guest()["config"]["tags"].clone();
        let drift = |life: &mut Self| {
            life.set("tags", &json!("not-ours"));
            let drift = life.world.strata().run(&["drift", life.stack]);
            assert_eq!(drift.code, 2, "{}", drift.all());
        };
        // Tags that nobody wrote are nobody's.
        self.edit(|text| match text.contains("tags:") {
            true => text,
            false => text.replacen("    vmId:", "    tags: [kept]\n    vmId:", 1),
        });
        self.world.strata().run(&["apply", self.stack, "--yes"]).ok();
        let wanted = if tags.is_null() { json!("kept") } else { tags };
        self.killed("drift", some, &selected, &drift, &|life, what| {
            assert_eq!(life.guest()["config"]["tags"], wanted, "{what}");
        });
    }

    /// A field is left to others.
    fn ignored(&mut self) {
        self.edit(|text| text.replacen("    vmId:", "    ignoreChanges: [tags, onboot]\n    vmId:", 1));
        self.assert_empty_plan("a field that is ignored is no change");
        self.set("tags", &json!("theirs"));
        self.assert_empty_plan("ignored");
        self.world.strata().run(&["apply", self.stack, "--yes"]).ok();
        assert_eq!(self.guest()["config"]["tags"], "theirs");
    }

    /// It is not replaced unless somebody agrees, and nothing of it is touched where it cannot be.
    fn refused(&self) {
        let (before, others) = (self.guest(), self.others());
        let asked = self.world.strata().run(&["apply", "--replace", &self.address()]);
        assert_eq!(asked.code, 3, "{}", asked.all());
        self.edit(|text| text.replacen("    vmId:", "    protect: true\n    vmId:", 1));
        let protected = self.world.strata().run(&["apply", "--replace", &self.address(), "--yes"]);
        assert_eq!(protected.code, 3, "{}", protected.all());
        assert_eq!((self.guest(), self.others() == others), (before, true));
        self.edit(|text| text.replace("    protect: true\n", ""));
    }

    /// It is deleted and made again.
    fn replaced(&mut self, some: &dyn Fn(u64) -> bool) {
        let replace =
            |life: &Self| ["apply", "--replace", &life.address(), "--yes"].map(str::to_owned).to_vec();
        self.killed("replaced", some, &replace, &|_| {}, &|life, what| {
            assert!(life.world.notes(life.vmid).contains(&life.address()), "{what}");
        });
    }
}

fn apply(life: &Life) -> Vec<String> {
    ["apply", life.stack, "--yes"].map(str::to_owned).to_vec()
}

fn selected(life: &Life) -> Vec<String> {
    vec!["apply".to_owned(), format!("{}/{}/*", life.stack, life.kind), "--yes".to_owned()]
}

/// Every verb on one guest; `some` of the requests of each run are those that it is killed at.
fn live(guest: (u32, &'static str), some: &dyn Fn(u64) -> bool) {
    let mut life = Life::new(guest);
    life.moved(some);
    life.drifted(some);
    life.ignored();
    life.refused();
}

#[test]
fn an_adopted_guest_lives_and_its_runs_are_killed() {
    live((101, "vm"), &|request| matches!(request, 9 | 14));
    live((202, "container"), &|request| request == 12);
}

#[test]
fn an_adopted_guest_is_replaced_where_it_can_be() {
    let mut life = Life::new((127, "vm"));
    life.replaced(&|request| request == 16);
    // What it was made from is not known.
    let life = Life::new((216, "container"));
    let before = life.guest();
    let refused = life.world.strata().run(&["apply", "--replace", &life.address(), "--yes"]);
    assert_ne!(refused.code, 0, "{}", refused.all());
    assert_eq!(life.guest(), before);
}

#[test]
#[ignore = "every verb on ten guests, killed at each request: just adopt-kill-test"]
fn adopt_kill_ten_guests() {
    for guest in TEN {
        println!("{} {}", guest.1, guest.0);
        live(guest, &|_| true);
    }
    for vmid in [127, 132] {
        Life::new((vmid, "vm")).replaced(&|_| true);
    }
}
