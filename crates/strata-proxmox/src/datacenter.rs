//! What a datacenter has besides guests: access, storages, devices, settings of hosts, the firewall.
//!
//! Every kind of it is a family: how its objects are listed, and the next call that brings one closer to its spec. The families that
//! several kinds are made with are here (`simple`, `named_list`, `rule_set`, `setting`), and what is the same for all: whose an object is
//! (`ownership`), whether a list would show it (`visible`), how calls are made until it is as it should be (`converge`).

pub(crate) mod converge;
mod family;
mod named_list;
pub(crate) mod ownership;
mod planned;
mod rule_set;
mod setting;
mod simple;
mod visible;

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use strata_engine::{ProviderError, Sighting, Wanted};
use strata_resource::{Kind, Spec};

pub(crate) use self::family::{
    Family, Job, LiveObject, NextCall, Row, digest_of, row_text, spec_text, text_of,
};
pub(crate) use self::named_list::{NamedList, rule_call, rules_of};
pub(crate) use self::planned::PlannedPlaces;
pub(crate) use self::rule_set::{RuleSet, is_begun, option_after};
pub(crate) use self::setting::Setting;
pub(crate) use self::simple::{Parts, SeparateField, Simple, Unset, comment_of};
pub(crate) use self::visible::ShownBy;
use crate::absence;
use crate::client::Client;
use crate::kinds;
use crate::kinds::managed::ManagedKind;

/// One listing for each kind, however many objects are asked about.
pub(crate) async fn look_at(
    client: &Client,
    wanted: &[Wanted<'_>],
) -> Result<Vec<(usize, Sighting)>, ProviderError> {
    let mut by_kind: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
    for (index, wanted) in wanted.iter().enumerate() {
        if kinds::is_datacenter(wanted.address.kind()) {
            by_kind.entry(wanted.address.kind()).or_default().push(index);
        }
    }
    let looks: Vec<_> =
        by_kind.into_iter().map(|(kind, indices)| look_at_kind(client, wanted, kind, indices)).collect();
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
    let Some(managed) = kinds::of(kind) else { return Ok(Vec::new()) };
    let Some(family) = managed.family() else { return Ok(Vec::new()) };
    let asked: Vec<&Spec> = indices.iter().map(|index| wanted[*index].spec).collect();
    let live = match family.list(client, &asked).await {
        Ok(live) => live,
        // One host that does not answer, or one object that is not shown, says nothing about the others.
        Err(error) if visible::is_of_one(&error) => {
            return one_by_one(client, wanted, managed, family, indices).await;
        }
        Err(error) => return Err(error.explain(&format!("list each {}", family.word()))),
    };
    let judged =
        indices.into_iter().map(|index| (index, judged(managed, family, &wanted[index], &live))).collect();
    visible::prove_absent(client, wanted, managed, family, judged).await
}

fn judged(
    managed: &dyn ManagedKind,
    family: &dyn Family,
    wanted: &Wanted<'_>,
    live: &BTreeMap<String, LiveObject>,
) -> Sighting {
    managed.judge(wanted, family.key(wanted.spec).and_then(|key| live.get(&key)))
}

async fn one_by_one(
    client: &Client,
    wanted: &[Wanted<'_>],
    managed: &'static dyn ManagedKind,
    family: &'static dyn Family,
    indices: Vec<usize>,
) -> Result<Vec<(usize, Sighting)>, ProviderError> {
    let mut sightings = Vec::new();
    for index in indices {
        let one = &wanted[index];
        let sighting = match family.list(client, &[one.spec]).await {
            Ok(live) => judged(managed, family, one, &live),
            Err(error) => {
                let named = format!("{} `{}`", family.word(), family.key(one.spec).unwrap_or_default());
                let node = family.key(one.spec).unwrap_or_default();
                let explained = || error.explain(&format!("look at {named}"));
                Sighting::Unknown(absence::unseen(&error, &node, &named).ok_or_else(explained)?)
            }
        };
        sightings.push((index, sighting));
    }
    visible::prove_absent(client, wanted, managed, family, sightings).await
}
