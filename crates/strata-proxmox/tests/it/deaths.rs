//! A run dies at any of its writes, before or after it was carried out; the next one finds what is there and finishes it.

use serde_json::{Value as Json, json};
use strata_engine::{Action, Operation, Outcome, Provider, Sighting};
use strata_resource::{Spec, diff_specs};
use strata_sim::Pace;

use crate::clones::{clone, with_template};
use crate::containers::{CONTAINER, container};
use crate::world::{World, assert_same_world, open_entry, recorded};

/// Makes one guest in a run that dies at its n-th write, and finishes it in a second run. False if there is no n-th write.
async fn die(address: &str, wanted: &Json, kind: &str, nth: u64) -> (bool, Json) {
    let world = World::with("0.02".parse::<Pace>().unwrap(), None).await;
    with_template(&world).await;
    let spec = world.complete(address, wanted.clone());
    let id =
        world.control("POST", "/_sim/faults", json!({"kind": kind, "writes": true, "nth": nth})).await["id"]
            .clone();
    let create = world.operation(Action::Create, address, spec.clone());
    let dead = {
        let run = world.execute(&create);
        let wait = format!("/_sim/wait-fault?timeout=30&id={id}");
        let struck = world.control("GET", &wait, json!(null));
        tokio::select! {
            done = run => { done.unwrap_or_else(|error| panic!("{error:?}")); false }
            _ = struck => true,
        }
    };
    if dead {
        world.control("POST", &format!("/_sim/faults/{id}/release"), json!({})).await;
        second_run(&world, address, &create).await;
    }
    (dead, world.sim.export())
}

/// What the engine does about an entry that it finds open.
async fn second_run(world: &World, address: &str, create: &Operation) {
    let spec = &create.spec;
    let mut identity: Spec = create.address.kind().table().identity_of(spec);
    for field in ["node", "clone"] {
        identity.extend(spec.get(field).map(|value| (field.to_owned(), value.clone())));
    }
    let begun = strata_net::Clock::unix(&strata_net::SystemClock::new()) - 1;
    world
        .provider
        .wait_for_tasks(&open_entry(Action::Create, address, identity, begun), &world.told)
        .await
        .unwrap();
    let outcome = match world.look(address, spec, None).await {
        Sighting::Absent => world.execute(create).await.unwrap(),
        Sighting::Ours(observed) => {
            let changes = diff_specs(create.address.kind().rules(), spec, None, &observed.spec).changes;
            let mut known = recorded(spec.clone(), Outcome { facts: observed.facts.clone() });
            known.partial = true;
            let update = Operation {
                action: Action::Update,
                recorded: Some(known),
                observed: Some(observed),
                changes,
                ..create.clone()
            };
            world.execute(&update).await.unwrap()
        }
        other => panic!("{other:?}"),
    };
    world.settled(address, &recorded(spec.clone(), outcome)).await;
}

async fn every_death(address: &str, wanted: Json) -> u64 {
    let (_, undisturbed) = die(address, &wanted, "hold-after", 10_000).await;
    let mut writes = 0;
    for kind in ["hold-before", "hold-after"] {
        for nth in 1.. {
            let (dead, live) = die(address, &wanted, kind, nth).await;
            assert_same_world(&undisturbed, &live, &format!("{kind} write {nth}"));
            if !dead {
                writes += nth - 1;
                break;
            }
        }
    }
    writes
}

#[tokio::test]
async fn a_clone_survives_the_death_of_its_maker() {
    let mut wanted = clone(9101, true);
    wanted["pool"] = json!("production");
    wanted["firewall"] = json!({"options": {"enable": true}, "rules": [
        {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "443", "enable": true}]});
    // Cloned, configured, resized, two calls for the firewall, started; each twice.
    assert_eq!(every_death("web/vm/web-9101", wanted).await, 12);
}

#[tokio::test]
async fn a_container_survives_the_death_of_its_maker() {
    assert_eq!(every_death(CONTAINER, container()).await, 4);
}
