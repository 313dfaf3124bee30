//! Where notifications can be sent.

use std::collections::BTreeMap;

use async_trait::async_trait;
use strata_engine::{Operation, ProviderError};
use strata_resource::{KindTable, Shown, Spec, Value, kind};

use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};
use crate::client::{CallError, Client};
use crate::datacenter::{Family, Job, LiveObject, NextCall, Simple, Unset, spec_text};
use crate::preflight::{Needs, verb};

kind! {
    /// Where notifications can be sent.
    "notification" {
        called: "notification endpoint {notification}, {type}",
        identity: &["notification"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        shown: Shown { in_headline: &["type"], ..DATACENTER.shown },
        no_tofu: Some("the module of the datacenter has no notifications"),
        ..DATACENTER
    }
    /// its name
    "notification": Text => InPlace [remote("name")];
    /// `sendmail`, `smtp`, `gotify` or `webhook`
    "type": Text => Replace [because("it is another endpoint")];
    /// smtp: the mail server; gotify: its URL
    "server": Text => InPlace [remote("server")];
    /// smtp: its port
    "port": Int => InPlace [remote("port")];
    /// smtp: how it is reached
    "mode": Text => InPlace [remote("mode"), default_text("tls")];
    /// smtp: who logs in there
    "username": Text => InPlace [remote("username")];
    /// smtp: their password
    "password": Text => InPlace [remote("password"), write_only];
    /// the address that mail comes from
    "from": Text => InPlace [remote("from-address")];
    /// the name beside that address
    "author": Text => InPlace [remote("author")];
    /// addresses that mail goes to
    "to": List => InPlace [remote("mailto"), set];
    /// users whose addresses mail goes to
    "users": List => InPlace [remote("mailto-user"), set];
    /// gotify: what lets Proxmox send
    "token": Text => InPlace [remote("token"), write_only];
    /// webhook: the URL
    "url": Text => InPlace [remote("url")];
    /// webhook: `post`, `put` or `get`
    "http_method": Text => InPlace [remote("method")];
    /// webhook: headers
    "headers": Map => InPlace [remote("header")];
    /// by name
    "headers.*": Text => InPlace;
    /// webhook: what is sent
    "body": Text => InPlace [remote("body")];
    /// webhook: secrets that the rest refers to
    "secrets": Map => InPlace [remote("secret"), write_only];
    /// by name
    "secrets.*": Text => InPlace [write_only];
    /// it is used
    "enabled": Bool => InPlace [inverted("disable"), on_by_default];
}

pub(super) const PATH: &str = "/mapping/notifications";

const fn rows(list: &'static str) -> Simple {
    Simple {
        comment: Some("comment"),
        derived: &["origin"],
        unset: Unset::DeleteEach,
        arrays: &["to", "users"],
        encoded: &["headers", "body", "secrets"],
        ..Simple::new("notification endpoint", list, &TABLE)
    }
}

static TYPES: [(&str, Simple); 4] = [
    ("sendmail", rows("/cluster/notifications/endpoints/sendmail")),
    ("smtp", rows("/cluster/notifications/endpoints/smtp")),
    ("gotify", rows("/cluster/notifications/endpoints/gotify")),
    ("webhook", rows("/cluster/notifications/endpoints/webhook")),
];

pub(super) struct Notification;

#[async_trait]
impl ManagedKind for Notification {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&Endpoints)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.add(&["Mapping.Audit"], vec![PATH.to_owned()], "look at");
        needs.add(&["Mapping.Modify"], vec![PATH.to_owned()], verb(operation));
        // An endpoint can be used to look around in the network.
        let or = vec!["Sys.Audit".to_owned(), "Sys.Modify".to_owned()];
        needs.add_or(
            &["Sys.AccessNetwork"],
            vec!["/".to_owned()],
            Some((or, "/".to_owned())),
            verb(operation),
        );
    }
}

/// A name is taken once, whatever the type.
struct Endpoints;

impl Endpoints {
    fn of(spec: &Spec) -> &'static Simple {
        let own = TYPES.iter().find(|(name, _)| *name == spec_text(spec, "type"));
        &own.unwrap_or(&TYPES[0]).1
    }
}

#[async_trait]
impl Family for Endpoints {
    fn word(&self) -> &'static str {
        "notification endpoint"
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get("notification").and_then(Value::as_text).map(str::to_owned)
    }

    async fn list(&self, client: &Client, _: &[&Spec]) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let mut found = BTreeMap::new();
        for (name, family) in &TYPES {
            for (key, mut live) in family.list(client, &[]).await? {
                live.spec.insert("type".to_owned(), Value::text(*name));
                found.insert(key, live);
            }
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        Self::of(job.spec()).next(job, live)
    }
}
