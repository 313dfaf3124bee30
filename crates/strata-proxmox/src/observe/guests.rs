//! Guests: found by the listing of the cluster, read one by one, many at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};
use strata_engine::{Look, Observed, ProviderError, Sighting, Unmanaged, Wanted};
use strata_resource::{Spec, Value};

use crate::absence;
use crate::api::{GuestRow, Params};
use crate::before_change;
use crate::client::{CallError, Client};
use crate::codec::{GuestKind, LiveConfig, attached_now, decode, detached_now};
use crate::firewall::LiveFirewall;
use crate::guest::{ALL_GUESTS, Guest};
use crate::ownership::{Claim, describe, unmanaged};
use crate::snippets;

/// One guest that somebody asks about and that is there.
struct FoundGuest<'a> {
    index: usize,
    wanted: &'a Wanted<'a>,
    guest: Guest,
    name: Option<Box<str>>,
    pool: Option<Box<str>>,
}

/// Which guests of a node run, and which are locked.
type NodeStates = BTreeMap<u32, (bool, Option<Box<str>>)>;
/// By node and kind of guest; an error where a node does not answer.
type NodeGuests = BTreeMap<(String, GuestKind), Arc<Result<NodeStates, CallError>>>;
/// The guests of the cluster, by VMID.
type Listing = BTreeMap<u32, GuestRow>;

pub(super) async fn look_at_guests(
    client: &Client,
    look: &Look,
    wanted: &[Wanted<'_>],
) -> Result<Vec<(usize, Sighting)>, ProviderError> {
    let asked = asked_guests(wanted);
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let (path, query) = ALL_GUESTS;
    let by_vmid = |rows: Vec<GuestRow>| -> Listing { rows.into_iter().map(|row| (row.vmid, row)).collect() };
    let listing = client.listing(look, path, Params::new().with(query.0, query.1), by_vmid).await;
    let listing = listing.as_ref().as_ref().map_err(|error| error.explain("list the guests"))?;
    let (found, mut sightings) = match_up(wanted, &asked, listing);
    let states = list_nodes(client, look, &found).await?;
    let looks: Vec<_> = found.into_iter().map(|found| look_at(client, found, &states)).collect();
    let mut looks = stream::iter(looks).buffer_unordered(client.parallelism());
    while let Some(sighting) = looks.try_next().await? {
        sightings.push(sighting);
    }
    let unlisted = asked.iter().filter(|(vmid, _)| !listing.contains_key(vmid));
    let proofs: Vec<_> = unlisted.map(|(vmid, questions)| prove_absent(client, *vmid, questions)).collect();
    let mut proofs = stream::iter(proofs).buffer_unordered(client.parallelism());
    while let Some(proven) = proofs.try_next().await? {
        sightings.extend(proven);
    }
    Ok(sightings)
}

/// What is not listed is absent only if its VMID is free: the listing shows what this login may see.
async fn prove_absent(
    client: &Client,
    vmid: u32,
    questions: &[(usize, GuestKind)],
) -> Result<Vec<(usize, Sighting)>, ProviderError> {
    let free = absence::is_free(client, vmid).await;
    let sighting = match free.map_err(|error| error.explain(&format!("ask whether VMID {vmid} is free")))? {
        true => Sighting::Absent,
        false => Sighting::Unknown(absence::hidden_guest(vmid)),
    };
    Ok(questions.iter().map(|(index, _)| (*index, sighting.clone())).collect())
}

/// VMIDs that are asked about, with the questions.
fn asked_guests(wanted: &[Wanted<'_>]) -> BTreeMap<u32, Vec<(usize, GuestKind)>> {
    let mut asked: BTreeMap<u32, Vec<(usize, GuestKind)>> = BTreeMap::new();
    for (index, wanted) in wanted.iter().enumerate() {
        let vmid = wanted.spec.get("vmid").and_then(Value::as_int).and_then(|vmid| u32::try_from(vmid).ok());
        if let (Some(kind), Some(vmid)) = (GuestKind::of(wanted.address.kind()), vmid) {
            asked.entry(vmid).or_default().push((index, kind));
        }
    }
    asked
}

fn match_up<'a>(
    wanted: &'a [Wanted<'a>],
    asked: &BTreeMap<u32, Vec<(usize, GuestKind)>>,
    listing: &Listing,
) -> (Vec<FoundGuest<'a>>, Vec<(usize, Sighting)>) {
    let (mut found, mut sightings) = (Vec::new(), Vec::new());
    for (vmid, questions) in asked {
        let Some(row) = listing.get(vmid) else { continue };
        for (index, kind) in questions {
            let node = row.node.as_deref().unwrap_or_default().to_owned();
            if row.kind.as_deref().is_some_and(|is| is != kind.path()) {
                let other = if *kind == GuestKind::Qemu { GuestKind::Lxc } else { GuestKind::Qemu };
                let guest = Guest { kind: other, node, vmid: row.vmid };
                let what = describe(&guest, row.name.as_deref());
                let other = Unmanaged::because(what, format!("it is a {}", other.word()));
                sightings.push((*index, Sighting::Unmanaged(other)));
                continue;
            }
            found.push(FoundGuest {
                index: *index,
                wanted: &wanted[*index],
                guest: Guest { kind: *kind, node, vmid: row.vmid },
                name: row.name.clone(),
                pool: row.pool.clone(),
            });
        }
    }
    (found, sightings)
}

/// Fresh power states: those in the listing of the cluster are up to ten seconds old.
async fn list_nodes(
    client: &Client,
    look: &Look,
    found: &[FoundGuest<'_>],
) -> Result<NodeGuests, ProviderError> {
    let places: BTreeSet<(String, GuestKind)> =
        found.iter().map(|found| (found.guest.node.clone(), found.guest.kind)).collect();
    let lists: Vec<_> = places.into_iter().map(|(node, kind)| list_node(client, look, node, kind)).collect();
    stream::iter(lists).buffer_unordered(client.parallelism()).try_collect().await
}

async fn list_node(
    client: &Client,
    look: &Look,
    node: String,
    kind: GuestKind,
) -> Result<((String, GuestKind), Arc<Result<NodeStates, CallError>>), ProviderError> {
    let path = format!("/nodes/{node}/{}", kind.path());
    let states = |rows: Vec<GuestRow>| -> NodeStates {
        let state = |row: GuestRow| (row.vmid, (row.status.as_deref() == Some("running"), row.lock));
        rows.into_iter().map(state).collect()
    };
    let listed = client.listing(look, &path, Params::new(), states).await;
    match listed.as_ref() {
        Err(error) if !error.is_unreachable_node() => {
            Err(error.explain(&format!("list the {}s of `{node}`", kind.word())))
        }
        _ => Ok(((node, kind), listed)),
    }
}

/// Locks under which a configuration says nothing yet, or soon something else.
fn is_in_the_making(lock: &str) -> bool {
    matches!(lock, "create" | "clone" | "migrate" | "rollback" | "disk" | "destroyed")
}

async fn look_at(
    client: &Client,
    found: FoundGuest<'_>,
    states: &NodeGuests,
) -> Result<(usize, Sighting), ProviderError> {
    Ok((found.index, sight(client, &found, states).await?))
}

async fn sight(
    client: &Client,
    found: &FoundGuest<'_>,
    states: &NodeGuests,
) -> Result<Sighting, ProviderError> {
    let guest = &found.guest;
    let Some(Ok(node)) = states.get(&(guest.node.clone(), guest.kind)).map(Arc::as_ref) else {
        return Ok(Sighting::Unknown(absence::unreachable_node(&guest.node)));
    };
    let name = found.name.as_deref();
    let gone = || Sighting::Busy(format!("{} is being moved or deleted", describe(guest, name)));
    // It was in the listing of the cluster a moment ago.
    let Some((running, lock)) = node.get(&guest.vmid) else { return Ok(gone()) };
    let (running, lock) = (*running, lock.as_deref());
    let busy = |lock: &str| Sighting::Busy(format!("{} is locked ({lock})", describe(guest, name)));
    if let Some(lock) = lock.filter(|lock| is_in_the_making(lock)) {
        return Ok(busy(lock));
    }
    let named = describe(guest, name);
    let doing = format!("read {guest}");
    let hidden = |error: CallError| match absence::unseen(&error, &guest.node, &named) {
        Some(unseen) => Ok(Sighting::Unknown(unseen)),
        None => Err(error.explain(&doing)),
    };
    let config = match guest.config_if_any(client).await {
        Ok(Some(config)) => config,
        Ok(None) => return Ok(gone()),
        Err(error) => return hidden(error),
    };
    if let Some(lock) = config.lock.as_deref().filter(|lock| is_in_the_making(lock)) {
        return Ok(busy(lock));
    }
    let wanted = found.wanted;
    let claim = Claim::new(wanted.lineage, wanted.address, wanted.recorded, guest.vmid);
    if let Some(why) = claim.dispute(guest, &config) {
        return Ok(Sighting::Unmanaged(unmanaged(guest, &config, why)));
    }
    let covers = Covers::of(wanted);
    let firewall = match covers.firewall {
        true => match guest.firewall(client).await {
            Ok(firewall) => Some(firewall),
            Err(error) => return hidden(error),
        },
        false => None,
    };
    let mut observed = observed_guest(guest, &config, running, found.pool.as_deref(), firewall, &covers);
    snippets::stand_in(&mut observed, wanted.recorded, &config);
    Ok(Sighting::Ours(observed))
}

/// What a spec, or the state, says something about.
pub(crate) struct Covers<'a> {
    pub(crate) options: BTreeSet<&'a str>,
    firewall: bool,
    power: bool,
    pool: bool,
}

impl<'a> Covers<'a> {
    fn of(wanted: &Wanted<'a>) -> Self {
        let specs: Vec<&'a Spec> = [Some(wanted.spec), wanted.recorded.map(|recorded| &recorded.spec)]
            .into_iter()
            .flatten()
            .collect();
        Self::specs(&specs)
    }

    pub(crate) fn specs(specs: &[&'a Spec]) -> Self {
        let says = |field: &str| specs.iter().any(|spec| spec.contains_key(field));
        let options = specs.iter().filter_map(|spec| spec.get("options")?.as_map());
        Self {
            options: options.flat_map(|options| options.keys().map(String::as_str)).collect(),
            firewall: says("firewall"),
            power: says("power"),
            pool: says("pool"),
        }
    }
}

/// A guest of ours in canonical form.
pub(crate) fn observed_guest(
    guest: &Guest,
    config: &LiveConfig,
    running: bool,
    pool: Option<&str>,
    firewall: Option<LiveFirewall>,
    covers: &Covers<'_>,
) -> Observed {
    let decoded = decode(guest.kind, config, &covers.options);
    let power = if running { "running" } else { "stopped" };
    let digest = digest_of(guest, config, power, pool, firewall.as_ref(), covers);
    let mut spec = decoded.spec;
    let mut live = decoded.running;
    for spec in [Some(&mut spec), live.as_mut()].into_iter().flatten() {
        spec.insert("vmid".to_owned(), Value::Int(i64::from(guest.vmid)));
        spec.insert("node".to_owned(), Value::text(guest.node.as_str()));
        spec.insert("power".to_owned(), Value::text(power));
        if let Some(pool) = pool {
            spec.insert("pool".to_owned(), Value::text(pool));
        }
    }
    let mut facts = facts_of(guest, config);
    if let Some(firewall) = firewall {
        facts.insert("firewall_digest".to_owned(), Value::Text(firewall.digest()));
        spec.insert("firewall".to_owned(), firewall.into_spec());
    }
    Observed { spec, facts, digest, pending: decoded.pending, running: live, evidence: Default::default() }
}

/// What the server made up about a guest.
pub(crate) fn facts_of(guest: &Guest, config: &LiveConfig) -> Spec {
    let mut facts = Spec::new();
    if let Some((fact, proof)) = guest.proof(config) {
        facts.insert(fact.to_owned(), Value::Text(proof));
    }
    facts.insert("node".to_owned(), Value::text(guest.node.as_str()));
    facts.insert("config_digest".to_owned(), Value::text(config.digest.as_str()));
    // A disk that somebody detaches is known by its volume.
    let volumes = attached_now(config).into_iter().map(|(slot, volume)| (slot, Value::Text(volume)));
    facts.insert("volumes".to_owned(), Value::Map(volumes.collect()));
    let unused: Vec<Value> = detached_now(config).into_iter().map(Value::Text).collect();
    if !unused.is_empty() {
        facts.insert("unused".to_owned(), Value::List(unused));
    }
    facts.extend(before_change::fact(config).map(|name| (before_change::FACT.to_owned(), name)));
    facts
}

/// Changes with everything that a spec covers; what nobody asked about does not make a plan stale.
fn digest_of(
    guest: &Guest,
    config: &LiveConfig,
    power: &str,
    pool: Option<&str>,
    firewall: Option<&LiveFirewall>,
    covers: &Covers<'_>,
) -> String {
    let mut hash = Sha256::new();
    let mut add = |name: &str, value: &str| {
        for part in [name, value] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    };
    add("config", &config.digest);
    add("node", &guest.node);
    if covers.power {
        add("power", power);
    }
    if covers.pool {
        add("pool", pool.unwrap_or_default());
    }
    if let Some(firewall) = firewall {
        add("firewall", &firewall.digest());
    }
    hex::encode(hash.finalize())
}
