//! Calls with many messages: kubeconfig, snapshots, upgrades.

use std::io::Write as _;

use sha2::{Digest as _, Sha256};
use strata_net::WritePermit;
use strata_talos_client::{ImageStore, TalosReason, Upgraded};

use super::proto::{Field, answer, bytes, fields, nested, number, text};
use super::server::{End, Reply};
use super::{impatient, node};

fn kubeconfig_archive() -> Vec<u8> {
    let content = b"apiVersion: v1\nkind: Config\n";
    let mut header = [0; 512];
    header[..10].copy_from_slice(b"kubeconfig");
    let size = format!("{:011o}\0", content.len());
    header[124..136].copy_from_slice(size.as_bytes());
    header[156] = b'0';
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&header).expect("memory");
    gzip.write_all(content).expect("memory");
    gzip.finish().expect("memory")
}

#[tokio::test]
async fn a_kubeconfig_comes_in_pieces() {
    let (_server, client) = node(|_| {
        let archive = kubeconfig_archive();
        let (first, second) = archive.split_at(40);
        Reply::ok([bytes(2, first), bytes(2, second)])
    })
    .await;
    assert_eq!(client.kubeconfig().await.unwrap().expose(), "apiVersion: v1\nkind: Config\n");
    let (_server, client) = node(|_| Reply::ok([bytes(2, b"no archive")])).await;
    let error = client.kubeconfig().await.err().expect("an error");
    assert!(matches!(error.reason, TalosReason::Malformed(_)), "{error}");
}

#[tokio::test]
async fn a_snapshot_is_written_and_checked() {
    let data = vec![7; 100_000];
    let whole = [data.clone(), Sha256::digest(&data).to_vec()].concat();
    let pieces: Vec<Vec<u8>> = whole.chunks(9_999).map(|piece| bytes(2, piece)).collect();
    let all = pieces.clone();
    let (_server, client) = node(move |_| Reply::ok(all.clone())).await;
    let mut file = Vec::new();
    let snapshot = client.etcd_snapshot(&mut file).await.unwrap();
    assert!(snapshot.intact && file == whole);
    assert_eq!(snapshot.bytes, 100_032);
    // The node ends in good order, but too early.
    let part = pieces[..3].to_vec();
    let (_server, client) = node(move |_| Reply::ok(part.clone())).await;
    assert!(!client.etcd_snapshot(&mut Vec::new()).await.unwrap().intact);
    // It stops in the middle.
    let part = pieces[..3].to_vec();
    let (_server, client) = node(move |_| Reply::ok(part.clone()).then(End::Silence)).await;
    let error = client.with_timeouts(impatient()).etcd_snapshot(&mut Vec::new()).await.unwrap_err();
    assert!(matches!(error.reason, TalosReason::Timeout(_)), "{error}");
    // It fails in the middle.
    let failed = End::Status(2, "etcd is gone".to_owned());
    let (_server, client) = node(move |_| Reply::ok(pieces[..3].to_vec()).then(failed.clone())).await;
    let error = client.etcd_snapshot(&mut Vec::new()).await.unwrap_err();
    assert!(error.to_string().contains("etcd is gone"), "{error}");
}

#[tokio::test]
async fn a_snapshot_is_uploaded() {
    let (server, client) = node(|_| Reply::ok([answer(&[])])).await;
    let data: Vec<u8> = (0..200_000u32).map(|byte| byte as u8).collect();
    client.etcd_recover(&WritePermit::unbound(), std::io::Cursor::new(data.clone())).await.unwrap();
    let call = server.last_call();
    assert_eq!(call.path, "/machine.MachineService/EtcdRecover");
    assert!(call.messages.len() > 1);
    let mut received = Vec::new();
    for message in &call.messages {
        match &fields(message)[..] {
            [(2, Field::Bytes(piece))] => received.extend_from_slice(piece),
            other => panic!("{other:?}"),
        }
    }
    assert!(received == data);
    let broken = broken_disk();
    let error = client.etcd_recover(&WritePermit::unbound(), broken).await.unwrap_err();
    assert_eq!(error.reason, TalosReason::Local("the disk is gone".to_owned()));
}

/// Reads that fail.
fn broken_disk() -> impl tokio::io::AsyncRead + Send + Unpin + 'static {
    struct Broken;
    impl tokio::io::AsyncRead for Broken {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Ready(Err(std::io::Error::other("the disk is gone")))
        }
    }
    Broken
}

const IMAGE: &str = "factory.example.org/nocloud-installer/abc:v1.14.0";

fn progress(line: &str) -> Vec<u8> {
    nested(1, &[text(1, line)])
}

fn exit(code: u64) -> Vec<u8> {
    nested(1, &[number(2, code)])
}

#[tokio::test]
async fn an_upgrade_pulls_installs_and_leaves_the_reboot_to_us() {
    let (server, client) = node(|call| match call.path.as_str() {
        "/machine.ImageService/Pull" => Reply::ok([nested(2, &[text(1, "layer")]), text(1, IMAGE)]),
        "/machine.LifecycleService/Upgrade" => Reply::ok([progress("copying"), progress("done"), exit(0)]),
        _ => Reply::status(13, "not this one"),
    })
    .await;
    let mut lines = Vec::new();
    let upgraded = client
        .upgrade(&WritePermit::unbound(), IMAGE, &mut |line| lines.push(line.to_owned()))
        .await
        .unwrap();
    assert_eq!(upgraded, Upgraded::NeedsReboot);
    assert_eq!(lines, ["copying", "done"]);
    let calls = server.calls.lock().unwrap();
    let store = (1, Field::Bytes([number(1, 1), number(2, 1)].concat()));
    assert_eq!(fields(&calls[0].messages[0]), [store.clone(), (3, Field::text(IMAGE))]);
    assert_eq!(fields(&calls[1].messages[0]), [store, (2, Field::Bytes(text(1, IMAGE)))]);
}

#[tokio::test]
async fn an_older_node_is_upgraded_in_one_call() {
    let (server, client) = node(|call| match call.path.as_str() {
        "/machine.MachineService/Upgrade" => Reply::ok([answer(&[text(2, "ack")])]),
        "/machine.MachineService/ImagePull" => Reply::ok([answer(&[])]),
        _ => Reply::status(12, "unknown service"),
    })
    .await;
    assert_eq!(
        client.upgrade(&WritePermit::unbound(), IMAGE, &mut |_| ()).await.unwrap(),
        Upgraded::Rebooting
    );
    // Neither force nor preserve, which would skip the node's own look at etcd.
    assert_eq!(fields(&server.last_call().messages[0]), [(1, Field::text(IMAGE))]);
    client.pull_image("registry.k8s.io/kube-apiserver:v1.36.0", ImageStore::Kubernetes).await.unwrap();
    assert_eq!(
        fields(&server.last_call().messages[0]),
        [(1, Field::Number(2)), (2, Field::text("registry.k8s.io/kube-apiserver:v1.36.0"))]
    );
}

#[tokio::test]
async fn a_failed_installer_is_told_with_its_last_words() {
    let (_server, client) = node(|call| match call.path.as_str() {
        "/machine.ImageService/Pull" => Reply::ok([text(1, IMAGE)]),
        _ => Reply::ok((1..8).map(|line| progress(&format!("line {line}"))).chain([exit(3)])),
    })
    .await;
    let error = client.upgrade(&WritePermit::unbound(), IMAGE, &mut |_| ()).await.unwrap_err();
    let output = "line 3; line 4; line 5; line 6; line 7".to_owned();
    assert_eq!(error.reason, TalosReason::InstallerFailed { exit_code: 3, output });
    assert!(!error.is_certainly_undone());
    // An installer that stops without a word has not succeeded.
    let (_server, client) = node(|call| match call.path.as_str() {
        "/machine.ImageService/Pull" => Reply::ok([text(1, IMAGE)]),
        _ => Reply::ok([progress("copying")]),
    })
    .await;
    let error = client.upgrade(&WritePermit::unbound(), IMAGE, &mut |_| ()).await.unwrap_err();
    assert!(matches!(error.reason, TalosReason::Malformed(_)), "{error}");
}
