//! Layered Terraform: a platform that is a Talos cluster, by the call of a module `talos_cluster`.

use crate::output::only;
use crate::records::{
    Cluster, ClusterNetwork, ClusterNode, ClusterProxmox, ClusterSpec, ClusterVm, Cpu, Flux, Hardware,
    Metadata, NodeSettings, Pool, ProxmoxTarget, Resources, Schematic, Talos, Target, Topology,
};
use serde_json::{Value as Json, json};

use super::eval::Frame;
use super::hcl::Block;
use super::output::{self, Object, Put};
use super::roots::{self, Root};
use super::tree::{Content, SourceLine, Tree};
use super::{Import, is_version, name, talos as machines, with_v};

/// The call of the module that makes the cluster.
fn call<'r>(root: &'r Root<'_>) -> Option<&'r Block> {
    root.module.blocks.iter().filter(|block| block.kind == "module").find(|block| {
        let source = block.literal("source").unwrap_or_default();
        let says = |key: &str| block.attribute(key).is_some();
        source.trim_end_matches('/').ends_with("talos_cluster")
            || (block.label(0).contains("talos") && (says("network_nodes_configs") || says("nodes_count")))
    })
}

/// The environment that the call names.
pub(super) fn environment(root: &Root<'_>) -> Option<String> {
    let arguments = Frame::new(&root.module, 0).block(call(root)?);
    arguments.get("cluster_env").and_then(Tree::peek)
}

pub(super) fn is_cluster(root: &Root<'_>) -> bool {
    call(root).is_some() || root.module.variables.contains_key("talos_node_configs")
}

/// Arguments of the call, or the variables of the root that say the same.
struct Said<'t> {
    arguments: Tree,
    values: &'t Tree,
}

impl Said<'_> {
    fn get(&self, argument: &str, variable: &str) -> Option<&Tree> {
        let known = |tree: &&Tree| !matches!(tree.content, Content::Unknown(_));
        self.arguments.get(argument).filter(known).or_else(|| self.values.get(variable).filter(known))
    }
}

pub(super) fn import(import: &mut Import<'_>, root: &Root<'_>, values: &Tree) {
    let frame = Frame::new(&root.module, 0);
    let block = call(root);
    let place = block.map_or_else(|| SourceLine::new(&root.folder, 1), |block| block.place.clone());
    let arguments = block.map_or_else(|| Tree::empty(&root.folder), |block| frame.block(block));
    let said = Said { arguments, values };
    let own = roots::own_name(root);
    let stack = import.stack_name(&own, &place);
    let mut cluster = Object::new();
    talos(import, &said, &place, &mut cluster);
    let nodes = nodes(import, &said);
    let gateway = said.get("network_gateway", "gateway").and_then(|tree| tree.as_text_if(output::is_address));
    let mut network = Object::new();
    if let Some(gateway) = gateway.as_deref().filter(|gateway| gateway.contains('.')) {
        // The length of the prefix is nowhere written down there.
        let prefix: Vec<&str> = gateway.split('.').take(3).collect();
        network.set(ClusterNetwork::cidr, json!(format!("{}.0/24", prefix.join("."))));
        network.set(ClusterNetwork::gateway, json!(gateway));
        import.note(Some(&place), "the length of the network's prefix is not written down: /24 was assumed");
    }
    let servers: Vec<String> = said
        .get("network_dns_servers", "dns_servers")
        .map(|list| list.items().iter().filter_map(|item| item.as_text_if(output::is_address)).collect())
        .unwrap_or_default();
    network.put_full(ClusterNetwork::nameservers, json!(servers));
    let vip =
        said.get("cluster_vip", "talos_cluster_vip").and_then(|tree| tree.as_text_if(output::is_address));
    match (&vip, network.contains_key(ClusterNetwork::cidr.name())) {
        (Some(vip), true) => {
            network.set(ClusterNetwork::vip, json!(vip));
        }
        (Some(vip), false) => {
            cluster.set(ClusterSpec::endpoint, json!(format!("https://{vip}:6443")));
        }
        _ => {}
    }
    let asked = said.get("nodes_count", "nodes_count").and_then(|tree| tree.as_int_in(1..=500));
    if asked.is_none() && nodes.is_empty() {
        import.note(
            Some(&place),
            "how many nodes there are, and their addresses, is in no file that could be read: one control plane was written down",
        );
    }
    let count = asked.unwrap_or(nodes.len() as i64).max(1);
    let addresses: Vec<&str> = nodes.iter().map(|(_, ip, _)| ip.as_str()).collect();
    let mut pool = Object::new();
    pool.set(Pool::count, json!(count));
    let mut sizes = Object::new();
    for (key, size) in [(Resources::cores, 4), (Resources::memory, 8192), (Resources::disk, 20)] {
        sizes.set(key, json!(size));
    }
    pool.set(NodeSettings::resources, Json::Object(sizes));
    let has_addresses = gateway.is_some() && addresses.len() as i64 >= count;
    if has_addresses {
        pool.set(Pool::addresses, json!(addresses));
    }
    // Stand-ins lie in no network.
    if network.contains_key(ClusterNetwork::cidr.name()) && has_addresses {
        cluster.set(ClusterSpec::network, Json::Object(network));
    } else if network.contains_key(ClusterNetwork::cidr.name()) {
        import.note(
            Some(&place),
            "the network was left out with its gateway and name servers: no file says the addresses in it",
        );
        if let Some(vip) = &vip {
            cluster.set(ClusterSpec::endpoint, json!(format!("https://{vip}:6443")));
        }
    }
    let mut topology = Object::new();
    topology.set(Topology::control_plane, Json::Object(pool));
    if count % 2 == 0 {
        topology.set(Topology::allow_even, json!(true));
        import
            .note(Some(&place), format!("{count} control planes have no better majority than {}", count - 1));
    }
    cluster.set(ClusterSpec::topology, Json::Object(topology));
    let mut written = Object::new();
    for index in 0..usize::try_from(count).unwrap_or(0) {
        let own = format!("{stack}-cp-{}", index + 1);
        let mut node = Object::new();
        node.put(ClusterNode::mac, nodes.get(index).and_then(|(_, _, mac)| mac.clone()));
        if !has_addresses {
            let address = nodes.get(index).map(|(_, ip, _)| ip.clone()).unwrap_or_else(|| {
                let address = machines::stand_in(import);
                import.note(Some(&place), machines::no_address(&own));
                address
            });
            node.set(ClusterNode::address, json!(address));
        }
        written.insert(own, Json::Object(node));
    }
    written.retain(|_, node| node.as_object().is_some_and(|node| !node.is_empty()));
    cluster.put_full(ClusterSpec::nodes, Json::Object(written));
    let mut document = Object::new();
    let mut metadata = Object::new();
    metadata.set(Metadata::name, json!(stack));
    let environment = said.get("cluster_env", "environment").and_then(Tree::as_text);
    metadata.put(Metadata::environment, environment.map(|text| name(&text)));
    document.set(Cluster::metadata, Json::Object(metadata));
    // The name that is in the certificates.
    if let Some(own) = said.get("cluster_name", "cluster_name").and_then(Tree::as_text)
        && let Some(Json::Object(talos)) = cluster.get_mut(ClusterSpec::talos.name())
    {
        talos.set(Talos::cluster_name, json!(own));
    }
    document.set(Cluster::cluster, Json::Object(cluster));
    document.set(Cluster::proxmox, placement(import, root, &said, &stack, count));
    document.put(Cluster::gitops, gitops(import, root));
    secrets(import, values);
    others(import, root, block);
    import.watch(
        &block.map_or_else(String::new, |block| format!("module.{}.", block.label(0))),
        &said.arguments,
    );
    import.write(format!("clusters/{stack}/cluster.yaml"), document, &place);
}

fn talos(import: &mut Import<'_>, said: &Said<'_>, place: &SourceLine, cluster: &mut Object) {
    // An address of an image has it, too.
    let of_url = said.get("nodes_iso_file", "talos_iso").and_then(|tree| {
        let text = tree.peek()?;
        text.split('/').find(|part| part.starts_with('v') && is_version(part)).map(str::to_owned)
    });
    let version = said
        .get("cluster_talos_version", "talos_version")
        .and_then(|tree| tree.as_text_if(is_version))
        .or(of_url);
    if version.is_none() {
        import.note(Some(place), "no version of Talos is written down: `v1.12.0` was");
    }
    let at =
        said.get("cluster_talos_version", "talos_version").or_else(|| said.arguments.get("nodes_iso_file"));
    import.check_versions(version.as_deref().zip(at), None);
    let mut talos = Object::new();
    talos.set(Talos::version, json!(version.map_or_else(|| "v1.12.0".to_owned(), with_v)));
    if let Some(image) = said.arguments.get("nodes_iso_file") {
        let found = image
            .peek()
            .and_then(|url| url.split('/').find(|part| output::is_schematic(part)).map(str::to_owned));
        if let Some(id) = found {
            image.take_all();
            talos.set(Talos::factory_schematic, json!(id));
        }
    }
    let extensions: Vec<String> = said
        .get("nodes_extensions", "nodes_extensions")
        .map(|list| list.items().iter().filter_map(Tree::as_text).collect())
        .unwrap_or_default();
    let full = |extension: &String| {
        if extension.contains('/') { extension.clone() } else { format!("siderolabs/{extension}") }
    };
    if !extensions.is_empty() {
        let all: Vec<String> = extensions.iter().map(full).collect();
        talos.set(Talos::schematic, only(Schematic::extensions, all));
        talos.remove(Talos::factory_schematic.name());
    }
    said.arguments.take_keys(&["source", "version", "depends_on", "providers"]);
    cluster.set(ClusterSpec::talos, Json::Object(talos));
}

/// Index, address and hardware address, in the order of the indices.
fn nodes(import: &mut Import<'_>, said: &Said<'_>) -> Vec<(i64, String, Option<String>)> {
    let mut found = Vec::new();
    let Some(configs) = said.get("network_nodes_configs", "talos_node_configs") else { return found };
    for (index, config) in configs.entries() {
        let is_ip = |text: &str| output::is_address(text.split('/').next().unwrap_or(text));
        match (index.parse::<i64>(), config.text_if("ip", is_ip)) {
            (Ok(number), Some(ip)) => {
                let ip = ip.split('/').next().unwrap_or(&ip).to_owned();
                let mac = config.text_if("mac", output::is_mac).map(|mac| mac.to_uppercase());
                found.push((number, ip, mac));
            }
            _ => {
                config.take_all();
                import.note(
                    Some(&config.place),
                    format!("the node `{index}` has no address or no number and was left out"),
                );
            }
        }
    }
    found.sort();
    found
}

fn placement(import: &mut Import<'_>, root: &Root<'_>, said: &Said<'_>, stack: &str, count: i64) -> Json {
    let mut proxmox = Object::new();
    // Without a provider in the code, its values are in the variables.
    let has_provider =
        root.module.blocks.iter().any(|block| block.kind == "provider" && block.label(0) == "proxmox");
    let url = said
        .values
        .text_if("proxmox_url", |url| url.starts_with("http"))
        .or_else(|| said.values.text("proxmox_endpoint"));
    let target = match url {
        Some(url) => {
            let token = said.values.text("proxmox_api_token");
            let frame = Frame::new(&root.module, 0);
            let provider = root
                .module
                .blocks
                .iter()
                .find(|block| block.kind == "provider" && block.label(0) == "proxmox");
            let tree = provider.map(|block| frame.block(block));
            let insecure = tree.as_ref().and_then(|tree| tree.bool("insecure")).unwrap_or(false);
            if let Some(tree) = tree {
                tree.take_keys(&["endpoint", "api_token"]);
                import.watch("provider.proxmox.", &tree);
            }
            import.target(&url, insecure, token.as_deref())
        }
        None if has_provider => roots::target(import, root).0,
        None => import.some_target(&SourceLine::new(&root.folder, 1), "`proxmox_url`").0,
    };
    proxmox.set(ClusterProxmox::target, json!(target));
    let node = said
        .get("nodes_pve_node", "target_node")
        .or_else(|| said.arguments.get("target_node"))
        .and_then(Tree::as_text);
    proxmox.set(ClusterProxmox::node, json!(node.unwrap_or_else(|| "pve".to_owned())));
    let said_id = said.get("nodes_vm_start_id", "vm_start_id");
    let id = said_id.and_then(|tree| tree.as_int_in(100..=999_999_999)).unwrap_or(800);
    let endpoint = import.model.targets[&target][Target::proxmox.name()][ProxmoxTarget::endpoint.name()]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let other = (id..id + count).find_map(|id| import.taken.get(&(endpoint.clone(), id)).cloned());
    let id = match other {
        // A number of an example takes no machine's away.
        Some(other) if said_id.is_some_and(Tree::is_example) => {
            let free = (900_001..).step_by(100).find(|base| {
                (*base..*base + count).all(|id| !import.taken.contains_key(&(endpoint.clone(), id)))
            });
            let place = SourceLine::new(&root.folder, 1);
            import.note(Some(&place), format!("the VMID {id} comes from an example, and `{other}` has it: another stands in for it, write the real one"));
            free.unwrap_or(id)
        }
        _ => id,
    };
    for number in id..id + count {
        import
            .taken
            .entry((endpoint.clone(), number))
            .or_insert_with(|| format!("{stack}-cp-{}", number - id + 1));
    }
    let mut vm = Object::new();
    vm.set(ClusterVm::id_base, json!(id));
    vm.set(Hardware::cpu, only(Cpu::kind, "x86-64-v2-AES"));
    vm.set(Hardware::scsi_controller, json!("virtio-scsi-pci"));
    proxmox.set(ClusterProxmox::vm, Json::Object(vm));
    Json::Object(proxmox)
}

/// What Flux follows, where the code says it.
fn gitops(import: &mut Import<'_>, root: &Root<'_>) -> Option<Json> {
    let frame = Frame::new(&root.module, 0);
    let block =
        root.module.blocks.iter().find(|block| block.kind == "provider" && block.label(0) == "flux")?;
    let git = frame.block(block);
    let url = git.one("git")?.text_if("url", |url| url.contains(':'))?;
    let call =
        root.module.blocks.iter().find(|block| block.kind == "module" && block.label(0).contains("flux"));
    let arguments = call.map(|call| frame.block(call));
    let path = arguments
        .as_ref()
        .and_then(|arguments| arguments.text("target_path").or_else(|| arguments.text("path")));
    import.note(
        Some(&block.place),
        "Flux is written down and not enabled: check `gitops.flux`, then set `enabled`",
    );
    let path = path.unwrap_or_else(|| "clusters".to_owned());
    let mut flux = Object::new();
    flux.set(Flux::repository, json!(url));
    flux.set(Flux::path, json!(path));
    Some(output::gitops_off(flux))
}

/// Secrets that lie in the clear beside the rest.
pub(super) fn secrets(import: &mut Import<'_>, values: &Tree) {
    for key in ["github_token", "cloudflare_token", "truenas_api_key"] {
        if let Some(value) = values.text(key) {
            import.secret(key, &value);
        }
    }
}

/// Everything else that the platform makes is named, so that nobody takes it for imported.
fn others(import: &mut Import<'_>, root: &Root<'_>, cluster: Option<&Block>) {
    let frame = Frame::new(&root.module, 0);
    for block in root.module.blocks.iter() {
        if !matches!(block.kind.as_str(), "resource" | "module")
            || cluster.is_some_and(|known| known.place == block.place)
        {
            continue;
        }
        let what = block.labels.join(".");
        let message = format!("the {} `{what}` has no place in Strata and was not carried over", block.kind);
        import.note(Some(&block.place), message);
        let _ = frame.block(block);
    }
}
