//! The client against the simulated TrueNAS, which was written by the same facts and without this code.

use std::collections::BTreeMap;

use serde_json::json;
use strata_net::{DialMap, TlsTrust, WritePermit};
use strata_secret::SecretString;
use strata_sim::{Pace, Sim, SimOptions, TRUENAS_API_KEY, TRUENAS_HOST};
use strata_truenas::{Deletion, NewDataset, Trouble, TrueNasClient, TrueNasOptions, is_as_wanted};

use crate::name;

#[tokio::test]
async fn datasets_live_and_go_on_the_simulator() {
    let sim = Sim::start(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() }).await.unwrap();
    let mut dial = DialMap::new();
    dial.insert("*", sim.gateway());
    let tls = TlsTrust::Fingerprint(sim.fingerprint().parse().unwrap());
    let options = TrueNasOptions::new(format!("https://{TRUENAS_HOST}"), SecretString::from(TRUENAS_API_KEY));
    let client = TrueNasClient::new(TrueNasOptions { dial, tls, ..options }).unwrap();
    assert!(client.version().await.unwrap().starts_with("TrueNAS-25"));
    assert!(client.has_pool("tank").await.unwrap());

    let homelab = name("tank/k8s/homelab");
    let mut wanted = NewDataset::new(homelab.clone());
    wanted.properties = BTreeMap::from([
        ("compression".to_owned(), json!("ZSTD")),
        ("quota".to_owned(), json!(10_u64 << 30)),
    ]);
    wanted.user_properties.insert("strata:owner".to_owned(), "lineage".to_owned());
    client.create_dataset(&WritePermit::unbound(), &wanted).await.unwrap();
    assert_eq!(
        client.create_dataset(&WritePermit::unbound(), &wanted).await.unwrap_err().trouble(),
        Trouble::Exists
    );
    let live = client.dataset(&homelab).await.unwrap().unwrap();
    for (property, value) in &wanted.properties {
        assert!(is_as_wanted(&live, property, value), "{property}: {:?}", live.properties.get(property));
    }
    assert_eq!(live.user_properties["strata:owner"], "lineage");
    // What a dataset above hands down is not its own.
    let below = name("tank/k8s/homelab/below");
    client.create_dataset(&WritePermit::unbound(), &NewDataset::new(below.clone())).await.unwrap();
    let handed_down = client.dataset(&below).await.unwrap().unwrap().user_properties;
    assert!(handed_down.is_empty(), "{handed_down:?}");
    client.delete_empty_dataset(&WritePermit::unbound(), &below).await.unwrap();
    let change =
        BTreeMap::from([("compression".to_owned(), json!("INHERIT")), ("quota".to_owned(), json!(0))]);
    client.update_dataset(&WritePermit::unbound(), &homelab, &change, &BTreeMap::new()).await.unwrap();
    let live = client.dataset(&homelab).await.unwrap().unwrap();
    for (property, value) in &change {
        assert!(is_as_wanted(&live, property, value), "{property}: {:?}", live.properties.get(property));
    }

    let parent = name("tank/k8s");
    let error = client.delete_empty_dataset(&WritePermit::unbound(), &parent).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::NotEmpty, "{error}");
    assert_eq!(
        client.delete_empty_dataset(&WritePermit::unbound(), &homelab).await.unwrap(),
        Deletion::Deleted
    );
    assert_eq!(
        client.delete_empty_dataset(&WritePermit::unbound(), &homelab).await.unwrap(),
        Deletion::AlreadyGone
    );
    assert_eq!(
        client.delete_empty_dataset(&WritePermit::unbound(), &parent).await.unwrap(),
        Deletion::Deleted
    );
}
