//! What is asked before anything is begun.

use serde_json::json;
use strata_engine::{Action, Look, Operation, Provider};
use strata_proxmox::{Login, Privilege, required_role};
use strata_secret::SecretString;
use strata_sim::{Pace, ROOT_PASSWORD};

use crate::life::{VM, iso_vm};
use crate::world::{World, connect};

fn operations(world: &World) -> Vec<Operation> {
    let mut vm = iso_vm(2, "running");
    vm["pool"] = json!("production");
    let image = json!({"volume": format!("local:iso/{}-x.iso", world.lineage.short()), "storage": "local", "node": "pve2",
        "content": "iso", "url": "https://example.com/x.iso"});
    vec![
        world.operation(Action::Create, VM, world.complete(VM, vm)),
        world.operation(Action::Create, "web/image/x", world.complete("web/image/x", image)),
    ]
}

async fn wrong(world: &World, operations: &[Operation]) -> Vec<String> {
    let wrong = world.provider.preflight(&Look::default(), operations, &[]).await.unwrap();
    wrong.iter().map(|obstacle| obstacle.error.to_string()).collect()
}

#[tokio::test]
async fn places_that_are_not_there_are_named_all_at_once() {
    let world = World::start().await;
    assert_eq!(wrong(&world, &operations(&world)).await, Vec::<String>::new());
    let mut vm = iso_vm(2, "running");
    vm["disks"]["scsi0"]["storage"] = json!("nope");
    vm["disks"]["scsi1"] = json!({"storage": "local", "size": 1i64 << 30});
    vm["networks"]["net0"]["bridge"] = json!("vmbr9");
    vm["pool"] = json!("nowhere");
    let mut elsewhere = iso_vm(2, "running");
    elsewhere["vmid"] = json!(9101);
    elsewhere["node"] = json!("pve9");
    let operations = [
        world.operation(Action::Create, VM, world.complete(VM, vm)),
        world.operation(Action::Create, "web/vm/b", world.complete("web/vm/b", elsewhere)),
    ];
    assert_eq!(
        wrong(&world, &operations).await,
        [
            "`web/vm/b`: there is no node `pve9`",
            "`web/vm/web-1`: the storage `local` on `pve1` does not take disks of VMs (`images`)",
            "`web/vm/web-1`: there is no storage `nope` on `pve1`, or the token may not see it",
            "`web/vm/web-1`: there is no bridge `vmbr9` on `pve1`, or the token may not see it",
            "`web/vm/web-1`: there is no pool `nowhere`, or the token may not see it",
        ]
    );
}

#[tokio::test]
async fn what_stacks_before_it_take_is_taken_and_one_look_serves_all() {
    let world = World::start().await;
    let vm = |vmid: u32, storage: &str, node: &str, size: i64| {
        let mut vm = iso_vm(2, "stopped");
        vm["vmid"] = json!(vmid);
        vm["node"] = json!(node);
        vm["disks"] = json!({"scsi0": {"storage": storage, "size": size << 30}});
        let address = format!("web/vm/v{vmid}");
        world.operation(Action::Create, &address, world.complete(&address, vm))
    };
    let look = Look::default();
    let check = async |operations: &[Operation], earlier: &[Operation]| -> Vec<String> {
        let wrong = world.provider.preflight(&look, operations, earlier).await.unwrap();
        wrong.iter().map(|obstacle| format!("{}: {}", obstacle.address, obstacle.error)).collect()
    };
    let (first, second) = ([vm(9100, "local-lvm", "pve1", 500)], [vm(9101, "local-lvm", "pve1", 500)]);
    assert_eq!(check(&first, &[]).await, [""; 0]);
    let asked = world.sim.requests();
    assert_eq!(
        check(&second, &first).await,
        [
            "web/vm/v9101: `web/vm/v9101`: the storage `local-lvm` on `pve1` has 800 GiB and 1000 GiB are needed, 500 GiB of them by other stacks of this run"
        ]
    );
    assert_eq!(world.sim.requests(), asked, "everything was asked before");
    assert_eq!(check(&[vm(9102, "local-lvm", "pve2", 500)], &first).await, [""; 0]);
    // What all nodes share is one storage, and is told once.
    let shared = [vm(9103, "tank", "pve1", 15_000), vm(9104, "tank", "pve2", 15_000)];
    let wrong = check(&shared, &[]).await;
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].contains("has 20000 GiB and 30000 GiB are needed"), "{wrong:?}");
}

#[tokio::test]
async fn keys_that_a_token_cannot_set_are_named_unless_there_is_a_login() {
    let world = World::start().await;
    let mut vm = iso_vm(2, "stopped");
    vm["options"] = json!({"args": "-no-reboot"});
    vm["pci"] = json!({"hostpci0": {"device": "0000:01:00.0"}});
    let operation = world.operation(Action::Create, VM, world.complete(VM, vm.clone()));
    assert_eq!(
        wrong(&world, &[operation]).await,
        [
            "`web/vm/web-1`: only root@pam may set `options.args` (`args`); an API token is never root",
            "`web/vm/web-1`: only root@pam may set `pci.hostpci0` (`hostpci0`); an API token is never root",
        ]
    );
    let login = Login { user: "root@pam".to_owned(), password: SecretString::from(ROOT_PASSWORD) };
    let world = World::with(Pace::INSTANT, Some(login)).await;
    world.with_iso().await;
    let operation = world.operation(Action::Create, VM, world.complete(VM, vm.clone()));
    assert_eq!(wrong(&world, &[operation]).await, Vec::<String>::new());
    world.create(VM, vm).await;
}

#[tokio::test]
async fn a_computed_role_is_enough_and_every_privilege_of_it_is_needed() {
    let world = World::start().await;
    world.with_iso().await;
    let operations = operations(&world);
    let role = required_role(&operations, false, None);
    let token = "limited@pve!tok=0f8fad5b-d9cb-469f-a165-70867728950e";
    for missing in std::iter::once(None).chain(role.iter().copied().map(Some)) {
        let left: Vec<&str> = role
            .iter()
            .copied()
            .filter(|privilege| Some(*privilege) != missing)
            .map(Privilege::as_str)
            .collect();
        let limited = limited(&world, &left, token).await;
        let wrong = limited.preflight(&Look::default(), &operations, &[]).await.unwrap();
        match missing {
            None => {
                assert_eq!(wrong, []);
                for operation in &operations {
                    limited.execute(operation, &world.told).await.unwrap();
                }
            }
            Some(missing) => {
                let text = format!("`{missing}`");
                let named = wrong.iter().any(|obstacle| obstacle.error.message.contains(&text));
                assert!(named, "{missing}: {wrong:?}");
            }
        }
    }
}

/// A provider with a token that has exactly these privileges.
async fn limited(world: &World, privileges: &[&str], token: &str) -> strata_proxmox::ProxmoxProvider {
    let change = |method: &str, path: &str, params: serde_json::Value| json!({"method": method, "path": path, "params": params, "as": "root@pam"});
    let role = privileges.join(",");
    for call in [
        change("DELETE", "/access/users/limited@pve", json!({})),
        change("DELETE", "/access/roles/Limited", json!({})),
        change("POST", "/access/roles", json!({"roleid": "Limited", "privs": role})),
        change("POST", "/access/users", json!({"userid": "limited@pve"})),
        change("PUT", "/access/acl", json!({"path": "/", "users": "limited@pve", "roles": "Limited"})),
    ] {
        world.control("POST", "/_sim/change", call).await;
    }
    let made = world.somebody("POST", "/access/users/limited@pve/token/tok", json!({"privsep": 0})).await;
    let secret = made["data"]["value"].as_str().unwrap();
    let (id, _) = token.split_once('=').unwrap();
    connect(&world.sim, &format!("{id}={secret}"), None)
}
