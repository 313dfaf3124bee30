//! A run that failed or died, and then **another source**: whatever the disturbed run left must be found by the next one, although the
//! source does not ask for it any more. The world then equals one that was never disturbed.

use serde_json::{Value, json};

use crate::kill::assert_same;
use crate::world::{STACK, World};

/// What is applied before, what is applied while something goes wrong, and what the source says after that.
struct Story {
    name: &'static str,
    first: Option<String>,
    begun: String,
    /// None: everything is destroyed.
    then: Option<String>,
}

fn without(stack: &str, from: &str, to: &str) -> String {
    let begin = stack.find(from).unwrap();
    let end = begin + stack[begin..].find(to).unwrap();
    format!("{}{}", &stack[..begin], &stack[end..])
}

fn edited(stack: &str, edits: &[(&str, &str)]) -> String {
    edits.iter().fold(stack.to_owned(), |stack, (from, to)| {
        assert!(stack.contains(from), "no `{from}`");
        stack.replace(from, to)
    })
}

fn stories() -> Vec<Story> {
    let fewer = without(&without(STACK, "  own:\n", "  rescue:\n"), "containers:\n", "outputs:\n");
    let fewer = edited(&fewer, &[("    count: 2\n", "    count: 1\n")]);
    let more = edited(
        STACK,
        &[
            ("    cores: 2\n    memory: 4096\n", "    cores: 4\n    memory: 6144\n    notes: more\n"),
            ("size: 20}, scsi1: {storage: tank, size: 5}}", "size: 24}, scsi1: {storage: tank, size: 6}}"),
            (
                "gateway: 192.0.2.1}]\n    cloudInit",
                "gateway: 192.0.2.1}, {bridge: vmbr1, vlan: 7}]\n    cloudInit",
            ),
            (
                "destinationPort: \"443\"}]",
                "destinationPort: \"443\"}, {direction: in, action: DROP, protocol: udp}]",
            ),
            ("    pool: production\n", ""),
            ("    memory: 256\n", "    memory: 512\n    tags: [dns]\n"),
        ],
    );
    // Disks only grow, and a removed one is kept as unused; everything else goes back.
    let back = edited(
        STACK,
        &[("size: 20}, scsi1: {storage: tank, size: 5}}", "size: 24}, scsi1: {storage: tank, size: 6}}")],
    );
    vec![
        Story {
            name: "made, then partly taken out",
            first: None,
            begun: STACK.to_owned(),
            then: Some(fewer),
        },
        Story { name: "made, then destroyed", first: None, begun: STACK.to_owned(), then: None },
        Story {
            name: "changed, then put back",
            first: Some(STACK.to_owned()),
            begun: more,
            then: Some(back),
        },
    ]
}

/// What goes wrong, from the k-th request on.
fn faults() -> Vec<Value> {
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

fn is_death(fault: &Value) -> bool {
    fault["kind"].as_str().is_some_and(|kind| kind.starts_with("hold"))
}

impl Story {
    fn begin(&self) -> World {
        let world = World::new();
        if let Some(first) = &self.first {
            world.repo.write("stacks/web/stack.yaml", first);
            world.strata().run(&["apply", "--yes"]).ok();
        }
        world.repo.write("stacks/web/stack.yaml", &self.begun);
        world.sim.control().reset_requests();
        world
    }

    /// What the source says in the end, applied.
    fn end(&self, world: &World, what: &str) -> Value {
        let arguments: &[&str] = match &self.then {
            Some(then) => {
                world.repo.write("stacks/web/stack.yaml", then);
                &["apply", "--yes"]
            }
            None => &["destroy", "--yes"],
        };
        let ended = world.strata().run(arguments);
        assert_eq!(ended.code, 0, "{}: {what}\nthen:\n{}", self.name, ended.all());
        if self.then.is_some() {
            world.assert_settled();
        } else {
            let left = world.strata().run(&["state", "list", "web"]).ok();
            assert_eq!(left.stdout.trim(), "", "{}: {what}", self.name);
        }
        world.export()
    }

    fn undisturbed(&self) -> (Value, u64) {
        let world = self.begin();
        world.strata().run(&["apply", "--yes"]).ok();
        let requests = world.sim.requests();
        (self.end(&world, "undisturbed"), requests)
    }

    fn disturbed(&self, fault: &Value, k: u64, expected: &Value) {
        let world = self.begin();
        let control = world.sim.control();
        let mut order = fault.clone();
        order["nth"] = json!(k);
        let id = control.fault(&order);
        let arguments = ["apply", "--yes"];
        let what = if is_death(fault) {
            let mut child = world.strata().spawn(&arguments);
            while !control.wait_fault(id, 0.5) && child.try_wait().unwrap().is_none() {}
            child.kill().unwrap();
            child.wait().unwrap();
            control.release(id);
            order.to_string()
        } else {
            let ended = world.strata().run(&arguments);
            assert!(!ended.all().contains("panicked"), "{order}\n{}", ended.all());
            format!("{order}\n{}", ended.all())
        };
        control.clear_faults();
        let what = format!("{}: {what}", self.name);
        let found = self.end(&world, &what);
        assert_same(&found, expected, &what);
    }
}

fn disturb_every(step: usize, faults: &[Value]) {
    for story in stories() {
        let (expected, requests) = story.undisturbed();
        for (number, fault) in faults.iter().enumerate() {
            // Another beginning for each fault, so that a sample covers more requests.
            let tried: Vec<u64> = (1 + 7 * number as u64..=requests).step_by(step).collect();
            tried.iter().for_each(|k| story.disturbed(fault, *k, &expected));
            println!("{}: {fault}: {} of {requests} requests", story.name, tried.len());
        }
    }
}

#[test]
fn a_changed_source_after_a_fault_leaves_nothing_behind() {
    disturb_every(139, &faults());
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_then_change_the_source() {
    let faults: Vec<Value> = faults().into_iter().filter(|fault| !is_death(fault)).collect();
    disturb_every(1, &faults);
}

#[test]
#[ignore = "takes minutes: just kill-test"]
fn kill_all_then_change_the_source() {
    let deaths: Vec<Value> = faults().into_iter().filter(is_death).collect();
    disturb_every(1, &deaths);
}
