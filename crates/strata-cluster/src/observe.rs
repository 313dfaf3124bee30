//! Looking at a cluster: each node once, Kubernetes once, and from that everything that is asked.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use strata_engine::{ErrorClass, Evidence, Observed, ProviderError, Sighting, Wanted};
use strata_kubernetes::flux::LiveFlux;
use strata_kubernetes::{Object, Selector};
use strata_resource::{FieldPath, Kind, Spec, Value, secret_like};
use strata_talos::{Shown, config_spec, is_hidden_id};

use crate::cluster::Cluster;
use crate::error::{kube, talos};
use crate::etcd::Membership;
use crate::evidence::MachineEvidence;
use crate::installer::Installed;
use crate::kinds;
use crate::node::{Contact, Running};
use crate::rolling::{CORDONED_BY, REBOOT_DUE};
use crate::{bootstrap, flux, kubernetes, secret};

/// What was seen of Kubernetes.
enum Api {
    /// There is none yet.
    None,
    Silent(String),
    Seen,
}

pub(crate) async fn observe_all(
    cluster: &Cluster,
    wanted: &[Wanted<'_>],
) -> Result<Vec<Sighting>, ProviderError> {
    if cluster.options.ending {
        return Ok(wanted.iter().map(as_recorded).collect());
    }
    let contacts = contacts(cluster, wanted).await?;
    let asks = |kinds: &[Kind]| wanted.iter().any(|wanted| kinds.contains(&wanted.address.kind()));
    let etcd = match asks(&[kinds::BOOTSTRAP]) || !cluster.is_bootstrapped() {
        true => cluster.membership().await?,
        false => None,
    };
    let alive = cluster.is_bootstrapped() || etcd.is_some();
    let api = if alive { api(cluster).await? } else { Api::None };
    let left = LeftInKubernetes::seen(cluster, &api, &contacts).await?;
    let flux = match (&api, asks(&[kinds::FLUX, kinds::SYNC])) {
        (Api::Seen, true) => cluster.kube().observe_flux().await.map_err(kube)?,
        _ => LiveFlux::default(),
    };
    let mut sightings = Vec::with_capacity(wanted.len());
    for one in wanted {
        sightings.push(match one.address.kind() {
            kinds::MACHINE => machine(cluster, one, &contacts, &left, etcd.as_ref()).await?,
            kinds::BOOTSTRAP if etcd.is_some() => ours(one.spec.clone()),
            kinds::BOOTSTRAP if one.recorded.is_some() && !cluster.may_begin_again() => {
                lost_or_silent(cluster).await?
            }
            kinds::BOOTSTRAP => Sighting::Absent,
            kinds::KUBERNETES => whole_kubernetes(one, &contacts, &api),
            kinds::SCHEMATIC if one.recorded.is_some() => as_recorded(one),
            kinds::SCHEMATIC => Sighting::Absent,
            _ => match &api {
                Api::None => Sighting::Absent,
                Api::Silent(why) => Sighting::Silent(why.clone()),
                Api::Seen => inside(cluster, one, &flux).await?,
            },
        });
    }
    Ok(sightings)
}

fn as_recorded(wanted: &Wanted<'_>) -> Sighting {
    wanted.recorded.map_or(Sighting::Absent, |recorded| ours(recorded.spec.clone()))
}

fn with_facts(spec: Spec, facts: Spec) -> Sighting {
    match ours(spec) {
        Sighting::Ours(observed) => Sighting::Ours(Observed { facts, ..observed }),
        other => other,
    }
}

fn ours(spec: Spec) -> Sighting {
    let digest =
        hex::encode(Sha256::digest(serde_json::Value::from(Value::Map(spec.clone()).stored()).to_string()));
    Sighting::Ours(Observed {
        spec,
        facts: Spec::new(),
        digest,
        pending: Vec::new(),
        running: None,
        evidence: Evidence::default(),
    })
}

/// What is live is compared by its digests: the live values themselves go nowhere.
fn sealed(cluster: &Cluster, wanted: &Wanted<'_>, spec: Spec) -> Sighting {
    let value = match &cluster.options.digest_key {
        Some(key) => Value::Map(spec).sealed(key, wanted.address),
        None => Value::Map(spec),
    };
    match value {
        Value::Map(spec) => ours(spec),
        _ => Sighting::Absent,
    }
}

/// In order: a silent address costs a time-out, so it is dialled once.
fn each_once(places: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for place in places {
        if !seen.contains(&place) {
            seen.push(place);
        }
    }
    seen
}

/// Every node that is asked about, at the address where it should be, or else where the state knows it.
async fn contacts(
    cluster: &Cluster,
    wanted: &[Wanted<'_>],
) -> Result<BTreeMap<String, Contact>, ProviderError> {
    let mut addresses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in wanted.iter().filter(|one| one.address.kind() == kinds::MACHINE) {
        let of = |spec: &Spec| spec.get("address").and_then(Value::as_text).map(str::to_owned);
        let known = one.recorded.and_then(|recorded| of(&recorded.spec));
        let place = cluster.place(one.address.name()).map(|node| node.address);
        let places = known.into_iter().chain(of(one.spec)).chain(place);
        addresses.insert(one.address.name().to_owned(), each_once(places));
    }
    // Kubernetes and etcd are asked of all nodes, whichever machines are.
    if wanted.iter().any(|one| matches!(one.address.kind(), kinds::KUBERNETES | kinds::BOOTSTRAP)) {
        for node in cluster.places() {
            let should = cluster.wanted(&node).address;
            addresses.entry(node.name).or_insert_with(|| each_once([node.address, should]));
        }
    }
    let looks = addresses.into_iter().map(|(name, places)| async move {
        let mut seen = Contact::Silent(format!("`{name}` has no address"));
        for address in places {
            seen = cluster.contact(&address).await?;
            if let Contact::Running(_) | Contact::Maintenance = seen {
                cluster.answers_at(&name, &address);
            }
            if !matches!(seen, Contact::Silent(_)) {
                break;
            }
        }
        Ok::<_, ProviderError>((name, seen))
    });
    futures::future::try_join_all(looks).await.map(|seen| seen.into_iter().collect())
}

async fn api(cluster: &Cluster) -> Result<Api, ProviderError> {
    match cluster.kube().ready().await {
        Ok(()) => Ok(Api::Seen),
        Err(error) if error.is_transient() => Ok(Api::Silent(error.to_string())),
        Err(error) => Err(kube(error)),
    }
}

/// What an interrupted run, or somebody else, left in Kubernetes that no node puts right by itself.
#[derive(Default)]
struct LeftInKubernetes {
    /// Nodes that a run of ours cordoned and did not get to uncordon.
    cordoned: BTreeSet<String>,
    /// Nodes that run and are not known to Kubernetes: a kubelet registers when it starts, and never again.
    unregistered: BTreeSet<String>,
}

impl LeftInKubernetes {
    async fn seen(
        cluster: &Cluster,
        api: &Api,
        contacts: &BTreeMap<String, Contact>,
    ) -> Result<Self, ProviderError> {
        if !matches!(api, Api::Seen) {
            return Ok(Self::default());
        }
        let nodes = cluster.kube().list("v1", "Node", &Selector::all()).await.map_err(kube)?;
        // Where somebody else had cordoned it before, only the reboot that we owe it tells.
        let ours =
            |node: &&Object| [CORDONED_BY, REBOOT_DUE].iter().any(|own| node.annotation(own).is_some());
        let cordoned = nodes.iter().filter(ours).map(|node| node.name().to_owned()).collect();
        let known = |name: &str| nodes.iter().any(|node| node.name() == name);
        let runs = contacts.iter().filter(|(_, contact)| matches!(contact, Contact::Running(_)));
        // All at once: each is given the time that it takes to register.
        let looks = runs.filter(|(name, _)| !known(name)).map(|(name, _)| async move {
            Ok::<_, ProviderError>(cluster.stays_unregistered(name).await?.then(|| name.clone()))
        });
        let unregistered = futures::future::try_join_all(looks).await?.into_iter().flatten().collect();
        Ok(Self { cordoned, unregistered })
    }
}

async fn machine(
    cluster: &Cluster,
    wanted: &Wanted<'_>,
    contacts: &BTreeMap<String, Contact>,
    in_kubernetes: &LeftInKubernetes,
    etcd: Option<&Membership>,
) -> Result<Sighting, ProviderError> {
    let name = wanted.address.name();
    let cordoned = in_kubernetes.cordoned.contains(name);
    Ok(match contacts.get(name) {
        None => Sighting::Absent,
        Some(Contact::Maintenance) => Sighting::Absent,
        Some(Contact::Stranger(who)) => Sighting::Stranger(who.clone()),
        Some(Contact::Silent(why)) => Sighting::Silent(why.clone()),
        Some(Contact::Running(running)) => {
            let media = media(cluster, wanted).await?;
            let reboot_due = cordoned && is_reboot_due(cluster, name).await?;
            let left_etcd = left_etcd(cluster, name, running, etcd).await?;
            let unregistered = in_kubernetes.unregistered.contains(name);
            let installed = match cluster.place(name) {
                Some(node) => cluster.installed(&node.address).await?,
                None => Installed::default(),
            };
            let left = Left { cordoned, unregistered, left_etcd, reboot_due };
            observed_machine(cluster, wanted, running, media, &installed, left)
        }
    })
}

/// Whether a control plane was taken out of etcd and stopped its own: a reset that was killed in between leaves it so. It joins again
/// when it reboots, and never by itself.
async fn left_etcd(
    cluster: &Cluster,
    name: &str,
    running: &Running,
    etcd: Option<&Membership>,
) -> Result<bool, ProviderError> {
    let Some(node) = cluster.place(name) else { return Ok(false) };
    let control_plane = running.config.is_control_plane() == Some(true);
    if !control_plane || etcd.is_none_or(|etcd| etcd.of(name).is_some()) {
        return Ok(false);
    }
    match cluster.talos(&node.address)?.services().await {
        Ok(services) => {
            let etcd = services.iter().find(|service| service.id == "etcd");
            Ok(etcd.is_some_and(|etcd| matches!(etcd.state.as_str(), "Finished" | "Failed" | "Skipped")))
        }
        Err(error) if error.is_transient() || error.is_unreachable() => Ok(false),
        Err(error) => Err(talos(error)),
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
    left_etcd: bool,
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
        put("left_etcd", Value::Bool(left.left_etcd));
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
        strangers(&format!("{document}: "), tree, &trees, &mut foreign);
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
fn strangers(path: &str, live: &Value, mine: &[&Value], found: &mut BTreeSet<String>) {
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
            strangers(&format!("{own}."), value, &below, found);
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

/// Etcd was bootstrapped, and nobody answers for it: is it gone, without a majority, or only out of sight?
async fn lost_or_silent(cluster: &Cluster) -> Result<Sighting, ProviderError> {
    let survey = cluster.survey().await?;
    let name = cluster.name();
    if !survey.survivors.is_empty() {
        let verb = if survey.survivors.len() == 1 { "holds" } else { "hold" };
        let what = format!("the etcd of `{name}` has no majority: {} still {verb} its data", survey.names());
        return Ok(Sighting::Silent(what));
    }
    match survey.unknown.first() {
        // Perhaps only the network is away.
        Some((_, why)) => Ok(Sighting::Silent(format!("the etcd of `{name}` does not answer: {why}"))),
        None => Err(bootstrap::lost(cluster)),
    }
}

fn whole_kubernetes(wanted: &Wanted<'_>, contacts: &BTreeMap<String, Contact>, api: &Api) -> Sighting {
    if let Api::Silent(why) = api {
        return Sighting::Silent(why.clone());
    }
    if wanted.recorded.is_none() {
        return Sighting::Absent;
    }
    let configs = contacts.values().filter_map(|contact| match contact {
        Contact::Running(running) => Some(&running.config),
        _ => None,
    });
    let Some(version) = kubernetes::version_of(configs) else { return Sighting::Absent };
    let mut spec = wanted.spec.clone();
    spec.insert("version".to_owned(), Value::Text(version));
    ours(spec)
}

async fn inside(cluster: &Cluster, wanted: &Wanted<'_>, live: &LiveFlux) -> Result<Sighting, ProviderError> {
    let sighting = |spec: Option<Spec>| spec.map_or(Sighting::Absent, ours);
    Ok(match wanted.address.kind() {
        // Some controllers may be there without the others: what was begun and not ended is done again from its start.
        kinds::FLUX if wanted.recorded.is_none_or(|recorded| recorded.partial) => Sighting::Absent,
        kinds::FLUX => flux::observed_controllers(live, wanted.recorded)
            .map_or(Sighting::Absent, |(spec, facts)| with_facts(spec, facts)),
        kinds::SYNC => sighting(flux::observed_sync(live)),
        kinds::SECRET => {
            let found = cluster.kube().get(&secret::reference(wanted.spec)).await.map_err(kube)?;
            let asked: Vec<&Spec> = [Some(wanted.spec), wanted.recorded.map(|recorded| &recorded.spec)]
                .into_iter()
                .flatten()
                .collect();
            found
                .map_or(Sighting::Absent, |object| sealed(cluster, wanted, secret::observed(&object, &asked)))
        }
        other => {
            let message = format!("a cluster has no {other}");
            return Err(ProviderError::new(ErrorClass::Internal, message));
        }
    })
}
