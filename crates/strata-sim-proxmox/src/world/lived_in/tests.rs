//! Walks what was written by hand: everything that is referred to is there, and the API would take every option back.

use std::collections::BTreeSet;

use strata_sim_core::Seed;

use super::images;
use crate::api::args::Arg;
use crate::api::check::{Errors, check_value};
use crate::api::{Param, format::parse_volume_id};
use crate::endpoints::{lxc, qemu};
use crate::world::begin::Beginning;
use crate::world::guest::{Config, Pending, RAW};
use crate::world::{Guest, GuestKind, World, WorldKind};

fn world() -> World {
    World::begin(&Beginning { world: WorldKind::LivedIn, seed: Seed(7), ..Beginning::default() })
}

/// Options that only the server sets.
const OWN: &[&str] = &["meta", "parent", "snaptime", "vmstate", "runningmachine", "runningcpu", RAW];

fn check(table: &[Param], what: &str, config: &Config) {
    for (key, value) in config.iter().filter(|(key, _)| !OWN.contains(&key.as_str())) {
        let param = table.iter().find(|param| param.name == key.as_str());
        let param = param.unwrap_or_else(|| panic!("{what}: no option `{key}`"));
        let mut errors = Errors::new();
        check_value(param, Some(&Arg::Text(value.clone())), key, &mut errors);
        assert!(errors.is_empty(), "{what}: {errors:?}");
    }
}

#[test]
fn there_are_sixty_guests_and_every_option_is_one_that_the_api_takes() {
    let world = world();
    assert_eq!(world.guests.len(), 60);
    let (vms, containers) = (qemu::schema::params(), lxc::schema::params());
    for guest in world.guests.values() {
        let table = if guest.kind == GuestKind::Qemu { &vms } else { &containers };
        check(table, &format!("{}", guest.vmid), &guest.config);
        for (name, config) in &guest.snapshots {
            check(table, &format!("{} at {name}", guest.vmid), config);
        }
        let pending = guest.pending.iter().filter_map(|(key, change)| match change {
            Pending::Set(value) => Some((key.clone(), value.clone())),
            Pending::Delete { .. } => None,
        });
        check(table, &format!("{} pending", guest.vmid), &pending.collect());
    }
}

/// The volumes that a guest's configurations name, CDs and snippets included.
fn named(guest: &Guest) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for config in std::iter::once(&guest.config).chain(guest.snapshots.values()) {
        all.extend(images(guest.kind, config).into_iter().map(|(volid, _)| volid));
        for (key, value) in config {
            let unused = qemu::drive::is_unused(key) || key == "vmstate" || key == "hookscript";
            let first = value.split(',').next().unwrap_or_default();
            let inserted = value.contains("media=cdrom") && first.contains(':');
            if unused || inserted {
                all.insert(first.to_owned());
            }
            if key == "cicustom" {
                all.extend(value.split(',').filter_map(|p| Some(p.split_once('=')?.1.to_owned())));
            }
        }
    }
    all
}

#[test]
fn every_volume_that_a_guest_names_is_there_on_a_storage_of_its_node() {
    let world = world();
    for guest in world.guests.values() {
        for volid in named(guest) {
            let (storage, _) = parse_volume_id(&volid).unwrap();
            assert!(world.storage_on(storage, &guest.node).is_ok(), "{}: {volid}", guest.vmid);
            let volume = world.volume(&volid, &guest.node);
            let volume = volume.unwrap_or_else(|| panic!("{}: no volume {volid}", guest.vmid));
            assert!(world.storages[storage].holds(&volume.content), "{}: {volid}", guest.vmid);
            let place = world.place(&volid, &guest.node).unwrap();
            assert_eq!(world.volid(&place), volid, "a linked clone knows its base");
            if let Some(base) = &volume.parent {
                let base = world.volume(&format!("{storage}:{base}"), &guest.node);
                let template = base.and_then(|base| base.vmid).map(|vmid| &world.guests[&vmid]);
                assert!(template.is_some_and(|guest| guest.flag("template")), "{}: {volid}", guest.vmid);
            }
        }
    }
}

#[test]
fn snapshots_are_chains_that_end_and_their_volumes_know_them() {
    let world = world();
    let mut longest = 0;
    for guest in world.guests.values() {
        let mut at = guest.get("parent");
        let mut seen = BTreeSet::new();
        while let Some(name) = at {
            assert!(seen.insert(name), "{}: {name} is its own parent", guest.vmid);
            let config = guest.snapshots.get(name);
            let config = config.unwrap_or_else(|| panic!("{}: no snapshot {name}", guest.vmid));
            assert!(config.contains_key("snaptime"));
            for (volid, _) in images(guest.kind, config) {
                let volume = world.volume(&volid, &guest.node).unwrap();
                assert!(volume.snapshots.iter().any(|snapshot| snapshot == name), "{volid} at {name}");
            }
            at = config.get("parent").map(String::as_str);
        }
        assert_eq!(seen.len(), guest.snapshots.len(), "{}: a snapshot that nothing leads to", guest.vmid);
        longest = longest.max(seen.len());
    }
    assert_eq!(longest, 3);
}

#[test]
fn what_stands_around_the_guests_names_only_what_there_is() {
    let world = world();
    let exists = |vmid: &str| vmid.parse().is_ok_and(|vmid: u32| world.guests.contains_key(&vmid));
    for (id, pool) in &world.pools {
        assert!(pool.vms.iter().all(|vmid| world.guests.contains_key(vmid)), "{id}");
        assert!(pool.storage.iter().all(|storage| world.storages.contains_key(storage)), "{id}");
    }
    for (sid, _) in world.cluster.file("ha/resources") {
        assert!(sid.split_once(':').is_some_and(|(_, vmid)| exists(vmid)), "{sid}");
    }
    for (id, job) in world.cluster.file("replication") {
        let guest = &world.guests[&id.split_once('-').unwrap().0.parse().unwrap()];
        assert_eq!(job.props["source"], guest.node, "{id}");
        assert!(world.nodes.contains_key(&job.props["target"]), "{id}");
    }
    for (id, job) in world.cluster.file("backup") {
        assert!(world.storages[&job.props["storage"]].holds("backup"), "{id}");
        let vmids = job.props.get("vmid").into_iter().chain(job.props.get("exclude"));
        assert!(vmids.flat_map(|list| list.split(',')).all(exists), "{id}");
    }
    for (path, acl) in &world.access.acl {
        let roles = acl.users.values().chain(acl.groups.values()).chain(acl.tokens.values());
        for role in roles.flat_map(|granted| granted.keys()) {
            assert!(world.access.roles.contains_key(role), "{path}: {role}");
        }
        assert!(acl.groups.keys().all(|group| world.access.groups.contains_key(group)), "{path}");
    }
    for (role, list) in &world.access.roles {
        assert!(list.privs.iter().all(|privilege| crate::world::privileges::exists(privilege)), "{role}");
    }
    for guest in world.guests.values() {
        for (key, value) in guest.config.iter().filter(|(key, _)| key.starts_with("net")) {
            let bridge = value.split(',').find_map(|part| part.strip_prefix("bridge="));
            assert!(bridge.is_some_and(|bridge| world.nodes[&guest.node].has_bridge(bridge)), "{key}");
        }
    }
}
