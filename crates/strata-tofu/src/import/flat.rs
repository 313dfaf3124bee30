//! The cluster-template family: a flat `cluster.yaml` with `nodes.yaml`, which Strata takes as they are; or the newer `cluster.toml`.

use serde_json::{Value as Json, json};

use super::output::{Object, Put};
use super::tree::Tree;
use super::{Import, Place, join, name, tree};

pub(super) fn import(import: &mut Import<'_>) {
    let flat = import.yaml("cluster.yaml").filter(|tree| {
        !tree.has("cluster")
            && ["node_cidr", "cluster_api_addr", "proxmox_api_url"].iter().any(|key| tree.has(key))
    });
    if let Some(tree) = flat {
        import.found("the cluster-template family");
        take_as_is(import, &tree);
    }
    for folder in ["", "config"] {
        let path = join(folder, "cluster.toml");
        let Some(text) = import.read(&path) else { continue };
        match tree::toml(&path, &text) {
            Ok(tree) if tree.has("nodes") || tree.has("network") => {
                import.found("the cluster-template family (cluster.toml)");
                from_toml(import, &tree);
            }
            Ok(_) => {}
            Err((place, reason)) => import.note(Some(&place), format!("it was not read: {reason}")),
        }
    }
}

/// Both files stay what they are.
fn take_as_is(import: &mut Import<'_>, tree: &Tree) {
    for file in ["cluster.yaml", "nodes.yaml"] {
        if let Some(text) = import.read(file) {
            import.imported.files.insert(file.to_owned(), text);
        }
    }
    let secrets = "infrastructure/secrets.sops.yaml";
    if let Some(text) = import.read(secrets) {
        import.imported.files.insert(secrets.to_owned(), text);
        import.secret_files.push(secrets.to_owned());
    }
    for key in
        ["proxmox_api_token_secret", "tfstate_password", "cloudflare_token", "state_encryption_passphrase"]
    {
        if let Some(found) = tree.get(key) {
            import.note(
                Some(&found.place),
                format!("`{key}` is in the clear: keep the file out of git; `strata secrets collect` encrypts those of the infrastructure"),
            );
        }
    }
    let enabled = tree.has("proxmox_api_url") && tree.has("proxmox_node");
    if !enabled {
        import.note(
            Some(&Place { file: "cluster.yaml".into(), line: 1 }),
            "without `proxmox_api_url` and `proxmox_node` the machines are not Strata's: the cluster is bare metal",
        );
    }
}

fn from_toml(import: &mut Import<'_>, tree: &Tree) {
    let mut cluster = Object::new();
    let talos = tree.get("talos");
    let version = talos.and_then(|talos| talos.text("version"));
    if version.is_none() {
        import.note(Some(&tree.place), "the version of Talos is not in the file: `v1.12.0` was written down");
    }
    let mut written = Object::new();
    written.insert("version".into(), json!(version.map_or_else(|| "v1.12.0".to_owned(), with_v)));
    let schematic = talos.and_then(|talos| talos.text("schematic_id")).filter(|id| id.len() == 64);
    written.put("factorySchematic", schematic);
    cluster.insert("talos".into(), Json::Object(written));
    let mut kubernetes = Object::new();
    let mut network = Object::new();
    if let Some(found) = tree.get("network") {
        network.put("cidr", found.text("node_cidr"));
        network.put("gateway", found.text("default_gateway"));
        network.put_full("nameservers", json!(found.texts("dns_servers")));
        network.put_full("timeServers", json!(found.texts("ntp_servers")));
        network.put("guestVlan", found.int("vlan_tag").filter(|vlan| (1..=4094).contains(vlan)));
    }
    if let Some(found) = tree.get("kubernetes") {
        kubernetes.put("version", found.text("version").map(with_v));
        kubernetes.put("podCidr", found.text("pod_cidr"));
        kubernetes.put("serviceCidr", found.text("svc_cidr"));
        if let Some(api) = found.get("api") {
            network.put("vip", api.text("addr"));
            network.put_full("apiNames", json!(api.texts("tls_sans")));
        }
    }
    cluster.put_full("kubernetes", Json::Object(kubernetes));
    if network.contains_key("cidr") {
        cluster.put_full("network", Json::Object(network));
    }
    let mut nodes = Object::new();
    for node in tree.list("nodes") {
        let Some(own) = node.text("name") else {
            import.note(Some(&node.place), "a node without a name was left out");
            continue;
        };
        nodes.insert(own, Json::Object(bare_node(node)));
    }
    cluster.insert("nodes".into(), Json::Object(nodes));
    let mut document = Object::new();
    document.insert("metadata".into(), json!({"name": "kubernetes"}));
    document.insert("cluster".into(), Json::Object(cluster));
    gitops(import, tree, &mut document);
    import.report(tree);
    import.write(format!("clusters/{}/cluster.yaml", name("kubernetes")), document);
}

fn gitops(import: &mut Import<'_>, tree: &Tree, document: &mut Object) {
    let Some(repository) = tree.get("repository") else { return };
    let Some(url) = repository.text("url").or_else(|| repository.text("name")) else { return };
    let mut flux = Object::new();
    flux.insert("repository".into(), json!(url));
    flux.put("branch", repository.text("branch"));
    flux.insert("path".into(), json!("kubernetes/flux/cluster"));
    import.note(
        Some(&repository.place),
        "Flux follows `kubernetes/flux/cluster` in this family: check `gitops.flux.path`",
    );
    document.insert("gitops".into(), json!({"enabled": false, "flux": flux}));
}

/// A machine that waits in maintenance mode.
pub(super) fn bare_node(node: &Tree) -> Object {
    let mut written = Object::new();
    let controller = node.bool("controller").unwrap_or(false);
    written.insert("role".into(), json!(if controller { "controlPlane" } else { "worker" }));
    written.put("address", node.text("address"));
    written.put("mac", node.text("mac_addr"));
    written.put("installDisk", node.text("disk"));
    written
        .put("schematic", node.text("schematic_id").filter(|id| id.len() == 64).map(|id| json!({"id": id})));
    written.put("mtu", node.int("mtu"));
    written.put("secureBoot", node.bool("secureboot"));
    written.put("encryptDisk", node.bool("encrypt_disk"));
    written.put_full("kernelModules", json!(node.texts("kernel_modules")));
    written
}

pub(super) fn with_v(version: String) -> String {
    format!("v{}", version.trim_start_matches('v'))
}
