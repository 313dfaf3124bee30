//! Stories that tests disturb: what is applied before, what is applied while something goes wrong, and what the source says after that.

mod datacenter;
mod guests;
mod newest;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

pub(crate) use self::datacenter::stories as datacenter_stories;
pub(crate) use self::guests::{changes, images, removals};
pub(crate) use self::newest::stories as newest_stories;
use crate::high_availability;
use crate::kill::assert_same;
use crate::layer0::{self, without_settings};
use crate::world::World;

/// What the source says, and which command makes it so.
#[derive(Clone)]
pub(crate) enum Source {
    Text(String),
    /// The source stays, and everything is destroyed.
    Destroyed,
    /// The file is removed.
    Removed,
}

impl Source {
    fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

pub(crate) struct Story {
    pub(crate) name: &'static str,
    pub(crate) layer: Layer,
    pub(crate) first: Option<String>,
    pub(crate) begun: Source,
    pub(crate) then: Source,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Layer {
    Guests,
    Datacenter,
}

impl Layer {
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Guests => "stacks/web/stack.yaml",
            Self::Datacenter => layer0::FILE,
        }
    }

    fn world(self, source: &str) -> World {
        match self {
            // Guests that are copied to other hosts need a storage for it.
            Self::Guests if source.contains("storage: copies") => high_availability::with_copies(source),
            Self::Guests => {
                let world = World::new();
                world.repo.write("stacks/web/other.yaml", "#cloud-config\npackages: [nginx]\n");
                world.repo.write(self.file(), source);
                world
            }
            Self::Datacenter => layer0::datacenter(source),
        }
    }
}

/// A stack without everything from one text up to another.
pub(crate) fn without(stack: &str, from: &str, to: &str) -> String {
    let begin = stack.find(from).unwrap_or_else(|| panic!("no `{from}`"));
    let end = begin + stack[begin..].find(to).unwrap_or_else(|| panic!("no `{to}`"));
    format!("{}{}", &stack[..begin], &stack[end..])
}

pub(crate) fn edited(stack: &str, edits: &[(&str, &str)]) -> String {
    edits.iter().fold(stack.to_owned(), |stack, (from, to)| {
        assert!(stack.contains(from), "no `{from}`");
        stack.replace(from, to)
    })
}

/// A staged file that says the same as the one in force changes nothing, and no answer of the server shows it.
fn without_empty_staging(mut export: Value) -> Value {
    let settings = |interfaces: &Value| {
        let mut interfaces = interfaces.clone();
        for interface in interfaces.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
            interface["active"] = Value::Null;
        }
        interfaces
    };
    for node in export["nodes"].as_array_mut().unwrap() {
        if settings(&node["staged"]) == settings(&node["interfaces"]) {
            node["staged"] = Value::Null;
        }
    }
    export
}

/// What goes wrong, from the k-th request on.
pub(crate) fn faults() -> Vec<Value> {
    vec![
        json!({"kind": "refuse", "status": 403, "text": "Permission check failed", "writes": true, "count": 0}),
        json!({"kind": "refuse", "status": 401, "text": "Authentication failed!", "count": 0}),
        json!({"kind": "refuse", "status": 400, "text": "Parameter verification failed."}),
        json!({"kind": "refuse", "status": 500, "text": "checksum mismatch (file change by other user?)"}),
        json!({"kind": "refuse", "status": 500, "text": "some error of the server", "count": 0}),
        json!({"kind": "lost"}),
        json!({"kind": "hold-before"}),
        json!({"kind": "hold-after"}),
    ]
}

pub(crate) fn is_death(fault: &Value) -> bool {
    fault["kind"].as_str().is_some_and(|kind| kind.starts_with("hold"))
}

impl Story {
    /// Brings the source to where it is to be; gives the command that follows.
    fn turn(&self, world: &World, to: &Source) -> &'static [&'static str] {
        match to {
            Source::Text(text) => world.repo.write(self.layer.file(), text),
            Source::Destroyed => return &["destroy", "--yes"],
            Source::Removed => {
                world.repo.remove(self.layer.file());
                return &["apply", "--yes", "--allow-removed-stacks"];
            }
        }
        &["apply", "--yes"]
    }

    /// The world in which the command that follows is disturbed.
    pub(crate) fn begin(&self) -> (World, &'static [&'static str]) {
        let first = match (&self.first, &self.begun) {
            (Some(first), _) | (None, Source::Text(first)) => first,
            _ => panic!("`{}` begins with nothing", self.name),
        };
        let world = self.layer.world(first);
        if self.first.is_some() {
            world.strata().run(&["apply", "--yes"]).ok();
        }
        let command = self.turn(&world, &self.begun);
        world.sim.control().reset_requests();
        (world, command)
    }

    /// What the source says in the end, applied.
    fn end(&self, world: &World, what: &str) -> Value {
        let command = self.turn(world, &self.then);
        let ended = world.strata().run(command);
        assert_eq!(ended.code, 0, "{}: {what}\nthen:\n{}", self.name, ended.all());
        let stack = if self.layer == Layer::Datacenter { "dc" } else { "web" };
        match self.then {
            Source::Text(_) => world.assert_settled(),
            // Nothing is known any more: neither of the stack, nor of anything in it.
            _ => {
                let left = world.strata().run(&["state", "list", stack]);
                assert_eq!(left.stdout.trim(), "", "{}: {what}", self.name);
            }
        }
        high_availability::wait_for_removals(world);
        let mut export = without_empty_staging(world.export());
        // A removal of a subnet takes its gateway out of the kept addresses at once, and Proxmox' rollback does not bring it back.
        export["ipam"] = Value::Null;
        let settings = ["\ndns:", "\noptions:"];
        let says_settings =
            matches!(&self.then, Source::Text(text) if settings.iter().any(|one| text.contains(one)));
        if self.layer == Layer::Datacenter && !says_settings {
            return without_settings(export);
        }
        export
    }

    /// How the world looks in the end, and how many requests the middle took.
    pub(crate) fn undisturbed(&self) -> (Value, u64) {
        let (world, command) = self.begin();
        world.strata().run(command).ok();
        let requests = world.sim.requests();
        (self.end(&world, "undisturbed"), requests)
    }

    pub(crate) fn disturbed(&self, fault: &Value, k: u64, expected: &Value) {
        let (world, command) = self.begin();
        let control = world.sim.control();
        let mut order = fault.clone();
        order["nth"] = json!(k);
        let what = if is_death(fault) {
            world.strata().kill_at(&control, &order, command);
            order.to_string()
        } else {
            control.fault(&order);
            let ended = world.strata().run(command);
            assert!(!ended.all().contains("panicked"), "{order}\n{}", ended.all());
            control.clear_faults();
            format!("{order}\n{}", ended.all())
        };
        let what = format!("{}: {what}", self.name);
        let found = self.end(&world, &what);
        assert_same(&found, expected, &what);
    }
}

/// Tries all faults at every `step`-th request of each story. `STRATA_STEP` makes a long run shorter, `STRATA_STORY` tries those alone whose
/// name has that text.
pub(crate) fn disturb_every(stories: &[Story], step: usize, faults: &[Value]) {
    let step = std::env::var("STRATA_STEP").ok().and_then(|step| step.parse().ok()).unwrap_or(step);
    let only = std::env::var("STRATA_STORY").unwrap_or_default();
    let mut failed = Vec::new();
    for story in stories.iter().filter(|story| story.name.contains(&only)) {
        let (expected, requests) = story.undisturbed();
        for (number, fault) in faults.iter().enumerate() {
            // Another beginning for each fault, so that a sample covers more requests.
            let first = 1 + 7 * number as u64 % step as u64;
            let tried: Vec<u64> = (first..=requests).step_by(step).collect();
            for k in &tried {
                // One that fails does not keep the others from being tried.
                if catch_unwind(AssertUnwindSafe(|| story.disturbed(fault, *k, &expected))).is_err() {
                    failed.push(format!("{}: {fault} at {k}", story.name));
                }
            }
            println!("{}: {fault}: {} of {requests} requests", story.name, tried.len());
        }
    }
    assert!(failed.is_empty(), "{} failed: {failed:#?}", failed.len());
}

/// Tries one fault of each story, at other requests and with another fault in each.
pub(crate) fn disturb_some(stories: &[Story]) {
    let faults = faults();
    for (number, story) in stories.iter().enumerate() {
        let (expected, requests) = story.undisturbed();
        let fault = &faults[(3 * number) % faults.len()];
        // In the later part of a run, where something was done already.
        let k = requests * (3 + number as u64 % 3) / 6;
        story.disturbed(fault, k, &expected);
    }
}
