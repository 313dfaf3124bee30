//! A certificate that somebody brought along, for the API and the web interface of a host.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use strata_engine::{Operation, ProviderError};
use strata_resource::{KindTable, Spec, Value, kind};
use strata_state::Action;

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER, NO_MARK};
use crate::absence;
use crate::api::Params;
use crate::client::{CallError, Client};
use crate::datacenter::{Family, Job, LiveObject, NextCall, Row, digest_of, row_text, spec_text};
use crate::preflight::{NamedPlaces, Needs};

kind! {
    /// A certificate of one's own for the API and the web interface of a host.
    "certificate" {
        called: "certificate of {certificate}",
        identity: &["certificate"],
        proof: NO_MARK,
        shares: &[ADOPT],
        at_once: true,
        no_tofu: Some("the module of the datacenter has no certificates"),
        ..DATACENTER
    }
    /// the host
    "certificate": Text => InPlace;
    /// SHA-256 of the certificate
    "fingerprint": Text => InPlace [remote("fingerprint")];
    /// the certificate, and those between it and its authority
    "chain": Text => InPlace [remote("certificates"), write_only];
    /// its private key
    "key": Text => InPlace [remote("key"), write_only];
}

/// The file of the certificate that takes the place of Proxmox' own.
const FILE: &str = "pveproxy-ssl.pem";

struct Certificates;

#[async_trait]
impl Family for Certificates {
    fn word(&self) -> &'static str {
        "certificate of"
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get("certificate").and_then(Value::as_text).map(str::to_owned)
    }

    async fn everything(&self, client: &Client) -> Result<Vec<Spec>, CallError> {
        absence::each_host(client, "certificate").await
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let mut found = BTreeMap::new();
        for node in asked.iter().filter_map(|spec| self.key(spec)) {
            let path = format!("/nodes/{node}/certificates/info");
            let rows: Vec<Row> = match client.get(&path, Params::new()).await {
                // The name does not resolve, and the cluster has no such member.
                Err(error) if absence::is_no_member(client, &error, &node).await? => continue,
                other => other?,
            };
            let own = rows.iter().find(|row| row_text(row, "filename").as_deref() == Some(FILE));
            let Some(fingerprint) = own.and_then(|row| row_text(row, "fingerprint")) else { continue };
            let mut live = LiveObject::default();
            live.spec.insert("certificate".to_owned(), Value::text(node.as_str()));
            live.spec.insert("fingerprint".to_owned(), Value::Text(fingerprint));
            live.digest = digest_of(&live.spec);
            found.insert(node, live);
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let (work, spec) = (job.work, job.spec());
        let node = spec_text(spec, "certificate");
        let path = format!("/nodes/{node}/certificates/custom");
        let mut params = Params::new().with("restart", 1);
        if work.operation.action == Action::Delete {
            let doing = format!("delete the certificate of `{node}`");
            return Ok(live.map(|_| work.call(Method::DELETE, path, params, doing).into()));
        }
        if live.is_some() && job.outstanding.is_empty() {
            return Ok(None);
        }
        for (field, key) in [("chain", "certificates"), ("key", "key")] {
            let Some(Value::Secret(secret)) = spec.get(field) else { continue };
            match secret.plain() {
                Some(plain) => params.set_secret(key, plain.expose()),
                None => {
                    return Err(work.internal(&format!("its `{field}` itself is not at hand, only a digest")));
                }
            }
        }
        if live.is_some() {
            params.set("force", 1);
        }
        let call = work.call(Method::POST, path, params, format!("give `{node}` its certificate"));
        Ok(Some(NextCall { call, sends: vec!["chain", "key"] }))
    }
}

pub(super) struct Certificate;

#[async_trait]
impl ManagedKind for Certificate {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&Certificates)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.host(operation, spec_text(&operation.spec, "certificate"));
    }

    fn places<'a>(&self, operation: &'a Operation, places: &mut NamedPlaces<'a>) {
        places.add_node(spec_text(&operation.spec, "certificate"), operation);
    }

    fn remark(&self, operation: &Operation) -> Option<String> {
        let node = spec_text(&operation.spec, "certificate");
        Some(format!(
            "the web interface of `{node}` starts again with it; whoever knows it by its fingerprint needs the new one"
        ))
    }
}
