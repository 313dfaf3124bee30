//! Clusters as code of the siderolabs/talos provider makes them: the configurations that it applies, with their patches, on machines of
//! the same code. What Strata has a field for becomes that field; everything else stays a patch.

mod image;
mod network;
mod patches;

use crate::records::{Cluster, Flux, Metadata, Talos};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use self::image::Images;
use self::patches::Node;
use super::eval::Frame;
use super::guest::{kind, refers_to};
use super::module::{Expansion, Resource};
use super::output::{self, Object, Put};
use super::roots::{Filing, Made, Root};
use super::talos::{self, TalosCluster};
use super::tree::{Content, Tree};
use super::{Import, name};

/// What stands for the repository of Flux that nobody wrote down.
const NO_REPOSITORY: &str = "https://git.invalid/repository.git";
const APPLY: &str = "talos_machine_configuration_apply";
const CONFIGURATION: &str = "talos_machine_configuration";

/// Whether a resource configures a machine with Talos.
pub(super) fn is_machine(resource: &Resource) -> bool {
    resource.kind == APPLY
}

/// Writes the clusters; the addresses of what went into them.
pub(super) fn import(
    import: &mut Import<'_>,
    root: &Root<'_>,
    expansion: &Expansion,
    filing: &Filing,
    made: &[Made],
) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let mut clusters: BTreeMap<String, Vec<(&Resource, &Resource)>> = BTreeMap::new();
    for apply in expansion.resources.iter().filter(|resource| is_machine(resource)) {
        let Some(data) = configuration(expansion, apply) else {
            import.note(
                Some(&apply.at),
                format!("where the configuration of `{}` comes from is not known here: the machine was left out of its cluster", apply.address()),
            );
            continue;
        };
        let called = data.body.get("cluster_name").and_then(Tree::peek).unwrap_or_default();
        clusters.entry(called).or_default().push((apply, data));
    }
    let several = clusters.len() > 1;
    for (called, nodes) in clusters {
        used.extend(nodes.iter().map(|(apply, _)| apply.full_address()));
        used.extend(nodes.iter().map(|(_, data)| format!("data.{}", data.full_address())));
        cluster(import, root, expansion, filing, made, (&called, several), &nodes);
    }
    if !used.is_empty() {
        used.extend(others(import, expansion));
    }
    used
}

/// The block of data that an apply takes its configuration from.
fn configuration<'e>(expansion: &'e Expansion, apply: &Resource) -> Option<&'e Resource> {
    let Content::Unknown(reference) = &apply.body.get("machine_configuration_input")?.content else {
        return None;
    };
    expansion.data.iter().filter(|data| data.kind == CONFIGURATION).find(|data| is_of(reference, data))
}

/// Whether a reference is to a block of data.
fn is_of(reference: &str, data: &Resource) -> bool {
    refers_to(reference, &format!("{}data.{}", data.path, data.address()))
}

fn cluster(
    import: &mut Import<'_>,
    root: &Root<'_>,
    expansion: &Expansion,
    filing: &Filing,
    made: &[Made],
    (called, several): (&str, bool),
    members: &[(&Resource, &Resource)],
) {
    let Some((first, data)) = members.first() else { return };
    let place = first.place.clone();
    let mut nodes: Vec<Node<'_>> =
        members.iter().map(|(apply, data)| Node::new(import, expansion, made, apply, data)).collect();
    // A folder that is called like its kind names no cluster.
    let nameless = filing.stack == "machines" && !called.is_empty();
    let wanted = if several || nameless { called } else { filing.stack.as_str() };
    // A stack of nothing but its machines gives the cluster its name.
    let taken = |one: &Made| nodes.iter().any(|node| node.machine.is_some_and(|own| std::ptr::eq(own, one)));
    if !made.is_empty() && made.iter().all(taken) {
        import.stacks.remove(&name(&filing.stack));
    }
    let mut cluster = TalosCluster::new(import, wanted, &place);
    cluster.talos.remove(Talos::cluster_name.name());
    if !called.is_empty() && called != cluster.stack {
        cluster.talos.set(Talos::cluster_name, json!(called));
    }
    let images = Images { expansion };
    for (_, data) in members {
        data.body.take_keys(&["cluster_name", "machine_secrets"]);
        let _ = data.body.text_if("machine_type", |role| ["controlplane", "init", "worker"].contains(&role));
        import.needless(&data.body, &["docs", "examples"], "Strata writes the configuration itself");
    }
    let facts = patches::facts(import, &mut cluster, &mut nodes, &images);
    let version = data.body.get("talos_version").filter(|tree| tree.peek().is_some());
    let of_image = facts.version.as_ref();
    match (version, of_image) {
        // The image is what runs; the other one says which features its configuration has.
        (Some(tree), Some(image)) if tree.peek().as_ref() != Some(image) => {
            tree.take_all();
            let there = Tree::new(tree.place.clone(), Content::Text(image.clone()));
            cluster.versions(import, Some(&there), data.body.get("kubernetes_version"));
            import.note(
                Some(&tree.place),
                format!("the machines are installed with Talos `{image}`: that was written down"),
            );
        }
        (Some(tree), _) => {
            members.iter().for_each(|(_, data)| data.body.take_keys(&["talos_version"]));
            cluster.versions(import, Some(tree), data.body.get("kubernetes_version"));
        }
        (None, image) => {
            let there = image.map(|text| Tree::new(place.clone(), Content::Text(text.clone())));
            cluster.versions(import, there.as_ref(), data.body.get("kubernetes_version"));
        }
    }
    members.iter().for_each(|(_, data)| data.body.take_keys(&["kubernetes_version"]));
    let endpoint = data.body.text_if("cluster_endpoint", |url| url.starts_with("http"));
    members.iter().for_each(|(_, data)| data.body.take_keys(&["cluster_endpoint"]));
    network::network(import, &mut cluster, &mut nodes, endpoint);
    let document = cluster.document();
    patches::write(import, &mut cluster, &mut nodes);
    for node in nodes {
        if let Some(machine) = node.machine {
            let to = (machine.document.clone(), machine.own.clone());
            import.model.links.insert((document.clone(), node.own.clone()), to);
        }
        let at = node.apply.place.clone();
        cluster.node(import, &node.own, &at, node.written);
    }
    cluster.write(import);
    import.note(
        Some(&place),
        "the secrets of the cluster are in the state of OpenTofu: bring them with `strata import --state` before the first apply, or Strata makes new ones, which a running cluster does not take",
    );
    let gitops = gitops(import, root, expansion);
    if let Some((Json::Object(document), _)) = import.model.documents.get_mut(&document) {
        if let Some(Json::Object(metadata)) = document.get_mut(Cluster::metadata.name()) {
            metadata.put(Metadata::environment, filing.environment.as_deref().map(name));
            metadata.put(Metadata::layer, filing.layer);
        }
        document.put(Cluster::gitops, gitops);
    }
}

/// What Flux follows, where the code says it.
fn gitops(import: &mut Import<'_>, root: &Root<'_>, expansion: &Expansion) -> Option<Json> {
    let bootstrap = expansion.resources.iter().find(|resource| resource.kind == "flux_bootstrap_git");
    let block = root.module.blocks.iter().find(|block| block.kind == "provider" && block.label(0) == "flux");
    let git = block.map(|block| Frame::new(&root.module, 0).block(block));
    let git = git.as_ref().and_then(|tree| tree.one("git"));
    let mut flux = Object::new();
    flux.put(Flux::repository, git.and_then(|git| git.text_if("url", |url| url.contains(':'))));
    flux.put(Flux::branch, git.and_then(|git| git.text("branch")));
    flux.put(Flux::path, bootstrap.and_then(|resource| resource.body.text("path")));
    flux.put(Flux::interval, bootstrap.and_then(|resource| resource.body.text("interval")));
    let version = bootstrap.and_then(|resource| resource.body.text_if("version", super::is_version));
    flux.put(Flux::version, version.map(super::with_v));
    if let Some(bootstrap) = bootstrap {
        import.needless(
            &bootstrap.body,
            &["embedded_manifests"],
            "Strata applies the manifests of Flux that `flux` names",
        );
        import.watch(&format!("{}.", bootstrap.address()), &bootstrap.body);
    }
    if flux.is_empty() {
        return None;
    }
    let place = bootstrap.map_or_else(|| super::SourceLine::new(&root.folder, 1), |found| found.at.clone());
    if !flux.contains_key(Flux::repository.name()) {
        import.note(
            Some(&place),
            format!("which repository Flux follows is in no file that was read: `{NO_REPOSITORY}` stands in for it"),
        );
        import.model.stood_in.insert(NO_REPOSITORY.to_owned());
        flux.set(Flux::repository, json!(NO_REPOSITORY));
    }
    if !flux.contains_key(Flux::path.name()) {
        flux.set(Flux::path, json!("clusters"));
    }
    import
        .note(Some(&place), "Flux is written down and not enabled: check `gitops.flux`, then set `enabled`");
    Some(output::gitops_off(flux))
}

/// What the provider does besides, which Strata does by itself; their addresses.
fn others(import: &mut Import<'_>, expansion: &Expansion) -> Vec<String> {
    let mut found = Vec::new();
    let all = expansion.resources.iter().map(|resource| (resource, String::new()));
    let data = expansion.data.iter().map(|data| (data, "data.".to_owned()));
    for (resource, prefix) in all.chain(data) {
        let why = match resource.kind.as_str() {
            "talos_machine_secrets" | "talos_client_configuration" => {
                "Strata keeps the secrets of the cluster in `talos.sops.yaml`"
            }
            "talos_machine_bootstrap" => "Strata bootstraps etcd by itself, once",
            "talos_cluster_kubeconfig" => "`strata talos kubeconfig` makes one",
            "talos_cluster_health" => "Strata looks at the health of a cluster in every step",
            "talos_image_factory_schematic" | "talos_image_factory_urls" => {
                found.push(format!("{prefix}{}", resource.full_address()));
                resource.body.take_keys(&["schematic_id", "talos_version"]);
                import.needless(
                    &resource.body,
                    &["platform", "architecture"],
                    "Strata knows which image its machines need",
                );
                continue;
            }
            "talos_image_factory_versions" | "talos_image_factory_extensions_versions" => {
                "Strata takes the versions and extensions that are written down"
            }
            "flux_bootstrap_git" => {
                found.push(resource.full_address());
                continue;
            }
            _ => continue,
        };
        resource.body.take_all();
        found.push(format!("{prefix}{}", resource.full_address()));
        import.note(Some(&resource.at), format!("`{prefix}{}` is not needed: {why}", resource.block()));
    }
    // What the machines boot from for the first time.
    for file in expansion.resources.iter().filter(|resource| kind(&resource.kind) == "download_file") {
        let of_talos = match file.body.get("url").map(|url| &url.content) {
            Some(Content::Unknown(reference)) => reference.contains("talos_image_factory"),
            Some(Content::Text(url)) => url.contains("factory.talos.dev"),
            _ => false,
        };
        if of_talos {
            let why = "Strata downloads the image of Talos that its version and schematic name";
            let keys: Vec<&str> = file.body.entries().iter().map(|(key, _)| key.as_str()).collect();
            import.needless(&file.body, &keys, why);
        }
    }
    found
}

/// The name of a node.
fn host(text: &str) -> Option<String> {
    output::is_host(text.split('.').next().unwrap_or(text)).then(|| talos::host(text))
}
