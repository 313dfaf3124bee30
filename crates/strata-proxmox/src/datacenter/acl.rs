//! Who may do what where. An entry has nothing but its identity and whether it reaches down; making one twice changes nothing.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use strata_engine::ProviderError;
use strata_resource::{Spec, Value};
use strata_state::Action;

use super::family::{Family, Job, LiveObject, NextCall, Row, digest_of, row_text, spec_text};
use crate::api::Params;
use crate::client::{CallError, Client};

pub(super) struct Acl;
pub(super) static ACL: Acl = Acl;

pub(super) fn read_row(row: &Row) -> Option<(String, LiveObject)> {
    let mut live = LiveObject::default();
    for (field, key) in
        [("path", "path"), ("subject", "ugid"), ("subject_type", "type"), ("grants", "roleid")]
    {
        live.spec.insert(field.to_owned(), Value::Text(row_text(row, key)?));
    }
    let propagate = row_text(row, "propagate").is_none_or(|propagate| propagate != "0");
    live.spec.insert("propagate".to_owned(), Value::Bool(propagate));
    live.digest = digest_of(&live.spec);
    Some((ACL.key(&live.spec)?, live))
}

/// An entry as a request.
pub(super) fn params_of(spec: &Spec) -> Params {
    let subject = match spec_text(spec, "subject_type") {
        "group" => "groups",
        "token" => "tokens",
        _ => "users",
    };
    Params::new()
        .with("path", spec_text(spec, "path"))
        .with(subject, spec_text(spec, "subject"))
        .with("roles", spec_text(spec, "grants"))
}

#[async_trait]
impl Family for Acl {
    fn word(&self) -> &'static str {
        "permission"
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        let text = |field: &str| spec.get(field).and_then(Value::as_text);
        Some(format!("{} for {} on {}", text("grants")?, text("subject")?, text("path")?))
    }

    async fn list(&self, client: &Client, _: &[&Spec]) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let rows: Vec<Row> = client.get("/access/acl", Params::new()).await?;
        Ok(rows.iter().filter_map(read_row).collect())
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let (spec, work) = (job.spec(), job.work);
        let deletes = work.operation.action == Action::Delete;
        match live {
            None if deletes => return Ok(None),
            Some(_) if !deletes && job.outstanding.is_empty() => return Ok(None),
            _ => {}
        }
        let mut params = params_of(spec);
        let doing = if deletes {
            params.set("delete", 1);
            format!("take {}", self.key(spec).unwrap_or_default())
        } else {
            let propagate = spec.get("propagate").and_then(Value::as_bool).unwrap_or(true);
            params.set("propagate", u8::from(propagate));
            format!("give {}", self.key(spec).unwrap_or_default())
        };
        Ok(Some(work.call(Method::PUT, "/access/acl".to_owned(), params, doing).into()))
    }
}
