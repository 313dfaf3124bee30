//! Every field of every kind has a place in a rendered project, or a reason that `strata sync` reports.
//!
//! The fields come from the tables of the kinds: each is given one value after the other in a drawn resource. A field of its table without a
//! reason must change the project; one with a reason must be reported with it, and must not change the project.

use std::collections::BTreeMap;

use serde_json::json;
use strata_blueprint::Blueprint;
use strata_resource::{FieldRule, FieldType, KindTable, Literal, Spec, Unit, Value, registered_kinds};
use strata_source::world::Memory;
use strata_source::{EffectiveStack, Repository};
use strata_tofu::{Connection, Gap, Project, render, secret_variables};

use crate::world::draw;

const STACK: &str = r#"
metadata: {name: web}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: tank}}
templates:
  debian: {vmId: 9000, image: {url: "https://images.example/debian-12.qcow2", checksum: "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, disk: 10}
vms:
  app:
    template: debian
    vmId: 9100
    bios: ovmf
    tpm: tank
    disks: {scsi0: {size: 20}}
    network: [{bridge: vmbr0, ip: 192.0.2.10/24, gateway: 192.0.2.1}]
    cloudInit: {user: debian, password: {env: APP_PASSWORD}}
    startup: {order: 1, upDelay: 2, downDelay: 3}
    firewall: {rules: [{direction: in, action: ACCEPT}]}
    pci: [{mapping: gpu}]
    usb: [{mapping: key}]
    serial: [socket]
    vga: {type: qxl, memory: 16}
    timeouts: {create: 100}
  own:
    vmId: 9110
    template: debian
    disks: {scsi0: {size: 20}}
    cloudInit: {userData: "own.yaml"}
  rescue:
    vmId: 9120
    iso: {url: "https://images.example/rescue.iso"}
    disk: 4
    network: [{bridge: vmbr1}]
containers:
  dns:
    vmId: 9200
    image: {url: "https://images.example/debian-12-standard_amd64.tar.zst"}
    disk: 4
    mountPoints: {mp0: {path: /data, size: 4}}
    startup: {order: 1}
    features: {nesting: true}
    network: [{bridge: vmbr0, ip: 192.0.2.53/24, gateway: 192.0.2.1}]
    firewall: {rules: [{direction: in, action: ACCEPT}]}
"#;

const DATACENTER: &str = r#"
metadata: {name: dc}
proxmox: {target: pve, nodes: [pve1]}
pools: {web: {comment: for the web}}
roles: {Ops: [VM.Audit]}
groups: {ops: {comment: operators}}
users: {ann@pve: {groups: [ops]}}
tokens: {ann@pve!ci: {comment: for the pipeline}}
acl: [{path: /pool/web, role: Ops, group: ops}]
storages:
  media: {type: nfs, server: 192.0.2.31, export: /media, content: [iso]}
  folder: {type: dir, path: /srv, content: [iso]}
mappings:
  pci: {gpu: {devices: [{node: pve1, path: "0000:01:00.0", id: "10de:2204", iommuGroup: 12}]}}
  usb: {key: {devices: [{node: pve1, id: "1050:0407"}]}}
network:
  vmbr5: {address: 10.9.0.1/24}
  vmbr5.50: {address: 10.50.0.1/24}
  bond0: {mode: active-backup}
dns: {servers: [192.0.2.53], searchDomain: lab.test}
timezone: Europe/Paris
firewall:
  enabled: true
  aliases: {admin: 192.0.2.200/32}
  ipSets: {trusted: [192.0.2.0/24]}
  groups: {web: {rules: [{direction: in, action: ACCEPT}]}}
  rules: [{direction: in, action: ACCEPT, macro: SSH}]
"#;

/// Fields that say nothing of their own to OpenTofu: what says it for them.
const SAID_OTHERWISE: [(&str, &str, &str); 16] = [
    ("vm", "template", "templates have a module of their own"),
    ("template", "template", "templates have a module of their own"),
    ("template", "power", "a template does not run"),
    ("vm", "cloudinit.content", "the documents themselves are rendered"),
    ("template", "cloudinit.content", "the documents themselves are rendered"),
    ("image", "shared", "it is asked for on the node that downloads it"),
    ("cidata", "volume", "the documents are snippets, and no ISO"),
    ("cidata", "node", "the machine says where it is"),
    ("cidata", "shared", "the machine says where it is"),
    ("cidata", "vmid", "the machine says which it is"),
    ("cidata", "size", "the documents are snippets, and no ISO"),
    ("token", "secret", "an output of the module has the value"),
    ("firewall", "firewall", "a datacenter has one"),
    ("network", "staged", "no source says it: it is seen while changes wait"),
    ("network", "adopt", "each interface says it"),
    ("template", "clone.*", "a template is no clone"),
];

/// A stack, and what is drawn of it.
struct Drawn<'r> {
    repository: &'r Repository,
    world: &'r Memory,
    stack: &'r EffectiveStack,
    blueprint: Blueprint,
}

/// What comes of a blueprint: the files with the values that stay out of them, and what is reported.
struct Outcome {
    project: String,
    gaps: Vec<Gap>,
}

impl Drawn<'_> {
    fn render(&self) -> Outcome {
        let project = Project {
            stack: self.stack,
            blueprint: &self.blueprint,
            connection: Connection { endpoint: "https://192.0.2.10:8006".into(), ..Connection::default() },
            state: self.repository.settings.state.as_ref(),
            world: self.world,
            taken_over: false,
        };
        let files = render(&[project], false);
        let mut project: String = files.iter().map(|(path, text)| format!("{path}\n{text}\n")).collect();
        project.push_str(&json!(secret_variables(&self.blueprint)).to_string());
        Outcome { project, gaps: files.gaps }
    }

    /// The same, with a value in a field of a resource.
    fn with(&mut self, address: &str, path: &[&str], value: Option<&Value>) -> Outcome {
        let kept = self.spec(address).clone();
        put(self.spec(address), path, value);
        let outcome = self.render();
        *self.spec(address) = kept;
        outcome
    }

    fn spec(&mut self, address: &str) -> &mut Spec {
        let found = self.blueprint.graph.iter_mut().find(|resource| resource.address.to_string() == address);
        &mut found.expect("the resource is drawn").spec
    }
}

fn put(spec: &mut Spec, path: &[&str], value: Option<&Value>) {
    match (path, value) {
        ([], _) => {}
        ([last], None) => drop(spec.remove(*last)),
        ([last], Some(value)) => drop(spec.insert((*last).to_owned(), value.clone())),
        ([first, rest @ ..], _) => {
            let below = spec.entry((*first).to_owned()).or_insert_with(|| Value::Map(Spec::new()));
            if !matches!(below, Value::Map(_)) {
                *below = Value::Map(Spec::new());
            }
            if let Value::Map(below) = below {
                put(below, rest, value);
            }
        }
    }
}

fn at<'s>(spec: &'s Spec, path: &[&str]) -> Option<&'s Value> {
    let (first, rest) = path.split_first()?;
    let value = spec.get(*first)?;
    if rest.is_empty() { Some(value) } else { at(value.as_map()?, rest) }
}

/// The keys that stand for a `*` after a path: those that a resource has there, or another one; otherwise a slot. Where the rule names a reason it
/// is that of a key that nobody knows.
fn keys(
    spec: &Spec,
    others: &[Spec],
    rules: &[&FieldRule],
    path: &[&str],
    rule: &FieldRule,
    is_last: bool,
) -> Vec<String> {
    if is_last && rule.kind != FieldType::Map && !rule.no_tofu.is_empty() {
        return vec!["other".to_owned()];
    }
    let there = |spec: &Spec| at(spec, path).and_then(Value::as_map).filter(|map| !map.is_empty()).cloned();
    if let Some(map) = there(spec).or_else(|| others.iter().find_map(there)) {
        // A key with a rule of its own is walked with that.
        let prefix = rule.path.strip_suffix('*').filter(|_| is_last).unwrap_or_default();
        let has_own = |key: &&String| {
            let own = format!("{prefix}{key}");
            let fits = |rule: &FieldRule| rule.path == own || rule.path.starts_with(&format!("{own}."));
            !prefix.is_empty() && rules.iter().any(|rule| fits(rule))
        };
        return map.keys().filter(|key| !has_own(key)).cloned().collect();
    }
    let slot = match path.last() {
        Some(&"disks") => "scsi1",
        Some(&"networks") => "net1",
        Some(&"mounts") => "mp1",
        Some(&"cdroms") => "ide2",
        Some(&"pci") => "hostpci0",
        Some(&"usb") => "usb0",
        Some(&"serial") => "serial0",
        Some(&"ipconfig") => "ipconfig0",
        _ => return Vec::new(),
    };
    vec![slot.to_owned()]
}

/// The places of a field in a resource.
fn places(spec: &Spec, others: &[Spec], rules: &[&FieldRule], rule: &FieldRule) -> Vec<Vec<String>> {
    let parts: Vec<&str> = rule.path.split('.').collect();
    let mut places: Vec<Vec<String>> = vec![Vec::new()];
    for (index, part) in parts.iter().enumerate() {
        let mut next = Vec::new();
        for place in places {
            let keys = match *part {
                "*" => {
                    let own: Vec<&str> = place.iter().map(String::as_str).collect();
                    keys(spec, others, rules, &own, rule, index + 1 == parts.len())
                }
                part => vec![part.to_owned()],
            };
            next.extend(keys.into_iter().map(|key| [place.clone(), vec![key]].concat()));
        }
        places = next;
    }
    places
}

/// Values that a field takes, two at least that mean something else.
fn values(rule: &FieldRule, now: Option<&Value>) -> Vec<Option<Value>> {
    let texts = |texts: &[&str]| texts.iter().map(|text| Value::text(*text)).collect::<Vec<Value>>();
    let value = |json| serde_json::from_value::<Value>(json).unwrap();
    let mut values = match rule.kind {
        FieldType::Bool => vec![Value::Bool(true), Value::Bool(false)],
        FieldType::Int if rule.unit == Unit::Bytes => vec![Value::Int(7 << 30), Value::Int(9 << 30)],
        FieldType::Int => vec![Value::Int(7), Value::Int(9)],
        FieldType::Text => {
            texts(&["7", "9", "running", "stopped", "local:iso/a.iso", "local:iso/b.iso", "sha256:aa", "usb"])
        }
        FieldType::List => vec![value(json!(["a"])), value(json!(["b"])), value(json!([{"type": "out"}]))],
        FieldType::Map => vec![
            value(json!({"create": 7})),
            value(json!({"group": "a"})),
            value(json!({"slot": "ide3", "volume": "local:iso/a.iso"})),
        ],
        FieldType::Any => [texts(&["7", "9"]), vec![Value::Bool(true), value(json!(["a"]))]].concat(),
    };
    if let Some(Literal::Text(text)) = rule.default {
        values.push(Value::text(text));
    }
    let mut all: Vec<Option<Value>> = now.into_iter().cloned().map(Some).collect();
    all.extend(values.into_iter().map(Some));
    all.push(None);
    all
}

/// Whether a field is nothing but the fields below it, which have rules of their own.
fn is_walked_below(table: &KindTable, rule: &FieldRule) -> bool {
    let below = format!("{}.", rule.path);
    rule.kind == FieldType::Map && table.all_fields().any(|other| other.path.starts_with(&below))
}

/// What is wrong with a field of a kind, if anything is.
fn wrong(drawn: &mut [Drawn<'_>], table: &KindTable, rule: &FieldRule) -> Option<String> {
    let rules: Vec<&FieldRule> = table.all_fields().collect();
    let others: Vec<Spec> = drawn
        .iter()
        .flat_map(|drawn| drawn.blueprint.graph.iter())
        .map(|resource| resource.spec.clone())
        .collect();
    let (mut places_seen, mut changes, mut unreported) = (0, BTreeMap::new(), Vec::new());
    for drawn in drawn {
        let own = drawn.blueprint.graph.iter().filter(|resource| resource.kind() == table.kind());
        let own: Vec<(String, Spec)> =
            own.map(|resource| (resource.address.to_string(), resource.spec.clone())).collect();
        for (address, spec) in own {
            for place in places(&spec, &others, &rules, rule) {
                places_seen += 1;
                let path: Vec<&str> = place.iter().map(String::as_str).collect();
                let dotted = place.join(".");
                let mut before: Option<String> = None;
                // One slot is enough: what a field means may depend on what else is in it.
                let last =
                    if rule.path.ends_with('*') { path.last().copied().unwrap_or_default() } else { "" };
                let changed = changes.entry(format!("{} {last}", rule.path)).or_insert(false);
                for value in values(rule, at(&spec, &path)) {
                    if *changed {
                        break;
                    }
                    let outcome = drawn.with(&address, &path, value.as_ref());
                    *changed = before.as_ref().is_some_and(|before| *before != outcome.project);
                    before = Some(outcome.project);
                    let name = format!("`{dotted}`");
                    let is_reported = |gap: &Gap| {
                        gap.what == address
                            && gap.reason.contains(rule.no_tofu)
                            && (gap.reason.starts_with(&name)
                                || name.starts_with(
                                    gap.reason.split(':').next().unwrap_or("-").trim_end_matches('`'),
                                ))
                    };
                    if value.is_some() && !rule.no_tofu.is_empty() && !outcome.gaps.iter().any(is_reported) {
                        unreported.push(format!("{address} {dotted} {value:?}"));
                    }
                }
            }
        }
    }
    let (changing, idle): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(_, changed)| *changed);
    let names = |places: Vec<(String, bool)>| {
        places.into_iter().map(|(place, _)| place).collect::<Vec<_>>().join(", ")
    };
    if places_seen == 0 {
        return Some("no resource of the kind is drawn".to_owned());
    }
    match rule.no_tofu {
        "" if !idle.is_empty() => {
            Some(format!("nothing of the project changes with it, and it names no reason: {}", names(idle)))
        }
        "" => None,
        reason if !changing.is_empty() => {
            Some(format!("it is rendered, and says that it is not ({reason}): {}", names(changing)))
        }
        _ if !unreported.is_empty() => Some(format!("it is not reported: {}", unreported.join(", "))),
        _ => None,
    }
}

#[test]
fn every_field_is_rendered_or_reported_with_its_reason() {
    strata_providers::kinds::register();
    let world = Memory::new()
        .file("strata.yaml", "repository: golden\ntargets: {pve: {proxmox: {endpoint: 'https://192.0.2.10:8006', token: {env: TOKEN}}}}\n")
        .file("stacks/web/stack.yaml", STACK)
        .file("stacks/web/own.yaml", "#cloud-config\n")
        .file("hypervisors/dc.yaml", DATACENTER);
    let (repository, diagnostics) = Repository::load(&world);
    let shown: Vec<String> = diagnostics.iter().map(|found| found.message.clone()).collect();
    assert!(!diagnostics.has_errors(), "{shown:?}");
    let mut drawn: Vec<Drawn<'_>> = ["web", "dc"]
        .map(|name| {
            let stack = repository.stack(name, None).unwrap();
            Drawn { repository: &repository, world: &world, stack, blueprint: draw(&repository, stack) }
        })
        .into();
    let mut found = Vec::new();
    for table in registered_kinds() {
        if let Some(reason) = table.no_tofu {
            assert!(!reason.is_empty(), "{}", table.name);
            continue;
        }
        let is_said_otherwise = |rule: &FieldRule| {
            SAID_OTHERWISE.iter().any(|(kind, path, _)| *kind == table.name && *path == rule.path)
        };
        for rule in
            table.all_fields().filter(|rule| !is_walked_below(table, rule) && !is_said_otherwise(rule))
        {
            if let Some(wrong) = wrong(&mut drawn, table, rule) {
                found.push(format!("{} `{}`: {wrong}", table.name, rule.path));
            }
        }
    }
    assert!(found.is_empty(), "{} fields\n{}", found.len(), found.join("\n"));
}
