//! Clusters on machines of their own: talhelper's `talconfig.yaml`, and `topf.yaml`.

use serde_json::{Value as Json, json};

use super::flat::with_v;
use super::output::{Object, Put};
use super::tree::{Content, Tree};
use super::{Import, name};

pub(super) fn import(import: &mut Import<'_>) {
    for path in ["talconfig.yaml", "talos/talconfig.yaml", "kubernetes/bootstrap/talos/talconfig.yaml"] {
        if let Some(tree) = import.yaml(path).filter(|tree| tree.has("clusterName")) {
            // Families that render this file have said all that before.
            if !import.imported.found.is_empty() {
                continue;
            }
            import.found("talconfig.yaml");
            talconfig(import, &tree);
        }
    }
    if let Some(tree) = import.yaml("topf.yaml").filter(|tree| tree.has("clusterName")) {
        import.found("topf.yaml");
        topf(import, &tree);
    }
}

/// The parts that both files have under other names.
struct Cluster {
    name: String,
    talos: Object,
    kubernetes: Object,
    endpoint: Option<String>,
}

fn document(import: &mut Import<'_>, cluster: Cluster, network: Object, nodes: Object, patches: Vec<Json>) {
    let own = name(&cluster.name);
    let mut spec = Object::new();
    let mut talos = cluster.talos;
    if own != cluster.name {
        talos.insert("clusterName".into(), json!(own));
    }
    spec.insert("talos".into(), Json::Object(talos));
    spec.put_full("kubernetes", Json::Object(cluster.kubernetes));
    spec.put_full("network", Json::Object(network));
    spec.put("endpoint", cluster.endpoint);
    spec.put_full("patches", Json::Array(patches));
    spec.insert("nodes".into(), Json::Object(nodes));
    let mut document = Object::new();
    document.insert("metadata".into(), json!({"name": own}));
    document.insert("cluster".into(), Json::Object(spec));
    import.write(format!("clusters/{own}/cluster.yaml"), document);
}

fn version(import: &mut Import<'_>, tree: &Tree) -> Object {
    let version = tree.text("talosVersion");
    if version.is_none() {
        import.note(Some(&tree.place), "the version of Talos is not there: `v1.12.0` was written down");
    }
    let mut talos = Object::new();
    talos.insert("version".into(), json!(version.map_or_else(|| "v1.12.0".to_owned(), with_v)));
    talos
}

fn talconfig(import: &mut Import<'_>, tree: &Tree) {
    let talos = version(import, tree);
    let mut kubernetes = Object::new();
    kubernetes.put("version", tree.text("kubernetesVersion").map(with_v));
    kubernetes.put("podCidr", tree.texts("clusterPodNets").into_iter().next());
    kubernetes.put("serviceCidr", tree.texts("clusterSvcNets").into_iter().next());
    kubernetes.put("dnsDomain", tree.text("domain"));
    kubernetes.put("scheduleOnControlPlanes", tree.bool("allowSchedulingOnControlPlanes"));
    let mut network = Object::new();
    let mut nodes = Object::new();
    for node in tree.list("nodes") {
        if let Some((own, written)) = talhelper_node(import, node, &mut network) {
            nodes.insert(own, Json::Object(written));
        }
    }
    network.put_full("apiNames", json!(tree.texts("additionalApiServerCertSans")));
    let address = nodes.values().find_map(|node| node["address"].as_str()).map(str::to_owned);
    if !network.contains_key("cidr")
        && let Some(address) = address.filter(|address| address.matches('.').count() == 3)
    {
        let prefix: Vec<&str> = address.split('.').take(3).collect();
        network.insert("cidr".into(), json!(format!("{}.0/24", prefix.join("."))));
        import.note(Some(&tree.place), "no node says its prefix: /24 was assumed");
    }
    let patches = patches(import, tree, "patches");
    let cluster = Cluster {
        name: tree.text("clusterName").unwrap_or_default(),
        talos,
        kubernetes,
        endpoint: tree.text("endpoint"),
    };
    import.report(tree);
    document(import, cluster, network, nodes, patches);
}

fn talhelper_node(import: &mut Import<'_>, node: &Tree, network: &mut Object) -> Option<(String, Object)> {
    let Some(own) = node.text("hostname") else {
        import.note(Some(&node.place), "a node without `hostname` was left out");
        node.take_all();
        return None;
    };
    let mut written = Object::new();
    let control_plane = node.bool("controlPlane").unwrap_or(false);
    written.insert("role".into(), json!(if control_plane { "controlPlane" } else { "worker" }));
    written.put(
        "address",
        node.text("ipAddress").map(|text| text.split(',').next().unwrap_or_default().trim().to_owned()),
    );
    written.put("installDisk", node.text("installDisk"));
    let image = node.text("talosImageURL");
    let schematic = image.as_deref().and_then(|image| image.rsplit('/').next()).filter(|id| id.len() == 64);
    written.put("schematic", schematic.map(|id| json!({"id": id})));
    if let Some(found) = node.get("schematic").and_then(|schematic| schematic.get("customization")) {
        let extensions = found.get("systemExtensions").map(|found| found.texts("officialExtensions"));
        let mut own = Object::new();
        own.put_full("extensions", json!(extensions.unwrap_or_default()));
        own.put_full("extraKernelArgs", json!(found.texts("extraKernelArgs")));
        written.put_full("schematic", Json::Object(own));
    }
    if let Some(spec) = node.get("machineSpec") {
        written.put("secureBoot", spec.bool("secureboot"));
        spec.get("mode");
    }
    for (key, there) in
        [("labels", "nodeLabels"), ("annotations", "nodeAnnotations"), ("taints", "nodeTaints")]
    {
        let map: Object = node
            .map(there)
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), json!(text_of(value)?))))
            .collect();
        written.put_full(key, Json::Object(map));
    }
    let modules: Vec<String> =
        node.list("kernelModules").iter().filter_map(|module| module.text("name")).collect();
    written.put_full("kernelModules", json!(modules));
    if let Some(link) = node.list("networkInterfaces").first() {
        interface(link, network, &mut written, control_plane);
    }
    if let Some(servers) = node.get("nameservers") {
        let servers: Vec<String> = servers.items().iter().filter_map(Tree::as_text).collect();
        if !network.contains_key("nameservers") {
            network.put_full("nameservers", json!(servers));
        }
    }
    let patches = patches(import, node, "patches");
    written.put_full("patches", Json::Array(patches));
    Some((own, written))
}

fn text_of(tree: &Tree) -> Option<String> {
    match &tree.content {
        Content::Bool(value) => Some(value.to_string()),
        Content::Text(text) => Some(text.clone()),
        _ => tree.as_text(),
    }
}

fn interface(link: &Tree, network: &mut Object, node: &mut Object, control_plane: bool) {
    if let Some(selector) = link.get("deviceSelector") {
        node.put(
            "mac",
            selector.text("hardwareAddr").filter(|mac| mac.len() == 17).map(|mac| mac.to_uppercase()),
        );
    }
    link.get("interface");
    link.get("dhcp");
    node.put("mtu", link.int("mtu"));
    let inner = link.list("vlans").first();
    if let Some(vlan) = inner {
        network.put("guestVlan", vlan.int("vlanId"));
    }
    let link = inner.unwrap_or(link);
    if let Some(address) = link.texts("addresses").first()
        && let Some((ip, prefix)) = address.split_once('/')
        && !network.contains_key("cidr")
        && let (Ok(std::net::IpAddr::V4(ip)), Ok(prefix @ 0..=32)) = (ip.parse(), prefix.parse::<u32>())
    {
        let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
        let first = std::net::Ipv4Addr::from(u32::from(ip) & mask);
        network.insert("cidr".into(), json!(format!("{first}/{prefix}")));
    }
    for route in link.list("routes") {
        let everything = route.text("network").is_none_or(|network| network.ends_with("/0"));
        if let Some(gateway) =
            route.text("gateway").filter(|_| everything && !network.contains_key("gateway"))
        {
            network.insert("gateway".into(), json!(gateway));
        }
    }
    if let Some(vip) = link.get("vip").and_then(|vip| vip.text("ip")).filter(|_| control_plane) {
        network.insert("vip".into(), json!(vip));
    }
}

/// Texts stay in place; files have to be brought along.
fn patches(import: &mut Import<'_>, tree: &Tree, key: &str) -> Vec<Json> {
    let mut found = Vec::new();
    for patch in tree.list(key) {
        match patch.as_text() {
            Some(text) if text.starts_with('@') => {
                let path = text.trim_start_matches('@').trim_start_matches("./").to_owned();
                let content =
                    [path.clone(), format!("talos/{path}")].iter().find_map(|path| import.read(path));
                match content {
                    Some(content) if content.contains('\n') => found.push(json!(content)),
                    _ => {
                        let place = patch.place.clone();
                        import.note(
                            Some(&place),
                            format!("the patch `{path}` is not there and was not carried over"),
                        );
                    }
                }
            }
            Some(text) if text.contains('\n') => found.push(json!(text)),
            _ => {
                let place = patch.place.clone();
                import.note(Some(&place), "a patch that is no text of several lines was not carried over");
            }
        }
    }
    found
}

fn topf(import: &mut Import<'_>, tree: &Tree) {
    let mut talos = version(import, tree);
    talos.put("factorySchematic", tree.text("schematicId").filter(|id| id.len() == 64));
    talos.put("secureBoot", tree.bool("secureboot"));
    tree.get("platform");
    let mut kubernetes = Object::new();
    kubernetes.put("version", tree.text("kubernetesVersion").map(with_v));
    let mut nodes = Object::new();
    for node in tree.list("nodes") {
        let Some(own) = node.text("host") else {
            import.note(Some(&node.place), "a node without `host` was left out");
            node.take_all();
            continue;
        };
        let mut written = Object::new();
        let role = node.text("role").unwrap_or_else(|| "worker".to_owned());
        let control_plane = role.to_ascii_lowercase().replace('-', "") == "controlplane";
        written.insert("role".into(), json!(if control_plane { "controlPlane" } else { "worker" }));
        written.put("address", node.text("ip"));
        if let Some(data) = node.get("data") {
            data.take_all();
            let place = data.place.clone();
            import.note(
                Some(&place),
                format!("`data` of `{own}` fills templates of patches: write those as `patches`"),
            );
        }
        let short = own.split('.').next().unwrap_or(&own).to_owned();
        nodes.insert(name(&short), Json::Object(written));
    }
    let mut network = Object::new();
    let address = nodes.values().find_map(|node| node["address"].as_str()).map(str::to_owned);
    if let Some(address) = address.filter(|address| address.matches('.').count() == 3) {
        let prefix: Vec<&str> = address.split('.').take(3).collect();
        network.insert("cidr".into(), json!(format!("{}.0/24", prefix.join("."))));
        import.note(Some(&tree.place), "the network is not written down: /24 was assumed");
    }
    let cluster = Cluster {
        name: tree.text("clusterName").unwrap_or_default(),
        talos,
        kubernetes,
        endpoint: tree.text("clusterEndpoint"),
    };
    import.report(tree);
    document(import, cluster, network, nodes, Vec::new());
}
