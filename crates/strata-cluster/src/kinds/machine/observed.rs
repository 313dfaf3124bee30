//! A node as it is seen: its configuration, its version, and what an interrupted run left.

use std::collections::BTreeSet;

use strata_engine::{Evidence, Observed, ProviderError, Sighting, Wanted};
use strata_resource::{FieldPath, Spec, Value, secret_like};
use strata_talos::{Shown, config_spec, is_hidden_id};

use crate::cluster::Cluster;
use crate::etcd::Membership;
use crate::evidence::MachineEvidence;
use crate::installer::Installed;
use crate::node::{Contact, Running};
use crate::observe::{Look, sealed};
use crate::rejoin::{LEFT, Outside, STALE};

pub(super) async fn observe(look: &Look<'_>, wanted: &Wanted<'_>) -> Result<Sighting, ProviderError> {
    let (cluster, name) = (look.cluster, wanted.address.name());
    let cordoned = look.left.cordoned.contains(name);
    Ok(match look.contacts.get(name) {
        None => Sighting::Absent,
        Some(Contact::Maintenance) => Sighting::Absent,
        Some(Contact::Unmanaged(who)) => Sighting::Unmanaged(who.clone().into()),
        Some(Contact::Unreachable(why)) => Sighting::Unreachable(why.clone()),
        Some(Contact::Running(running)) => {
            let media = media(cluster, wanted).await?;
            let reboot_due = cordoned && is_reboot_due(cluster, name).await?;
            let outside = outside_etcd(cluster, name, running, look.etcd.as_ref()).await?;
            let unregistered = look.left.unregistered.contains(name);
            let installed = match cluster.place(name) {
                Some(node) => cluster.installed(&node.address).await?,
                None => Installed::default(),
            };
            let left = Left { cordoned, unregistered, outside, reboot_due };
            observed_machine(cluster, wanted, running, media, &installed, left)
        }
    })
}

/// What keeps a control plane from being a member of etcd, where there is one to be a member of.
async fn outside_etcd(
    cluster: &Cluster,
    name: &str,
    running: &Running,
    etcd: Option<&Membership>,
) -> Result<Outside, ProviderError> {
    let control_plane = running.config.is_control_plane() == Some(true);
    match (cluster.place(name), etcd) {
        (Some(node), Some(etcd)) if control_plane => cluster.outside_etcd(&node, etcd).await,
        _ => Ok(Outside::No),
    }
}

/// Whether a run that died owes the node a reboot: for the forecast.
async fn is_reboot_due(cluster: &Cluster, name: &str) -> Result<bool, ProviderError> {
    match cluster.place(name) {
        Some(node) => Ok(cluster.due_reboot(&node).await?.is_some()),
        None => Ok(false),
    }
}

/// Whether the drive is empty is asked only until it is known.
async fn media(cluster: &Cluster, wanted: &Wanted<'_>) -> Result<Option<&'static str>, ProviderError> {
    let Some(media) = &cluster.options.media else { return Ok(None) };
    if wanted.recorded.is_some_and(|recorded| !recorded.partial && recorded.spec.contains_key("media")) {
        return Ok(Some("ejected"));
    }
    Ok(Some(if media.is_inserted(wanted.address.name()).await? { "inserted" } else { "ejected" }))
}

/// What is to be put right about a node that runs.
struct Left {
    cordoned: bool,
    unregistered: bool,
    outside: Outside,
    reboot_due: bool,
}

fn observed_machine(
    cluster: &Cluster,
    wanted: &Wanted<'_>,
    running: &Running,
    media: Option<&'static str>,
    installed: &Installed,
    left: Left,
) -> Sighting {
    let recorded = wanted.recorded.map(|recorded| &recorded.spec);
    let is_secret = |text: &str| cluster.options.redactor.redact(text) != text;
    let begun = wanted.begun.and_then(|spec| spec.get("config"));
    let mine = [wanted.spec.get("config"), recorded.and_then(|spec| spec.get("config")), begun];
    let mine: Vec<&Spec> = mine.into_iter().flatten().filter_map(Value::as_map).collect();
    let config = config_spec(&running.config, Shown::All, &is_secret);
    let config = secret_like(under_hidden_names(cluster, wanted, config, &mine), &mine);
    let mut spec = Spec::new();
    let mut put = |field: &str, value: Value| {
        spec.insert(field.to_owned(), value);
    };
    put("machine", Value::text(wanted.address.name()));
    put(
        "role",
        Value::text(if running.config.is_control_plane() == Some(true) { "controlplane" } else { "worker" }),
    );
    put("version", Value::text(running.version.as_str()));
    put("cordoned", Value::Bool(left.cordoned));
    put("unregistered", Value::Bool(left.unregistered));
    if running.config.is_control_plane() == Some(true) {
        put(LEFT, Value::Bool(left.outside == Outside::Left));
        put(STALE, Value::Bool(left.outside == Outside::Stale));
    }
    if let Some(media) = media {
        put("media", Value::text(media));
    }
    if let Some(installer) = wanted.spec.get("installer").and_then(Value::as_text) {
        put("installer", Value::Text(installed.reference(installer)));
    }
    if let Some(arch) = recorded.and_then(|spec| spec.get("arch")).or(wanted.spec.get("arch")) {
        put("arch", arch.clone());
    }
    // Which VM it runs on cannot be asked of Talos; the state knows it, and a machine that it does not know runs on the one there is.
    if let Some(vm) = recorded.and_then(|spec| spec.get("vm")).or(wanted.spec.get("vm")) {
        put("vm", vm.clone());
    }
    if let Some(address) = recorded.and_then(|spec| spec.get("address")).or(wanted.spec.get("address")) {
        put("address", address.clone());
    }
    let mut foreign = BTreeSet::new();
    for (document, tree) in &config {
        let trees: Vec<&Value> = mine.iter().filter_map(|config| config.get(document)).collect();
        unmanaged_paths(&format!("{document}: "), tree, &trees, &mut foreign);
    }
    put("foreign", Value::List(foreign.into_iter().map(Value::Text).collect()));
    put("config", Value::Map(config));
    let evidence = MachineEvidence { config: running.config.clone(), reboot_due: left.reboot_due };
    match sealed(cluster, wanted, spec) {
        Sighting::Ours(observed) => {
            Sighting::Ours(Observed { evidence: Evidence::new(evidence), ..observed })
        }
        other => other,
    }
}

/// A live document whose name is a secret of the source stands where ours does, under no name.
fn under_hidden_names(cluster: &Cluster, wanted: &Wanted<'_>, live: Spec, mine: &[&Spec]) -> Spec {
    let hidden = |id: &str, tree: &Value| {
        let kind = id.split(' ').next().unwrap_or_default();
        // By now it may be known for a secret.
        let name = match tree.as_map()?.get("name")? {
            Value::Secret(secret) => secret.plain()?.expose(),
            name => name.as_text()?,
        };
        mine.iter().flat_map(|config| config.iter()).find_map(|(ours, tree)| {
            if !is_hidden_id(ours, kind) {
                return None;
            }
            let secret = tree.as_map()?.get("name")?.as_secret()?;
            let path = FieldPath::root().child("config").child(ours).child("name");
            let key = cluster.options.digest_key.as_ref();
            let digest =
                key.map(|key| key.digest(&wanted.address.to_string(), &path.to_string(), name.as_bytes()));
            let same = secret.plain().is_some_and(|plain| plain.expose() == name)
                || digest.is_some() && secret.digest() == digest.as_ref();
            same.then(|| ours.clone())
        })
    };
    let named = |(id, tree): (String, Value)| {
        let known = mine.iter().any(|config| config.contains_key(&id));
        (if known { None } else { hidden(&id, &tree) }.unwrap_or(id), tree)
    };
    live.into_iter().map(named).collect()
}

/// Paths of a live tree that none of ours has.
fn unmanaged_paths(path: &str, live: &Value, mine: &[&Value], found: &mut BTreeSet<String>) {
    if mine.is_empty() {
        found.insert(path.trim_end_matches(['.', ' ', ':']).to_owned());
        return;
    }
    let Some(map) = live.as_map() else { return };
    for (key, value) in map {
        let below: Vec<&Value> = mine.iter().filter_map(|tree| tree.as_map()?.get(key)).collect();
        let own = format!("{path}{key}");
        if below.is_empty() {
            // An empty section says nothing.
            if !is_empty(value) {
                found.insert(own);
            }
        } else if value.as_map().is_some() {
            unmanaged_paths(&format!("{own}."), value, &below, found);
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Map(map) => map.values().all(is_empty),
        Value::List(list) => list.is_empty(),
        _ => false,
    }
}
