//! Lists and watches.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::failure::{Outcome, bad_request, expired};
use super::handle::{Ask, Reply};
use super::selector::Selector;
use super::table;
use super::watch::Watch;

impl Ask<'_> {
    fn prefix(&self) -> String {
        let prefix = self.resource.prefix();
        if self.namespace.is_empty() { prefix } else { format!("{prefix}{}/", self.namespace) }
    }

    pub fn selector(&self) -> Outcome<Selector> {
        let query = &self.request.query;
        let mut selector = Selector::parse(query.get("labelSelector"), query.get("fieldSelector"))?;
        if let Some(name) = &self.place.name {
            let own = Selector::parse(None, Some(&format!("metadata.name={name}")))?;
            selector.also(own);
        }
        Ok(selector)
    }
}

/// The keys and objects that a request selects.
pub fn selected<'c>(cluster: &'c Cluster, ask: &Ask<'_>) -> Outcome<Vec<(&'c str, &'c Value)>> {
    let selector = ask.selector()?;
    let prefix = ask.prefix();
    Ok(cluster.store.list(&prefix).filter(|(_, object)| selector.matches(object)).collect())
}

pub fn list(cluster: &Cluster, ask: &Ask<'_>) -> Outcome<Reply> {
    let query = &ask.request.query;
    let mut found = selected(cluster, ask)?;
    let mut revision = cluster.store.revision().to_string();
    if let Some(token) = query.get("continue") {
        let (at, after) = read_token(token).ok_or_else(|| bad_request("continue key is not valid"))?;
        found.retain(|(key, _)| *key > after.as_str());
        revision = at;
    }
    let mut meta = json!({ "resourceVersion": revision });
    let limit = query.get("limit").and_then(|l| l.parse::<usize>().ok()).filter(|l| *l > 0);
    if let Some(limit) = limit
        && found.len() > limit
    {
        meta["continue"] = json!(token(&revision, found[limit - 1].0));
        meta["remainingItemCount"] = json!(found.len() - limit);
        found.truncate(limit);
    }
    if ask.request.wants_table() {
        let objects: Vec<Value> = found.into_iter().map(|(_, object)| ask.shown(object.clone())).collect();
        let columns = table::columns(cluster, &ask.resource);
        let table = table::table(&columns, &objects, meta, ask.request.include(), &ask.moment);
        return Ok(Reply::Object(200, table));
    }
    let items: Vec<Value> = found
        .into_iter()
        .map(|(_, object)| {
            let mut object = ask.shown(object.clone());
            if let (false, Value::Object(map)) = (ask.resource.custom, &mut object) {
                map.shift_remove("kind");
                map.shift_remove("apiVersion");
            }
            object
        })
        .collect();
    Ok(Reply::Object(
        200,
        json!({
            "kind": format!("{}List", ask.resource.kind), "apiVersion": ask.resource.api_version(),
            "metadata": meta, "items": items,
        }),
    ))
}

fn token(revision: &str, after: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{revision}\n{after}"))
}

fn read_token(token: &str) -> Option<(String, String)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let (revision, after) = text.split_once('\n')?;
    Some((revision.to_owned(), after.to_owned()))
}

pub fn watch(cluster: &Cluster, ask: &Ask<'_>) -> Outcome<Reply> {
    let query = &ask.request.query;
    let initial_events = query.flag("sendInitialEvents");
    let from = match query.get("resourceVersion") {
        None | Some("0") => None,
        Some(_) if initial_events => None,
        Some(text) => {
            Some(text.parse::<u64>().map_err(|_| bad_request(format!("invalid resource version {text:?}")))?)
        }
    };
    if let Some(from) = from
        && cluster.store.since(from).is_none()
    {
        return Err(expired(format!("too old resource version: {from} ({})", cluster.store.revision())));
    }
    let seconds = query.get("timeoutSeconds").and_then(|t| t.parse::<u64>().ok());
    let mut watch = Watch::new(ask.resource.clone(), ask.prefix(), ask.selector()?, seconds);
    if ask.request.wants_table() {
        let include = ask.request.include().map(str::to_owned);
        watch.rows = Some((table::columns(cluster, &ask.resource), include, ask.moment));
    }
    match from {
        Some(from) => watch.revision = from,
        None => {
            for (_, object) in selected(cluster, ask)? {
                watch.add(ask.shown(object.clone()));
            }
            watch.revision = cluster.store.revision();
            if initial_events {
                watch.end_of_initial_events();
            }
        }
    }
    Ok(Reply::Watch(Box::new(watch)))
}
