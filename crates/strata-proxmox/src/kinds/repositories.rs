//! Which of Proxmox' own repositories the packages of a host come from.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use serde::Deserialize;
use strata_engine::{ErrorClass, Operation, ProviderError};
use strata_resource::{KindTable, Spec, Value, kind};
use strata_state::Action;

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER};
use crate::absence;
use crate::api::Params;
use crate::client::{CallError, Client};
use crate::datacenter::{Family, Job, LiveObject, NextCall, digest_of, spec_text};
use crate::preflight::{NamedPlaces, Needs};

kind! {
    /// Which of Proxmox' own repositories the packages of a host come from.
    "repositories" {
        called: "package repositories of {repositories}",
        identity: &["repositories"],
        proof: "nobody's: those that the source does not name stay",
        recovery: "set again, which changes nothing",
        digest_on: "every change",
        shares: &[ADOPT],
        always_there: true,
        no_tofu: Some("the module of the datacenter has no package repositories"),
        ..DATACENTER
    }
    /// the host
    "repositories": Text => InPlace;
    /// by handle
    "standard": Map => InPlace;
    /// packages come from it; one that is not in any file is off
    "standard.*": Bool => InPlace [off_by_default];
}

#[derive(Deserialize)]
struct Listed {
    digest: String,
    files: Vec<File>,
    #[serde(rename = "standard-repos")]
    standard: Vec<Standard>,
}

#[derive(Deserialize)]
struct File {
    path: String,
    repositories: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "URIs", default)]
    uris: Vec<String>,
    #[serde(rename = "Components", default)]
    components: Vec<String>,
    #[serde(rename = "Enabled", default)]
    enabled: serde_json::Value,
}

#[derive(Deserialize)]
struct Standard {
    handle: String,
    #[serde(default)]
    status: Option<serde_json::Value>,
}

/// Numbers and yes or no, as versions of Proxmox differ in it.
fn is_on(value: &serde_json::Value) -> bool {
    value.as_bool().unwrap_or_else(|| value.as_i64() == Some(1))
}

/// Whether an entry of a file is the repository with a handle: those of Ceph have their release in the address, the others have a
/// component of their own.
fn is_of(entry: &Entry, handle: &str) -> bool {
    let has = |component: &str| entry.components.iter().any(|own| own == component);
    match handle.strip_prefix("ceph-").and_then(|rest| rest.split_once('-')) {
        Some((release, component)) => {
            let address = format!("/ceph-{release}");
            has(component) && entry.uris.iter().any(|uri| uri.trim_end_matches('/').ends_with(&address))
        }
        None if handle == "test" => has("pve-test") || has("pvetest"),
        None => has(&format!("pve-{handle}")),
    }
}

struct Hosts;

#[async_trait]
impl Family for Hosts {
    fn word(&self) -> &'static str {
        "package repositories of"
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get("repositories").and_then(Value::as_text).map(str::to_owned)
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let mut found = BTreeMap::new();
        for node in asked.iter().filter_map(|spec| self.key(spec)) {
            let path = format!("/nodes/{node}/apt/repositories");
            let listed: Listed = match client.get(&path, Params::new()).await {
                // The name does not resolve, and the cluster has no such member.
                Err(error) if absence::is_no_member(client, &error, &node).await? => continue,
                other => other?,
            };
            let on = |row: &Standard| row.status.as_ref().is_some_and(is_on);
            let standard =
                listed.standard.iter().map(|row| (row.handle.clone(), Value::Bool(on(row)))).collect();
            let mut live = LiveObject::default();
            live.spec.insert("repositories".to_owned(), Value::text(node.as_str()));
            live.spec.insert("standard".to_owned(), Value::Map(standard));
            live.digest = digest_of(&live.spec);
            live.file_digest = Some(listed.digest);
            // Where each is that can be switched off, in the order of its file.
            for file in &listed.files {
                for (index, entry) in
                    file.repositories.iter().enumerate().filter(|(_, entry)| is_on(&entry.enabled))
                {
                    let handles = listed.standard.iter().filter(|row| is_of(entry, &row.handle));
                    live.order.extend(handles.map(|row| format!("{} {index} {}", row.handle, file.path)));
                }
            }
            found.insert(node, live);
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let Some(live) = live.filter(|_| job.work.operation.action != Action::Delete) else {
            return Ok(None);
        };
        let Some(change) = job.outstanding.iter().find(|change| change.path.first() == Some("standard"))
        else {
            return Ok(None);
        };
        let handle = change.path.keys().get(1).map(String::as_str).unwrap_or_default();
        // What leaves the source stays as it was set.
        let Some(on) = change.after.as_ref().and_then(Value::as_bool) else { return Ok(None) };
        let node = spec_text(job.spec(), "repositories");
        let path = format!("/nodes/{node}/apt/repositories");
        let mut params = Params::new();
        if let Some(digest) = &live.file_digest {
            params.set("digest", digest);
        }
        if on {
            params.set("handle", handle);
            let doing = format!("switch the repository `{handle}` of `{node}` on");
            return Ok(Some(job.work.call(Method::PUT, path, params, doing).into()));
        }
        let place = live
            .order
            .iter()
            .find_map(|place| place.strip_prefix(handle)?.strip_prefix(' ')?.split_once(' '));
        let Some((index, file)) = place else {
            let message = format!("the repository `{handle}` of `{node}` is on, and no file says where");
            return Err(ProviderError::new(ErrorClass::Conflict, message)
                .hint("switch it off on the host, then plan again"));
        };
        params.set("index", index);
        params.set("path", file);
        params.set("enabled", 0);
        let doing = format!("switch the repository `{handle}` of `{node}` off");
        Ok(Some(job.work.call(Method::POST, path, params, doing).into()))
    }
}

pub(super) struct Repositories;

#[async_trait]
impl ManagedKind for Repositories {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&Hosts)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.host(operation, spec_text(&operation.spec, "repositories"));
    }

    fn places<'a>(&self, operation: &'a Operation, places: &mut NamedPlaces<'a>) {
        places.add_node(spec_text(&operation.spec, "repositories"), operation);
    }

    /// A handle that Proxmox does not have would be refused after others were switched.
    fn refusals(&self, _: &Client, operation: &Operation, _: &[Operation]) -> Vec<ProviderError> {
        let known = operation.observed.as_ref().and_then(|seen| seen.spec.get("standard")?.as_map());
        let Some(known) = known.filter(|_| operation.action != Action::Delete) else { return Vec::new() };
        let wanted = operation.spec.get("standard").and_then(Value::as_map).into_iter().flat_map(Spec::keys);
        let unknown = wanted.filter(|handle| !known.contains_key(*handle));
        let refuse = |handle: &String| {
            let message = format!("`{}`: Proxmox has no repository `{handle}`", operation.address);
            let handles: Vec<&str> = known.keys().map(String::as_str).collect();
            let mut error = ProviderError::new(ErrorClass::Refused, message)
                .field(format!("standard.{handle}"))
                .hint(format!("its handles are {}", handles.join(", ")));
            error.nothing_done = true;
            error
        };
        unknown.map(refuse).collect()
    }
}
