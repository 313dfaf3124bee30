//! Settings that every host has: name servers and time zone. They are set, and never made or deleted.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{Spec, Value};
use strata_state::Action;

use super::family::{Family, Job, LiveObject, NextCall, Row, digest_of, row_text, spec_text};
use crate::absence;
use crate::api::Params;
use crate::client::{CallError, Client};

/// A setting with a path of its own below each host.
pub(super) struct Setting {
    word: &'static str,
    /// The field with the name of the host.
    node: &'static str,
    path: &'static str,
    read: fn(&Row, &mut Spec),
    /// All parameters: what is not sent is lost.
    write: fn(&Spec, &Spec) -> Result<Params, &'static str>,
}

pub(super) static DNS: Setting =
    Setting { word: "name servers of", node: "dns", path: "dns", read: read_dns, write: write_dns };

pub(super) static TIMEZONE: Setting = Setting {
    word: "time zone of",
    node: "clock",
    path: "time",
    read: |row, spec| {
        spec.extend(row_text(row, "timezone").map(|zone| ("zone".to_owned(), Value::Text(zone))));
    },
    write: |spec, _| Ok(Params::new().with("timezone", spec_text(spec, "zone"))),
};

const SERVERS: [&str; 3] = ["dns1", "dns2", "dns3"];

fn read_dns(row: &Row, spec: &mut Spec) {
    let servers: Vec<Value> = SERVERS.iter().filter_map(|key| row_text(row, key)).map(Value::Text).collect();
    if !servers.is_empty() {
        spec.insert("servers".to_owned(), Value::List(servers));
    }
    spec.extend(row_text(row, "search").map(|search| ("search".to_owned(), Value::Text(search))));
}

/// What the source says nothing about is sent as it is.
fn write_dns(spec: &Spec, live: &Spec) -> Result<Params, &'static str> {
    let either = |field: &str| spec.get(field).or_else(|| live.get(field));
    let search = either("search").and_then(Value::as_text);
    let search = search.ok_or("Proxmox wants a search domain, and there is none: set `searchDomain`")?;
    let mut params = Params::new().with("search", search);
    let servers = either("servers").and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_text);
    for (key, server) in SERVERS.into_iter().zip(servers) {
        params.set(key, server);
    }
    Ok(params)
}

#[async_trait]
impl Family for Setting {
    fn word(&self) -> &'static str {
        self.word
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get(self.node).and_then(Value::as_text).map(str::to_owned)
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let mut found = BTreeMap::new();
        for node in asked.iter().filter_map(|spec| self.key(spec)) {
            let row: Row = match client.get(&format!("/nodes/{node}/{}", self.path), Params::new()).await {
                // The name does not resolve, and the cluster has no such member.
                Err(error) if absence::is_no_member(client, &error, &node).await? => continue,
                other => other?,
            };
            let mut live = LiveObject::default();
            live.spec.insert(self.node.to_owned(), Value::text(node.as_str()));
            (self.read)(&row, &mut live.spec);
            live.digest = digest_of(&live.spec);
            found.insert(node, live);
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let Some(live) = live.filter(|_| job.work.operation.action != Action::Delete) else {
            return Ok(None);
        };
        if job.outstanding.is_empty() {
            return Ok(None);
        }
        let (spec, node) = (job.spec(), spec_text(job.spec(), self.node));
        let params = (self.write)(spec, &live.spec).map_err(|why| {
            let message = format!("`{}`: {why}", job.work.operation.address);
            ProviderError { nothing_done: true, ..ProviderError::new(ErrorClass::BadInput, message) }
        })?;
        let doing = format!("set the {} `{node}`", self.word);
        Ok(Some(job.work.call(Method::PUT, format!("/nodes/{node}/{}", self.path), params, doing).into()))
    }
}
