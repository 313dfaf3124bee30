//! Interfaces of hosts, as they are read and edited. Edits are staged, and come into effect together with one reload.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use http::Method;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{FieldChange, Spec, Value};
use strata_state::Action;

use super::interface;
use crate::absence;
use crate::api::{Params, encode_path_part};
use crate::client::{CallError, Client};
use crate::datacenter::{Family, Job, LiveObject, NextCall, Row, digest_of, row_text, spec_text};
use crate::execute::{Call, Work};

pub(super) struct Networks;

/// Whether changes wait for a reload.
pub(super) const STAGED: &str = "staged";

/// The interfaces of a host, and the names of those that waiting changes are about.
pub(super) struct Host {
    pub(super) rows: BTreeMap<String, Row>,
    pub(super) changes: Option<String>,
}

impl Host {
    pub(super) async fn read(client: &Client, node: &str) -> Result<Option<Self>, CallError> {
        let path = format!("/nodes/{node}/network");
        let (rows, changes): (Vec<Row>, Option<String>) = match client.get_staged(&path).await {
            // The name does not resolve, and the cluster has no such member.
            Err(error) if absence::is_no_member(client, &error, node).await? => return Ok(None),
            other => other?,
        };
        let named = rows.into_iter().filter_map(|row| Some((row_text(&row, "iface")?, row)));
        Ok(Some(Self { rows: named.collect(), changes: changes.filter(|text| !text.trim().is_empty()) }))
    }

    /// The hosts that specs speak of, as far as the cluster has them.
    pub(super) async fn read_all(
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, Self>, CallError> {
        let mut found = BTreeMap::new();
        for node in asked.iter().filter_map(|spec| Networks.key(spec)) {
            if let Some(host) = Self::read(client, &node).await? {
                found.insert(node, host);
            }
        }
        Ok(found)
    }

    pub(super) fn order(&self) -> Vec<String> {
        let place = |row: &Row| row_text(row, "priority").and_then(|place| place.parse::<u32>().ok());
        let mut names: Vec<(Option<u32>, &String)> =
            self.rows.iter().map(|(name, row)| (place(row), name)).collect();
        names.sort();
        names.into_iter().map(|(_, name)| name.clone()).collect()
    }

    pub(super) fn live(&self, node: &str) -> LiveObject {
        let mut live = LiveObject::default();
        let interfaces: Spec =
            self.rows.iter().map(|(name, row)| (name.clone(), Value::Map(interface::read(row)))).collect();
        live.spec.insert("network".to_owned(), Value::text(node));
        live.spec.insert("interfaces".to_owned(), Value::Map(interfaces));
        live.spec.insert(STAGED.to_owned(), Value::Bool(self.changes.is_some()));
        live.digest = digest_of(&live.spec);
        live.staged.clone_from(&self.changes);
        live.order = self.order();
        live
    }
}

#[async_trait]
impl Family for Networks {
    fn word(&self) -> &'static str {
        "network of"
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get("network").and_then(Value::as_text).map(str::to_owned)
    }

    async fn everything(&self, client: &Client) -> Result<Vec<Spec>, CallError> {
        absence::each_host(client, "network").await
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let hosts = Host::read_all(client, asked).await?;
        Ok(hosts.into_iter().map(|(node, host)| (node.clone(), host.live(&node))).collect())
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let Some(live) = live else {
            let message = format!("there is no host `{}`", spec_text(job.spec(), "network"));
            return Err(ProviderError::new(ErrorClass::Missing, message));
        };
        if let Some(call) = next_edit(job, live)? {
            return Ok(Some(call.into()));
        }
        let staged = live.spec.get(STAGED).and_then(Value::as_bool) == Some(true);
        Ok(staged.then(|| reload(job.work).into()))
    }
}

pub(super) fn path(work: &Work<'_>) -> String {
    format!("/nodes/{}/network", spec_text(&work.operation.spec, "network"))
}

pub(super) fn reload(work: &Work<'_>) -> Call {
    let doing = format!("reload the network of `{}`", spec_text(&work.operation.spec, "network"));
    work.call(Method::PUT, path(work), Params::new(), doing)
}

pub(super) fn interfaces(spec: &Spec) -> BTreeMap<&str, &Spec> {
    let map = spec.get("interfaces").and_then(Value::as_map).into_iter().flatten();
    map.filter_map(|(name, interface)| Some((name.as_str(), interface.as_map()?))).collect()
}

pub(super) fn is(interface: &Spec, flag: &str) -> bool {
    interface.get(flag).and_then(Value::as_bool) == Some(true)
}

/// It is hardware, or was there before us: it is configured, and never made or deleted.
pub(super) fn only_configured(interface: &Spec) -> bool {
    is(interface, "adopt") || spec_text(interface, "type") == "eth"
}

/// The next change to stage: first what goes, then what changes, then what comes, each before what stands on it.
fn next_edit(job: &Job<'_>, live: &LiveObject) -> Result<Option<Call>, ProviderError> {
    let (work, there) = (job.work, interfaces(&live.spec));
    let node = spec_text(job.spec(), "network");
    let delete = |name: &str| {
        let path = format!("{}/{}", path(work), encode_path_part(name));
        work.call(Method::DELETE, path, Params::new(), format!("stage the removal of `{name}` on `{node}`"))
    };
    if work.operation.action == Action::Delete {
        let own = interfaces(job.spec());
        let ours = own.iter().filter(|(name, own)| !only_configured(own) && there.contains_key(*name));
        let last = ours.max_by_key(|(name, _)| (interface::depth(name, &there), **name));
        return Ok(last.map(|(name, _)| delete(name)));
    }
    let changed =
        |change: &&FieldChange| change.path.keys().len() > 1 && change.path.first() == Some("interfaces");
    let touched: BTreeSet<&str> =
        job.outstanding.iter().filter(changed).map(|change| change.path.keys()[1].as_str()).collect();
    let wanted = interfaces(job.spec());
    let gone = touched.iter().filter(|name| !wanted.contains_key(*name) && there.contains_key(*name));
    if let Some(name) = gone.max_by_key(|name| (interface::depth(name, &there), **name)) {
        return Ok(Some(delete(name)));
    }
    let order =
        |name: &&&str| (!there.contains_key(**name), interface::depth(name, &wanted), (**name).to_owned());
    let Some(name) = touched.iter().filter(|name| wanted.contains_key(*name)).min_by_key(order) else {
        return Ok(None);
    };
    let own = wanted[name];
    let Some(before) = there.get(name) else {
        if spec_text(own, "type") == "eth" {
            let message = format!(
                "there is no interface `{name}` on `{node}`: an `eth` is hardware, and cannot be made"
            );
            return Err(ProviderError::new(ErrorClass::Missing, message).field(format!("interfaces.{name}")));
        }
        let params = interface::create(name, own);
        return Ok(Some(work.call(Method::POST, path(work), params, format!("stage `{name}` on `{node}`"))));
    };
    let changes: Vec<&FieldChange> = job
        .outstanding
        .iter()
        .filter(|change| change.path.keys().get(1).map(String::as_str) == Some(name))
        .collect();
    let params = interface::update(own, before, &changes);
    let path = format!("{}/{}", path(work), encode_path_part(name));
    Ok(Some(work.call(Method::PUT, path, params, format!("stage changes of `{name}` on `{node}`"))))
}
