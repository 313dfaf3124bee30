//! Where guests stand whose source leaves that open (`node: any`).
//!
//! A guest is put somewhere once: on the node that is its home from then on. What it is made from, its image and its seed, is there, and stays
//! there wherever the guest goes later. The home of a guest that was made is in its record; for a new one it is chosen here, from the memory that the
//! configurations of guests leave free: what is in use at the moment would give another answer with every look.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use strata_resource::{Address, FieldPath, IgnoredField, Resource, Spec, Value};
use strata_source::machine::guest::ANY_NODE;
use strata_source::spread::{Seat, spread};

use crate::kinds;
use crate::site::{Blueprint, Draft};

/// The homes of guests, by their addresses.
pub type Homes = BTreeMap<Address, String>;

/// The field of a guest that keeps its home.
const HOME: &str = "home";

/// The hypervisors of a target that guests can be put on, and the guests that stand there.
#[derive(Debug, Clone, Default)]
pub struct Datacenter {
    /// Those that are online.
    pub hosts: Vec<Host>,
    /// Every guest, whoever made it.
    pub guests: Vec<StandingGuest>,
}

/// One hypervisor.
#[derive(Debug, Clone)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its memory in bytes; 0 where this login may not see it.
    pub memory: i64,
    /// The storages that it has.
    pub storages: BTreeSet<String>,
    /// Its bridges; none where this login may not see them.
    pub bridges: Option<BTreeSet<String>>,
}

/// A guest that is there, or was given its place earlier in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingGuest {
    /// Its VMID.
    pub vm_id: u32,
    /// The hypervisor that it is on.
    pub node: String,
    /// The memory of its configuration in bytes.
    pub memory: i64,
}

/// A guest that can be put nowhere.
#[derive(Debug, Clone)]
pub struct Unplaceable {
    /// The guest.
    pub address: Address,
    /// `file:line` of the guest.
    pub origin: Option<String>,
    /// What is missing, for each hypervisor.
    pub missing: Vec<String>,
}

/// The homes that records say. A guest whose source named its node until now is at home there.
pub fn recorded_homes<'r>(records: impl Iterator<Item = (&'r Address, &'r Spec)>) -> Homes {
    let home = |spec: &Spec| Some(text(spec, HOME).or_else(|| text(spec, "node"))?.to_owned());
    let guests = records.filter(|(address, _)| is_guest(address));
    guests.filter_map(|(address, spec)| Some((address.clone(), home(spec)?))).collect()
}

/// The homes that plans have for guests: steps of a plan that was shown stay what they are.
pub fn planned_homes<'s>(steps: impl Iterator<Item = (&'s Address, &'s Spec)>) -> Homes {
    recorded_homes(steps.filter(|(_, spec)| spec.contains_key(HOME)))
}

/// The guests that have no home yet.
pub fn homeless(blueprint: &Blueprint) -> Vec<&Resource> {
    blueprint.graph.iter().filter(|resource| text(&resource.spec, HOME) == Some(ANY_NODE)).collect()
}

/// Gives every guest without a home one. A guest that stands somewhere already is at home there.
pub fn choose(blueprint: &Blueprint, datacenter: &Datacenter) -> Result<Homes, Vec<Unplaceable>> {
    let mut standing = datacenter.guests.clone();
    // What the source says of a guest is newer than what the listing does.
    for guest in standing_guests(blueprint, &Homes::new()) {
        standing.retain(|other| other.vm_id != guest.vm_id);
        standing.push(guest);
    }
    let (mut homes, mut refused) = (Homes::new(), Vec::new());
    let mut groups: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for (address, group) in &blueprint.groups {
        let node = blueprint.graph.get(address).and_then(|resource| text(&resource.spec, HOME));
        if let Some(node) = node.filter(|node| *node != ANY_NODE) {
            *groups.entry((group, node.to_owned())).or_default() += 1;
        }
    }
    for resource in homeless(blueprint) {
        let (address, vm_id) = (&resource.address, vm_id(&resource.spec));
        let memory = memory(&resource.spec);
        let there = datacenter.guests.iter().find(|guest| Some(guest.vm_id) == vm_id);
        let group = blueprint.groups.get(address).map(String::as_str);
        let node = match there {
            Some(there) => there.node.clone(),
            None => {
                let needs = Needs::of(blueprint, resource, datacenter);
                let fit = datacenter.hosts.iter().filter(|host| needs.missing(host).is_none());
                let equals = |host: &Host| {
                    group.and_then(|group| groups.get(&(group, host.name.clone()))).copied().unwrap_or(0)
                };
                let free = |host: &Host| {
                    let on = standing.iter().filter(|guest| guest.node == host.name);
                    host.memory.saturating_sub(on.map(|guest| guest.memory).sum())
                };
                let Some(host) = fit.min_by_key(|host| (equals(host), Reverse(free(host)), &host.name))
                else {
                    let missing = datacenter.hosts.iter().filter_map(|host| needs.missing(host));
                    let missing = missing.collect();
                    refused.push(Unplaceable {
                        address: address.clone(),
                        origin: resource.origin.clone(),
                        missing,
                    });
                    continue;
                };
                host.name.clone()
            }
        };
        if let Some(group) = group {
            *groups.entry((group, node.clone())).or_default() += 1;
        }
        if let Some(vm_id) = vm_id.filter(|_| there.is_none()) {
            standing.push(StandingGuest { vm_id, node: node.clone(), memory });
        }
        homes.insert(address.clone(), node);
    }
    if refused.is_empty() { Ok(homes) } else { Err(refused) }
}

/// The guests of a blueprint with the places that they have, or are given by these homes: they count for whoever is placed next.
pub fn standing_guests(blueprint: &Blueprint, homes: &Homes) -> Vec<StandingGuest> {
    let standing = |resource: &Resource| {
        let own = text(&resource.spec, "node").filter(|node| *node != ANY_NODE);
        let node = homes.get(&resource.address).map(String::as_str).or(own)?.to_owned();
        Some(StandingGuest { vm_id: vm_id(&resource.spec)?, node, memory: memory(&resource.spec) })
    };
    let guests = blueprint.graph.iter().filter(|resource| is_guest(&resource.address));
    guests.filter_map(standing).collect()
}

/// What a guest asks of the hypervisor that it is put on.
struct Needs {
    storages: BTreeSet<String>,
    bridges: BTreeSet<String>,
    /// It can be made on these alone: the template that it is cloned from is nowhere else.
    only: Option<BTreeSet<String>>,
}

impl Needs {
    fn of(blueprint: &Blueprint, resource: &Resource, datacenter: &Datacenter) -> Self {
        let (mut storages, mut bridges) = (BTreeSet::new(), BTreeSet::new());
        gather(&resource.spec, "storage", &mut storages);
        gather(&resource.spec, "bridge", &mut bridges);
        for needed in resource.depends_on.iter().filter_map(|address| blueprint.graph.get(address)) {
            if text(&needed.spec, "node") == Some(ANY_NODE) {
                gather(&needed.spec, "storage", &mut storages);
            }
        }
        // What no hypervisor has is about to be made, or missing everywhere: that is for the preflight to say.
        storages.retain(|storage| datacenter.hosts.iter().any(|host| host.storages.contains(storage)));
        bridges.retain(|bridge| {
            let mut known = datacenter.hosts.iter().filter_map(|host| host.bridges.as_ref());
            known.any(|bridges| bridges.contains(bridge))
        });
        Self { storages, bridges, only: blueprint.templates_on.get(&resource.address).cloned() }
    }

    /// Why the guest cannot be put there.
    fn missing(&self, host: &Host) -> Option<String> {
        let name = &host.name;
        if self.only.as_ref().is_some_and(|only| !only.contains(name)) {
            return Some(format!("its template is not on `{name}`"));
        }
        if let Some(storage) = self.storages.iter().find(|storage| !host.storages.contains(*storage)) {
            return Some(format!("`{name}` has no storage `{storage}`"));
        }
        let known = host.bridges.as_ref()?;
        let bridge = self.bridges.iter().find(|bridge| !known.contains(*bridge))?;
        Some(format!("`{name}` has no bridge `{bridge}`"))
    }
}

/// Every text under this key, however deep.
fn gather(spec: &Spec, key: &str, found: &mut BTreeSet<String>) {
    for (name, value) in spec {
        match value {
            Value::Text(text) if name == key => drop(found.insert(text.clone())),
            Value::Map(inner) => gather(inner, key, found),
            _ => {}
        }
    }
}

fn is_guest(address: &Address) -> bool {
    [kinds::VM, kinds::CONTAINER].contains(&address.kind())
}

fn text<'s>(spec: &'s Spec, field: &str) -> Option<&'s str> {
    spec.get(field).and_then(Value::as_text)
}

fn vm_id(spec: &Spec) -> Option<u32> {
    spec.get("vmid").and_then(Value::as_int).and_then(|vm_id| u32::try_from(vm_id).ok())
}

/// In bytes; Proxmox gives a VM without a word 512 MiB.
fn memory(spec: &Spec) -> i64 {
    let size = spec.get("memory").and_then(|memory| memory.as_map()?.get("size")?.as_int());
    size.unwrap_or(512) << 20
}

/// Where guests that no record knows and that a list of nodes may put elsewhere stand already: there they stay.
pub fn found_standing(blueprint: &Blueprint, datacenter: &Datacenter) -> Homes {
    let standing = |(address, over): (&Address, &BTreeSet<String>)| {
        let vm_id = vm_id(&blueprint.graph.get(address)?.spec)?;
        let there = datacenter.guests.iter().find(|guest| guest.vm_id == vm_id)?;
        over.contains(&there.node).then(|| (address.clone(), there.node.clone()))
    };
    blueprint.spread.iter().filter_map(standing).collect()
}

impl Draft<'_> {
    /// Spreads machines over the nodes of their lists. What is recorded stays where it is.
    pub(crate) fn spread(&mut self, seats: &[(Address, Seat<'_>)]) {
        let homes = self.site.homes;
        let all: Vec<Seat<'_>> = seats.iter().map(|(_, seat)| *seat).collect();
        let nodes = spread(&all, |at| homes.get(&seats[at].0).cloned());
        for ((address, seat), node) in seats.iter().zip(nodes).filter(|((_, seat), _)| !seat.over.is_empty())
        {
            self.seats.extend(node.map(|node| (address.clone(), node.value.clone())));
            if !homes.contains_key(address) {
                let over = seat.over.iter().map(|node| node.value.clone()).collect();
                self.blueprint.spread.insert(address.clone(), over);
            }
        }
    }

    /// The node that a guest is drawn on. Without a home one that is open stays so.
    pub(crate) fn home(&self, address: &Address, written: &str) -> String {
        let home = self.site.homes.get(address).filter(|_| written == ANY_NODE);
        let home = home.or_else(|| self.seats.get(address));
        home.map_or(written, String::as_str).to_owned()
    }

    /// Leaves the place of a guest to others once it is made, if the source says so. `group`: those that it is kept apart from.
    pub(crate) fn leave_open(&mut self, written: &str, group: Option<String>, resource: &mut Resource) {
        if written != ANY_NODE {
            return;
        }
        let node = text(&resource.spec, "node").unwrap_or(ANY_NODE).to_owned();
        resource.spec.insert(HOME.to_owned(), Value::Text(node));
        let reason = Some(format!("`node: {ANY_NODE}` leaves it to high availability and to people"));
        resource.ignore.push(IgnoredField { path: FieldPath::dotted("node"), reason });
        self.blueprint.groups.extend(group.map(|group| (resource.address.clone(), group)));
    }
}
