//! Resources, read and watched.

use std::time::Duration;

use strata_talos_client::{
    ConfigSlot, MachineStage, MachineStatus, Member, ResourceKind, TalosReason, WatchEvent,
};

use super::node;
use super::proto::{Field, answer, bytes, fields, nested, number, text};
use super::server::{Call, End, Reply};

/// A resource with this spec in YAML.
fn resource(id: &str, yaml: &str) -> Vec<Vec<u8>> {
    let metadata = nested(1, &[text(3, id), text(4, "5"), text(6, "running"), nested(7, &[number(1, 9)])]);
    vec![metadata, nested(2, &[text(2, yaml)])]
}

const STATUS: &str = "stage: booting\nstatus:\n    ready: false\n    unmetConditions:\n        - name: services\n          reason: etcd is not up\n";

fn sent(call: &Call) -> (String, String, Option<String>) {
    let fields = fields(&call.messages[0]);
    let text = |tag| {
        fields.iter().find_map(|(found, field)| match field {
            Field::Bytes(bytes) if *found == tag => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        })
    };
    (text(1).unwrap_or_default(), text(2).unwrap_or_default(), text(3))
}

fn get(call: &Call) -> Reply {
    let (namespace, kind, id) = sent(call);
    match (namespace.as_str(), kind.as_str(), id.as_deref()) {
        ("runtime", "MachineStatuses.runtime.talos.dev", Some("machine")) => {
            Reply::ok([nested(1, &resource("machine", STATUS))])
        }
        ("config", "MachineConfigs.config.talos.dev", Some("v1alpha1")) => {
            let spec = bytes(1, b"machine:\n  type: worker\n---\nkind: x\n");
            let metadata = nested(1, &[text(3, "v1alpha1")]);
            Reply::ok([nested(1, &[metadata, nested(2, &[bytes(1, &spec), text(2, "{}\n")])])])
        }
        ("network", "HostnameStatuses.net.talos.dev", Some("hostname")) => {
            Reply::ok([nested(1, &resource("hostname", "hostname: cp-1\ndomainname: \"\"\n"))])
        }
        ("etcd", "EtcdMembers.etcd.talos.dev", Some("local")) => {
            Reply::ok([nested(1, &resource("local", "memberID: b11b91cee2cd4d3b\n"))])
        }
        _ => Reply::status(5, "resource doesn't exist"),
    }
}

#[tokio::test]
async fn reads_what_a_node_is() {
    let (_server, client) = node(get).await;
    let status = client.machine_status().await.unwrap().unwrap();
    assert_eq!((status.stage, status.ready), (MachineStage::Booting, false));
    assert_eq!(
        (status.unmet[0].name.as_str(), status.unmet[0].reason.as_str()),
        ("services", "etcd is not up")
    );
    let config = client.machine_config(ConfigSlot::Active).await.unwrap().unwrap();
    assert_eq!(config.expose(), "machine:\n  type: worker\n---\nkind: x\n");
    assert!(client.machine_config(ConfigSlot::Persistent).await.unwrap().is_none());
    assert_eq!(client.hostname().await.unwrap().as_deref(), Some("cp-1"));
    assert_eq!(client.nodename().await.unwrap(), None);
    assert_eq!(client.etcd_member_id().await.unwrap(), Some(0xb11b_91ce_e2cd_4d3b));
}

#[tokio::test]
async fn lists_the_members() {
    let (server, client) = node(|_| {
        let member = |id: &str, kind: &str| {
            let yaml = format!(
                "nodeId: abc\naddresses:\n    - 192.0.2.41\n    - 2001:db8::1\nhostname: {id}\nmachineType: {kind}\noperatingSystem: Talos (v1.13.9)\n"
            );
            nested(1, &resource(id, &yaml))
        };
        Reply::ok([member("cp-1", "controlplane"), member("w-1", "worker")])
    })
    .await;
    let members = client.members().await.unwrap();
    let first = Member {
        hostname: "cp-1".to_owned(),
        addresses: vec!["192.0.2.41".to_owned(), "2001:db8::1".to_owned()],
        is_control_plane: true,
        operating_system: "Talos (v1.13.9)".to_owned(),
    };
    assert_eq!(members[0], first);
    assert!(members[1].hostname == "w-1" && !members[1].is_control_plane);
    assert_eq!(server.paths(), ["/cosi.resource.State/List"]);
}

#[tokio::test]
async fn a_boot_id_is_a_resource_or_a_file() {
    let (_server, client) = node(|_| Reply::ok([nested(1, &resource("boot-id", "bootID: 11-22\n"))])).await;
    assert_eq!(client.boot_id().await.unwrap(), "11-22");
    let (server, client) = node(|call| match call.path.as_str() {
        "/machine.MachineService/Read" => Reply::ok([bytes(2, b"33-"), bytes(2, b"44\n")]),
        _ => Reply::status(7, "resource type \"BootIDs.runtime.talos.dev\" is not supported"),
    })
    .await;
    assert_eq!(client.boot_id().await.unwrap(), "33-44");
    let sent = fields(&server.last_call().messages[0]);
    assert_eq!(sent, [(1, Field::text("/proc/sys/kernel/random/boot_id"))]);
}

#[tokio::test]
async fn maintenance_mode_before_1_13_tells_its_version_as_a_resource() {
    let (server, client) = node(|call| match call.path.as_str() {
        "/cosi.resource.State/Get" => Reply::ok([nested(1, &resource("version", "version: v1.12.3\n"))]),
        _ => Reply::status(12, "API is not implemented in maintenance mode"),
    })
    .await;
    assert_eq!(client.version().await.unwrap().tag, "v1.12.3");
    assert_eq!(server.paths().len(), 2);
    let (_server, client) = node(|_| Reply::ok([answer(&[number(2, 1_700_000_000)])])).await;
    assert_eq!(client.boot_time().await.unwrap(), 1_700_000_000);
}

fn event(kind: u64, resource: Option<Vec<Vec<u8>>>) -> Vec<u8> {
    let resource = resource.map(|resource| nested(1, &resource)).unwrap_or_default();
    nested(1, &[resource, number(2, kind)])
}

#[tokio::test]
async fn a_watch_tells_what_changes() {
    let (server, client) = node(|_| {
        let running = STATUS.replace("booting", "running").replace("false", "true");
        let both = [event(5, None), event(1, Some(resource("machine", &running)))].concat();
        let created = event(0, Some(resource("machine", STATUS)));
        Reply::ok([Vec::new(), created, both]).then(End::Silence)
    })
    .await;
    let idle = Duration::from_secs(1);
    let mut watch = client.watch(ResourceKind::MACHINE_STATUS, "machine", idle).await.unwrap();
    let Some(WatchEvent::Created(first)) = watch.next().await.unwrap() else { panic!("no event") };
    assert_eq!(MachineStatus::read(&first).stage, MachineStage::Booting);
    let Some(WatchEvent::Updated(second)) = watch.next().await.unwrap() else { panic!("no event") };
    let status = MachineStatus::read(&second);
    assert_eq!((status.stage, status.ready), (MachineStage::Running, true));
    let error = watch.next().await.err().expect("an error");
    assert!(matches!(error.reason, TalosReason::Timeout(_)), "{error}");
    let sent = fields(&server.last_call().messages[0]);
    assert!(sent.contains(&(3, Field::text("machine"))) && sent.contains(&(5, Field::Number(1))), "{sent:?}");
}

#[tokio::test]
async fn a_watch_of_a_kind_tells_what_is_there_first() {
    let (server, client) = node(|_| {
        let failed = nested(1, &[number(2, 4), text(4, "buffer overrun")]);
        Reply::ok([
            Vec::new(),
            event(0, Some(resource("a", "x: 1\n"))),
            event(3, None),
            event(2, Some(resource("a", ""))),
            failed,
        ])
    })
    .await;
    let mut watch = client.watch_kind(ResourceKind::MEMBERS, Duration::from_secs(5)).await.unwrap();
    assert!(matches!(watch.next().await.unwrap(), Some(WatchEvent::Created(found)) if found.id == "a"));
    assert!(matches!(watch.next().await.unwrap(), Some(WatchEvent::Bootstrapped)));
    assert!(
        matches!(watch.next().await.unwrap(), Some(WatchEvent::Destroyed(found)) if found.version == "5")
    );
    let error = watch.next().await.err().expect("an error");
    assert!(error.to_string().contains("buffer overrun"), "{error}");
    let sent = fields(&server.last_call().messages[0]);
    assert!(sent.contains(&(4, Field::Bytes(number(1, 1)))), "{sent:?}");
    assert!(sent.iter().all(|(tag, _)| *tag != 3), "{sent:?}");
}
