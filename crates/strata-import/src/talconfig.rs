//! talhelper's `talconfig.yaml`: a cluster on machines of its own. What Strata has no field for becomes a patch.

use crate::output::only;
use crate::records::{ClusterNetwork, ClusterNode, Kubernetes, NodeSettings, Schematic};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use strata_yaml::Key;

use serde_json::{Value as Json, json};

use super::Import;
use super::files::folder_of;
use super::output::{self, Object, Put};
use super::talos::{self, TalosCluster, as_json, patch_at, patches};
use super::tree::{Content, Tree};
use strata_tofu::resolve_path;

pub(super) fn import(import: &mut Import<'_>) {
    for file in ["talconfig.yaml", "talconfig.yml"] {
        for path in import.files.named(file) {
            one(import, &path);
        }
    }
}

fn one(import: &mut Import<'_>, path: &str) {
    let Some(text) = import.read(path) else { return };
    let values = environment(import, path, &text);
    let text = talos::substituted(&text, &values);
    let Some(tree) =
        import.yaml_text(path, &text).filter(|tree| tree.has("clusterName") || tree.has("nodes"))
    else {
        return;
    };
    // Families that render this file have said all that before.
    let folder = folder_of(path);
    let rendered = ["", "talos"].contains(&folder) && import.imported.files.contains_key("cluster.yaml")
        || folder
            .strip_suffix("/talos")
            .is_some_and(|above| import.model.documents.contains_key(&format!("{above}/cluster.yaml")));
    if rendered {
        import.note(
            Some(&tree.place),
            "it is made from the cluster.yaml of this cluster, which was taken instead",
        );
        return;
    }
    import.found("talconfig.yaml");
    cluster(import, path, &tree, values);
    import.watch("", &tree);
}

/// talhelper fills `${NAME}` in from `talenv.yaml` and from the environment, in patches too.
fn environment(import: &mut Import<'_>, path: &str, text: &str) -> BTreeMap<String, String> {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    for own in ["talenv.yaml", "talenv.yml"] {
        let there = talos::beside(path, own);
        if !import.files.has(&there) {
            continue;
        }
        if let Some(tree) = import.yaml(&there) {
            for (key, value) in tree.entries() {
                // What the text does not ask for is left, and reported.
                if text.contains(&format!("${{{key}")) || text.contains(&format!("${key}")) {
                    values.extend(value.as_word().map(|word| (key.clone(), word)));
                }
            }
            import.watch("", &tree);
        }
    }
    for own in ["talenv.sops.yaml", "talenv.sops.yml"] {
        let there = talos::beside(path, own);
        if import.files.has(&there) {
            import.files.read(&there);
            let place = super::SourceLine::new(&there, 1);
            import.note(Some(&place), "it is encrypted: what it fills into talconfig.yaml is not known");
        }
    }
    values
}

fn cluster(import: &mut Import<'_>, path: &str, tree: &Tree, values: BTreeMap<String, String>) {
    let folder = folder_of(path).to_owned();
    let above =
        folder.rsplit('/').find(|part| !matches!(*part, "talos" | "bootstrap" | "")).unwrap_or("talos");
    let wanted = tree.text("clusterName").unwrap_or_else(|| above.to_owned());
    let mut cluster = TalosCluster::new(import, &wanted, &tree.place);
    cluster.values = values;
    cluster.versions(import, tree.get("talosVersion"), tree.get("kubernetesVersion"));
    let kubernetes = &mut cluster.kubernetes;
    let first = |key: &str| tree.list(key).first().and_then(|net| net.as_text_if(output::with_prefix));
    kubernetes.put(Kubernetes::pod_cidr, first("clusterPodNets"));
    kubernetes.put(Kubernetes::service_cidr, first("clusterSvcNets"));
    kubernetes.put(Kubernetes::dns_domain, tree.text("domain"));
    let masters = ["allowSchedulingOnControlPlanes", "allowSchedulingOnMasters"];
    kubernetes.put(Kubernetes::schedule_on_control_planes, masters.iter().find_map(|key| tree.bool(key)));
    if let Some(cni) = tree.get("cniConfig") {
        match cni.text("name").as_deref() {
            Some("custom") => kubernetes.put_full(Kubernetes::cni_manifests, json!(cni.texts("urls"))),
            Some(found @ ("none" | "flannel")) => kubernetes.put(Kubernetes::cni, Some(found)),
            _ => {}
        }
    }
    cluster.endpoint = tree.text_if("endpoint", |url| url.starts_with("http"));
    // Of two networks the second would be lost.
    for (key, at) in [("clusterPodNets", "podSubnets"), ("clusterSvcNets", "serviceSubnets")] {
        if tree.list(key).len() > 1 {
            cluster.patches.push(patch_at(&["cluster", "network", at], as_json_of(tree, key)));
        }
    }
    if tree.has("additionalApiServerCertSans") {
        let names = as_json_of(tree, "additionalApiServerCertSans");
        cluster.patches.push(patch_at(&["cluster", "apiServer", "certSANs"], names));
    }
    if tree.has("additionalMachineCertSans") {
        let names = as_json_of(tree, "additionalMachineCertSans");
        cluster.patches.push(patch_at(&["machine", "certSANs"], names));
    }
    if tree.has("clusterInlineManifests") {
        cluster
            .patches
            .push(patch_at(&["cluster", "inlineManifests"], as_json_of(tree, "clusterInlineManifests")));
    }
    let all = patches(import, &cluster, &folder, tree, "patches");
    cluster.patches.extend(all);
    let simple = simple_network(tree, &mut cluster.network);
    for node in tree.list("nodes") {
        one_node(import, &mut cluster, &folder, tree, node, simple);
    }
    for own in ["talsecret.sops.yaml", "talsecret.sops.yml", "talsecret.yaml"] {
        cluster.secrets(import, &talos::beside(path, own));
    }
    cluster.write(import);
}

fn as_json_of(tree: &Tree, key: &str) -> Json {
    tree.get(key).map_or(Json::Null, as_json)
}

/// One card with one fixed address on each node is what Strata configures itself; nothing is taken if there is more to it.
fn simple_network(tree: &Tree, network: &mut Object) -> bool {
    let mut found = Object::new();
    for node in tree.list("nodes").iter().filter(|node| node.has("hostname")) {
        let [link] = node.list("networkInterfaces") else { return false };
        let known = ["interface", "deviceSelector", "dhcp", "mtu", "addresses", "routes", "vip", "vlans"];
        let strange = |tree: &Tree| tree.entries().iter().any(|(key, _)| !known.contains(&key.as_str()));
        let inner = match link.list("vlans") {
            [] => link,
            [vlan] if !link.has("addresses") => vlan,
            _ => return false,
        };
        let selector = link.get("deviceSelector");
        let by_card = selector.is_none_or(|selector| {
            selector.entries().len() == 1
                && selector.get("hardwareAddr").and_then(Tree::peek).is_some_and(|mac| output::is_mac(&mac))
        });
        // A card by its name is not the first that Strata would find.
        let dhcp = matches!(link.get("dhcp").map(|dhcp| &dhcp.content), Some(Content::Bool(true)));
        if strange(link) || !by_card || selector.is_none() || dhcp {
            return false;
        }
        let addresses = inner.list("addresses");
        let [address] = addresses else { return false };
        let Some((ip, length)) = address.peek().and_then(|text| {
            let (ip, length) = text.split_once('/')?;
            Some((ip.parse::<Ipv4Addr>().ok()?, length.parse::<u32>().ok().filter(|length| *length <= 32)?))
        }) else {
            return false;
        };
        if node.get("ipAddress").and_then(Tree::peek) != Some(ip.to_string()) {
            return false;
        }
        let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
        let cidr = json!(format!("{}/{length}", Ipv4Addr::from(u32::from(ip) & mask)));
        let gateway = match inner.list("routes") {
            [] => None,
            [route] => {
                let everything =
                    route.get("network").and_then(Tree::peek).is_none_or(|net| net.ends_with("/0"));
                if !everything || route.has("metric") {
                    return false;
                }
                route.get("gateway").and_then(Tree::peek)
            }
            _ => return false,
        };
        let vip = inner.get("vip").and_then(|vip| vip.get("ip")).and_then(Tree::peek);
        let vlan = link.list("vlans").first().and_then(|vlan| vlan.get("vlanId")).and_then(Tree::peek);
        let is_master =
            matches!(node.get("controlPlane").map(|found| &found.content), Some(Content::Bool(true)));
        let same = |found: &mut Object, key: Key, value: Option<Json>| match (found.get(key.name()), value) {
            (Some(known), Some(value)) => *known == value,
            (None, Some(value)) => {
                found.set(key, value);
                true
            }
            (_, None) => true,
        };
        let vlan = vlan.and_then(|vlan| vlan.parse::<i64>().ok()).map(Json::from);
        let fits = same(&mut found, ClusterNetwork::cidr, Some(cidr))
            && same(&mut found, ClusterNetwork::gateway, gateway.map(Json::from))
            && same(&mut found, ClusterNetwork::guest_vlan, vlan)
            && same(&mut found, ClusterNetwork::vip, vip.filter(|_| is_master).map(Json::from));
        if !fits {
            return false;
        }
    }
    *network = found;
    network.contains_key(ClusterNetwork::cidr.name())
}

fn one_node(
    import: &mut Import<'_>,
    cluster: &mut TalosCluster,
    folder: &str,
    tree: &Tree,
    node: &Tree,
    simple: bool,
) {
    let Some(host) = node.text("hostname").or_else(|| filled_by_others(import, node)) else {
        import.note(Some(&node.place), "a node without `hostname` was left out");
        node.take_all();
        return;
    };
    let own = talos::host(&host);
    let mut written = Object::new();
    let control_plane = node.bool("controlPlane").unwrap_or(false);
    written.set(ClusterNode::role, json!(if control_plane { "controlPlane" } else { "worker" }));
    address(import, node, &own, &mut written);
    // What is said of all nodes of a kind comes first; a node's own word wins.
    let general = tree.get(if control_plane { "controlPlane" } else { "worker" });
    let mut own_patches: Vec<Json> = Vec::new();
    for from in [general, Some(node)].into_iter().flatten() {
        settings(import, cluster, folder, (from, node), &mut written, &mut own_patches);
    }
    // talhelper writes labels in place of those that Talos gives every control plane.
    let said = [general, Some(node)].into_iter().flatten().any(|from| !from.map("nodeLabels").is_empty());
    let labels = written.get(NodeSettings::labels.name()).and_then(Json::as_object);
    let kept = labels.is_some_and(|labels| labels.contains_key(NOT_BALANCED));
    if control_plane && said && !kept {
        own_patches.push(patch_at(&["machine", "nodeLabels", NOT_BALANCED], json!({"$patch": "delete"})));
    }
    for (index, link) in node.list("networkInterfaces").iter().enumerate() {
        if simple && index == 0 {
            simple_link(link, &mut written);
        }
    }
    if !simple && asks_dhcp(node) {
        written.set(NodeSettings::dhcp, json!(true));
    }
    if !simple && node.has("networkInterfaces") {
        let links = as_json_of(node, "networkInterfaces");
        own_patches.push(patch_at(&["machine", "network", "interfaces"], links));
    }
    written.put_full(NodeSettings::patches, Json::Array(own_patches));
    cluster.node(import, &own, &node.place, written);
}

/// A node whose name is not known here is called like the variable that has it.
fn filled_by_others(import: &mut Import<'_>, node: &Tree) -> Option<String> {
    let tree = node.get("hostname")?;
    let Content::Text(text) = &tree.content else { return None };
    let variable = text.split("${").nth(1)?.split('}').next()?;
    let own = super::name(variable);
    tree.take_all();
    import.note(
        Some(&tree.place),
        format!(
            "the name of the node is `${{{variable}}}`, which another tool fills in: `{own}` stands in for it"
        ),
    );
    Some(own)
}

/// Whether a DHCP server gives a node the address that it is reached at: nobody writes that one down for a card.
fn asks_dhcp(node: &Tree) -> bool {
    let links = node.list("networkInterfaces");
    let inner = links.iter().flat_map(|link| std::iter::once(link).chain(link.list("vlans")));
    let own = node.get("ipAddress").and_then(Tree::peek).unwrap_or_default();
    let (mut asks, mut fixed) = (false, false);
    for link in inner {
        asks |= matches!(link.get("dhcp").map(|dhcp| &dhcp.content), Some(Content::Bool(true)));
        let mut written = link.list("addresses").iter().filter_map(Tree::peek);
        fixed |= written.any(|address| address.split('/').next() == Some(own.as_str()));
    }
    // Only addresses of IPv4 are reserved.
    asks && !fixed && !own.contains(':')
}

fn address(import: &mut Import<'_>, node: &Tree, own: &str, written: &mut Object) {
    let Some(tree) = node.get("ipAddress") else { return };
    let Some(text) = tree.peek() else { return };
    let all: Vec<&str> = text.split(',').map(str::trim).collect();
    let fits = |text: &&&str| text.parse::<IpAddr>().is_ok();
    match all.iter().find(fits) {
        Some(first) => {
            tree.take_all();
            written.set(ClusterNode::address, json!(first));
            if all.len() > 1 {
                import.note(
                    Some(&tree.place),
                    format!("of the addresses of `{own}` the first is used to reach it"),
                );
            }
        }
        None => import.note(
            Some(&tree.place),
            format!("`{text}` of `{own}` is a name: Strata reaches nodes by their address"),
        ),
    }
}

/// The label that keeps control planes out of load balancers.
const NOT_BALANCED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// What a label can ask talhelper for: of the configuration that it generates, as far as that is known here.
fn generated(cluster: &TalosCluster, node: &Tree) -> Tree {
    let place = node.place.clone();
    let text = |text: &str| Tree::new(place.clone(), Content::Text(text.to_owned()));
    let map = |entries: Vec<(&str, Tree)>| {
        let entries = entries.into_iter().map(|(key, tree)| (key.to_owned(), tree)).collect();
        Tree::map_of(place.clone(), entries)
    };
    let master = matches!(node.get("controlPlane").map(|found| &found.content), Some(Content::Bool(true)));
    let mut install = Vec::new();
    if let Some(disk) = node.get("installDisk").and_then(Tree::peek) {
        install.push(("InstallDisk", text(&disk)));
    }
    let version = cluster.talos.get("version").and_then(Json::as_str);
    if let (Some(image), Some(version)) = (node.get("talosImageURL").and_then(Tree::peek), version) {
        install.push(("InstallImage", text(&format!("{image}:{version}"))));
    }
    let called = cluster.talos.get("clusterName").and_then(Json::as_str).unwrap_or(&cluster.stack);
    let machine = map(vec![
        ("MachineType", text(if master { "controlplane" } else { "worker" })),
        ("MachineInstall", map(install)),
    ]);
    map(vec![("MachineConfig", machine), ("ClusterConfig", map(vec![("ClusterName", text(called))]))])
}

/// Fills `{{ .ClusterConfig.ClusterName }}` in, as talhelper does in labels and annotations; false for what is not known here.
fn filled(
    import: &mut Import<'_>,
    place: Option<&super::SourceLine>,
    data: &Tree,
    name: &str,
    value: &mut Json,
) -> bool {
    let Some(text) = value.as_str().filter(|text| text.contains("{{")) else { return true };
    match super::gotemplate::fill(text, data) {
        Ok(done) if !done.contains("<no value>") && !done.is_empty() => {
            *value = json!(done);
            true
        }
        _ => {
            import.note(
                place,
                format!("`{name}` is `{text}`, which talhelper fills in from what it generates: it was left out, write its value"),
            );
            false
        }
    }
}

/// What can be said of one node, or of all of a kind.
fn settings(
    import: &mut Import<'_>,
    cluster: &TalosCluster,
    folder: &str,
    (from, node): (&Tree, &Tree),
    written: &mut Object,
    own_patches: &mut Vec<Json>,
) {
    written.put(NodeSettings::install_disk, from.text("installDisk"));
    if from.has("installDiskSelector") {
        written.remove(NodeSettings::install_disk.name());
        own_patches
            .push(patch_at(&["machine", "install", "diskSelector"], as_json_of(from, "installDiskSelector")));
    }
    // `factory.talos.dev/installer/<schematic>`, of one kind or another.
    let schematic_of = |url: &str| {
        url.split('/')
            .map(|part| part.split(':').next().unwrap_or(part).to_owned())
            .find(|part| output::is_schematic(part))
    };
    if let Some(image) = from.text_if("talosImageURL", |url| schematic_of(url).is_some()) {
        written.put(NodeSettings::schematic, schematic_of(&image).map(|id| only(Schematic::id, id)));
    }
    if let Some(found) = from.get("schematic").and_then(talos::schematic) {
        written.set(NodeSettings::schematic, found);
    }
    if let Some(spec) = from.get("machineSpec") {
        written.put(NodeSettings::secure_boot, spec.bool("secureboot"));
        import.needless(
            spec,
            &["mode", "arch", "bootMethod", "useUKI"],
            "it says how the installer is downloaded by hand",
        );
    }
    let data = generated(cluster, node);
    for (key, there) in [
        (NodeSettings::labels, "nodeLabels"),
        (NodeSettings::annotations, "nodeAnnotations"),
        (NodeSettings::taints, "nodeTaints"),
    ] {
        let mut map = written.get(key.name()).and_then(Json::as_object).cloned().unwrap_or_default();
        map.extend(talos::words(from, there).as_object().cloned().unwrap_or_default());
        let place = from.get(there).map(|tree| tree.place.clone());
        map.retain(|name, value| filled(import, place.as_ref(), &data, name, value));
        written.put_full(key, Json::Object(map));
    }
    let plain = from.list("kernelModules").iter().all(|module| module.entries().len() == 1);
    if plain {
        let modules: Vec<String> =
            from.list("kernelModules").iter().filter_map(|module| module.text("name")).collect();
        written.put_full(NodeSettings::kernel_modules, json!(modules));
    } else {
        own_patches.push(patch_at(&["machine", "kernel", "modules"], as_json_of(from, "kernelModules")));
    }
    for (there, path) in [
        ("nameservers", &["machine", "network", "nameservers"][..]),
        ("disableSearchDomain", &["machine", "network", "disableSearchDomain"]),
        ("machineDisks", &["machine", "disks"]),
        ("machineFiles", &["machine", "files"]),
        ("certSANs", &["machine", "certSANs"]),
    ] {
        if from.get(there).is_some_and(|tree| !matches!(tree.content, Content::Null)) {
            own_patches.push(patch_at(path, as_json_of(from, there)));
        }
    }
    if from.bool("overridePatches") == Some(true) {
        import.note(
            from.get("overridePatches").map(|tree| tree.place.clone()).as_ref(),
            "`overridePatches` has no place in Strata: the patches of the cluster apply to this node as well",
        );
    }
    // What talhelper called patches before.
    for older in ["inlinePatch", "configPatches"] {
        if from.get(older).is_some_and(|tree| !tree.entries().is_empty() || !tree.items().is_empty()) {
            own_patches.push(json!(strata_yaml::plain::write(&as_json_of(from, older))));
        }
    }
    own_patches.extend(patches(import, cluster, folder, from, "patches"));
    for (there, kind) in [
        ("extensionServices", "ExtensionServiceConfig"),
        ("volumes", "VolumeConfig"),
        ("userVolumes", "UserVolumeConfig"),
    ] {
        for part in from.list(there) {
            let mut document = Object::new();
            document.insert("apiVersion".into(), json!("v1alpha1"));
            document.insert("kind".into(), json!(kind));
            document.extend(as_json(part).as_object().cloned().unwrap_or_default());
            own_patches.push(json!(strata_yaml::plain::write(&Json::Object(document))));
        }
    }
    // More documents of the same configuration.
    for manifest in from.list("extraManifests") {
        let Some(text) = manifest.peek() else { continue };
        let there = resolve_path(folder, text.trim_start_matches('@')).filter(|path| import.files.has(path));
        match there.as_deref().and_then(|path| import.read(path)) {
            Some(content) => {
                manifest.take_all();
                let own = text.rsplit('/').next().unwrap_or(&text).to_owned();
                let content = talos::substituted(&content, &cluster.values);
                own_patches.push(cluster.patch_file(import, &own, &content));
            }
            None => {
                import.note(Some(&manifest.place), format!("`{text}` is not there and was not carried over"))
            }
        }
    }
    import.needless(from, &["filenameTmpl"], "Strata writes no files of configurations");
}

fn simple_link(link: &Tree, written: &mut Object) {
    if let Some(selector) = link.get("deviceSelector") {
        written.put(
            ClusterNode::mac,
            selector.text_if("hardwareAddr", output::is_mac).map(|mac| mac.to_uppercase()),
        );
    }
    written.put(NodeSettings::mtu, link.int_in("mtu", 576..=65_520));
    // All of the rest is what the network of the cluster says.
    link.take_keys(&["dhcp", "interface", "addresses", "routes", "vip", "vlans"]);
}
