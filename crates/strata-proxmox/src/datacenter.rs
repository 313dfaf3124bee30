//! What a datacenter has besides guests: access, storages, devices, settings of hosts, the firewall.
//!
//! Every kind is a family: how its objects are listed, and the next call that brings one closer to its spec. Whose an object is
//! (`ownership`) and how calls are made until it is as it should be (`converge`) is the same for all of them.

mod access;
mod acl;
mod converge;
mod family;
mod firewall;
mod host;
mod needs;
mod network;

mod own_access;
mod ownership;
mod planned;
mod privileges;
mod remarks;
mod rules;
mod simple;
mod standing_access;
mod storage;
mod token;
mod visible;

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use strata_engine::{Finding, Outcome, ProviderError, Review, Sighting, Wanted};
use strata_resource::{Kind, Spec};

use self::family::{Family, LiveObject};
use crate::absence;
use crate::client::Client;
use crate::execute::Work;
use crate::kinds;

pub(crate) use self::needs::{forbidden_passwords, needs_of};
pub(crate) use self::planned::PlannedPlaces;
pub(crate) use self::privileges::with_granted;
pub(crate) use self::remarks::remarks;
pub use self::token::TokenKeeper;
pub(crate) use self::token::unready_keepers;

fn family_of(kind: Kind) -> Option<&'static dyn Family> {
    Some(match kind {
        kinds::POOL => &access::POOL,
        kinds::ROLE => &access::ROLE,
        kinds::GROUP => &access::GROUP,
        kinds::USER => &access::USER,
        kinds::TOKEN => &token::TOKEN,
        kinds::ACL => &acl::ACL,
        kinds::STORAGE => &storage::STORAGE,
        kinds::MAPPING => &storage::MAPPING,
        kinds::DNS => &host::DNS,
        kinds::TIMEZONE => &host::TIMEZONE,
        kinds::NETWORK => &network::NETWORK,
        kinds::FIREWALL => &firewall::FIREWALL,
        kinds::ALIAS => &firewall::ALIAS,
        kinds::IPSET => &rules::IPSET,
        kinds::SECURITY_GROUP => &rules::SECURITY_GROUP,
        _ => return None,
    })
}

/// What must hold, since nobody could make good what follows.
pub(crate) async fn preconditions(
    client: &Client,
    review: Review<'_>,
) -> Result<Vec<Finding>, ProviderError> {
    let operations = review.operations;
    let mut found = network::preconditions(client, operations).await?;
    found.extend(storage::preconditions(client, operations).await?);
    found.extend(standing_access::preconditions(client, review).await?);
    found.extend(privileges::preconditions(client, operations).await?);
    Ok(found)
}

/// One listing for each kind, however many objects are asked about.
pub(crate) async fn look_at(
    client: &Client,
    wanted: &[Wanted<'_>],
) -> Result<Vec<(usize, Sighting)>, ProviderError> {
    let mut kinds: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
    for (index, wanted) in wanted.iter().enumerate() {
        if family_of(wanted.address.kind()).is_some() {
            kinds.entry(wanted.address.kind()).or_default().push(index);
        }
    }
    let looks: Vec<_> =
        kinds.into_iter().map(|(kind, indices)| look_at_kind(client, wanted, kind, indices)).collect();
    let sightings: Vec<Vec<(usize, Sighting)>> =
        stream::iter(looks).buffer_unordered(client.parallelism()).try_collect().await?;
    Ok(sightings.into_iter().flatten().collect())
}

async fn look_at_kind(
    client: &Client,
    wanted: &[Wanted<'_>],
    kind: Kind,
    indices: Vec<usize>,
) -> Result<Vec<(usize, Sighting)>, ProviderError> {
    let Some(family) = family_of(kind) else { return Ok(Vec::new()) };
    let asked: Vec<&Spec> = indices.iter().map(|index| wanted[*index].spec).collect();
    let live = match family.list(client, &asked).await {
        Ok(live) => live,
        // One host that does not answer, or one object that is not shown, says nothing about the others.
        Err(error) if visible::is_of_one(&error) => return one_by_one(client, wanted, family, indices).await,
        Err(error) => return Err(error.explain(&format!("list each {}", family.word()))),
    };
    let judged = indices.into_iter().map(|index| (index, judged(family, &wanted[index], &live))).collect();
    visible::prove_absent(client, wanted, family, judged).await
}

fn judged(family: &dyn Family, wanted: &Wanted<'_>, live: &BTreeMap<String, LiveObject>) -> Sighting {
    let found = family.key(wanted.spec).and_then(|key| live.get(&key));
    match wanted.address.kind() {
        kinds::NETWORK => network::judge(wanted, found),
        _ => ownership::judge(family, wanted, found),
    }
}

async fn one_by_one(
    client: &Client,
    wanted: &[Wanted<'_>],
    family: &'static dyn Family,
    indices: Vec<usize>,
) -> Result<Vec<(usize, Sighting)>, ProviderError> {
    let mut sightings = Vec::new();
    for index in indices {
        let one = &wanted[index];
        let sighting = match family.list(client, &[one.spec]).await {
            Ok(live) => judged(family, one, &live),
            Err(error) => {
                let named = format!("{} `{}`", family.word(), family.key(one.spec).unwrap_or_default());
                let node = family.key(one.spec).unwrap_or_default();
                let explained = || error.explain(&format!("look at {named}"));
                Sighting::Unknown(absence::unseen(&error, &node, &named).ok_or_else(explained)?)
            }
        };
        sightings.push((index, sighting));
    }
    visible::prove_absent(client, wanted, family, sightings).await
}

pub(crate) async fn execute(work: &Work<'_>) -> Result<Outcome, ProviderError> {
    let kind = work.operation.address.kind();
    let Some(family) = family_of(kind) else {
        return Err(work.internal("nothing is known about its kind"));
    };
    match kind {
        kinds::TOKEN => token::execute(work).await,
        kinds::NETWORK => network::execute(work).await,
        _ => converge::converge(work, family).await,
    }
}
