//! Somebody else changes a dataset after the plan saw it: nothing is overwritten, and nothing that is theirs is marked or deleted.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::json;
use strata_engine::{
    ErrorClass, Observed, Operation, OperationContext, Provider, ProviderError, Sighting, Wanted,
};
use strata_net::WritePermit;
use strata_resource::{Address, Lineage, Spec};
use strata_state::{Action, StateResource};
use strata_truenas::{DatasetProvider, NewDataset, kinds};

use crate::name;
use crate::nas::Nas;

struct Allowed;

#[async_trait]
impl OperationContext for Allowed {
    fn before_write(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn task_started(&self, _: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    fn progress(&self, _: &str) {}
}

fn spec(compression: &str) -> Spec {
    let spec = json!({"dataset": "tank/k8s/homelab", "properties": {"compression": compression}});
    serde_json::from_value(spec).unwrap()
}

fn operation(action: Action, becomes: &str) -> Operation {
    kinds::register();
    let record = json!({"target": "nas", "spec": spec("ZSTD"), "stage": "prereqs"});
    let recorded: Option<StateResource> = Some(serde_json::from_value(record).unwrap());
    Operation {
        action,
        address: Address::new(None, "s", kinds::DATASET, "homelab"),
        target: "nas".to_owned(),
        lineage: Lineage::derive("r", "dev/s"),
        spec: spec(becomes),
        recorded: recorded.filter(|_| action != Action::Create),
        observed: None,
        changes: Vec::new(),
        restart: false,
        replacement: false,
        awaited: false,
        payload: None,
    }
}

async fn seen(provider: &DatasetProvider, operation: &Operation) -> Observed {
    let Operation { address, spec, lineage, .. } = operation;
    let wanted = Wanted { address, spec, recorded: operation.recorded.as_ref(), begun: None, lineage };
    match provider.observe_all(&[wanted]).await.unwrap().pop().unwrap() {
        Sighting::Ours(observed) => observed,
        other => panic!("{other:?}"),
    }
}

async fn made() -> (Nas, DatasetProvider) {
    let nas = Nas::start().await;
    let provider = DatasetProvider::new(nas.client());
    provider.execute(&operation(Action::Create, "ZSTD"), &Allowed).await.unwrap();
    (nas, provider)
}

#[tokio::test]
async fn a_dataset_that_somebody_changed_is_neither_changed_nor_deleted() {
    for action in [Action::Update, Action::Delete] {
        let (nas, provider) = made().await;
        let mut operation = operation(action, "LZ4");
        operation.observed = Some(seen(&provider, &operation).await);
        let theirs = BTreeMap::from([("quota".to_owned(), json!(10_u64 << 30))]);
        let (client, name) = (nas.client(), name("tank/k8s/homelab"));
        client.update_dataset(&WritePermit::unbound(), &name, &theirs, &BTreeMap::new()).await.unwrap();
        let refused = provider.execute(&operation, &Allowed).await.unwrap_err();
        assert_eq!(refused.class, ErrorClass::Conflict, "{refused}");
        assert!(refused.nothing_done && refused.message.contains("somebody else changed"), "{refused}");
        assert_eq!((nas.calls("pool.dataset.update"), nas.calls("pool.dataset.delete")), (1, 0));
        // Planned again, with what they did.
        operation.observed = Some(seen(&provider, &operation).await);
        provider.execute(&operation, &Allowed).await.unwrap();
    }
}

#[tokio::test]
async fn a_dataset_that_somebody_made_in_place_of_ours_is_theirs() {
    for action in [Action::Update, Action::Delete] {
        let (nas, provider) = made().await;
        let mut operation = operation(action, "LZ4");
        operation.observed = Some(seen(&provider, &operation).await);
        let (client, name) = (nas.client(), name("tank/k8s/homelab"));
        client.delete_empty_dataset(&WritePermit::unbound(), &name).await.unwrap();
        let mut theirs = NewDataset::new(name.clone());
        theirs.properties.insert("compression".to_owned(), json!("ZSTD"));
        client.create_dataset(&WritePermit::unbound(), &theirs).await.unwrap();
        provider.execute(&operation, &Allowed).await.unwrap_err();
        let live = client.dataset(&name).await.unwrap().unwrap();
        assert!(live.user_properties.is_empty(), "{live:?}");
    }
}

/// The record may be an old one: what carries the mark of another state is not ours, though we know its name.
#[tokio::test]
async fn a_dataset_with_the_mark_of_another_state_is_not_ours() {
    let (nas, provider) = made().await;
    let known = operation(Action::Update, "LZ4");
    let Operation { address, spec, lineage, recorded, .. } = &known;
    let wanted = || Wanted { address, spec, recorded: recorded.as_ref(), begun: None, lineage };
    let (client, name) = (nas.client(), name("tank/k8s/homelab"));
    let theirs = format!("{} other/dataset/homelab", Lineage::derive("r", "dev/other").as_str());
    let theirs = BTreeMap::from([("strata:mark".to_owned(), theirs)]);
    client.update_dataset(&WritePermit::unbound(), &name, &BTreeMap::new(), &theirs).await.unwrap();
    match provider.observe_all(&[wanted()]).await.unwrap().pop().unwrap() {
        Sighting::Unmanaged(why) => assert!(why.to_string().contains("belongs to another state"), "{why}"),
        other => panic!("{other:?}"),
    }
    let before = client.dataset(&name).await.unwrap();
    for action in [Action::Update, Action::Delete] {
        let refused = provider.execute(&operation(action, "LZ4"), &Allowed).await.unwrap_err();
        assert_eq!(refused.class, ErrorClass::Conflict, "{refused}");
    }
    assert_eq!(client.dataset(&name).await.unwrap(), before);
}
