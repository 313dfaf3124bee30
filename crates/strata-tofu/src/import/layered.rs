//! Layered Terraform: `infrastructure/{01-hypervisors,02-platforms/<cluster>,03-legacy,modules}`.

use serde_json::{Value as Json, json};

use super::flat::with_v;
use super::output::{Object, Put};
use super::tree::{Block, Content, Tree};
use super::{Import, base, name};

pub(super) fn import(import: &mut Import<'_>) {
    for root in ["infrastructure", "terraform", ""] {
        let platforms = super::join(root, "02-platforms");
        let clusters = import.folders(&platforms);
        if clusters.is_empty() {
            continue;
        }
        import.found("layered Terraform");
        for folder in clusters {
            platform(import, &format!("{platforms}/{folder}"), &folder);
        }
        for layer in ["01-hypervisors", "03-legacy"] {
            unread(import, &super::join(root, layer), 0);
        }
    }
}

/// What Terraform makes there is named, so that nobody takes it for imported.
fn unread(import: &mut Import<'_>, folder: &str, depth: usize) {
    let (_, blocks) = import.code(folder);
    for block in blocks.iter().filter(|block| matches!(block.kind.as_str(), "resource" | "module")) {
        let what = block.labels.join(".");
        import.note(Some(&block.place), format!("{} `{what}` was not carried over: write it into hypervisors/ or stacks/, then `strata adopt`", block.kind));
    }
    for inner in import.folders(folder) {
        if depth < 4 {
            unread(import, &format!("{folder}/{inner}"), depth + 1);
        }
    }
}

/// The values of a platform: its files of variables, then the defaults.
fn values(import: &mut Import<'_>, folder: &str, defaults: &[(String, Tree)]) -> Tree {
    let mut all: Vec<(String, Tree)> = Vec::new();
    for file in import.files(folder, ".tfvars") {
        if let Some(tree) = import.tfvars(&file)
            && let Content::Map(entries) = tree.content
        {
            all.extend(entries);
        }
    }
    let mut tree = Tree::empty(folder);
    tree.content = Content::Map(all);
    tree.with_defaults(defaults)
}

/// A value of a module's call: written there, or in a variable.
struct Call<'t> {
    module: Option<&'t Tree>,
    values: &'t Tree,
}

impl<'t> Call<'t> {
    fn get(&self, argument: &str, variable: &str) -> Option<&'t Tree> {
        match self.module.and_then(|module| module.get(argument)) {
            Some(tree) => match &tree.content {
                Content::Expression(text) => self.values.get(text.strip_prefix("var.")?),
                _ => Some(tree),
            },
            None => self.values.get(variable),
        }
    }
}

fn platform(import: &mut Import<'_>, folder: &str, own: &str) {
    let (defaults, blocks) = import.code(folder);
    let values = values(import, folder, &defaults);
    let is_cluster = |block: &&Block| {
        block.kind == "module"
            && (block.labels.iter().any(|label| label.contains("talos"))
                || block.body.text("source").is_some_and(|source| source.contains("talos_cluster")))
    };
    let module = blocks.iter().find(is_cluster);
    if module.is_none() && !values.has("talos_node_configs") {
        unread(import, folder, 4);
        return;
    }
    let call = Call { module: module.map(|block| &block.body), values: &values };
    let stack = name(own);
    let mut cluster = Object::new();
    let version = call.get("cluster_talos_version", "talos_version").and_then(Tree::as_text);
    if version.is_none() {
        import.note(Some(&values.place), "the version of Talos is not there: `v1.12.0` was written down");
    }
    let mut talos = Object::new();
    talos.insert("version".into(), json!(version.map_or_else(|| "v1.12.0".to_owned(), with_v)));
    let extensions: Vec<String> = call
        .get("nodes_extensions", "nodes_extensions")
        .map(|list| {
            list.items()
                .iter()
                .filter_map(Tree::as_text)
                .map(
                    |extension| {
                        if extension.contains('/') { extension } else { format!("siderolabs/{extension}") }
                    },
                )
                .collect()
        })
        .unwrap_or_default();
    if !extensions.is_empty() {
        talos.insert("schematic".into(), json!({"extensions": extensions}));
    }
    cluster.insert("talos".into(), Json::Object(talos));
    let addresses = nodes(import, &call);
    let gateway = call.get("network_gateway", "gateway").and_then(Tree::as_text);
    let mut network = Object::new();
    if let Some(gateway) = &gateway {
        // The length of the prefix is nowhere written down there.
        let prefix: Vec<&str> = gateway.split('.').take(3).collect();
        network.insert("cidr".into(), json!(format!("{}.0/24", prefix.join("."))));
        network.insert("gateway".into(), json!(gateway));
        import.note(
            Some(&values.place),
            "the length of the network's prefix is not written down: /24 was assumed",
        );
    }
    let servers: Vec<String> = call
        .get("network_dns_servers", "dns_servers")
        .map(|list| list.items().iter().filter_map(Tree::as_text).collect())
        .unwrap_or_default();
    network.put_full("nameservers", json!(servers));
    network.put("vip", call.get("cluster_vip", "talos_cluster_vip").and_then(Tree::as_text));
    if network.contains_key("cidr") {
        cluster.insert("network".into(), Json::Object(network));
    }
    let count = call
        .get("nodes_count", "nodes_count")
        .and_then(Tree::as_int)
        .unwrap_or(addresses.len() as i64)
        .max(1);
    let list: Vec<&str> = addresses.iter().map(|(_, ip, _)| ip.as_str()).collect();
    let mut pool = Object::new();
    pool.insert("count".into(), json!(count));
    pool.insert("resources".into(), json!({"cores": 4, "memory": 8192, "disk": 20}));
    if gateway.is_some() && list.len() as i64 >= count {
        pool.insert("addresses".into(), json!(list));
    }
    cluster.insert("topology".into(), json!({"controlPlane": pool}));
    if count % 2 == 0 {
        import.note(
            Some(&values.place),
            format!("{count} control planes have no better majority than {}", count - 1),
        );
    }
    let macs: Object = addresses
        .iter()
        .enumerate()
        .filter(|(index, _)| (*index as i64) < count)
        .filter_map(|(index, (_, _, mac))| {
            Some((format!("{stack}-cp-{}", index + 1), json!({"mac": mac.clone()?})))
        })
        .collect();
    cluster.put_full("nodes", Json::Object(macs));
    let mut document = Object::new();
    let mut metadata = Object::new();
    metadata.insert("name".into(), json!(stack));
    metadata.put(
        "environment",
        call.get("cluster_env", "environment").and_then(Tree::as_text).map(|text| name(&text)),
    );
    document.insert("metadata".into(), Json::Object(metadata));
    document.insert("cluster".into(), Json::Object(cluster));
    document.insert("proxmox".into(), placement(import, &call, &values));
    secrets(import, &values);
    for block in &blocks {
        if block.kind == "terraform"
            && let Some(backend) = block.body.get("backend")
        {
            import.backend("s3", backend);
        }
    }
    import.report(&values);
    if let Some(block) = module {
        block.body.get("source");
        block.body.get("version");
        import.report(&block.body);
    }
    import.write(format!("clusters/{stack}/cluster.yaml"), document);
}

/// Index, address and hardware address, in the order of the indices.
fn nodes(import: &mut Import<'_>, call: &Call<'_>) -> Vec<(i64, String, Option<String>)> {
    let mut found = Vec::new();
    let Some(configs) = call.get("network_nodes_configs", "talos_node_configs") else { return found };
    for (index, config) in configs.entries() {
        match (index.parse::<i64>(), config.text("ip")) {
            (Ok(number), Some(ip)) => {
                let ip = ip.split('/').next().unwrap_or(&ip).to_owned();
                found.push((number, ip, config.text("mac")));
            }
            _ => import.note(
                Some(&config.place),
                format!("the node `{index}` has no address or no number and was left out"),
            ),
        }
    }
    found.sort();
    found
}

fn placement(import: &mut Import<'_>, call: &Call<'_>, values: &Tree) -> Json {
    let mut proxmox = Object::new();
    let token = values.text("proxmox_api_token");
    if let Some(url) = values.text("proxmox_url").or_else(|| values.text("proxmox_endpoint")) {
        let target = import.target("pve", &base(&url), false, token.as_deref());
        proxmox.insert("target".into(), json!(target));
    }
    let node = call.get("nodes_pve_node", "target_node").and_then(Tree::as_text);
    proxmox.insert("node".into(), json!(node.unwrap_or_else(|| "pve".to_owned())));
    let id = call.get("nodes_vm_start_id", "vm_start_id").and_then(Tree::as_int).filter(|id| *id >= 100);
    let mut vm = Object::new();
    vm.insert("idBase".into(), json!(id.unwrap_or(800)));
    vm.insert("cpu".into(), json!({"type": "x86-64-v2-AES"}));
    vm.insert("scsiController".into(), json!("virtio-scsi-pci"));
    proxmox.insert("vm".into(), Json::Object(vm));
    Json::Object(proxmox)
}

/// Secrets that lie in the clear beside the rest.
fn secrets(import: &mut Import<'_>, values: &Tree) {
    for key in ["github_token", "cloudflare_token", "truenas_api_key"] {
        if let Some(value) = values.text(key) {
            import.secret(key, &value);
        }
    }
    for key in ["ssh_username", "github_username", "github_repo"] {
        if let Some(tree) = values.get(key) {
            let place = tree.place.clone();
            import.note(Some(&place), format!("`{key}` is not needed by Strata and was not carried over"));
        }
    }
}
