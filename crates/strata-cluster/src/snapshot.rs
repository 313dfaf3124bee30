//! Snapshots of etcd: one before the first control plane is touched, and the database of a control plane that is left without a
//! majority before anything is done to it.

use async_trait::async_trait;
use strata_engine::{ErrorClass, OperationContext, ProviderError};
use strata_secret::SecretBytes;
use strata_talos::EtcdDatabase;

use crate::cluster::{Cluster, NodePlace};
use crate::error::{guard, internal, talos};
use crate::rollout::Slot;

/// A snapshot of etcd.
pub struct EtcdSnapshot {
    pub bytes: SecretBytes,
    /// The control plane whose own data it is, where no majority stands behind it.
    pub survivor: Option<String>,
}

/// Where snapshots of etcd go.
#[async_trait]
pub trait SnapshotSink: Send + Sync {
    /// Keeps a snapshot, encrypted; says where.
    async fn keep(&self, copy: EtcdSnapshot) -> Result<String, ProviderError>;
}

impl Cluster {
    /// A snapshot of etcd, once in a run, before the first control plane is touched.
    pub(crate) async fn snapshot_etcd(
        &self,
        slot: &mut Slot,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        let Some(sink) = &self.options.snapshots else { return Ok(()) };
        if slot.snapshot_taken {
            return Ok(());
        }
        context.progress("an etcd snapshot is made");
        let copy = self.snapshot_of_majority().await?;
        let place = sink.keep(copy).await?;
        slot.snapshot_taken = true;
        context.progress(&format!("etcd was copied to {place}"));
        Ok(())
    }

    /// From the first control plane that gives a whole one.
    async fn snapshot_of_majority(&self) -> Result<EtcdSnapshot, ProviderError> {
        let mut last = None;
        for node in self.control_planes() {
            let mut copy = Vec::new();
            match self.talos(&node.address)?.etcd_snapshot(&mut copy).await {
                Ok(snapshot) if snapshot.intact => {
                    return Ok(EtcdSnapshot { bytes: SecretBytes::new(copy), survivor: None });
                }
                Ok(_) => {
                    last = Some(internal(format!("the etcd snapshot from `{}` was cut short", node.name)))
                }
                Err(error) => last = Some(talos(error)),
            }
        }
        Err(last.unwrap_or_else(|| internal("there is no control plane to copy etcd from")))
    }

    /// What one control plane has, with a majority or without: as a snapshot where its etcd runs, else the file on its disk.
    pub(crate) async fn database_of(&self, node: &NodePlace) -> Result<SecretBytes, ProviderError> {
        let client = self.talos(&node.address)?;
        let mut copy = Vec::new();
        if let Ok(snapshot) = client.etcd_snapshot(&mut copy).await
            && snapshot.intact
        {
            return Ok(SecretBytes::new(copy));
        }
        copy.clear();
        client.etcd_database(&mut copy).await.map_err(|error| {
            let own = talos(error);
            let message = format!("the etcd database of `{}` cannot be read: {}", node.name, own.message);
            ProviderError { message, ..own }
        })?;
        Ok(SecretBytes::new(copy))
    }

    /// Whose databases the survivors have; one that cannot be understood tells nothing.
    pub(crate) async fn databases(&self, nodes: &[NodePlace]) -> Vec<EtcdDatabase> {
        let reads = nodes.iter().map(|node| self.database_of(node));
        let read = futures::future::join_all(reads).await;
        read.iter().flatten().filter_map(|bytes| EtcdDatabase::read(bytes.expose())).collect()
    }

    /// Keeps what a control plane without a majority has; says where.
    pub(crate) async fn keep_survivor(
        &self,
        node: &NodePlace,
        context: &dyn OperationContext,
    ) -> Result<Option<String>, ProviderError> {
        let Some(sink) = &self.options.snapshots else { return Ok(None) };
        context.progress(&format!("the etcd database of `{}` is saved", node.name));
        let bytes = self.database_of(node).await?;
        let place = sink.keep(EtcdSnapshot { bytes, survivor: Some(node.name.clone()) }).await?;
        context.progress(&format!("the etcd database of `{}` was saved to {place}", node.name));
        Ok(Some(place))
    }
}

/// Takes a snapshot because somebody asks for it: of the whole etcd while it has a majority, else of every control plane that still
/// holds data, or of the one that is named. Says where each is.
pub async fn take_snapshot(
    cluster: &Cluster,
    name: Option<&str>,
    context: &dyn OperationContext,
) -> Result<Vec<String>, ProviderError> {
    let Some(sink) = &cluster.options.snapshots else { return Ok(Vec::new()) };
    let named = name.map(|name| crate::reset::place(cluster, name)).transpose()?;
    if named.is_none() && cluster.membership().await?.is_some() {
        return Ok(vec![sink.keep(cluster.snapshot_of_majority().await?).await?]);
    }
    let nodes = match named {
        Some(node) => vec![node],
        None => {
            let survey = cluster.survey().await?;
            if survey.survivors.is_empty() {
                return Err(nothing_to_save(cluster, &survey.unknown));
            }
            survey.survivors
        }
    };
    let mut places = Vec::new();
    for node in nodes {
        places.extend(cluster.keep_survivor(&node, context).await?);
    }
    Ok(places)
}

fn nothing_to_save(cluster: &Cluster, unknown: &[(NodePlace, String)]) -> ProviderError {
    let name = cluster.name();
    match unknown.first() {
        Some((node, why)) => {
            let message = format!(
                "no control plane of `{name}` that answers holds data of etcd; `{}`: {why}",
                node.name
            );
            ProviderError::new(ErrorClass::Unreachable, message)
                .hint("bring it back, and take the snapshot then")
        }
        None => guard(
            format!("no control plane of `{name}` holds data of etcd"),
            "a snapshot that was taken before is in `.strata/snapshots`, or where `etcd.snapshots` says",
        ),
    }
}
