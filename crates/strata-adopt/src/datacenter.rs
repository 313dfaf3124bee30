//! What a datacenter has besides guests, as it is written in a file of `hypervisors/`.
//!
//! A kind needs a line in [`SECTIONS`]: where its objects stand in the file, and the record that they are written as. Its fields find
//! their keys by name, as [`crate::record`] says.

mod parts;
mod services;

use serde_json::{Map, Value as Json};
use strata_resource::{Kind, KindTable, Purpose, Spec, Value};
use strata_source::hypervisor::access::{AclEntry, Group, Realm, RealmSyncJob, Role, Token, User};
use strata_source::hypervisor::host::{Host, HostFirewall};
use strata_source::hypervisor::network::{DnsSettings, HostInterface, HostInterfaceType};
use strata_source::hypervisor::sdn::Sdn;
use strata_source::hypervisor::services::{
    DatacenterOptions, MetricServer, NotificationEndpoint, NotificationMatcher, Notifications, Services,
};
use strata_source::hypervisor::storage::Storage;
use strata_source::hypervisor::{
    Alias, BackupJob, DatacenterFirewall, GuestPool, Hypervisor, IpSet, Mapping, Mappings, SecurityGroup,
};
use strata_source::machine::guest::{Guest, HighAvailability, Replication};
use strata_source::stack::{HaRule, Stack};
use strata_yaml::edit::{self, EditError, Step};
use strata_yaml::{Key, Record, RecordSpec};

use crate::fields::{Fields, Object, Put};
use crate::record::record;
pub use parts::{guests_of, is_of_guest, put_part};

/// Where an object stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a mapping, by its name.
    Named(&'static [Key]),
    /// The same, under a key of that entry.
    Within(&'static [Key], Key),
    /// In a list.
    Listed(Key),
    /// A file has one of it.
    Alone(Key),
    /// In the entry of its guest.
    OfGuest(Key),
    /// In a list of the entry of its guest.
    ListedOfGuest(Key),
}

/// How objects of a kind are written.
struct Section {
    kind: &'static str,
    place: fn(&Spec) -> Place,
    record: fn() -> &'static RecordSpec,
    /// Each host has one: it stands in the file of its host.
    of_host: bool,
    /// What the record says of a spec, with the names of the record where they differ in more than spelling.
    shape: fn(&KindTable, &Spec) -> Spec,
    /// The last part of its address.
    name: fn(&KindTable, &Spec) -> String,
}

impl Section {
    /// An entry of a mapping, called by its identity.
    const fn new(kind: &'static str, place: fn(&Spec) -> Place, record: fn() -> &'static RecordSpec) -> Self {
        Self { kind, place, record, of_host: false, shape: said, name: identity }
    }

    const fn host(
        kind: &'static str,
        place: fn(&Spec) -> Place,
        record: fn() -> &'static RecordSpec,
    ) -> Self {
        Self { of_host: true, ..Self::new(kind, place, record) }
    }
}

static SECTIONS: &[Section] = &[
    Section {
        shape: storage,
        ..Section::new("storage", |_| Place::Named(&[Hypervisor::storages]), Storage::spec)
    },
    Section::new("pool", |_| Place::Named(&[Hypervisor::pools]), GuestPool::spec),
    Section::new("role", |_| Place::Named(&[Hypervisor::roles]), Role::spec),
    Section::new("realm", |_| Place::Named(&[Hypervisor::realms]), Realm::spec),
    Section {
        shape: services::realm_sync,
        ..Section::new("realmsync", |_| Place::Named(&[Hypervisor::realm_sync_jobs]), RealmSyncJob::spec)
    },
    Section::new("group", |_| Place::Named(&[Hypervisor::groups]), Group::spec),
    Section::new("user", |_| Place::Named(&[Hypervisor::users]), User::spec),
    Section::new("token", |_| Place::Named(&[Hypervisor::tokens]), Token::spec),
    Section {
        shape: permission,
        name: permission_name,
        ..Section::new("acl", |_| Place::Listed(Hypervisor::acl), AclEntry::spec)
    },
    Section::new("backupjob", |_| Place::Named(&[Hypervisor::backup_jobs]), BackupJob::spec),
    Section {
        shape: services::options,
        ..Section::new("options", |_| Place::Alone(Services::options), DatacenterOptions::spec)
    },
    Section {
        shape: services::metric_server,
        ..Section::new("metricserver", |_| Place::Named(&[Services::metric_servers]), MetricServer::spec)
    },
    Section::new(
        "notification",
        |_| Place::Named(&[Services::notifications, Notifications::endpoints]),
        NotificationEndpoint::spec,
    ),
    Section {
        shape: services::matcher,
        ..Section::new(
            "matcher",
            |_| Place::Named(&[Services::notifications, Notifications::matchers]),
            NotificationMatcher::spec,
        )
    },
    Section { shape: services::sdn, ..Section::new("sdn", |_| Place::Alone(Hypervisor::sdn), Sdn::spec) },
    Section::new("mapping", mapping_place, Mapping::spec),
    Section {
        shape: firewall,
        ..Section::new("firewall", |_| Place::Alone(Hypervisor::firewall), DatacenterFirewall::spec)
    },
    Section::new(
        "alias",
        |_| Place::Named(&[Hypervisor::firewall, DatacenterFirewall::aliases]),
        Alias::spec,
    ),
    Section::new(
        "ipset",
        |_| Place::Named(&[Hypervisor::firewall, DatacenterFirewall::ip_sets]),
        IpSet::spec,
    ),
    Section::new(
        "securitygroup",
        |_| Place::Named(&[Hypervisor::firewall, DatacenterFirewall::groups]),
        SecurityGroup::spec,
    ),
    Section {
        name: parts::service,
        ..Section::new("ha", |_| Place::OfGuest(Guest::ha), HighAvailability::spec)
    },
    Section {
        shape: parts::replication,
        ..Section::new("replication", |_| Place::ListedOfGuest(Guest::replication), Replication::spec)
    },
    Section {
        shape: parts::rule,
        ..Section::new("harule", |_| Place::Named(&[Stack::ha_rules]), HaRule::spec)
    },
    Section::new("hostoptions", |_| Place::Named(&[Hypervisor::hosts]), Host::spec),
    Section {
        shape: firewall,
        ..Section::new(
            "hostfirewall",
            |_| Place::Within(&[Hypervisor::hosts], Host::firewall),
            HostFirewall::spec,
        )
    },
    Section::host("dns", |_| Place::Alone(Hypervisor::dns), DnsSettings::spec),
    Section {
        shape: |_, spec| only(spec, "zone", Hypervisor::timezone, Value::clone),
        ..Section::host("timezone", |_| Place::Alone(Hypervisor::timezone), Hypervisor::spec)
    },
    Section {
        shape: |_, spec| only(spec, "interfaces", Hypervisor::network, interfaces),
        ..Section::host("network", |_| Place::Alone(Hypervisor::network), Hypervisor::spec)
    },
];

fn section(kind: Kind) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| Kind::named(section.kind) == kind)
}

/// Whether objects of a kind can be written.
pub fn is_written(kind: Kind) -> bool {
    section(kind).is_some()
}

/// The host whose file an object stands in; none where it is the datacenter's.
pub fn host_of<'s>(table: &KindTable, spec: &'s Spec) -> Option<&'s str> {
    section(table.kind()).filter(|section| section.of_host)?;
    spec.get(*table.identity.first()?)?.as_text()
}

/// What an object is called in an address: the way back of what a blueprint calls it.
pub fn object_name(table: &KindTable, spec: &Spec) -> String {
    let name =
        section(table.kind()).map_or(identity as fn(&KindTable, &Spec) -> String, |section| section.name);
    // A slash would end the name within an address.
    name(table, spec).replace('/', "~")
}

fn identity(table: &KindTable, spec: &Spec) -> String {
    let parts = table.identity.iter().filter_map(|field| spec.get(*field)?.as_text());
    parts.collect::<Vec<_>>().join("-")
}

/// An object of the datacenter as it is written.
#[derive(Debug, Clone)]
pub struct WrittenObject {
    place: Place,
    /// Its key, where it is one of several.
    key: String,
    /// The record, as the source would have it.
    pub yaml: Json,
    /// What is live and no key says, one line each.
    pub notes: Vec<String>,
}

/// The entry that is drawn to the spec of a live object; none for kinds that cannot be written.
pub fn object(table: &KindTable, spec: &Spec) -> Option<WrittenObject> {
    let section = section(table.kind())?;
    let mut left = Fields::of(&(section.shape)(table, spec));
    let (place, record_spec) = ((section.place)(spec), (section.record)());
    let mut yaml = record(record_spec, &mut left);
    let mut notes = Vec::new();
    left.told("", &mut notes);
    let key =
        table.identity.last().and_then(|field| spec.get(*field)?.as_text()).unwrap_or_default().to_owned();
    // The record is the whole file's where one key of it says all.
    if let (Place::Alone(alone), true) = (place, record_spec.document) {
        let yaml = yaml.remove(alone.name())?;
        return Some(WrittenObject { place, key, yaml, notes });
    }
    let adopt = record_spec.fields.iter().find(|field| field.key == GuestPool::adopt.name());
    if adopt.is_some() {
        yaml.set(GuestPool::adopt, true);
    }
    Some(WrittenObject { place, key, yaml: Json::Object(yaml), notes })
}

/// Whether there is nothing of an object that a file could say.
pub fn is_unsaid(table: &KindTable, spec: &Spec) -> bool {
    object(table, spec).is_some_and(|written| {
        matches!(written.place, Place::Alone(_)) && written.yaml.as_object().is_some_and(Map::is_empty)
    })
}

/// Without what its name says, whose it is, what the remote has where nothing is said, and what is secret.
fn said(table: &KindTable, spec: &Spec) -> Spec {
    let is_default = |field: &str, value: &Value| {
        let rule = table.all_fields().find(|rule| rule.path == field);
        rule.is_some_and(|rule| rule.write_only || rule.default.is_some_and(|default| default.equals(value)))
    };
    let mut own = spec.clone();
    own.retain(|field, value| {
        !table.identity.contains(&field.as_str()) && !is_ours(table, field) && !is_default(field, value)
    });
    own
}

/// One field, under the name of a key.
fn only(spec: &Spec, field: &str, key: Key, shape: fn(&Value) -> Value) -> Spec {
    spec.get(field).map(|value| (key.name().to_owned(), shape(value))).into_iter().collect()
}

/// Fields that say whose it is.
fn is_ours(table: &KindTable, field: &str) -> bool {
    let purpose = table.all_fields().find(|rule| rule.path == field).and_then(|rule| rule.purpose);
    matches!(purpose, Some(Purpose::Mark | Purpose::Adopt))
}

impl WrittenObject {
    /// The way to it within the file that it is put into; `listed` is how many stand in its list before it.
    pub fn path(&self, listed: usize) -> Vec<Step> {
        let key = |key: &Key| Step::from(key.name());
        match self.place {
            Place::Named(keys) => keys.iter().map(key).chain([Step::Key(self.key.clone())]).collect(),
            Place::Within(keys, inner) => {
                keys.iter().map(key).chain([Step::Key(self.key.clone()), key(&inner)]).collect()
            }
            Place::Listed(list) => vec![key(&list), Step::Index(listed)],
            Place::Alone(alone) | Place::OfGuest(alone) => vec![key(&alone)],
            Place::ListedOfGuest(list) => vec![key(&list), Step::Index(listed)],
        }
    }
}

/// The text of a file with new objects in it, in the order of the reference, and the way to each of them.
pub fn put_objects(text: &str, objects: &[WrittenObject]) -> Result<(String, Vec<Vec<Step>>), EditError> {
    let mut paths = Vec::new();
    let mut listed: Map<String, Json> = Map::new();
    let mut sections: Vec<(Vec<Step>, Object)> = Vec::new();
    let there = edit::value_of(text)?;
    for object in objects {
        match object.place {
            Place::Listed(list) => {
                let begun = || there.get(list.name()).and_then(Json::as_array).cloned().unwrap_or_default();
                let items = listed.entry(list.name()).or_insert_with(|| Json::Array(begun()));
                let Json::Array(items) = items else { continue };
                paths.push(object.path(items.len()));
                items.push(object.yaml.clone());
            }
            Place::Named(_) => {
                let path = object.path(0);
                let (_, parent) = path.split_last().unwrap_or((&Step::Index(0), &[]));
                add(&mut sections, parent).insert(object.key.clone(), object.yaml.clone());
                paths.push(path);
            }
            Place::Within(_, inner) => {
                let path = object.path(0);
                let (_, parent) = path.split_last().unwrap_or((&Step::Index(0), &[]));
                add(&mut sections, parent).insert(inner.name().to_owned(), object.yaml.clone());
                paths.push(path);
            }
            Place::Alone(key) => {
                let path = object.path(0);
                match &object.yaml {
                    Json::Object(entries) => add(&mut sections, &path).extend(entries.clone()),
                    value => drop(add(&mut sections, &[]).insert(key.name().to_owned(), value.clone())),
                }
                paths.push(path);
            }
            // Parts of guests are put into their entries.
            Place::OfGuest(_) | Place::ListedOfGuest(_) => paths.push(object.path(0)),
        }
    }
    sections.sort_by_key(|(path, _)| order(path));
    let mut text = text.to_owned();
    for (path, entries) in &sections {
        text = edit::insert_all(&text, path, entries)?;
    }
    for (list, items) in &listed {
        text = edit::set(&text, &[Step::from(list.as_str())], items)?;
    }
    Ok((text, paths))
}

/// The new keys of the mapping at a path.
fn add<'s>(sections: &'s mut Vec<(Vec<Step>, Object)>, path: &[Step]) -> &'s mut Object {
    let index = sections.iter().position(|(other, _)| other == path).unwrap_or_else(|| {
        sections.push((path.to_vec(), Object::new()));
        sections.len() - 1
    });
    &mut sections[index].1
}

/// Where a section stands in the reference; what is in a mapping comes after the mapping's own keys.
fn order(path: &[Step]) -> (usize, usize) {
    let name = |step: &Step| match step {
        Step::Key(key) => key.clone(),
        Step::Index(_) => String::new(),
    };
    let first = path.first().map(name).unwrap_or_default();
    let fields = &Hypervisor::spec().fields;
    (fields.iter().position(|field| field.key == first).unwrap_or(fields.len()), path.len())
}

/// The file of a target, or of one of its hosts, before anything is in it.
pub fn new_file(target: &str, host: Option<&str>) -> Result<String, EditError> {
    use strata_source::hypervisor::HypervisorProxmox;
    let mut proxmox = Object::new();
    proxmox.set(HypervisorProxmox::target, target);
    proxmox.put(HypervisorProxmox::node, host);
    edit::set("", &[Step::from(Hypervisor::proxmox.name())], &Json::Object(proxmox))
}

fn mapping_place(spec: &Spec) -> Place {
    match spec.get("bus").and_then(Value::as_text) {
        Some("usb") => Place::Named(&[Hypervisor::mappings, Mappings::usb]),
        _ => Place::Named(&[Hypervisor::mappings, Mappings::pci]),
    }
}

/// A role of somebody, by what they are.
fn permission(_: &KindTable, spec: &Spec) -> Spec {
    let mut shaped = Spec::new();
    let who = spec.get("subject_type").and_then(Value::as_text).unwrap_or_default();
    for (field, key) in [("path", "path"), ("grants", "role"), ("subject", who), ("propagate", "propagate")] {
        shaped.extend(spec.get(field).map(|value| (key.to_owned(), value.clone())));
    }
    shaped
}

fn permission_name(_: &KindTable, spec: &Spec) -> String {
    let text = |field: &str| spec.get(field).and_then(Value::as_text).unwrap_or_default();
    format!("{}={}={}", text("subject"), text("grants"), text("path"))
}

/// Keys that Proxmox keeps for a storage are no options that everybody may read.
fn storage(table: &KindTable, spec: &Spec) -> Spec {
    let mut shaped = said(table, spec);
    let mut kept = Spec::new();
    if let Some(Value::Map(options)) = shaped.get_mut(Storage::options.name()) {
        for key in ["encryption-key", "master-pubkey", "keyring"] {
            kept.extend(options.remove_entry(key));
        }
    }
    shaped.extend(kept);
    shaped
}

/// Its options stand beside its rules.
fn firewall(table: &KindTable, spec: &Spec) -> Spec {
    let mut shaped = said(table, spec);
    if let Some(Value::Map(options)) = shaped.remove("options") {
        shaped.extend(options);
    }
    shaped
}

/// Every interface of a host. What was there before Strata is never removed; hardware never is.
fn interfaces(all: &Value) -> Value {
    let shaped = all.as_map().into_iter().flatten().map(|(name, interface)| {
        let mut interface = interface.as_map().cloned().unwrap_or_default();
        let kind = interface.get("type").and_then(Value::as_text).unwrap_or_default().to_owned();
        if kind != HostInterfaceType::Ethernet.to_string() {
            interface.entry("autostart".to_owned()).or_insert(Value::Bool(false));
            interface.insert(HostInterface::adopt.name().to_owned(), Value::Bool(true));
        }
        // Proxmox' own names say what they are.
        let named = [("vmbr", "bridge"), ("bond", "bond")];
        let numbered =
            |prefix: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
        if named.iter().any(|(prefix, what)| kind == *what && numbered(prefix)) {
            interface.remove("type");
        }
        (name.clone(), Value::Map(interface))
    });
    Value::Map(shaped.collect())
}

#[cfg(test)]
mod tests;
