//! The client against a small TrueNAS on loopback.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod nas;
mod sim;
mod windows;

use std::collections::BTreeMap;
use std::time::Duration;

use nas::{KEY, Nas};
use serde_json::json;
use strata_net::WritePermit;
use strata_secret::SecretString;
use strata_truenas::{
    DatasetName, Deletion, NewDataset, Trouble, TrueNasClient, TrueNasOptions, is_as_wanted,
};

fn name(text: &str) -> DatasetName {
    text.parse().unwrap()
}

async fn with_dataset() -> (Nas, TrueNasClient) {
    let nas = Nas::start().await;
    let client = nas.client();
    client.create_dataset(&WritePermit::unbound(), &NewDataset::new(name("tank/k8s/homelab"))).await.unwrap();
    (nas, client)
}

#[tokio::test]
async fn makes_a_dataset_with_those_above_it() {
    let nas = Nas::start().await;
    let client = nas.client();
    assert_eq!(client.version().await.unwrap(), "TrueNAS-25.10.2");
    assert!(client.has_pool("tank").await.unwrap() && !client.has_pool("tonk").await.unwrap());
    let above: Vec<_> = client.missing_ancestors(&name("tank/k8s/homelab")).await.unwrap();
    assert_eq!(above, [name("tank/k8s")]);
    let mut wanted = NewDataset::new(name("tank/k8s/homelab"));
    wanted.properties.insert("compression".to_owned(), json!("ZSTD"));
    wanted.user_properties.insert("strata:owner".to_owned(), "lineage".to_owned());
    client.create_dataset(&WritePermit::unbound(), &wanted).await.unwrap();
    let live = client.dataset(&wanted.name).await.unwrap().unwrap();
    assert_eq!(live.user_properties["strata:owner"], "lineage");
    assert!(is_as_wanted(&live, "compression", &json!("ZSTD")));
    assert!(client.missing_ancestors(&wanted.name).await.unwrap().is_empty());
    assert_eq!(
        client.create_dataset(&WritePermit::unbound(), &wanted).await.unwrap_err().trouble(),
        Trouble::Exists
    );

    let change = BTreeMap::from([("quota".to_owned(), json!(10_u64 << 30))]);
    client.update_dataset(&WritePermit::unbound(), &wanted.name, &change, &BTreeMap::new()).await.unwrap();
    let live = client.dataset(&wanted.name).await.unwrap().unwrap();
    assert!(is_as_wanted(&live, "quota", &json!(10_u64 << 30)));
    let error = client
        .update_dataset(&WritePermit::unbound(), &name("tank/none"), &change, &BTreeMap::new())
        .await
        .unwrap_err();
    assert_eq!(error.trouble(), Trouble::NotFound, "{error}");
    // All of it over one connection.
    assert_eq!(nas.calls("auth.login_with_api_key"), 1);
}

#[tokio::test]
async fn deletes_what_is_empty() {
    let (nas, client) = with_dataset().await;
    assert_eq!(
        client.delete_empty_dataset(&WritePermit::unbound(), &name("tank/k8s/homelab")).await.unwrap(),
        Deletion::Deleted
    );
    assert_eq!(
        client.delete_empty_dataset(&WritePermit::unbound(), &name("tank/k8s/homelab")).await.unwrap(),
        Deletion::AlreadyGone
    );
    assert_eq!(nas.calls("pool.dataset.delete"), 1);
}

#[tokio::test]
async fn never_deletes_what_is_not() {
    for (change, reason) in [
        (json!({"children": true}), "it has 1 dataset(s) below it, such as `tank/k8s/homelab/pvc`"),
        (json!({"snapshots": 2}), "it has 2 snapshot(s)"),
        (
            json!({"attachments": [{"type": "NFS Share", "attachments": ["/mnt/tank/k8s/homelab"]}]}),
            "it is in use by `NFS Share`",
        ),
        (json!({"used": 5_u64 << 20}), "it holds 5242880 bytes"),
        (json!({"files": [{"name": "tiny.txt"}]}), "it holds `tiny.txt`"),
        (json!({"locked": true}), "it is locked, and nobody can look into it"),
        (json!({"volume": true}), "it is a block device, into which nobody can look"),
        (json!({"mountpoint": "none"}), "it is not mounted, and nobody can look into it"),
    ] {
        let (nas, client) = with_dataset().await;
        nas.change("tank/k8s/homelab", change);
        let error = client
            .delete_empty_dataset(&WritePermit::unbound(), &name("tank/k8s/homelab"))
            .await
            .unwrap_err();
        assert_eq!(error.trouble(), Trouble::NotEmpty);
        let endpoint = client.endpoint();
        assert_eq!(
            error.to_string(),
            format!("cannot delete dataset `tank/k8s/homelab` at `{endpoint}`: {reason}")
        );
        assert_eq!(nas.calls("pool.dataset.delete"), 0, "{reason}");
    }
}

#[tokio::test]
async fn a_wrong_key_is_refused_and_not_shown() {
    let nas = Nas::start().await;
    let key = SecretString::from("1-hunter2hunter2hunter2");
    let client = TrueNasClient::new(TrueNasOptions { api_key: key, ..nas.options() }).unwrap();
    let error = client.version().await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Refused);
    assert!(error.to_string().ends_with("the API key is not accepted"), "{error}");
    assert_eq!(nas.calls("auth.login_with_api_key"), 1);

    let named = TrueNasOptions { username: Some("truenas_admin".to_owned()), ..nas.options() };
    TrueNasClient::new(named).unwrap().version().await.unwrap();
    let other = TrueNasOptions { username: Some("other".to_owned()), ..nas.options() };
    assert_eq!(TrueNasClient::new(other).unwrap().version().await.unwrap_err().trouble(), Trouble::Refused);

    let plain = TrueNasOptions { endpoint: "http://192.0.2.20".to_owned(), ..nas.options() };
    let error = TrueNasClient::new(plain).err().unwrap();
    assert!(error.hint().unwrap().contains("revokes"), "{error}");
}

#[tokio::test]
async fn a_server_that_quotes_the_key_is_not_quoted() {
    let (nas, client) = with_dataset().await;
    nas.fail_next(json!({"code": -32001, "message": "Method call error", "data": {"errname": "EFAULT", "reason": format!("bad {KEY}"), "trace": {"formatted": KEY}}}));
    let error = client.version().await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Failed);
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("bad <secret>") && !shown.contains(KEY), "{shown}");
}

#[tokio::test]
async fn reads_survive_a_lost_connection_and_writes_are_not_repeated() {
    let (nas, client) = with_dataset().await;
    nas.cut_next("system.version");
    assert_eq!(client.version().await.unwrap(), "TrueNAS-25.10.2");
    assert_eq!((nas.calls("system.version"), nas.calls("auth.login_with_api_key")), (2, 2));
    nas.cut_next("pool.dataset.create");
    let error = client
        .create_dataset(&WritePermit::unbound(), &NewDataset::new(name("tank/other")))
        .await
        .unwrap_err();
    assert_eq!(error.trouble(), Trouble::AnswerLost);
    assert!(error.may_have_acted());
    assert_eq!(nas.calls("pool.dataset.create"), 2);
    // A connection that has died between two calls costs a write nothing.
    client.version().await.unwrap();
    nas.cut_next("core.ping");
    client.create_dataset(&WritePermit::unbound(), &NewDataset::new(name("tank/third"))).await.unwrap();
}

#[tokio::test]
async fn an_older_server_is_told_apart() {
    let nas = Nas::start().await;
    nas.refuse_path();
    let error = nas.client().version().await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Unreadable);
    assert!(error.hint().unwrap().contains("25.04"), "{error}");
}

/// The lease is looked at directly before a write is sent, over a connection of its own where it must not be late.
#[tokio::test]
async fn a9_nothing_is_sent_once_the_run_may_not_write() {
    let (nas, client) = with_dataset().await;
    let no = || Err("the lease has lapsed".to_owned());
    for within in [None, Some(Duration::from_secs(20))] {
        let permit = &WritePermit::new(no, within);
        let there = name("tank/k8s/homelab");
        for error in [
            client.create_dataset(permit, &NewDataset::new(name("tank/late"))).await.err(),
            client.update_dataset(permit, &there, &BTreeMap::new(), &BTreeMap::new()).await.err(),
            client.delete_empty_dataset(permit, &there).await.err(),
        ] {
            let error = error.unwrap();
            assert_eq!((error.trouble(), error.reason()), (Trouble::Withheld, "the lease has lapsed"));
            assert!(!error.may_have_acted());
        }
    }
    assert_eq!((nas.calls("pool.dataset.create"), nas.calls("pool.dataset.delete")), (1, 0));
    let logins = nas.calls("auth.login_with_api_key");
    let permit = WritePermit::new(|| Ok(()), Some(Duration::from_secs(20)));
    client.create_dataset(&permit, &NewDataset::new(name("tank/in-time"))).await.unwrap();
    assert_eq!(nas.calls("auth.login_with_api_key"), logins + 1);
}
