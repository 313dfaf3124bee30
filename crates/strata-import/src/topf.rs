//! `topf.yaml`: nodes, and folders of patches beside it, some of them templates.

use crate::output::only;
use crate::records::{ClusterNode, NodeSettings, Schematic, Talos};
use serde_json::{Value as Json, json};

use super::Import;
use super::files::folder_of;
use super::gotemplate;
use super::output::{self, Object, Put};
use super::talos::{self, TalosCluster};
use super::tree::{Content, SourceLine, Tree};

const PLATFORM: &str = "Strata asks the image factory for what a machine of its own needs";

pub(super) fn import(import: &mut Import<'_>) {
    for file in ["topf.yaml", "topf.yml"] {
        for path in import.files.named(file) {
            let Some(tree) = import.yaml(&path).filter(|tree| tree.has("clusterName") && tree.has("nodes"))
            else {
                continue;
            };
            import.found("topf.yaml");
            cluster(import, &path, &tree);
            import.watch("", &tree);
        }
    }
}

fn cluster(import: &mut Import<'_>, path: &str, tree: &Tree) {
    let wanted = tree.text("clusterName").unwrap_or_else(|| "talos".to_owned());
    let mut cluster = TalosCluster::new(import, &wanted, &tree.place);
    cluster.versions(import, tree.get("talosVersion"), tree.get("kubernetesVersion"));
    cluster.endpoint = tree.text_if("clusterEndpoint", |url| url.starts_with("http"));
    if let Some(found) = schematic(import, path, tree) {
        cluster.talos.set(Talos::schematic, found);
    }
    cluster.talos.put(Talos::secure_boot, tree.bool("secureboot"));
    import.needless(tree, &["platform"], PLATFORM);
    let _ = tree.text_if("factory", |host| host.trim_start_matches("https://") == "factory.talos.dev");
    let secrets = tree.text("secretsPath").unwrap_or_else(|| "secrets.yaml".to_owned());
    cluster.secrets(import, &talos::beside(path, &secrets));
    let patches = tree
        .text("patchesDir")
        .map_or_else(|| folder_of(path).to_owned(), |folder| talos::beside(path, &folder));
    let mut nodes = Vec::new();
    for node in tree.list("nodes") {
        let Some(host) = node.text("host") else {
            import.note(Some(&node.place), "a node without `host` was left out");
            node.take_all();
            continue;
        };
        let mut written = Object::new();
        let plain = |role: &str| role.to_ascii_lowercase().replace(['-', '_'], "");
        let role = node.text_if("role", |role| ["controlplane", "worker"].contains(&plain(role).as_str()));
        let role = role.unwrap_or_else(|| "worker".to_owned());
        let control_plane = plain(&role) == "controlplane";
        written.set(ClusterNode::role, json!(if control_plane { "controlPlane" } else { "worker" }));
        written.put(ClusterNode::address, node.text_if("ip", output::is_address));
        if !written.contains_key(ClusterNode::address.name()) {
            // A host may be an address, too.
            written.put(ClusterNode::address, output::is_address(&host).then(|| host.clone()));
        }
        written.put(NodeSettings::schematic, schematic(import, path, node));
        written.put(NodeSettings::secure_boot, node.bool("secureboot"));
        import.needless(node, &["platform"], PLATFORM);
        nodes.push((host, role, written, node));
    }
    for folder in ["all", "control-plane", "controlplane", "worker"] {
        layer(import, &mut cluster, tree, &format!("{patches}/{folder}"), folder, &mut nodes);
    }
    for index in 0..nodes.len() {
        let host = nodes[index].0.clone();
        for folder in ["node", "nodes"] {
            let folder = format!("{patches}/{folder}/{host}");
            layer(import, &mut cluster, tree, &folder, &host, &mut nodes[index..=index]);
        }
    }
    for (host, _, written, node) in nodes {
        let own = if output::is_address(&host) { super::name(&host) } else { talos::host(&host) };
        cluster.node(import, &own, &node.place, written);
    }
    cluster.write(import);
}

/// An id, or `@file` with what is in it.
fn schematic(import: &mut Import<'_>, path: &str, tree: &Tree) -> Option<Json> {
    if let Some(id) = tree.text_if("schematicId", output::is_schematic) {
        return Some(only(Schematic::id, id));
    }
    let found = tree.get("schematicId")?;
    let file = found.peek().filter(|text| text.starts_with('@'))?;
    let there = talos::beside(path, file.trim_start_matches('@'));
    if !import.files.has(&there) {
        found.take_all();
        import
            .note(Some(&found.place), format!("the schematic `{there}` is not there: the plain one is used"));
        return None;
    }
    let content = import.yaml(&there)?;
    found.take_all();
    let written = talos::schematic(&content);
    import.watch("", &content);
    written
}

/// The patches of a folder: for all nodes, for those of a kind, or for one.
fn layer(
    import: &mut Import<'_>,
    cluster: &mut TalosCluster,
    tree: &Tree,
    folder: &str,
    kind: &str,
    nodes: &mut [(String, String, Object, &Tree)],
) {
    let folder = folder.trim_start_matches('/');
    let mut files: Vec<String> = import
        .files
        .below(folder)
        .into_iter()
        .filter(|path| [".yaml", ".yml", ".tpl"].iter().any(|ending| path.ends_with(ending)))
        .collect();
    files.sort();
    for path in files {
        let Some(text) = import.read(&path) else { continue };
        if text.contains("ENC[AES256_GCM") {
            import.note(Some(&SourceLine::new(&path, 1)), talos::ENCRYPTED);
            continue;
        }
        let own = path.rsplit('/').next().unwrap_or(&path).trim_end_matches(".tpl").to_owned();
        let is_template = path.ends_with(".tpl");
        let whole = kind == "all" && !(is_template && text.contains(".Node"));
        if whole {
            let filled = if is_template { fill(import, &path, &text, tree, None) } else { Some(text) };
            if let Some(text) = filled.filter(|text| says_something(text)) {
                let patch = cluster.patch_file(import, &format!("{kind}-{own}"), &text);
                cluster.patches.push(patch);
            }
            continue;
        }
        for (host, role, written, node) in nodes.iter_mut() {
            let role_folder = role.replace('_', "-");
            let applies =
                kind == "all" || kind == host || kind.replace('-', "") == role_folder.replace('-', "");
            if !applies {
                continue;
            }
            let filled =
                if is_template { fill(import, &path, &text, tree, Some(node)) } else { Some(text.clone()) };
            let Some(text) = filled.filter(|text| says_something(text)) else { continue };
            let name =
                if is_template && kind != host { format!("{host}-{own}") } else { format!("{kind}-{own}") };
            let patch = cluster.patch_file(import, &name, &text);
            let list = written.entry(NodeSettings::patches.name()).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(patch);
            }
        }
    }
}

/// More than comments and marks of documents.
fn says_something(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#') && line != "---")
}

fn fill(import: &mut Import<'_>, path: &str, text: &str, tree: &Tree, node: Option<&Tree>) -> Option<String> {
    match gotemplate::fill(text, &data(tree, node)) {
        Ok(text) => Some(text),
        Err((line, reason)) => {
            import.note(
                Some(&SourceLine::new(path, line)),
                format!("the template was not filled in and not carried over: {reason}"),
            );
            None
        }
    }
}

/// What templates see: the keys of the file with a capital, and the node.
fn data(tree: &Tree, node: Option<&Tree>) -> Tree {
    let capital = |tree: &Tree| {
        let entries = tree.entries().iter().map(|(key, value)| {
            let key = match key.as_str() {
                "ip" => "IP".to_owned(),
                "schematicId" => "SchematicID".to_owned(),
                other => {
                    let mut letters = other.chars();
                    letters
                        .next()
                        .map(|first| first.to_ascii_uppercase())
                        .into_iter()
                        .chain(letters)
                        .collect()
                }
            };
            (key, value.clone())
        });
        Tree::map_of(tree.place.clone(), entries.collect())
    };
    let mut whole = capital(tree).entries().to_vec();
    if let Some(node) = node {
        whole.push(("Node".to_owned(), capital(node)));
    }
    if !whole.iter().any(|(key, _)| key == "Data") {
        whole.push(("Data".to_owned(), Tree::new(tree.place.clone(), Content::Null)));
    }
    Tree::map_of(tree.place.clone(), whole)
}
