//! Zones, networks and subnets as they are read and edited. Edits are staged, and come into effect together.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use http::Method;
use strata_engine::ProviderError;
use strata_resource::{FieldChange, Spec, Value};
use strata_state::Action;

use super::class::{CLASSES, Class, SUBNETS, subnets_path};
use crate::api::Params;
use crate::client::{CallError, Client};
use crate::datacenter::{Family, Job, LiveObject, NextCall, Row, digest_of};
use crate::execute::{Call, Work};

pub(super) struct Networks;

/// Whether changes wait to be brought into effect.
pub(super) const STAGED: &str = "staged";
pub(super) const PATH: &str = "/cluster/sdn";

/// All of a class, by name.
pub(super) fn items<'s>(spec: &'s Spec, class: &Class) -> BTreeMap<&'s str, &'s Spec> {
    let map = spec.get(class.field).and_then(Value::as_map).into_iter().flatten();
    map.filter_map(|(name, item)| Some((name.as_str(), item.as_map()?))).collect()
}

pub(super) fn is_adopted(item: &Spec) -> bool {
    item.get("adopt").and_then(Value::as_bool) == Some(true)
}

/// What there will be, and the names of what waits.
pub(super) async fn read(client: &Client) -> Result<LiveObject, CallError> {
    let pending = || Params::new().with("pending", 1);
    let (mut spec, mut waiting) = (Spec::new(), Vec::new());
    let mut vnets: Vec<String> = Vec::new();
    for class in &CLASSES {
        let mut rows: Vec<Row> = Vec::new();
        if class.field == SUBNETS {
            for vnet in &vnets {
                rows.extend(client.get::<Vec<Row>>(&subnets_path(vnet), pending()).await?);
            }
        } else {
            rows = client.get(&class.path(""), pending()).await?;
        }
        let mut found = Spec::new();
        for row in &rows {
            let Some(name) = class.name_of(row) else { continue };
            if row.contains_key("state") {
                waiting.push(format!("{} `{name}`", class.word));
            }
            if let Some(item) = class.read(row) {
                found.insert(name, Value::Map(item));
            }
        }
        if class.field == "vnets" {
            vnets = found.keys().cloned().collect();
        }
        spec.insert(class.field.to_owned(), Value::Map(found));
    }
    spec.insert("sdn".to_owned(), Value::text("datacenter"));
    spec.insert(STAGED.to_owned(), Value::Bool(!waiting.is_empty()));
    let digest = digest_of(&spec);
    let staged = (!waiting.is_empty()).then(|| waiting.join("\n"));
    Ok(LiveObject { spec, digest, staged, order: waiting, ..LiveObject::default() })
}

#[async_trait]
impl Family for Networks {
    fn word(&self) -> &'static str {
        "SDN of the"
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get("sdn").and_then(Value::as_text).map(str::to_owned)
    }

    async fn list(&self, client: &Client, _: &[&Spec]) -> Result<BTreeMap<String, LiveObject>, CallError> {
        Ok([("datacenter".to_owned(), read(client).await?)].into())
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let Some(live) = live else { return Ok(None) };
        if let Some(call) = next_edit(job, &live.spec) {
            return Ok(Some(call.into()));
        }
        Ok(live.staged.is_some().then(|| apply(job.work).into()))
    }
}

/// Brings what is staged into effect.
pub(super) fn apply(work: &Work<'_>) -> Call {
    work.call(Method::PUT, PATH.to_owned(), Params::new(), "bring the SDN configuration into effect")
}

/// The next change to stage. Networks that go make room for others; zones and controllers go when nothing is in them any more.
fn next_edit(job: &Job<'_>, live: &Spec) -> Option<Call> {
    let [controllers, zones, vnets, subnets] = &CLASSES;
    if job.work.operation.action == Action::Delete {
        return [subnets, vnets, zones, controllers].into_iter().find_map(|class| {
            let (own, there) = (items(job.spec(), class), items(live, class));
            let mut ours = own.iter().filter(|(name, own)| !is_adopted(own) && there.contains_key(*name));
            ours.next().map(|(name, _)| removal(job, class, name, live))
        });
    }
    let gone = |class: &Class| {
        let (wanted, there) = (items(job.spec(), class), items(live, class));
        let touched = touched(job, class);
        let mut gone = touched.iter().filter(|name| !wanted.contains_key(*name) && there.contains_key(*name));
        gone.next().map(|name| removal(job, class, name, live))
    };
    gone(subnets)
        .or_else(|| gone(vnets))
        .or_else(|| CLASSES.iter().find_map(|class| change(job, class, live)))
        .or_else(|| gone(zones))
        .or_else(|| gone(controllers))
}

/// The names in a class that the operation still changes.
fn touched<'j>(job: &'j Job<'_>, class: &Class) -> BTreeSet<&'j str> {
    let own = job.outstanding.iter().filter(|change| change.path.first() == Some(class.field));
    own.filter_map(|change| change.path.keys().get(1)).map(String::as_str).collect()
}

fn removal(job: &Job<'_>, class: &Class, name: &str, live: &Spec) -> Call {
    let doing = format!("stage the removal of the {} `{name}`", class.word);
    job.work.call(Method::DELETE, class.path_of(name, live), Params::new(), doing)
}

fn change(job: &Job<'_>, class: &Class, live: &Spec) -> Option<Call> {
    let (wanted, there) = (items(job.spec(), class), items(live, class));
    let touched = touched(job, class);
    let name = touched.into_iter().find(|name| wanted.contains_key(name))?;
    let own = wanted[name];
    if !there.contains_key(name) {
        let doing = format!("stage the {} `{name}`", class.word);
        return Some(job.work.call(Method::POST, class.path(name), class.create(name, own), doing));
    }
    let is_own = |change: &&FieldChange| {
        change.path.first() == Some(class.field)
            && change.path.keys().get(1).map(String::as_str) == Some(name)
    };
    let changes: Vec<&FieldChange> = job.outstanding.iter().filter(is_own).collect();
    let doing = format!("stage changes of the {} `{name}`", class.word);
    Some(job.work.call(Method::PUT, class.path_of(name, live), class.update(own, &changes), doing))
}
