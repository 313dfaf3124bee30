//! Accounts at authorities for certificates. Only root@pam may look at one, make, change or delete it: an API token sees no more than
//! their names.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use serde::Deserialize;
use strata_engine::{ErrorClass, Operation, ProviderError};
use strata_resource::{KindTable, Spec, Value, kind};
use strata_state::Action;

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER, NO_MARK};
use crate::api::{Params, encode_path_part};
use crate::client::{CallError, Client, Rights};
use crate::datacenter::{Family, Job, LiveObject, NextCall, Row, digest_of, row_text, spec_text};
use crate::execute::Call;
use crate::preflight::{Needs, verb};

kind! {
    /// An account at an authority for certificates.
    "acmeaccount" {
        called: "ACME account {acme_account}",
        identity: &["acme_account"],
        proof: NO_MARK,
        shares: &[ADOPT],
        at_once: true,
        no_tofu: Some("the module of the datacenter has no ACME accounts"),
        ..DATACENTER
    }
    /// its name
    "acme_account": Text => InPlace [remote("name")];
    /// the addresses that the authority writes to
    "contact": List => InPlace [remote("contact"), set];
    /// the URL of the authority
    "directory": Text => Replace [remote("directory"), default_text(LETS_ENCRYPT), because("an account is at one authority")];
    /// the URL of the terms of service that were accepted
    "terms": Text => CreateOnly [remote("tos_url")];
    /// the id of an account that the authority knew already
    "eab_key_id": Text => CreateOnly [remote("eab-kid")];
    /// its key
    "eab_key": Text => CreateOnly [remote("eab-hmac-key"), write_only];
}

const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
const LIST: &str = "/cluster/acme/account";

#[derive(Deserialize)]
struct Registered {
    #[serde(default)]
    account: Row,
    directory: Option<String>,
}

struct Accounts;

impl Accounts {
    fn path(spec: &Spec) -> String {
        format!("{LIST}/{}", encode_path_part(spec_text(spec, "acme_account")))
    }
}

#[async_trait]
impl Family for Accounts {
    fn word(&self) -> &'static str {
        "ACME account"
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get("acme_account").and_then(Value::as_text).map(str::to_owned)
    }

    async fn everything(&self, client: &Client) -> Result<Vec<Spec>, CallError> {
        let rows: Vec<Row> = client.get(LIST, Params::new()).await?;
        let names = rows.iter().filter_map(|row| row_text(row, "name"));
        Ok(names.map(|name| Spec::from([("acme_account".to_owned(), Value::Text(name))])).collect())
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let rows: Vec<Row> = client.get(LIST, Params::new()).await?;
        let mut found = BTreeMap::new();
        for name in rows.iter().filter_map(|row| row_text(row, "name")) {
            let Some(own) = asked.iter().find(|spec| self.key(spec).as_ref() == Some(&name)) else {
                continue;
            };
            let mut live = LiveObject::default();
            live.spec.insert("acme_account".to_owned(), Value::text(name.as_str()));
            if client.can_be_root() {
                let one: Registered = client.get_as_root(&Self::path(own)).await?;
                let contact = one.account.get("contact").and_then(serde_json::Value::as_array);
                let mut contact: Vec<&str> =
                    contact.into_iter().flatten().filter_map(|text| text.as_str()).map(address).collect();
                contact.sort_unstable();
                let contact = contact.into_iter().map(Value::text).collect();
                live.spec.insert("contact".to_owned(), Value::List(contact));
                live.spec.extend(one.directory.map(|url| ("directory".to_owned(), Value::Text(url))));
            } else {
                // That it is there is all that can be known.
                for field in ["contact", "directory"] {
                    live.spec.extend(own.get(field).map(|value| (field.to_owned(), value.clone())));
                }
            }
            live.digest = digest_of(&live.spec);
            found.insert(name, live);
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let (work, spec) = (job.work, job.spec());
        let name = spec_text(spec, "acme_account");
        let contact = spec.get("contact").and_then(Value::as_list).unwrap_or_default();
        let contact = contact.iter().filter_map(Value::as_text).collect::<Vec<_>>().join(",");
        let mut params = Params::new();
        let call = match (work.operation.action, live) {
            (Action::Delete, None) => return Ok(None),
            (Action::Delete, Some(_)) => {
                let doing = format!("give the ACME account `{name}` back");
                work.call(Method::DELETE, Self::path(spec), params, doing)
            }
            (_, None) => {
                params.set("name", name);
                params.set("contact", contact);
                for (field, key) in
                    [("directory", "directory"), ("terms", "tos_url"), ("eab_key_id", "eab-kid")]
                {
                    if let Some(text) = spec.get(field).and_then(Value::as_text) {
                        params.set(key, text);
                    }
                }
                if let Some(Value::Secret(secret)) = spec.get("eab_key") {
                    let plain = secret.plain();
                    let plain =
                        plain.ok_or_else(|| work.internal("its key is not at hand, only a digest"))?;
                    params.set_secret("eab-hmac-key", plain.expose());
                }
                work.call(Method::POST, LIST.to_owned(), params, format!("make the ACME account `{name}`"))
            }
            (_, Some(_)) if job.lacks("contact") => {
                params.set("contact", contact);
                let doing = format!("change the ACME account `{name}`");
                work.call(Method::PUT, Self::path(spec), params, doing)
            }
            (_, Some(_)) => return Ok(None),
        };
        Ok(Some(Call { rights: Rights::Root, ..call }.into()))
    }
}

/// An authority keeps the addresses as URLs.
fn address(contact: &str) -> &str {
    contact.strip_prefix("mailto:").unwrap_or(contact)
}

pub(super) struct AcmeAccount;

#[async_trait]
impl ManagedKind for AcmeAccount {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&Accounts)
    }

    fn needs(&self, _: &Operation, _: &mut Needs<'_>) {}

    /// A token may not, whatever its role.
    fn refusals(&self, client: &Client, operation: &Operation, _: &[Operation]) -> Vec<ProviderError> {
        if client.can_be_root() {
            return Vec::new();
        }
        let message = format!(
            "`{}`: only root@pam may {} an ACME account; an API token is never root",
            operation.address,
            verb(operation)
        );
        let mut error = ProviderError::new(ErrorClass::Refused, message)
            .hint("give the target `login: {user: root@pam, password: …}`");
        error.nothing_done = true;
        vec![error]
    }

    fn remark(&self, operation: &Operation) -> Option<String> {
        let given_back = operation.action == Action::Delete;
        given_back.then(|| "the authority closes the account, and nobody can open it again".to_owned())
    }
}
