//! Who trusts whom, and what is said when they do not.

use strata_talos_client::{SpkiPin, TalosClient, TalosError, TalosReason, TlsProblem};

use super::proto::{answer, nested, text};
use super::server::{Reply, Server, Tls};
use super::{NODE, bundle, credentials, dial, today};
use crate::seeded;

fn version(_: &super::server::Call) -> Reply {
    let version = nested(2, &[text(1, "v1.13.9"), text(6, "amd64")]);
    Reply::ok([answer(&[version, nested(3, &[text(1, "nocloud")])])])
}

/// What a client of bundle 1 gets from a server with this certificate.
async fn problem(tls: Tls) -> TlsProblem {
    let server = Server::start(tls, version).await;
    let client = TalosClient::connect(NODE, &dial(&server), &credentials(&bundle(1)));
    let error = client.unwrap_or_else(|error| panic!("{error}")).version().await.expect_err("no trust");
    tls_problem(error)
}

fn tls_problem(error: TalosError) -> TlsProblem {
    assert!(error.is_certainly_undone(), "{error}");
    assert!(error.to_string().contains("192.0.2.41:50000"), "{error}");
    match error.reason {
        TalosReason::Tls(problem) => problem,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn both_sides_show_certificates_of_the_cluster() {
    let server = Server::start(Tls::mutual(&bundle(1)), version).await;
    let client = TalosClient::connect(NODE, &dial(&server), &credentials(&bundle(1))).unwrap();
    let version = client.version().await.unwrap();
    assert_eq!(
        (version.tag.as_str(), version.arch.as_str(), version.platform.as_str()),
        ("v1.13.9", "amd64", "nocloud")
    );
    assert_eq!(*server.clients.lock().unwrap(), ["os:admin"]);
    let call = server.last_call();
    assert_eq!(call.headers["content-type"], "application/grpc");
    assert_eq!(call.headers["te"], "trailers");
    assert_eq!(call.headers["grpc-timeout"], "30000m");
}

#[tokio::test]
async fn says_what_is_wrong_with_the_node() {
    assert_eq!(problem(Tls::mutual(&bundle(2))).await, TlsProblem::WrongAuthority);
    assert_eq!(problem(Tls::maintenance()).await, TlsProblem::WrongAuthority);
    assert_eq!(problem(Tls::issued(&bundle(1), NODE, -7200, -3600)).await, TlsProblem::Expired);
    assert_eq!(problem(Tls::issued(&bundle(1), NODE, 3600, 7200)).await, TlsProblem::NotYetValid);
    let other = problem(Tls::issued(&bundle(1), "192.0.2.99", -3600, 3600)).await;
    let TlsProblem::WrongName(presented) = other else { panic!("{other:?}") };
    assert!(presented.contains("192.0.2.99"), "{presented}");
}

#[tokio::test]
async fn says_what_the_node_thinks_of_us() {
    let cluster = bundle(1);
    let server = Server::start(Tls::mutual(&cluster), version).await;
    // The right authority to check the node with, and a certificate of another cluster.
    let client = |issued| {
        let credentials = strata_talos_client::Credentials::new(cluster.os.certificate.clone(), issued);
        TalosClient::connect(NODE, &dial(&server), &credentials).unwrap()
    };
    let role = strata_talos::TalosRole::Admin;
    let day = std::time::Duration::from_secs(24 * 3600);
    let issue = |bundle: &strata_talos::SecretsBundle, from| {
        bundle.talos_client(role, from, day, &mut seeded(5)).unwrap_or_else(|error| panic!("{error}"))
    };
    let foreign = client(issue(&bundle(2), today()));
    assert_eq!(tls_problem(foreign.version().await.unwrap_err()), TlsProblem::ClientUnknown);
    let old = client(issue(&cluster, today() - jiff::SignedDuration::from_hours(48)));
    assert_eq!(tls_problem(old.version().await.unwrap_err()), TlsProblem::ClientExpired);
    let nobody = TalosClient::maintenance(NODE, &dial(&server), None).unwrap();
    let error = nobody.version().await.unwrap_err();
    assert!(error.is_certificate_required());
    assert_eq!(tls_problem(error), TlsProblem::CertificateRequired);
    assert!(server.paths().is_empty(), "no call came through");
}

#[tokio::test]
async fn a_node_in_maintenance_mode_can_be_pinned() {
    let (tls, other) = (Tls::maintenance(), Tls::maintenance());
    let pin = SpkiPin::of(&tls.certificate).unwrap();
    let wrong = SpkiPin::of(&other.certificate).unwrap();
    let server = Server::start(tls, version).await;
    let client = |pin| TalosClient::maintenance(NODE, &dial(&server), pin).unwrap();
    client(None).version().await.unwrap();
    client(Some(pin)).version().await.unwrap();
    let error = client(Some(wrong)).version().await.unwrap_err();
    assert_eq!(tls_problem(error), TlsProblem::PinMismatch { presented: pin, pinned: wrong });
    assert_eq!(server.paths().len(), 2);
}

#[tokio::test]
async fn every_problem_says_what_to_do() {
    for problem in [TlsProblem::WrongAuthority, TlsProblem::Expired, TlsProblem::ClientExpired] {
        assert!(problem.hint().is_some(), "{problem}");
    }
    let bad = TalosClient::maintenance("not an address", &strata_net::DialMap::new(), None);
    assert!(matches!(bad.err().expect("an error").reason, TalosReason::Local(_)));
}
