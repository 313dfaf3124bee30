//! What goes over the wire in each call.

use std::time::Duration;

use strata_net::WritePermit;
use strata_secret::SecretString;
use strata_talos_client::{
    ApplyMode, EtcdAlarm, EtcdAlarmKind, EtcdMember, RebootMode, Reset, Service, Wipe,
};

use super::node;
use super::proto::{Field, answer, fields, nested, number, text};
use super::server::Reply;

#[tokio::test]
async fn a_configuration_goes_with_its_mode() {
    let (server, client) = node(|_| {
        let details = "Dry run summary:\nApplied (skipped in dry-run).\nConfig diff:\n\n+ key: secret";
        Reply::ok([answer(&[text(2, "careful"), number(3, 0), text(4, details)])])
    })
    .await;
    let config = SecretString::from("machine: {}");
    let applied =
        client.apply_configuration(&WritePermit::unbound(), &config, ApplyMode::Auto, true).await.unwrap();
    assert_eq!(applied.warnings, ["careful"]);
    assert!(applied.reboots);
    assert_eq!(applied.details, "Dry run summary:\nApplied (skipped in dry-run).");
    let call = server.last_call();
    assert_eq!(call.path, "/machine.MachineService/ApplyConfiguration");
    assert_eq!(
        fields(&call.messages[0]),
        [(1, Field::text("machine: {}")), (4, Field::Number(1)), (5, Field::Number(1))]
    );
    for (mode, number) in [(ApplyMode::NoReboot, 2), (ApplyMode::Staged, 3)] {
        client.apply_configuration(&WritePermit::unbound(), &config, mode, false).await.unwrap();
        let sent = fields(&server.last_call().messages[0]);
        assert_eq!(sent, [(1, Field::text("machine: {}")), (4, Field::Number(number))]);
    }
    // The mode that is zero is the one that is not written.
    client.apply_configuration(&WritePermit::unbound(), &config, ApplyMode::Reboot, false).await.unwrap();
    assert_eq!(fields(&server.last_call().messages[0]), [(1, Field::text("machine: {}"))]);
    client
        .apply_configuration(&WritePermit::unbound(), &config, ApplyMode::Try(Duration::from_secs(90)), false)
        .await
        .unwrap();
    let sent = fields(&server.last_call().messages[0]);
    assert_eq!(sent[1..], [(4, Field::Number(4)), (6, Field::Bytes(number(1, 90)))]);
}

#[tokio::test]
async fn bootstrap_says_whether_to_recover() {
    let (server, client) = node(|_| Reply::ok([answer(&[])])).await;
    client.bootstrap(&WritePermit::unbound()).await.unwrap();
    assert_eq!(fields(&server.last_call().messages[0]), []);
    client.bootstrap_recovered(&WritePermit::unbound(), false).await.unwrap();
    assert_eq!(fields(&server.last_call().messages[0]), [(1, Field::Number(1))]);
    client.bootstrap_recovered(&WritePermit::unbound(), true).await.unwrap();
    assert_eq!(fields(&server.last_call().messages[0]), [(1, Field::Number(1)), (2, Field::Number(1))]);
    assert!(server.paths().iter().all(|path| path == "/machine.MachineService/Bootstrap"));
}

#[tokio::test]
async fn reboot_and_reset_say_what_they_mean() {
    let (server, client) = node(|_| Reply::ok([answer(&[text(2, "actor")])])).await;
    client.reboot(&WritePermit::unbound(), RebootMode::Default).await.unwrap();
    assert_eq!(fields(&server.last_call().messages[0]), []);
    client.reboot(&WritePermit::unbound(), RebootMode::PowerCycle).await.unwrap();
    assert_eq!(fields(&server.last_call().messages[0]), [(1, Field::Number(1))]);
    let wipe = Wipe::Partitions(vec!["EPHEMERAL".to_owned(), "STATE".to_owned()]);
    client.reset(&WritePermit::unbound(), &Reset { wipe, graceful: true, reboot: true }).await.unwrap();
    let partition = |label| (3, Field::Bytes([text(1, label), number(2, 1)].concat()));
    assert_eq!(
        fields(&server.last_call().messages[0]),
        [
            (1, Field::Number(1)),
            (2, Field::Number(1)),
            partition("EPHEMERAL"),
            partition("STATE"),
            (5, Field::Number(1)),
        ]
    );
    let calls = server.paths().len();
    let nothing = Reset { wipe: Wipe::Partitions(Vec::new()), graceful: true, reboot: true };
    assert!(client.reset(&WritePermit::unbound(), &nothing).await.unwrap_err().is_certainly_undone());
    assert_eq!(server.paths().len(), calls, "what names nothing is never sent");
}

#[tokio::test]
async fn services_tell_their_health() {
    let (_server, client) = node(|_| {
        let healthy = nested(4, &[number(2, 1), text(3, "fine")]);
        let etcd = nested(2, &[text(1, "etcd"), text(2, "Running"), healthy]);
        let unchecked = nested(4, &[number(1, 1)]);
        let udevd = nested(2, &[text(1, "udevd"), text(2, "Waiting"), unchecked]);
        Reply::ok([answer(&[etcd, udevd])])
    })
    .await;
    let service = |id: &str, state: &str, healthy, message: &str| Service {
        id: id.to_owned(),
        state: state.to_owned(),
        healthy,
        message: message.to_owned(),
    };
    assert_eq!(
        client.services().await.unwrap(),
        [service("etcd", "Running", Some(true), "fine"), service("udevd", "Waiting", None, "")]
    );
}

#[tokio::test]
async fn etcd_tells_its_members() {
    let (server, client) = node(|_| {
        let member = [
            number(2, u64::MAX),
            text(3, "cp-1"),
            text(4, "https://192.0.2.41:2380"),
            text(5, "https://192.0.2.41:2379"),
        ];
        let learner = [number(2, 7), number(6, 1)];
        Reply::ok([answer(&[nested(3, &member), nested(3, &learner)])])
    })
    .await;
    let members = client.etcd_members().await.unwrap();
    assert_eq!(members[0].id, u64::MAX);
    assert_eq!(
        (members[0].hostname.as_str(), members[0].peer_urls[0].as_str(), members[0].is_learner),
        ("cp-1", "https://192.0.2.41:2380", false)
    );
    assert_eq!(members[0].client_urls, ["https://192.0.2.41:2379"]);
    let learner = EtcdMember {
        id: 7,
        hostname: String::new(),
        peer_urls: Vec::new(),
        client_urls: Vec::new(),
        is_learner: true,
    };
    assert_eq!(members[1], learner);
    client.etcd_members_local().await.unwrap();
    assert_eq!(fields(&server.last_call().messages[0]), [(1, Field::Number(1))]);
}

#[tokio::test]
async fn etcd_tells_its_status_and_alarms() {
    let (server, client) = node(|call| match call.path.rsplit('/').next() {
        Some("EtcdStatus") => {
            let status = [
                text(1, "3.6.5"),
                number(2, 100),
                number(3, 60),
                number(4, 9),
                number(5, 1000),
                number(6, 3),
                number(7, 999),
                text(8, "alarm"),
                number(9, 1),
                number(10, 8),
                text(11, "3.6.0"),
            ];
            Reply::ok([answer(&[nested(2, &status)])])
        }
        Some("EtcdForfeitLeadership") => Reply::ok([answer(&[text(2, "cp-2")])]),
        Some("EtcdRemoveMemberByID" | "EtcdLeaveCluster") => Reply::ok([answer(&[])]),
        _ => {
            let alarm = |member, kind| nested(2, &[number(1, member), number(2, kind)]);
            Reply::ok([answer(&[alarm(8, 1), alarm(9, 2), alarm(10, 0), alarm(11, 5)])])
        }
    })
    .await;
    let status = client.etcd_status().await.unwrap();
    assert_eq!((status.member_id, status.leader, status.is_learner), (8, 9, true));
    assert_eq!((status.db_size, status.db_size_in_use), (100, 60));
    assert_eq!((status.raft_term, status.raft_index, status.raft_applied_index), (3, 1000, 999));
    assert_eq!((status.version.as_str(), status.errors), ("3.6.5", vec!["alarm".to_owned()]));
    let alarm = |member_id, kind| EtcdAlarm { member_id, kind };
    let alarms = [
        alarm(8, EtcdAlarmKind::NoSpace),
        alarm(9, EtcdAlarmKind::Corrupt),
        alarm(11, EtcdAlarmKind::Other(5)),
    ];
    assert_eq!(client.etcd_alarms().await.unwrap(), alarms);
    assert_eq!(client.etcd_disarm_alarms(&WritePermit::unbound()).await.unwrap(), alarms);
    assert_eq!(
        client.etcd_forfeit_leadership(&WritePermit::unbound()).await.unwrap().as_deref(),
        Some("cp-2")
    );
    client.etcd_leave_cluster(&WritePermit::unbound()).await.unwrap();
    client.etcd_remove_member(&WritePermit::unbound(), u64::MAX).await.unwrap();
    assert_eq!(fields(&server.last_call().messages[0]), [(1, Field::Number(u64::MAX))]);
    let calls: Vec<String> =
        server.paths().iter().map(|path| path.replace("/machine.MachineService/", "")).collect();
    assert_eq!(
        calls,
        [
            "EtcdStatus",
            "EtcdAlarmList",
            "EtcdAlarmDisarm",
            "EtcdForfeitLeadership",
            "EtcdLeaveCluster",
            "EtcdRemoveMemberByID"
        ]
    );
}
