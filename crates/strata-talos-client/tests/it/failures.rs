//! Calls that fail, and what is known afterwards.

use strata_net::{DialMap, WritePermit};
use strata_secret::{Redactor, SecretString};
use strata_talos_client::{TalosClient, TalosReason};
use tokio::net::TcpListener;

use super::proto::answer;
use super::server::{End, Reply, Server, Tls};
use super::{NODE, bundle, credentials, dial, impatient, node};

#[tokio::test]
async fn statuses_have_their_reasons() {
    for (code, undone, transient, check) in [
        (7, true, false, (|reason| matches!(reason, TalosReason::Refused(_))) as fn(&TalosReason) -> bool),
        (16, true, false, |reason| matches!(reason, TalosReason::Refused(_))),
        (6, true, false, |reason| matches!(reason, TalosReason::AlreadyExists(_))),
        (12, true, false, |reason| matches!(reason, TalosReason::Unimplemented(_))),
        (9, true, true, |reason| matches!(reason, TalosReason::FailedPrecondition(_))),
        (5, true, false, |reason| matches!(reason, TalosReason::NotFound(_))),
        (3, true, false, |reason| matches!(reason, TalosReason::InvalidArgument(_))),
        (14, false, true, |reason| matches!(reason, TalosReason::Unavailable(_))),
        (2, false, false, |reason| matches!(reason, TalosReason::Failed { code: 2, .. })),
        (13, false, false, |reason| matches!(reason, TalosReason::Failed { code: 13, .. })),
    ] {
        let (_server, client) = node(move |_| Reply::status(code, "etcd data directory is not empty")).await;
        let error = client.bootstrap(&WritePermit::unbound()).await.unwrap_err();
        assert!(check(&error.reason), "{code}: {error:?}");
        assert_eq!((error.is_certainly_undone(), error.is_transient()), (undone, transient), "{code}");
        let said = error.to_string();
        assert!(said.starts_with("Bootstrap on node `192.0.2.41:50000`: "), "{said}");
        assert!(said.contains("etcd data directory is not empty"), "{said}");
    }
}

#[tokio::test]
async fn nobody_there_is_certain() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut dial = DialMap::new();
    dial.insert(format!("{NODE}:50000"), listener.local_addr().unwrap().to_string());
    drop(listener);
    let client = TalosClient::connect(NODE, &dial, &credentials(&bundle(1))).unwrap();
    let error =
        client.reboot(&WritePermit::unbound(), strata_talos_client::RebootMode::Default).await.unwrap_err();
    assert!(error.is_unreachable() && error.is_certainly_undone() && error.is_transient(), "{error}");
    assert!(error.hint().is_some());
}

#[tokio::test]
async fn a_machine_that_accepts_and_says_nothing_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut dial = DialMap::new();
    dial.insert(format!("{NODE}:50000"), listener.local_addr().unwrap().to_string());
    let mut timeouts = impatient();
    timeouts.connect = timeouts.call;
    let client = TalosClient::connect(NODE, &dial, &credentials(&bundle(1))).unwrap().with_timeouts(timeouts);
    let error = client.version().await.unwrap_err();
    assert!(error.is_unreachable() && error.is_certainly_undone(), "{error}");
}

#[tokio::test]
async fn silence_ends_and_nothing_is_certain() {
    let (server, client) = node(|call| match call.path.as_str() {
        "/machine.MachineService/Bootstrap" => Reply::silence(),
        _ => Reply::ok([answer(&[])]),
    })
    .await;
    let client = client.with_timeouts(impatient());
    let error = client.bootstrap(&WritePermit::unbound()).await.unwrap_err();
    assert!(matches!(error.reason, TalosReason::Timeout(_)), "{error}");
    assert!(!error.is_certainly_undone() && error.is_transient());
    // The next call makes a connection of its own.
    client.clone().with_timeouts(Default::default()).services().await.unwrap();
    assert_eq!(server.clients.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn an_answer_without_an_end_is_no_answer() {
    let (_server, client) = node(|_| Reply::ok([answer(&[])]).then(End::Cut)).await;
    let error = client.etcd_leave_cluster(&WritePermit::unbound()).await.unwrap_err();
    assert!(!error.is_certainly_undone(), "{error:?}");
    let (_server, client) = node(|_| Reply::ok([b"\xff\xff\xff".to_vec()])).await;
    let error = client.etcd_leave_cluster(&WritePermit::unbound()).await.unwrap_err();
    assert!(matches!(error.reason, TalosReason::Malformed(_)), "{error:?}");
    let (_server, client) = node(|_| Reply::ok([Vec::new()])).await;
    let error = client.etcd_leave_cluster(&WritePermit::unbound()).await.unwrap_err();
    assert!(matches!(error.reason, TalosReason::Malformed(_)), "{error:?}");
}

#[tokio::test]
async fn a_rebooted_node_is_found_again() {
    let reply = |_: &super::server::Call| Reply::ok([answer(&[])]);
    let server = Server::start(Tls::mutual(&bundle(1)), reply).await;
    let client = TalosClient::connect(NODE, &dial(&server), &credentials(&bundle(1))).unwrap();
    client.services().await.unwrap();
    client.services().await.unwrap();
    assert_eq!(server.clients.lock().unwrap().len(), 1, "the connection is kept");
    let place = server.address.clone();
    server.hang_up();
    drop(server);
    // The old port is free again as soon as its listener has gone.
    let server = loop {
        tokio::task::yield_now().await;
        if TcpListener::bind(&place).await.is_ok() {
            break Server::start_at(&place, Tls::mutual(&bundle(1)), reply).await;
        }
    };
    client.services().await.unwrap();
    assert_eq!(server.paths(), ["/machine.MachineService/ServiceList"]);
}

#[tokio::test]
async fn what_a_node_says_is_scrubbed() {
    let redactor = Redactor::new();
    redactor.add(&SecretString::from("hunter2hunter2"));
    let diff = "no: token hunter2hunter2 is bad\ndiff:\n-  key: other-secret\n";
    let (_server, client) = node(move |_| Reply::status(3, diff)).await;
    let client = client.with_redactor(redactor);
    let config = SecretString::from("machine: {}");
    let mode = strata_talos_client::ApplyMode::NoReboot;
    let error = client.apply_configuration(&WritePermit::unbound(), &config, mode, false).await.unwrap_err();
    assert_eq!(error.reason, TalosReason::InvalidArgument("no: token <secret> is bad".to_owned()));
}
