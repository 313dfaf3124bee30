//! The cluster-template family: a flat `cluster.yaml` with `nodes.yaml`, which Strata takes as they are; or the newer `cluster.toml`.

use crate::output::only;
use crate::records::{
    Cluster, ClusterNetwork, ClusterNode, ClusterProxmox, ClusterVm, Flux, Kubernetes, NodeSettings,
    ProxmoxNetwork, Schematic, StorageDefaults, Talos,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde_json::{Value as Json, json};
use strata_source::world::join;

use super::files::folder_of;
use super::output::{self, Object, Put};
use super::talos::{TalosCluster, patch_at};
use super::tree::{SourceLine, Tree};
use super::{Import, parse};

const KEYS: [&str; 4] = ["node_cidr", "cluster_api_addr", "proxmox_api_url", "cluster_gateway_addr"];

pub(super) fn import(import: &mut Import<'_>) {
    let there: Vec<String> = ["cluster.yaml", "config/cluster.yaml"]
        .into_iter()
        .filter(|path| import.files.has(path))
        .map(str::to_owned)
        .collect();
    for path in there {
        let Some(text) = import.read(&path) else { continue };
        let (tree, problems) = parse::yaml(&path, &text);
        let is_flat =
            tree.as_ref().is_some_and(|tree| !tree.has("cluster") && KEYS.iter().any(|key| tree.has(key)));
        if let Some(tree) = tree.filter(|_| is_flat) {
            import.found("the cluster-template family");
            take_as_is(import, &path, &text, &tree);
        } else if KEYS.iter().any(|key| text.contains(key)) {
            for (place, reason) in problems {
                import.note(Some(&place), format!("it was not read: {reason}"));
            }
        }
    }
    for path in import.files.named("cluster.toml") {
        let Some(text) = import.read(&path) else { continue };
        match parse::toml(&path, &text) {
            Ok(tree)
                if LISTS.iter().any(|(list, _)| tree.has(list))
                    && (tree.has("network") || tree.has("kubernetes")) =>
            {
                import.found("the cluster-template family (cluster.toml)");
                from_toml(import, &tree);
                import.watch("", &tree);
            }
            // Others have files of this name, too.
            Ok(_) => {}
            Err((place, reason)) => import.note(Some(&place), format!("it was not read: {reason}")),
        }
    }
    samples(import);
}

/// The real files are often kept out of git; what is there is not mistaken for them.
fn samples(import: &mut Import<'_>) {
    let found = !import.imported.found.is_empty();
    for (sample, real) in [
        ("cluster.sample.yaml", "cluster.yaml"),
        ("nodes.sample.yaml", "nodes.yaml"),
        ("cluster.sample.toml", "cluster.toml"),
    ] {
        if import.files.has(sample) && !import.files.has(real) && !found {
            import.files.read(sample);
            import.note(
                Some(&SourceLine::new(sample, 1)),
                format!("it is a sample: if you have a `{real}` of your own, put it beside and import again"),
            );
        }
    }
}

/// Both files stay what they are.
fn take_as_is(import: &mut Import<'_>, path: &str, text: &str, tree: &Tree) {
    let folder = folder_of(path);
    import.imported.files.insert("cluster.yaml".to_owned(), text.to_owned());
    let nodes = join(folder, "nodes.yaml");
    if import.files.has(&nodes) {
        if let Some(text) = import.read(&nodes) {
            import.imported.files.insert("nodes.yaml".to_owned(), text);
        }
    } else {
        import.note(Some(&tree.place), "there is no nodes.yaml beside it: the cluster has no machines");
    }
    let talos = tree.get("talos_version");
    let written = talos.and_then(Tree::peek);
    import.check_versions(written.as_deref().zip(talos), tree.get("kubernetes_version"));
    let secrets = "infrastructure/secrets.sops.yaml";
    if import.files.has(secrets)
        && let Some(text) = import.read(secrets)
    {
        if text.contains("\nsops:") || text.starts_with("sops:") {
            import.imported.files.insert(secrets.to_owned(), text);
            import.model.secret_files.push(secrets.to_owned());
        } else {
            import.note(
                Some(&SourceLine::new(secrets, 1)),
                "it is called encrypted and is not: it was not copied",
            );
        }
    }
    for key in
        ["proxmox_api_token_secret", "tfstate_password", "cloudflare_token", "state_encryption_passphrase"]
    {
        if let Some(found) = tree.get(key).filter(|found| found.peek().is_some()) {
            import.note(
                Some(&found.place),
                format!("`{key}` is in the clear: keep the file out of git; `strata secrets collect` encrypts those of the infrastructure"),
            );
        }
    }
    let enabled = tree.has("proxmox_api_url") && tree.has("proxmox_node");
    if !enabled {
        import.note(
            Some(&SourceLine::new(path, 1)),
            "without `proxmox_api_url` and `proxmox_node` the machines are not Strata's: the cluster is bare metal",
        );
    }
    // Made from these files.
    for rendered in ["infrastructure/tofu", "talos", "kubernetes", "bootstrap", "templates"] {
        let count = import.files.below(rendered).len();
        if count > 0 && rendered == "infrastructure/tofu" {
            import.files.read_below(rendered);
            import.note(
                Some(&SourceLine::new(rendered, 1)),
                format!("{count} files there are rendered from cluster.yaml, as `strata sync` does it"),
            );
        }
    }
    import.stacks.insert("kubernetes".to_owned());
}

/// Lists of nodes, and what their nodes are unless they say so themselves.
const LISTS: [(&str, Option<bool>); 4] = [
    ("nodes", None),
    ("controlplane_nodes", Some(true)),
    ("worker_nodes", Some(false)),
    ("control_plane_nodes", Some(true)),
];

fn from_toml(import: &mut Import<'_>, tree: &Tree) {
    let empty = Tree::empty("");
    let part = |key: &str| tree.get(key).unwrap_or(&empty);
    let (talos, kubernetes, network) = (part("talos"), part("kubernetes"), part("network"));
    let mut cluster = TalosCluster::new(import, "kubernetes", &tree.place);
    cluster.versions(import, talos.get(Talos::version.name()), kubernetes.get(Kubernetes::version.name()));
    cluster.talos.put(Talos::factory_schematic, talos.text_if("schematic_id", output::is_schematic));
    cluster.kubernetes.put(Kubernetes::pod_cidr, kubernetes.text_if("pod_cidr", output::with_prefix));
    cluster.kubernetes.put(Kubernetes::service_cidr, kubernetes.text_if("svc_cidr", output::with_prefix));
    let own = &mut cluster.network;
    let cidr = ["node_cidr", "lan_cidr"].iter().find_map(|key| network.text_if(key, output::with_prefix));
    let gateway =
        network.text_if("default_gateway", output::is_address).or_else(|| first_of(cidr.as_deref()?));
    own.put(ClusterNetwork::cidr, cidr);
    own.put(ClusterNetwork::gateway, gateway);
    own.put_full(ClusterNetwork::nameservers, json!(network.texts_if("dns_servers", output::is_address)));
    own.put_full(ClusterNetwork::time_servers, json!(network.texts("ntp_servers")));
    own.put(ClusterNetwork::guest_vlan, network.int_in("vlan_tag", 1..=4094));
    if let Some(api) = kubernetes.get("api") {
        own.put(ClusterNetwork::vip, api.text_if("addr", output::is_address));
        own.put_full(ClusterNetwork::api_names, json!(api.texts("tls_sans")));
    }
    let proxmox = placement(import, part("proxmox"));
    let mut numbers: BTreeMap<bool, i64> = BTreeMap::new();
    for (list, controller) in LISTS {
        for node in tree.list(list) {
            let Some(host) = node.text("name") else {
                import.note(Some(&node.place), "a node without a name was left out");
                node.take_all();
                continue;
            };
            let mut written = self::node(node, controller, proxmox.is_some());
            if proxmox.is_some() && !written.contains_key(ClusterNode::vm_id.name()) {
                let is_master = written[ClusterNode::role.name()] == "controlPlane";
                let number = numbers.entry(is_master).or_insert(if is_master { 800 } else { 810 });
                written.set(ClusterNode::vm_id, json!(number));
                *number += 1;
            }
            let host = super::talos::host(&host);
            cluster.node(import, &host, &node.place, written);
        }
    }
    let path = cluster.document();
    let gitops = gitops(import, tree);
    let place = tree.place.clone();
    cluster.write(import);
    if let Some((Json::Object(document), _)) = import.model.documents.get_mut(&path) {
        document.put(Cluster::proxmox, proxmox);
        document.put(Cluster::gitops, gitops);
    } else {
        import.note(Some(&place), "the cluster could not be written");
    }
}

/// The family's default router.
fn first_of(cidr: &str) -> Option<String> {
    let (ip, length) = cidr.split_once('/')?;
    let length: u32 = length.parse().ok().filter(|length| *length <= 30)?;
    let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
    let first = (u32::from(ip.parse::<Ipv4Addr>().ok()?) & mask).checked_add(1)?;
    Some(Ipv4Addr::from(first).to_string())
}

/// Some of the family make their machines on Proxmox.
fn placement(import: &mut Import<'_>, tree: &Tree) -> Option<Json> {
    let url = tree.text_if("api_url", |url| url.starts_with("http"))?;
    let token = match (tree.text("token_id"), tree.text("token_secret").or_else(|| tree.text("token"))) {
        (Some(id), Some(secret)) => Some(format!("{id}={secret}")),
        (None, Some(token)) if token.contains('!') => Some(token),
        (None, Some(token)) => {
            // Half of a token: whose it is and what it is called is not said.
            import.secret("proxmox_api_token_secret", &token);
            let place = tree.get("token").or_else(|| tree.get("token_secret")).map(|tree| tree.place.clone());
            import.note(
                place.as_ref(),
                "the API token has no name here: make `proxmox_api_token` whole, `user@realm!name=secret`",
            );
            None
        }
        _ => None,
    };
    let target = import.target(&url, tree.bool("insecure").unwrap_or(false), token.as_deref());
    let mut proxmox = Object::new();
    proxmox.set(ClusterProxmox::target, json!(target));
    proxmox.put(ClusterProxmox::node, tree.text("node"));
    let mut storage = Object::new();
    storage.put(StorageDefaults::disk, tree.text("storage").or_else(|| tree.text("disk_storage")));
    storage.put(StorageDefaults::iso, tree.text("iso_storage"));
    proxmox.put_full(ClusterProxmox::storage, Json::Object(storage));
    proxmox
        .put(ClusterProxmox::network, tree.text("bridge").map(|bridge| only(ProxmoxNetwork::bridge, bridge)));
    proxmox.set(ClusterProxmox::vm, only(ClusterVm::id_base, 800));
    import.note(
        Some(&tree.place),
        "no VMIDs are written down: they begin at 800; `strata adopt` wants those that are there",
    );
    Some(Json::Object(proxmox))
}

fn gitops(import: &mut Import<'_>, tree: &Tree) -> Option<Json> {
    let repository = tree.get("repository")?;
    let url = repository.text_if("url", |url| url.contains(':'))?;
    let mut flux = Object::new();
    flux.set(Flux::repository, json!(url));
    flux.put(Flux::branch, repository.text("branch"));
    flux.set(Flux::path, json!("kubernetes/flux/cluster"));
    import.note(
        Some(&repository.place),
        "Flux follows `kubernetes/flux/cluster` in this family: check `gitops.flux.path`, then set `enabled`",
    );
    Some(output::gitops_off(flux))
}

fn node(node: &Tree, controller: Option<bool>, virtual_machine: bool) -> Object {
    let mut written = Object::new();
    let controller = node.bool("controller").or(controller).unwrap_or(false);
    written.set(ClusterNode::role, json!(if controller { "controlPlane" } else { "worker" }));
    written.put(ClusterNode::address, node.text_if("address", output::is_address));
    written.put(ClusterNode::mac, node.text_if("mac_addr", output::is_mac).map(|mac| mac.to_uppercase()));
    // A device, or the serial number of one.
    match node.text("disk") {
        Some(disk) if disk.starts_with('/') => written.put(NodeSettings::install_disk, Some(disk)),
        Some(serial) => {
            let patch = patch_at(&["machine", "install", "diskSelector"], json!({"serial": serial}));
            written.set(NodeSettings::patches, json!([patch]));
        }
        None => {}
    }
    written.put(
        NodeSettings::schematic,
        node.text_if("schematic_id", output::is_schematic).map(|id| only(Schematic::id, id)),
    );
    written.put(NodeSettings::mtu, node.int_in("mtu", 576..=65_520));
    written.put(NodeSettings::secure_boot, node.bool("secureboot"));
    written.put(NodeSettings::encrypt_disk, node.bool("encrypt_disk"));
    written.put_full(NodeSettings::kernel_modules, json!(node.texts("kernel_modules")));
    if virtual_machine {
        for (key, there) in [
            (NodeSettings::cores, ["cores", "vm_cores"]),
            (NodeSettings::memory, ["memory", "vm_memory"]),
            (NodeSettings::disk, ["disk_size", "vm_disk_size"]),
            (ClusterNode::vm_id, ["vm_id", "vmid"]),
        ] {
            written.put(key, there.iter().find_map(|name| node.int_in(name, 1..=999_999_999)));
        }
    }
    written
}
