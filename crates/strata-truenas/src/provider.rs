//! Datasets on a TrueNAS: made with their parents, marked as ours, and never deleted while anything is in them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use strata_engine::{
    Dispute, ErrorClass, Finding, Look, Observed, Obstacle, Operation, OperationContext, Outcome, Provider,
    ProviderError, Review, Sighting, Unmanaged, Wanted,
};
use strata_net::WritePermit;
use strata_resource::{Address, Lineage, Spec, Value};
use strata_state::{Action, OpenEntry};

use crate::{
    Dataset, DatasetName, InvalidDatasetName, NewDataset, Trouble, TrueNasClient, TrueNasError, is_as_wanted,
};

/// The user property that says whose a dataset is.
const MARK: &str = "strata:mark";
/// Gives a property back to the parent.
const INHERIT: &str = "INHERIT";

/// A dataset whose user property says whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedDataset {
    pub name: String,
    pub lineage: String,
    pub address: String,
}

/// The datasets of one TrueNAS.
pub struct DatasetProvider {
    client: TrueNasClient,
}

impl DatasetProvider {
    pub fn new(client: TrueNasClient) -> Self {
        Self { client }
    }

    /// Every dataset with an ownership mark. Of several with one mark the topmost is meant: a copy can have it too.
    pub async fn marked(&self) -> Result<Vec<MarkedDataset>, ProviderError> {
        let mut topmost: BTreeMap<String, String> = BTreeMap::new();
        for dataset in self.client.datasets().await.map_err(explained)? {
            let Some(mark) = dataset.user_properties.get(MARK) else { continue };
            let top = topmost.entry(mark.clone()).or_insert_with(|| dataset.name.clone());
            if dataset.name.len() < top.len() {
                *top = dataset.name;
            }
        }
        let marked = topmost.into_iter().filter_map(|(mark, name)| {
            let (lineage, address) = mark.split_once(' ')?;
            Some(MarkedDataset { name, lineage: lineage.to_owned(), address: address.to_owned() })
        });
        Ok(marked.collect())
    }

    async fn sight(&self, wanted: &Wanted<'_>) -> Result<Sighting, ProviderError> {
        let name = name_of(wanted.spec)?;
        let Some(found) = self.client.dataset(&name).await.map_err(explained)? else {
            return Ok(Sighting::Absent);
        };
        let carried = found.user_properties.get(MARK);
        let marked = carried == Some(&mark(wanted.lineage, wanted.address));
        // A record can be older than what became of the dataset: whoever marked it since then has it.
        if let Some((lineage, address)) = carried.and_then(|mark| mark.split_once(' '))
            && lineage != wanted.lineage.as_str()
        {
            let why =
                format!("dataset `{name}` belongs to another state: its ownership mark names `{address}`");
            return Ok(Sighting::Unmanaged(why.into()));
        }
        if !marked && wanted.recorded.is_none() {
            let what = format!("dataset `{name}`");
            return Ok(Sighting::Unmanaged(Unmanaged::new(what, Dispute::Unclaimed)));
        }
        let asked = [Some(wanted.spec), wanted.recorded.map(|recorded| &recorded.spec)];
        Ok(Sighting::Ours(observed(&found, &name, asked.into_iter().flatten())))
    }

    async fn create(
        &self,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        let name = name_of(&operation.spec)?;
        let mut dataset = NewDataset::new(name.clone());
        dataset.properties = properties(&operation.spec);
        dataset.user_properties.insert(MARK.to_owned(), mark(&operation.lineage, &operation.address));
        match self.client.create_dataset(&permit(context)?, &dataset).await {
            Ok(_) => Ok(()),
            // A lost answer, or somebody else was quicker: the mark tells.
            Err(error) if error.trouble() == Trouble::Exists || error.may_have_acted() => {
                let found = self.client.dataset(&name).await.map_err(explained)?;
                let ours = found.is_some_and(|found| {
                    found.user_properties.get(MARK) == dataset.user_properties.get(MARK)
                });
                if ours { Ok(()) } else { Err(explained(error)) }
            }
            Err(error) => Err(explained(error)),
        }
    }

    /// Directly before a write, which takes no digest: the dataset must be the one that the plan saw, and ours.
    async fn check_unchanged(&self, operation: &Operation) -> Result<(), ProviderError> {
        let Operation { address, spec, lineage, .. } = operation;
        let recorded = operation.recorded.as_ref();
        let conflict = |message: String| {
            let mut error = ProviderError::new(ErrorClass::Conflict, message)
                .hint("nothing of it was touched; plan again");
            error.nothing_done = true;
            Err(error)
        };
        let wanted = Wanted { address, spec, recorded, begun: None, lineage };
        match (self.sight(&wanted).await?, &operation.observed) {
            (Sighting::Ours(now), Some(seen)) if now.digest != seen.digest => conflict(format!(
                "somebody else changed dataset `{}` since the plan was made",
                name_of(spec)?
            )),
            (Sighting::Absent, _) if operation.action == Action::Update => {
                conflict(format!("dataset `{}` is gone since the plan was made", name_of(spec)?))
            }
            (Sighting::Unmanaged(found), _) => conflict(found.to_string()),
            _ => Ok(()),
        }
    }

    async fn update(
        &self,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        let name = name_of(&operation.spec)?;
        self.check_unchanged(operation).await?;
        let mut changed = properties(&operation.spec);
        let before =
            operation.recorded.as_ref().map(|recorded| properties(&recorded.spec)).unwrap_or_default();
        for left in before.into_keys() {
            changed.entry(left).or_insert_with(|| INHERIT.into());
        }
        let marked = BTreeMap::from([(MARK.to_owned(), mark(&operation.lineage, &operation.address))]);
        self.client.update_dataset(&permit(context)?, &name, &changed, &marked).await.map_err(explained)
    }
}

#[async_trait]
impl Provider for DatasetProvider {
    async fn observe_all(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError> {
        futures::future::try_join_all(wanted.iter().map(|one| self.sight(one))).await
    }

    async fn review(&self, review: Review<'_>) -> Result<Vec<Finding>, ProviderError> {
        let mut found = Vec::new();
        for operation in review.operations.iter().filter(|one| one.action == Action::Delete) {
            let name = name_of(&operation.spec)?;
            let Some(dataset) = self.client.dataset(&name).await.map_err(explained)? else { continue };
            if let Some(contents) = self.client.contents(&dataset, &name).await.map_err(explained)? {
                found.push(Finding::precondition(
                    operation,
                    format!("dataset `{name}` would be deleted, and it is not empty: {contents}"),
                    "move or remove what is in it; `strata state rm` forgets it and leaves it alone",
                ));
            }
        }
        Ok(found)
    }

    async fn preflight(
        &self,
        _: &Look,
        operations: &[Operation],
        _: &[Operation],
    ) -> Result<Vec<Obstacle>, ProviderError> {
        let mut found = Vec::new();
        for operation in operations.iter().filter(|one| one.action == Action::Create) {
            let name = name_of(&operation.spec)?;
            if !self.client.has_pool(name.pool()).await.map_err(explained)? {
                let message = format!("there is no pool `{}` for dataset `{name}`", name.pool());
                let error = ProviderError::new(ErrorClass::Missing, message)
                    .hint("make the pool on the TrueNAS first");
                found.push(Obstacle { address: operation.address.clone(), error });
            }
        }
        Ok(found)
    }

    async fn execute(
        &self,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        match operation.action {
            Action::Create => self.create(operation, context).await?,
            Action::Update => self.update(operation, context).await?,
            Action::Delete => {
                let name = name_of(&operation.spec)?;
                self.check_unchanged(operation).await?;
                self.client.delete_empty_dataset(&permit(context)?, &name).await.map_err(explained)?;
            }
        }
        Ok(Outcome::default())
    }

    async fn wait_for_tasks(&self, _: &OpenEntry, _: &dyn OperationContext) -> Result<(), ProviderError> {
        Ok(())
    }
}

/// For one write, which counts from now on.
fn permit(context: &dyn OperationContext) -> Result<WritePermit<'_>, ProviderError> {
    context.before_write()?;
    Ok(WritePermit::new(|| context.may_go_on().map_err(|error| error.message), context.write_timeout()))
}

fn mark(lineage: &Lineage, address: &Address) -> String {
    format!("{lineage} {address}")
}

fn name_of(spec: &Spec) -> Result<DatasetName, ProviderError> {
    let name = spec.get("dataset").and_then(Value::as_text).unwrap_or_default();
    name.parse().map_err(|error: InvalidDatasetName| {
        ProviderError::new(ErrorClass::BadInput, error.to_string()).field("dataset")
    })
}

fn properties(spec: &Spec) -> BTreeMap<String, serde_json::Value> {
    let written = spec.get("properties").and_then(Value::as_map).into_iter().flatten();
    let number = |value: &Value| value.as_text().and_then(|text| text.parse::<u64>().ok());
    let json =
        |value: &Value| number(value).map_or_else(|| serde_json::Value::from(value.clone()), Into::into);
    written.map(|(name, value)| (name.clone(), json(value))).collect()
}

/// The properties that somebody asks about: as written where they mean the same, else as they are.
fn observed<'s>(found: &Dataset, name: &DatasetName, asked: impl Iterator<Item = &'s Spec>) -> Observed {
    let mut live = Spec::new();
    for (property, written) in asked.flat_map(properties) {
        let value = if is_as_wanted(found, &property, &written) {
            Value::Text(written.as_str().map_or_else(|| written.to_string(), str::to_owned))
        } else {
            let own = found.properties.get(&property).filter(|own| own.local);
            let Some(shown) = own.and_then(|own| own.value.clone().or_else(|| own.raw.clone())) else {
                continue;
            };
            Value::Text(shown)
        };
        live.entry(property).or_insert(value);
    }
    let mut hash = Sha256::new();
    hash.update(name.as_str());
    // Another one under the same name does not carry ours.
    hash.update(found.user_properties.get(MARK).map(String::as_str).unwrap_or_default());
    // Whatever is set on it, asked about or not.
    for (property, own) in found.properties.iter().filter(|(_, own)| own.local) {
        hash.update(format!("\n{property}={:?}", own.raw.as_ref().or(own.value.as_ref())));
    }
    let spec = Spec::from([
        ("dataset".to_owned(), Value::text(name.as_str())),
        ("properties".to_owned(), Value::Map(live)),
    ]);
    Observed {
        spec,
        facts: Spec::new(),
        digest: hex::encode(hash.finalize()),
        pending: Vec::new(),
        running: None,
        evidence: Default::default(),
    }
}

fn explained(error: TrueNasError) -> ProviderError {
    let class = match error.trouble() {
        Trouble::Withheld => return ProviderError::new(ErrorClass::Stopped, error.reason()),
        Trouble::Unreachable | Trouble::AnswerLost | Trouble::Throttled => ErrorClass::Unreachable,
        Trouble::Untrusted | Trouble::Refused => ErrorClass::Refused,
        Trouble::Exists => ErrorClass::Conflict,
        Trouble::NotFound => ErrorClass::Missing,
        Trouble::NotEmpty => ErrorClass::Guard,
        Trouble::Invalid => ErrorClass::BadInput,
        _ => ErrorClass::Internal,
    };
    let mut own = ProviderError::new(class, error.to_string());
    own.hint = error.hint().map(str::to_owned);
    own
}
