//! Every write in turn is answered and the answer lost, or held up: the operation ends as if nothing had happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value as Json, json};
use strata_engine::{Action, ErrorClass, Provider, Sighting};
use strata_proxmox::{ProxmoxOptions, ProxmoxProvider, kinds};
use strata_secret::SecretString;
use strata_sim::Pace;

use crate::life::{VM, iso_vm};
use crate::world::{World, assert_same_world, open_entry};

fn larger() -> Json {
    let mut wanted = iso_vm(4, "running");
    wanted["disks"]["scsi0"]["size"] = json!(12i64 << 30);
    wanted["disks"]["scsi1"] = json!({"storage": "tank", "size": 1i64 << 30});
    wanted["pool"] = json!("production");
    wanted["firewall"] = json!({
        "options": {"enable": true, "policy_in": "DROP"},
        "rules": [
            {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "443", "enable": true},
            {"type": "in", "action": "ACCEPT", "macro": "SSH", "enable": true, "comment": "ssh"}]
    });
    wanted
}

/// Made, changed and deleted, with one fault at the n-th write. Says whether there was an n-th write.
async fn life(fault: Json, nth: u64) -> (bool, Json) {
    let world = World::start().await;
    world.with_iso().await;
    let before = world.sim.export();
    let mut fault = fault;
    fault["writes"] = json!(true);
    fault["nth"] = json!(nth);
    world.fault(fault).await;
    let made = world.create(VM, iso_vm(2, "running")).await;
    let changed = world.update(VM, &made, larger()).await;
    let live = world.sim.export();
    world.delete(VM, &changed).await.unwrap();
    assert_same_world(&before, &world.sim.export(), &format!("deleted, fault at write {nth}"));
    let hit = world.control("GET", "/_sim/faults", json!(null)).await[0]["hit"] == 1;
    (hit, live)
}

async fn every_write(fault: Json) -> u64 {
    let (_, undisturbed) = life(fault.clone(), 10_000).await;
    for nth in 1.. {
        let (hit, live) = life(fault.clone(), nth).await;
        assert_same_world(&undisturbed, &live, &format!("fault at write {nth}"));
        if !hit {
            return nth - 1;
        }
    }
    unreachable!()
}

/// An image, a template of it, a clone, NoCloud data and a container: made, moved, and deleted.
async fn datacenter(fault: Json, nth: u64) -> (bool, Json) {
    let world = World::start().await;
    let before = world.sim.export();
    let mut fault = fault;
    fault["writes"] = json!(true);
    fault["nth"] = json!(nth);
    world.fault(fault).await;
    let mut made = crate::clones::with_template(&world).await;
    let mut clone = crate::clones::clone(9101, true);
    clone["clone"]["storage"] = json!("tank");
    for (slot, field) in [("disks", "scsi0"), ("cloudinit", "drive")] {
        clone[slot][field]["storage"] = json!("tank");
    }
    let vm = world.create("web/vm/web-9101", clone.clone()).await;
    clone["node"] = json!("pve3");
    clone["disks"]["scsi1"]["storage"] = json!("local-lvm");
    clone["disks"]["scsi1"]["size"] = json!(2i64 << 30);
    made.push(("web/vm/web-9101".to_owned(), world.update("web/vm/web-9101", &vm, clone).await));
    made.push((
        crate::containers::CONTAINER.to_owned(),
        world.create(crate::containers::CONTAINER, crate::containers::container()).await,
    ));
    let (spec, _) = crate::clones::cidata(&world, "aaaaaaaaaaaaaaaa");
    let operation = world.operation(Action::Create, "web/cidata/web-1", spec.clone());
    let outcome = world.execute(&operation).await.unwrap_or_else(|error| panic!("{error:?}"));
    made.push(("web/cidata/web-1".to_owned(), crate::world::recorded(spec, outcome)));
    let live = world.sim.export();
    for (address, known) in made.iter().rev() {
        world
            .delete(address, known)
            .await
            .unwrap_or_else(|error| panic!("{address}, write {nth}: {error:?}"));
    }
    assert_same_world(&before, &world.sim.export(), &format!("deleted, fault at write {nth}"));
    let hit = world.control("GET", "/_sim/faults", json!(null)).await[0]["hit"] == 1;
    (hit, live)
}

#[tokio::test]
async fn lost_answers_do_no_harm_to_clones_containers_and_volumes() {
    let (_, undisturbed) = datacenter(json!({"kind": "lost"}), 10_000).await;
    for nth in 1.. {
        let (hit, live) = datacenter(json!({"kind": "lost"}), nth).await;
        assert_same_world(&undisturbed, &live, &format!("fault at write {nth}"));
        if !hit {
            assert!(nth > 15, "{nth}");
            return;
        }
    }
}

#[tokio::test]
async fn lost_answers_do_no_harm() {
    // Create and start; configure, resize, firewall (options and two rules) and pool; shut down and delete.
    assert_eq!(every_write(json!({"kind": "lost"})).await, 10);
}

#[tokio::test]
async fn requests_that_never_arrived_are_sent_again() {
    every_write(json!({"kind": "cut"})).await;
}

#[tokio::test]
async fn locks_and_unreachable_nodes_are_waited_for() {
    let lock = "can't lock file '/var/lock/qemu-server/lock-9100.conf' - got timeout";
    every_write(json!({"kind": "refuse", "status": 500, "text": lock})).await;
    every_write(json!({"kind": "refuse", "status": 595, "text": "No route to host"})).await;
    every_write(json!({"kind": "refuse", "status": 596, "text": "Connection timed out"})).await;
}

#[tokio::test]
async fn reads_are_tried_again() {
    for kind in [
        json!({"kind": "lost", "method": "GET", "nth": 2}),
        json!({"kind": "refuse", "method": "GET", "status": 500, "text": "hiccup"}),
    ] {
        let world = World::start().await;
        world.with_iso().await;
        world.fault(kind).await;
        world.create(VM, iso_vm(2, "running")).await;
    }
}

#[tokio::test]
async fn a_create_whose_answer_was_lost_to_a_dead_run_is_settled_and_found() {
    let world = World::with("0.2".parse::<Pace>().unwrap(), None).await;
    world.with_iso().await;
    let spec = world.complete(VM, iso_vm(2, "stopped"));
    let clock = strata_net::SystemClock::new();
    let begun = strata_net::Clock::unix(&clock);
    world.fault(json!({"kind": "lost", "method": "POST", "path": "/nodes/*/qemu"})).await;
    // The run dies as soon as its request has been carried out.
    let operation = world.operation(Action::Create, VM, spec.clone());
    let run = world.execute(&operation);
    let struck = world.control("GET", "/_sim/wait-fault", json!(null));
    tokio::select! { _ = run => panic!("too quick"), _ = struck => {} }
    assert!(matches!(world.look(VM, &spec, None).await, Sighting::Busy(_)));
    let entry = open_entry(Action::Create, VM, kinds::VM.table().identity_of(&spec), begun);
    world.provider.wait_for_tasks(&entry, &world.told).await.unwrap();
    assert!(matches!(world.look(VM, &spec, None).await, Sighting::Ours(_)));
}

#[tokio::test]
async fn a_stranger_that_appears_while_our_create_is_retried_is_named() {
    let world = World::start().await;
    world.with_iso().await;
    world.fault(json!({"kind": "cut", "method": "POST", "path": "/nodes/*/qemu"})).await;
    let spec = world.complete(VM, iso_vm(2, "stopped"));
    world.somebody("POST", "/nodes/pve1/qemu", json!({"vmid": 9100, "name": "db"})).await;
    let before = world.sim.export();
    let error = world.execute(&world.operation(Action::Create, VM, spec)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert_eq!(
        error.to_string(),
        "VMID 9100 is taken: VM 9100 `db` on `pve1` exists and is not managed by this repository"
    );
    assert_eq!(world.sim.export(), before);
}

#[tokio::test]
async fn a_wrong_token_and_a_dead_endpoint_are_clear() {
    let world = World::start().await;
    world.with_iso().await;
    let spec = world.complete(VM, iso_vm(2, "stopped"));
    let address = VM.parse().unwrap();
    let wanted = [strata_engine::Wanted {
        address: &address,
        spec: &spec,
        recorded: None,
        begun: None,
        lineage: &world.lineage,
    }];
    let wrong =
        crate::world::connect(&world.sim, "strata@pve!demo=00000000-0000-0000-0000-000000000000", None);
    let error = wrong.observe_all(&wanted).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Refused);
    assert_eq!(error.to_string(), "cannot list the guests: Authentication failed!");
    let mut options = strata_proxmox::ProxmoxOptions::new("https://127.0.0.1:9", std::sync::Arc::new(|| 0));
    options.token = Some("a@pve!t=1234".into());
    options.retry.deadline = std::time::Duration::ZERO;
    let nobody = strata_proxmox::ProxmoxProvider::connect(options).unwrap();
    let error = nobody.observe_all(&wanted).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unreachable);
    assert!(error.hint.is_some());
}

/// Whoever accepts connections and closes them: how often one was tried.
#[tokio::test]
async fn a_target_that_never_answered_is_tried_once() {
    kinds::register();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("https://{}", listener.local_addr().unwrap());
    let tried = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tried);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    let mut options = ProxmoxOptions::new(endpoint, Arc::new(|| 0));
    options.token = Some(SecretString::from("a@pve!b=0f8fad5b-d9cb-469f-a165-70867728950e"));
    assert_eq!(options.first_connect_timeout.as_secs(), 3);
    let provider = ProxmoxProvider::connect(options).unwrap();
    let error = provider.shared_storages().await.unwrap_err();
    assert!(error.message.contains("cannot connect to"), "{error}");
    assert_eq!(tried.load(Ordering::SeqCst), 1);
}
