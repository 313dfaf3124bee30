//! Somebody puts another file under a name of ours, before we make it or before we delete it: images, ISOs, container templates.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{APPLY, APPLY_PLAN, PLAN, Window, act_at, act_on, overwritten_knowingly, requests};
use crate::world::{STACK, World};

pub(super) const WINDOWS: [Window; 2] =
    [("files before they are made", survives_downloads), ("files before they are deleted", survives_removal)];

/// The names of our volumes in a plan.
fn names(world: &World) -> Vec<String> {
    let plan = world.repo.read(PLAN);
    let names: BTreeSet<&str> =
        plan.split('"').filter(|text| text.starts_with("local:") && text.contains("/strata-")).collect();
    assert!(names.len() > 3, "{names:?}");
    names.into_iter().map(str::to_owned).collect()
}

/// Puts another file under a name. False if there is one already, also where ours came at that very moment.
fn put(world: &World, volume: &str) -> bool {
    let before = find(world, volume).is_some();
    let asked = ask_for(world, volume);
    const PROBE: &str = "local:iso/of-somebody.iso";
    ask_for(world, PROBE);
    let size = |volume| find(world, volume).map(|row| row["size"].clone());
    let theirs = size(PROBE);
    assert!(theirs.is_some() && delete(world, PROBE));
    !before && asked && size(volume) == theirs
}

/// Somebody downloads their file as this one.
fn ask_for(world: &World, volume: &str) -> bool {
    let (content, name) = volume.trim_start_matches("local:").split_once('/').unwrap();
    let params =
        json!({"content": content, "filename": name, "url": "https://images.example/of-somebody-else"});
    let path = "/nodes/pve1/storage/local/download-url";
    let change = json!({"method": "POST", "path": path, "params": params});
    world.sim.control().change(&change)["status"] == 200
}

fn find(world: &World, volume: &str) -> Option<Value> {
    let export = world.export();
    export["volumes"].as_array().unwrap().iter().find(|row| row["volid"] == volume).cloned()
}

fn delete(world: &World, volume: &str) -> bool {
    let path = format!("/nodes/pve1/storage/local/content/{volume}");
    world.sim.control().change(&json!({"method": "DELETE", "path": path, "params": {}}))["status"] == 200
}

/// A file that somebody else put there after the plan is neither taken for ours nor overwritten nor deleted.
fn survives_downloads(k: u64) -> bool {
    survives_until(&json!({"kind": "hold-after", "nth": k, "count": 0}))
}

/// Its request is on the way: the server refuses it, and what is there by then is not taken for ours.
#[test]
fn a_file_that_comes_while_ours_is_asked_for_is_not_ours() {
    let asked = json!({"kind": "hold-before", "method": "POST", "path": "*/download-url", "count": 0});
    assert!(survives_until(&asked));
}

fn survives_until(k: &Value) -> bool {
    let world = World::instant(STACK);
    world.strata().run(&["plan", "-o", PLAN]).ok();
    let names = names(&world);
    let theirs = RefCell::new(Vec::new());
    let acted = act_on(&world, &APPLY_PLAN, k, &|| {
        let put = names.iter().filter(|name| put(&world, name));
        *theirs.borrow_mut() = put.map(|name| (name.clone(), find(&world, name))).collect();
    });
    let listed = world.strata().run(&["state", "list", "web"]);
    let requests = requests(&world);
    let survives = |when: &str| {
        for (name, file) in theirs.borrow().iter() {
            let uploads = overwritten_knowingly(
                &requests,
                acted.unwrap_or_default(),
                "GET /nodes/pve1/storage/local/content",
                "POST /nodes/pve1/storage/local/upload",
            );
            // An upload overwrites without a word: there the window between look and upload stays.
            let same = find(&world, name) == *file;
            assert!(same || (!uploads && name.contains("-9110-")), "{k}: {name} {when}: {}", listed.all());
        }
    };
    survives("after the apply");
    let again = world.strata().run(&APPLY);
    let expected = if theirs.borrow().is_empty() { 0 } else { 3 };
    let uploaded_over = theirs.borrow().iter().any(|(name, file)| find(&world, name) != *file);
    assert!(again.code == expected || uploaded_over, "{k}: {}", again.all());
    world.strata().run(&["destroy", "--yes"]);
    survives("after a destroy");
    for (name, _) in theirs.borrow().iter() {
        delete(&world, name);
    }
    world.strata().run(&APPLY).ok();
    world.assert_settled();
    acted.is_some()
}

/// Somebody replaces files of ours after a plan to destroy: theirs are not deleted, unless they came after the last look.
fn survives_removal(k: u64) -> bool {
    let world = World::instant(STACK);
    world.strata().run(&APPLY).ok();
    world.strata().run(&["plan", "--destroy", "-o", PLAN]).ok();
    let names = names(&world);
    let theirs = RefCell::new(Vec::new());
    // One file after the other: the look before a delete is the one at that file.
    let one_by_one = [&APPLY_PLAN[..], &["--parallelism", "1"]].concat();
    let acted = act_at(&world, &one_by_one, k, &|| {
        let put = names.iter().filter(|name| delete(&world, name) && put(&world, name));
        *theirs.borrow_mut() = put.cloned().collect();
    });
    if let Some(acted) = acted {
        let requests = requests(&world);
        for name in theirs.borrow().iter() {
            let write = format!("DELETE /nodes/pve1/storage/local/content/{name}");
            let look = "GET /nodes/pve1/storage/local/content";
            let known = overwritten_knowingly(&requests, acted, look, &write);
            assert!(find(&world, name).is_some() || !known, "{k}: {name} was deleted: {requests:#?}");
        }
    }
    acted.is_some()
}
