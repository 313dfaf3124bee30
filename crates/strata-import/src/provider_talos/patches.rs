//! The patches of a node: what they say that Strata has a field for, and the rest.

use crate::records::{ClusterNode, Hardware, Kubernetes, Nic, NodeSettings, Stack, Talos};
use serde_json::{Value as Json, json};
use strata_yaml::Key;

use super::super::guest::kind;
use super::super::module::{Expansion, Resource};
use super::super::output::{self, Object, Put};
use super::super::roots::Made;
use super::super::talos::TalosCluster;
use super::super::tree::{Content, SourceLine, Tree};
use super::super::{Import, parse, talos};
use super::host;
use super::image::{Images, Installer};
use strata_yaml::plain;

/// A node while it is put together.
pub(super) struct Node<'e> {
    pub(super) own: String,
    pub(super) control_plane: bool,
    pub(super) address: Option<String>,
    pub(super) apply: &'e Resource,
    /// The machine that it runs on.
    pub(super) machine: Option<&'e Made>,
    pub(super) patches: Vec<Patch>,
    pub(super) written: Object,
}

pub(super) enum Patch {
    /// A part of the machine configuration.
    Part(Json),
    /// Anything else, as it is: several documents, or a list of operations.
    Text(String),
}

impl<'e> Node<'e> {
    pub(super) fn new(
        import: &mut Import<'_>,
        expansion: &'e Expansion,
        made: &'e [Made],
        apply: &'e Resource,
        data: &Resource,
    ) -> Self {
        let is_address = |text: &str| output::is_address(text.split('/').next().unwrap_or(text));
        let at = apply.body.get("node").or_else(|| apply.body.get("endpoint"));
        let address = at.and_then(|tree| tree.as_text_if(is_address));
        let address = address.map(|text| text.split('/').next().unwrap_or(&text).to_owned());
        let mut patches = Vec::new();
        for from in [&data.body, &apply.body] {
            patches.extend(from.list("config_patches").iter().filter_map(|tree| patch(import, tree)));
        }
        let machine = machine(import, expansion, made, apply, address.as_deref());
        // The address of a machine that Proxmox tells is in no file.
        if let (Some(tree), Some(_)) = (at, &machine) {
            tree.take_all();
        }
        apply.body.take_keys(&["machine_configuration_input", "client_configuration", "endpoint"]);
        import.needless(
            &apply.body,
            &["apply_mode", "on_destroy", "timeouts"],
            "Strata plans for each change whether it needs a reboot",
        );
        let hostname = patches.iter().find_map(|patch| match patch {
            Patch::Part(json) => host(json["machine"]["network"]["hostname"].as_str()?),
            Patch::Text(_) => None,
        });
        let own = hostname.or_else(|| machine.map(|machine| machine.own.clone()));
        let own = own.unwrap_or_else(|| talos::host(apply.key.as_deref().unwrap_or(&apply.name)));
        let role = data.body.get("machine_type").and_then(Tree::peek);
        if let Some(role) = role.as_deref().filter(|role| !["controlplane", "init", "worker"].contains(role))
        {
            let place = data.body.get("machine_type").map(|tree| tree.place.clone());
            import.note(
                place.as_ref(),
                format!(
                    "`machine_type` is `{role}`, which Talos does not know: `{own}` became a control plane"
                ),
            );
        }
        Self {
            own,
            control_plane: role.as_deref() != Some("worker"),
            address,
            apply,
            machine,
            patches,
            written: Object::new(),
        }
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &Json> {
        self.patches.iter().filter_map(|patch| match patch {
            Patch::Part(json) => Some(json),
            Patch::Text(_) => None,
        })
    }

    /// The last word of its patches at a path.
    pub(super) fn said(&self, path: &[&str]) -> Option<&Json> {
        self.parts().filter_map(|json| at(json, path)).last()
    }

    /// Takes a path out of all patches.
    pub(super) fn take(&mut self, path: &[&str]) -> Option<Json> {
        let mut found = None;
        for patch in &mut self.patches {
            if let Patch::Part(json) = patch {
                found = remove(json, path).or(found);
            }
        }
        found
    }
}

fn at<'j>(json: &'j Json, path: &[&str]) -> Option<&'j Json> {
    path.iter().try_fold(json, |json, key| json.get(key))
}

/// Takes a value out, and what is empty without it.
fn remove(json: &mut Json, path: &[&str]) -> Option<Json> {
    let (first, rest) = path.split_first()?;
    let map = json.as_object_mut()?;
    if rest.is_empty() {
        return map.remove(*first);
    }
    let inner = map.get_mut(*first)?;
    let found = remove(inner, rest);
    if inner.as_object().is_some_and(serde_json::Map::is_empty) {
        map.remove(*first);
    }
    found
}

/// A patch of a list; what is known only in part keeps its references.
fn patch(import: &mut Import<'_>, tree: &Tree) -> Option<Patch> {
    match &tree.content {
        Content::Text(text) if !text.trim().is_empty() => {
            tree.take_all();
            let (parsed, problems) = parse::yaml(&tree.place.file, text);
            let documents = text.lines().filter(|line| line.trim_end() == "---").count();
            match parsed {
                Some(parsed) if problems.is_empty() && documents == 0 && !parsed.entries().is_empty() => {
                    Some(Patch::Part(json(&parsed)))
                }
                _ => {
                    // A single line would be taken for the name of a file.
                    let text = if text.contains('\n') { text.clone() } else { format!("{text}\n") };
                    Some(Patch::Text(text))
                }
            }
        }
        Content::Map(_) => Some(Patch::Part(json(tree))),
        Content::Unknown(expression) => {
            tree.take_all();
            let short: String = expression.chars().take(80).collect();
            import.note(
                Some(&tree.place),
                format!("the patch `{short}` is known only to a run: it was not carried over"),
            );
            None
        }
        _ => None,
    }
}

/// Everything of a tree; a reference is written as one.
fn json(tree: &Tree) -> Json {
    match &tree.content {
        Content::Unknown(reference) => {
            tree.take_all();
            json!(format!("${{{reference}}}"))
        }
        Content::List(items) => Json::Array(items.iter().map(json).collect()),
        Content::Map(entries) => {
            Json::Object(entries.iter().map(|(key, tree)| (key.clone(), json(tree))).collect())
        }
        _ => talos::as_json(tree),
    }
}

/// The machine of the same code that a configuration is applied to.
fn machine<'e>(
    import: &Import<'_>,
    expansion: &Expansion,
    made: &'e [Made],
    apply: &Resource,
    address: Option<&str>,
) -> Option<&'e Made> {
    let is_vm = |one: &&Made| {
        expansion
            .resources
            .iter()
            .any(|resource| resource.full_address() == one.address && kind(&resource.kind).starts_with("vm"))
    };
    let vms: Vec<&Made> = made.iter().filter(is_vm).collect();
    let reference = apply.body.get("node").or_else(|| apply.body.get("endpoint"));
    if let Some(Content::Unknown(reference)) = reference.map(|tree| &tree.content)
        && let Some(found) = vms
            .iter()
            .find(|one| super::refers_to(reference, &one.address) || reference.contains(&one.address))
    {
        return Some(found);
    }
    let has_address = |one: &&&Made| {
        let guest = import
            .model
            .documents
            .get(&one.document)
            .map(|(document, _)| &document[Stack::vms.name()][&one.own]);
        let nics = guest.and_then(|guest| guest[Hardware::network.name()].as_array()).into_iter().flatten();
        let mut own = nics.filter_map(|nic| nic[Nic::ip.name()].as_str()?.split('/').next());
        address.is_some_and(|address| own.any(|ip| ip == address))
    };
    if let Some(found) = vms.iter().find(has_address) {
        return Some(found);
    }
    // Code that makes a machine and configures it keeps the two together.
    let mut beside = vms.iter().filter(|one| {
        !apply.path.is_empty() && one.address.starts_with(&apply.path)
            || apply.path.is_empty()
                && apply.key.is_some()
                && one.address.ends_with(&format!("[{}]", apply.key.as_deref().unwrap_or_default()))
    });
    match (beside.next(), beside.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// What the patches say that concerns more than one node.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) version: Option<String>,
}

/// Takes what Strata has fields for.
pub(super) fn facts(
    import: &mut Import<'_>,
    cluster: &mut TalosCluster,
    nodes: &mut [Node<'_>],
    images: &Images<'_>,
) -> Facts {
    let mut facts = Facts::default();
    let installers = installers(import, nodes, images);
    let first = installers.iter().flatten().next().cloned();
    if let Some(first) = &first {
        facts.version.clone_from(&first.version);
        cluster.talos.put(Talos::schematic, first.schematic.clone());
        if first.secure_boot {
            cluster.talos.set(Talos::secure_boot, json!(true));
        }
    }
    for (node, installer) in nodes.iter_mut().zip(&installers) {
        let secure = installer.as_ref().is_some_and(|installer| installer.secure_boot);
        if let (Some(installer), Some(first)) = (installer, &first) {
            if installer.schematic != first.schematic {
                node.written.put(NodeSettings::schematic, installer.schematic.clone());
            }
            if installer.secure_boot != first.secure_boot {
                node.written.set(NodeSettings::secure_boot, json!(installer.secure_boot));
            }
        }
        own_fields(node, secure);
    }
    common_fields(cluster, nodes);
    facts
}

fn installers(
    import: &mut Import<'_>,
    nodes: &mut [Node<'_>],
    images: &Images<'_>,
) -> Vec<Option<Installer>> {
    let path = ["machine", "install", "image"];
    let mut found = Vec::new();
    for node in nodes {
        let text = node.said(&path).and_then(Json::as_str).map(str::to_owned);
        let installer = text.and_then(|text| images.installer(import, &text));
        if installer.is_some() {
            node.take(&path);
        }
        found.push(installer);
    }
    found
}

/// What each node says for itself.
fn own_fields(node: &mut Node<'_>, secure_boot: bool) {
    let role = if node.control_plane { "controlPlane" } else { "worker" };
    node.written.set(ClusterNode::role, json!(role));
    if node.said(&["machine", "install", "disk"]).and_then(Json::as_str).is_some() {
        let disk = node.take(&["machine", "install", "disk"]);
        node.written.put(NodeSettings::install_disk, disk);
    }
    let name = node.own.clone();
    let hostname = ["machine", "network", "hostname"];
    if node.said(&hostname).and_then(Json::as_str).and_then(host) == Some(name) {
        node.take(&hostname);
    }
    for (key, there) in [
        (NodeSettings::labels, "nodeLabels"),
        (NodeSettings::annotations, "nodeAnnotations"),
        (NodeSettings::taints, "nodeTaints"),
    ] {
        let path = ["machine", there];
        let plain = |json: &Json| {
            let words = json.as_object().is_some_and(|map| map.values().all(|value| value.is_string()));
            words && !json.as_object().is_some_and(|map| map.contains_key("$patch"))
        };
        if node.said(&path).is_some_and(plain) {
            let map = node.take(&path);
            node.written.put(key, map);
        }
    }
    let modules = ["machine", "kernel", "modules"];
    let names = node.said(&modules).and_then(Json::as_array).and_then(|list| {
        let name = |module: &Json| match module.as_object() {
            Some(map) if map.len() == 1 => map.get("name")?.as_str().map(str::to_owned),
            _ => None,
        };
        list.iter().map(name).collect::<Option<Vec<String>>>()
    });
    if let Some(names) = names.filter(|names| !names.is_empty()) {
        node.take(&modules);
        node.written.set(NodeSettings::kernel_modules, json!(names));
    }
    // What `encryptDisk` does, and nothing else.
    let key = if secure_boot { json!({"slot": 0, "tpm": {}}) } else { json!({"slot": 0, "nodeID": {}}) };
    let volume = json!({"provider": "luks2", "keys": [key]});
    let encryption = ["machine", "systemDiskEncryption"];
    if node.said(&encryption) == Some(&json!({"state": volume, "ephemeral": volume})) {
        node.take(&encryption);
        node.written.set(NodeSettings::encrypt_disk, json!(true));
    }
}

/// What all nodes that say it say alike.
fn common_fields(cluster: &mut TalosCluster, nodes: &mut [Node<'_>]) {
    let cidr = |json: &Json| match json.as_array().map(Vec::as_slice) {
        Some([Json::String(net)]) if output::with_prefix(net) => Some(json!(net)),
        _ => None,
    };
    let text = |json: &Json| json.as_str().map(|text| json!(text));
    let cni =
        |json: &Json| json.as_str().filter(|name| ["none", "flannel"].contains(name)).map(|name| json!(name));
    let truth = |json: &Json| json.as_bool().map(|value| json!(value));
    type Read<'r> = &'r dyn Fn(&Json) -> Option<Json>;
    let fields: [(Key, &[&str], Read<'_>); 5] = [
        (Kubernetes::schedule_on_control_planes, &["cluster", "allowSchedulingOnControlPlanes"], &truth),
        (Kubernetes::cni, &["cluster", "network", "cni", "name"], &cni),
        (Kubernetes::pod_cidr, &["cluster", "network", "podSubnets"], &cidr),
        (Kubernetes::service_cidr, &["cluster", "network", "serviceSubnets"], &cidr),
        (Kubernetes::dns_domain, &["cluster", "network", "dnsDomain"], &text),
    ];
    for (key, path, read) in fields {
        let masters_alone = key == Kubernetes::schedule_on_control_planes;
        let asked: Vec<&Node<'_>> =
            nodes.iter().filter(|node| node.control_plane || !masters_alone).collect();
        let said: Vec<Option<Json>> = asked.iter().map(|node| node.said(path).and_then(read)).collect();
        let Some(Some(first)) = said.first().cloned() else { continue };
        if said.iter().all(|other| other.as_ref() == Some(&first)) {
            nodes.iter_mut().for_each(|node| drop(node.take(path)));
            cluster.kubernetes.set(key, first);
        }
    }
}

/// Writes the rest: what is the same everywhere for all, and what is not for each.
pub(super) fn write(import: &mut Import<'_>, cluster: &mut TalosCluster, nodes: &mut [Node<'_>]) {
    let mut all: Vec<Vec<String>> = Vec::new();
    for node in nodes.iter_mut() {
        let mut texts = Vec::new();
        let at = node.apply.at.clone();
        for patch in std::mem::take(&mut node.patches) {
            match patch {
                Patch::Text(text) => texts.push(text),
                Patch::Part(mut json) => {
                    unknown(import, &at, &mut json, "");
                    if json.as_object().is_some_and(|map| !map.is_empty()) {
                        texts.push(plain::write(&json));
                    }
                }
            }
        }
        all.push(texts);
    }
    let common: Vec<String> = match all.split_first() {
        Some((first, rest)) => {
            first.iter().filter(|text| rest.iter().all(|other| other.contains(text))).cloned().collect()
        }
        None => Vec::new(),
    };
    // The order of patches matters: those for all come first.
    let in_order = all.iter().all(|texts| texts.iter().take(common.len()).eq(common.iter()));
    let common = if in_order { common } else { Vec::new() };
    cluster.patches.extend(common.iter().map(|text| json!(text)));
    for (node, texts) in nodes.iter_mut().zip(all) {
        let own: Vec<Json> = texts.into_iter().skip(common.len()).map(Json::from).collect();
        let mut written = std::mem::take(&mut node.written);
        written.put_full(NodeSettings::patches, Json::Array(own));
        written.put(ClusterNode::address, node.address.clone());
        node.written = written;
    }
}

fn is_open(text: &str) -> bool {
    text.starts_with("${") || text.starts_with('"') && text.contains("${")
}

/// What only a run would tell, somewhere in a value.
fn first_open(json: &Json) -> Option<String> {
    match json {
        Json::String(text) => is_open(text).then(|| text.clone()),
        Json::Array(items) => items.iter().find_map(first_open),
        Json::Object(map) => map.values().find_map(first_open),
        _ => None,
    }
}

/// Removes what only a run would know, and says so.
fn unknown(import: &mut Import<'_>, place: &SourceLine, json: &mut Json, path: &str) {
    let open = |json: &Json| json.as_str().is_some_and(is_open);
    let told = |import: &mut Import<'_>, path: &str, json: &Json| {
        let text: String = json.as_str().unwrap_or_default().chars().take(80).collect();
        import.note(
            Some(place),
            format!("`{path}` of a patch is `{text}`, which only running the code would show: it was not carried over"),
        );
    };
    match json {
        Json::Object(map) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            for key in keys {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                if map.get(&key).is_some_and(open) {
                    if let Some(value) = map.remove(&key) {
                        told(import, &inner, &value);
                    }
                } else if let Some(value) = map.get_mut(&key) {
                    let before = value.clone();
                    unknown(import, place, value, &inner);
                    let empty = match &*value {
                        Json::Object(map) => map.is_empty(),
                        Json::Array(items) => items.is_empty(),
                        _ => false,
                    };
                    // What is empty now said nothing else.
                    if empty && before != *value {
                        map.remove(&key);
                    }
                }
            }
        }
        Json::Array(items) => {
            // Half an entry of a list would be another one.
            let mut kept = Vec::new();
            for item in std::mem::take(items) {
                match first_open(&item) {
                    Some(text) => told(import, path, &json!(text)),
                    None => kept.push(item),
                }
            }
            *items = kept;
        }
        _ => {}
    }
}
