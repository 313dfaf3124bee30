//! Firewalls that would keep whoever manages a host away from it: told in the plan, which then does not run.

use std::collections::BTreeMap;

use strata_engine::{Finding, Operation, ProviderError};
use strata_resource::{Kind, Spec, Value};
use strata_state::Action;

use super::{alias, datacenter_name, family_of, firewall, host_firewall, ipset, security_group};
use crate::api::{NodeRow, Params};
use crate::client::{CallError, Client};
use crate::datacenter::{Row, row_text, spec_text};
use crate::firewall::{Block, Filter, Names, kept_out};

const DATACENTER: Kind = firewall::KIND;
const HOST: Kind = host_firewall::KIND;
const ALIAS: Kind = alias::KIND;
const SET: Kind = ipset::KIND;
const GROUP: Kind = security_group::KIND;

pub(crate) async fn preconditions(
    client: &Client,
    operations: &[Operation],
) -> Result<Vec<Finding>, ProviderError> {
    let is_own =
        |operation: &&Operation| [DATACENTER, HOST, ALIAS, SET, GROUP].contains(&operation.address.kind());
    let own: Vec<&Operation> = operations.iter().filter(is_own).collect();
    if own.is_empty() {
        return Ok(Vec::new());
    }
    let before = Firewalls::read(client).await.map_err(|error| error.explain("look at the firewalls"))?;
    let mut after = before.clone();
    own.iter().for_each(|operation| after.apply(operation));
    if !after.is_on() {
        return Ok(Vec::new());
    }
    let origins = origins(client, &own).await;
    let mut found = Vec::new();
    for host in after.hosts.keys() {
        let networks = networks(client, host).await;
        let consents = |operation: &&&Operation| {
            let of_another =
                operation.address.kind() == HOST && spec_text(&operation.spec, "host_firewall") != host;
            !of_another && operation.spec.get("may_lock_out").and_then(Value::as_bool) == Some(true)
        };
        if own.iter().any(|operation| consents(&operation)) {
            continue;
        }
        for origin in &origins {
            let block = origin.as_ref().map(|(_, block)| block);
            let Some(why) = after.keeps_out(host, networks.as_deref(), block) else { continue };
            // It does so already, and here we are: that is not where we come from.
            if before.is_on() && before.keeps_out(host, networks.as_deref(), block).is_some() {
                continue;
            }
            let who = origin.as_ref().map_or("anybody", |(text, _)| text.as_str());
            let message =
                format!("the firewall would keep {who} from the API of `{host}` (port 8006 of TCP): {why}");
            let hint = "let it in by a rule before that, or by the IP set `management`; `managedFrom` of `proxmox` says where hosts are managed from. With a console of the host at hand, `mayLockOut: true` on the firewall allows it";
            found.push(Finding::precondition(about(&own, host), message, hint));
            break;
        }
    }
    Ok(found)
}

/// The operation that a finding about a host is put to.
fn about<'o>(own: &[&'o Operation], host: &str) -> &'o Operation {
    let of_kind = |kind: Kind| own.iter().find(|operation| operation.address.kind() == kind);
    let of_host = own.iter().find(|operation| spec_text(&operation.spec, "host_firewall") == host);
    of_host.or_else(|| of_kind(DATACENTER)).unwrap_or(&own[0])
}

/// Where hosts are managed from: what the source says, otherwise where we are, otherwise anywhere.
async fn origins(client: &Client, own: &[&Operation]) -> Vec<Option<(String, Block)>> {
    let mut written: Vec<&str> = own
        .iter()
        .flat_map(|operation| operation.spec.get("managed_from").and_then(Value::as_list).unwrap_or_default())
        .filter_map(Value::as_text)
        .collect();
    written.sort_unstable();
    written.dedup();
    let named = |text: &str| Some((format!("`{text}`"), Block::parse(text)?));
    let origins: Vec<Option<(String, Block)>> =
        written.into_iter().map(named).filter(Option::is_some).collect();
    if !origins.is_empty() {
        return origins;
    }
    let here = client.own_address().await;
    let here = here.and_then(|ip| Some((format!("this machine (`{ip}`)"), Block::of(ip)?)));
    vec![here]
}

/// The networks that a host has an address in; none if they cannot be seen.
async fn networks(client: &Client, host: &str) -> Option<Vec<Block>> {
    let rows: Vec<Row> = client.get(&format!("/nodes/{host}/network"), Params::new()).await.ok()?;
    let addresses = rows.iter().flat_map(|row| [row_text(row, "cidr"), row_text(row, "cidr6")]);
    let blocks: Vec<Block> = addresses.flatten().filter_map(|cidr| Block::parse(&cidr)).collect();
    (!blocks.is_empty()).then_some(blocks)
}

/// All firewalls that decide who comes to a host.
#[derive(Clone, Default)]
struct Firewalls {
    datacenter: Spec,
    /// By host.
    hosts: BTreeMap<String, Spec>,
    names: Names,
}

impl Firewalls {
    async fn read(client: &Client) -> Result<Self, CallError> {
        let mut all = Self::default();
        for kind in [ALIAS, SET, GROUP, DATACENTER] {
            for (name, spec) in specs(client, kind, None).await? {
                all.put(kind, &name, spec);
            }
        }
        let nodes: Vec<NodeRow> = client.get("/nodes", Params::new()).await?;
        for node in nodes {
            // A host that does not answer, or may not be looked at, is not judged.
            let asked = Spec::from([("host_firewall".to_owned(), Value::text(node.node.as_str()))]);
            if let Ok(mut live) = specs(client, HOST, Some(&asked)).await {
                all.hosts.insert(node.node.clone(), live.remove(&node.node).unwrap_or_default());
            }
        }
        Ok(all)
    }

    fn put(&mut self, kind: Kind, name: &str, spec: Spec) {
        let key = name.to_lowercase();
        let list =
            |field: &str| spec.get(field).and_then(Value::as_list).map(<[_]>::to_vec).unwrap_or_default();
        if kind == ALIAS {
            self.names.aliases.insert(key, spec_text(&spec, "cidr").to_owned());
        } else if kind == SET {
            let texts = list("addresses");
            let texts = texts.iter().filter_map(|text| text.as_text().map(str::to_owned));
            self.names.sets.insert(key, texts.collect());
        } else if kind == GROUP {
            self.names.groups.insert(key, list("rules"));
        } else if kind == DATACENTER {
            self.datacenter = spec;
        } else {
            self.hosts.insert(name.to_owned(), spec);
        }
    }

    fn remove(&mut self, kind: Kind, name: &str) {
        let key = name.to_lowercase();
        if kind == ALIAS {
            self.names.aliases.remove(&key);
        } else if kind == SET {
            self.names.sets.remove(&key);
        } else if kind == GROUP {
            self.names.groups.remove(&key);
        }
    }

    /// As they are when an operation is done.
    fn apply(&mut self, operation: &Operation) {
        let kind = operation.address.kind();
        let Some(name) = datacenter_name(kind, &operation.spec) else { return };
        let nothing = Spec::new();
        if kind == DATACENTER {
            self.put(kind, &name, whole(&self.datacenter, operation));
        } else if kind == HOST {
            self.put(kind, &name, whole(self.hosts.get(&name).unwrap_or(&nothing), operation));
        } else if operation.action == Action::Delete {
            self.remove(kind, &name);
        } else {
            self.put(kind, &name, operation.spec.clone());
        }
    }

    fn is_on(&self) -> bool {
        option(&self.datacenter, "enable").as_ref().and_then(Value::as_bool) == Some(true)
    }

    fn keeps_out(&self, host: &str, networks: Option<&[Block]>, origin: Option<&Block>) -> Option<String> {
        let own = self.hosts.get(host)?;
        if option(own, "enable").as_ref().and_then(Value::as_bool) == Some(false) {
            return None;
        }
        let rules = |spec: &'_ Spec| -> Vec<Value> {
            spec.get("rules").and_then(Value::as_list).map(<[_]>::to_vec).unwrap_or_default()
        };
        let (own, all) = (rules(own), rules(&self.datacenter));
        let policy = option(&self.datacenter, "policy_in");
        let filter = Filter {
            rules: own.iter().chain(&all).collect(),
            policy: policy.as_ref().and_then(Value::as_text).unwrap_or("DROP"),
            names: &self.names,
            own: networks,
        };
        kept_out(&filter, origin)
    }
}

fn option(spec: &Spec, name: &str) -> Option<Value> {
    spec.get("options")?.as_map()?.get(name).cloned()
}

/// A firewall when an operation is done: what it says nothing of, and was not ours, stays.
fn whole(live: &Spec, operation: &Operation) -> Spec {
    let map = |spec: &Spec| spec.get("options").and_then(Value::as_map).cloned().unwrap_or_default();
    let nothing = Spec::new();
    let wanted = if operation.action == Action::Delete { &nothing } else { &operation.spec };
    let applied = operation.recorded.as_ref().map_or(&nothing, |recorded| &recorded.spec);
    let (mut options, ours) = (map(live), map(applied));
    options.retain(|name, _| !ours.contains_key(name));
    options.extend(map(wanted));
    let rules = match wanted.get("rules") {
        Some(rules) => Some(rules.clone()),
        None if operation.action == Action::Delete || applied.contains_key("rules") => None,
        None => live.get("rules").cloned(),
    };
    let mut whole = Spec::from([("options".to_owned(), Value::Map(options))]);
    whole.extend(rules.map(|rules| ("rules".to_owned(), rules)));
    whole
}

/// What is live of a kind, by name; all of it, or one.
async fn specs(client: &Client, kind: Kind, one: Option<&Spec>) -> Result<BTreeMap<String, Spec>, CallError> {
    let Some(family) = family_of(kind) else { return Ok(BTreeMap::new()) };
    let all = match one {
        Some(one) => vec![one.clone()],
        None => family.everything(client).await?,
    };
    let live = family.list(client, &all.iter().collect::<Vec<_>>()).await?;
    Ok(live.into_iter().map(|(name, object)| (name, object.spec)).collect())
}
