//! Settings that every host has. They are set, and never made or deleted.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{Spec, Value};
use strata_state::Action;

use super::family::{Family, Job, LiveObject, NextCall, Row, digest_of, spec_text};
use crate::absence;
use crate::api::Params;
use crate::client::{CallError, Client};

/// A setting with a path of its own below each host.
pub(crate) struct Setting {
    pub(crate) word: &'static str,
    /// The field with the name of the host.
    pub(crate) node: &'static str,
    pub(crate) path: &'static str,
    pub(crate) read: fn(&Row, &mut Spec),
    /// All parameters: what is not sent is lost.
    pub(crate) write: fn(&Spec, &Spec) -> Result<Params, &'static str>,
}

#[async_trait]
impl Family for Setting {
    fn word(&self) -> &'static str {
        self.word
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get(self.node).and_then(Value::as_text).map(str::to_owned)
    }

    async fn everything(&self, client: &Client) -> Result<Vec<Spec>, CallError> {
        absence::each_host(client, self.node).await
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
