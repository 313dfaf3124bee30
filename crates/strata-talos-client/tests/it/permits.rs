//! Writes that must not come late.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use strata_net::WritePermit;
use strata_secret::SecretString;
use strata_talos_client::{ApplyMode, RebootMode, Reset, TalosReason, Wipe};

use super::node;
use super::server::Reply;

/// Whatever is written is withheld once the lease has lapsed, over a connection that is kept and over one of its own.
#[tokio::test]
async fn a9_nothing_is_sent_once_the_run_may_not_write() {
    let (server, client) = node(|_| Reply::status(2, "it should not have come")).await;
    let no = || Err("the lease has lapsed".to_owned());
    for within in [None, Some(Duration::from_secs(20))] {
        let permit = &WritePermit::new(no, within);
        let config = SecretString::from("version: v1alpha1");
        let reset = Reset { wipe: Wipe::SystemDisk, graceful: false, reboot: true };
        for error in [
            client.apply_configuration(permit, &config, ApplyMode::Auto, false).await.err(),
            client.bootstrap(permit).await.err(),
            client.bootstrap_recovered(permit, false).await.err(),
            client.restart_service(permit, "kubelet").await.err(),
            client.reboot(permit, RebootMode::Default).await.err(),
            client.reset(permit, &reset).await.err(),
            client.etcd_disarm_alarms(permit).await.err(),
            client.etcd_forfeit_leadership(permit).await.err(),
            client.etcd_leave_cluster(permit).await.err(),
            client.etcd_remove_member(permit, 1).await.err(),
            client.etcd_recover(permit, std::io::Cursor::new(vec![0; 64])).await.err(),
        ] {
            let error = error.unwrap();
            assert_eq!(error.reason, TalosReason::Withheld("the lease has lapsed".to_owned()));
            assert!(error.is_certainly_undone() && !error.is_transient(), "{error}");
        }
    }
    assert_eq!(server.paths(), Vec::<String>::new());
}

/// The lease is looked at when the connection stands, and the node is told when to give up: with the lease, not after it.
#[tokio::test]
async fn a9_a_write_is_bounded_by_the_lease() {
    let (server, client) = node(|_| Reply::status(6, "etcd data directory is not empty")).await;
    let asked = AtomicUsize::new(0);
    let may = || {
        asked.fetch_add(1, Ordering::SeqCst);
        Ok(())
    };
    client.bootstrap(&WritePermit::new(may, None)).await.unwrap_err();
    assert_eq!(server.last_call().headers["grpc-timeout"], "180000m");
    client.bootstrap(&WritePermit::new(may, Some(Duration::from_secs(20)))).await.unwrap_err();
    assert_eq!(server.last_call().headers["grpc-timeout"], "20000m");
    client
        .reboot(&WritePermit::new(may, Some(Duration::from_secs(60))), RebootMode::Default)
        .await
        .unwrap_err();
    assert_eq!(server.last_call().headers["grpc-timeout"], "30000m");
    assert_eq!(asked.into_inner(), 3);
}

/// A connection that went with a reboot is recreated; whether the run may still write is asked again then.
#[tokio::test]
async fn a9_what_is_sent_again_is_allowed_again() {
    let (server, client) = node(|_| Reply::status(6, "etcd data directory is not empty")).await;
    client.bootstrap(&WritePermit::unbound()).await.unwrap_err();
    let held = AtomicBool::new(true);
    server.hang_up();
    let may = || if held.swap(false, Ordering::SeqCst) { Ok(()) } else { Err("lapsed".to_owned()) };
    client.bootstrap(&WritePermit::new(may, None)).await.unwrap_err();
    // It was sent at most once since, with the one permission that there was.
    assert!(server.paths().len() <= 2, "{:?}", server.paths());
}
