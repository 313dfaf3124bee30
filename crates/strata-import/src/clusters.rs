//! One `cluster.yaml` for each cluster, with Terraform and Talos beside it.

use crate::output::only;
use crate::records::{
    Cluster, ClusterNode, ClusterProxmox, ClusterSpec, ClusterVm, Flux, Gitops, Infrastructure, Kubernetes,
    Metadata, NodeSettings, Pool, ProxmoxNetwork, Resources, StorageDefaults, Talos, Topology,
};
use serde_json::{Value as Json, json};

use super::files::folder_of;
use super::output::{self, Object, Put};
use super::tree::{Content, SourceLine, Tree};
use super::{Import, is_version, name, talos, with_v};

/// How this family is called among those that were found.
const FAMILY: &str = "one cluster.yaml for each cluster";

pub(super) fn import(import: &mut Import<'_>) {
    for path in import.files.named("cluster.yaml") {
        let folder = folder_of(&path).to_owned();
        if folder.is_empty() || !folder.split('/').any(|part| part == "clusters") {
            continue;
        }
        let Some(tree) = import.yaml(&path) else { continue };
        // Manifests of Kubernetes are called like this, too.
        if !tree.get("cluster").is_some_and(|spec| spec.has("talos") || spec.has("topology"))
            || tree.has("apiVersion")
        {
            continue;
        }
        import.found(FAMILY);
        cluster(import, &folder, &tree);
        import.watch("", &tree);
        for backend in ["terraform-backend.yaml", "terraform/terraform-backend.yaml"] {
            self::backend(import, &format!("{folder}/{backend}"));
        }
        let rendered = format!("{folder}/terraform");
        let count = import.files.below(&rendered).len();
        if count > 0 {
            import.files.read_below(&rendered);
            import.note(
                Some(&SourceLine::new(&rendered, 1)),
                format!("{count} files there are made from cluster.yaml, as `strata sync` does it"),
            );
        }
    }
    if import.imported.found.contains(&FAMILY) {
        backend(import, "terraform-backend.yaml");
    }
}

fn backend(import: &mut Import<'_>, path: &str) {
    if !import.files.has(path) {
        return;
    }
    let Some(tree) = import.yaml(path) else { return };
    if let Some(block) = tree.get("backend") {
        let kind = block.text("type").unwrap_or_else(|| "s3".to_owned());
        import.backend(&kind, block);
    }
    import.watch("", &tree);
}

fn cluster(import: &mut Import<'_>, folder: &str, tree: &Tree) {
    let metadata = tree.get("metadata");
    let last = folder.rsplit('/').next().unwrap_or(folder);
    let own = metadata.and_then(|metadata| metadata.text("name")).unwrap_or_else(|| last.to_owned());
    let stack = import.stack_name(&own, &tree.place);
    let mut document = Object::new();
    let mut written = Object::new();
    written.set(Metadata::name, json!(stack));
    if let Some(metadata) = metadata {
        written
            .put(Metadata::environment, metadata.text("environment").map(|environment| name(&environment)));
        written.put(Metadata::description, metadata.text("description"));
    }
    document.set(Cluster::metadata, Json::Object(written));
    let Some(spec) = tree.get("cluster") else { return };
    let mut cluster = Object::new();
    versions(import, spec, &mut cluster);
    let talos = spec.at(&["talos", "version"]);
    let kubernetes = spec.get("kubernetes").map(|found| found.get("version").unwrap_or(found));
    import.check_versions(talos.and_then(Tree::peek).as_deref().zip(talos), kubernetes);
    if let Some(kubernetes) = spec.get("kubernetes") {
        let version = kubernetes.as_text_if(is_version).or_else(|| kubernetes.text_if("version", is_version));
        cluster
            .put(ClusterSpec::kubernetes, version.map(|version| only(Kubernetes::version, with_v(version))));
    }
    // Names there have no dash before the number, and the name of the stack whatever Talos calls the cluster.
    cluster.set(ClusterSpec::naming, json!(format!("{stack}-{{role}}{{n}}")));
    let mut topology = Object::new();
    if let Some(found) = spec.get("topology") {
        for (key, there, needed) in
            [(Topology::control_plane, "controlPlane", 1), (Topology::workers, "workers", 0)]
        {
            let Some(pool) = found.get(there) else { continue };
            let mut written = Object::new();
            let count = pool.int_in("count", 0..=500).unwrap_or(needed);
            if key == Topology::control_plane && count > 9 {
                import
                    .note(Some(&pool.place), "more than nine control planes take the numbers of the workers");
            }
            if key == Topology::control_plane && count > 0 && count % 2 == 0 {
                topology.set(Topology::allow_even, json!(true));
                import.note(
                    Some(&pool.place),
                    format!("{count} control planes have no better majority than {}", count - 1),
                );
            }
            written.set(Pool::count, json!(count));
            // Addresses are left to DHCP there.
            written.set(NodeSettings::dhcp, json!(true));
            if let Some(resources) = pool.get("resources") {
                let mut sizes = Object::new();
                for (key, there) in
                    [(Resources::cores, "cores"), (Resources::memory, "memory"), (Resources::disk, "disk")]
                {
                    sizes.put(key, resources.int_in(there, 1..=1_048_576));
                }
                written.put_full(NodeSettings::resources, Json::Object(sizes));
            }
            topology.set(key, Json::Object(written));
        }
    }
    // Strata has to know what DHCP will say.
    let nodes =
        stand_ins(import, &stack, &topology, spec.get("topology").map_or(&tree.place, |found| &found.place));
    cluster.put_full(ClusterSpec::nodes, Json::Object(nodes));
    cluster.set(ClusterSpec::topology, Json::Object(topology));
    document.set(Cluster::cluster, Json::Object(cluster));
    if let Some(found) = tree.get("proxmox") {
        document.set(Cluster::proxmox, proxmox(import, found));
    }
    if let Some(found) = tree.get("gitops") {
        document.put(Cluster::gitops, gitops(import, found));
    }
    import.write(format!("clusters/{last}/cluster.yaml"), document, &tree.place);
    secrets(import, folder, last);
}

/// An address for each machine, to be replaced.
fn stand_ins(import: &mut Import<'_>, stack: &str, topology: &Object, place: &SourceLine) -> Object {
    let mut nodes = Object::new();
    for (pool, role) in [(Topology::control_plane, "cp"), (Topology::workers, "worker")] {
        let count = topology.get(pool.name()).and_then(|pool| pool[Pool::count.name()].as_u64()).unwrap_or(0);
        for number in 1..=count {
            let own = format!("{stack}-{role}{number}");
            let address = talos::stand_in(import);
            import.note(Some(place), talos::no_address(&own));
            nodes.insert(own, only(ClusterNode::address, address));
        }
    }
    nodes
}

/// The keys of the cluster, as talhelper keeps them.
fn secrets(import: &mut Import<'_>, folder: &str, last: &str) {
    let path = format!("{folder}/talos/talsecret.sops.yaml");
    if !import.files.has(&path) {
        return;
    }
    let Some(text) = import.read(&path) else { return };
    if text.contains("\nsops:") {
        let new = format!("clusters/{last}/talos.sops.yaml");
        import.note(
            Some(&SourceLine::new(&path, 1)),
            format!("it is kept as `{new}`, encrypted as it is: Strata needs the same age key"),
        );
        import.imported.files.insert(new, text);
    } else {
        import.note(Some(&SourceLine::new(&path, 1)), "it is called encrypted and is not: it was not copied");
    }
}

fn versions(import: &mut Import<'_>, spec: &Tree, cluster: &mut Object) {
    let mut written = Object::new();
    let found = spec.get("talos");
    let version = found.and_then(|talos| talos.text_if("version", is_version));
    if version.is_none() {
        import.note(Some(&spec.place), "no version of Talos is written down: `v1.12.0` was");
    }
    written.set(Talos::version, json!(version.map_or_else(|| "v1.12.0".to_owned(), with_v)));
    if let Some(talos) = found {
        written.put(Talos::cluster_name, talos.text("clusterName"));
        written.put(Talos::factory_schematic, talos.text_if("factorySchematic", output::is_schematic));
        if let Some(tree) =
            talos.get("factorySchematic").filter(|_| !written.contains_key(Talos::factory_schematic.name()))
        {
            let (place, id) = (tree.place.clone(), tree.as_text().unwrap_or_default());
            import.note(Some(&place), format!("`{id}` is no id of a schematic: the plain one is used"));
        }
        written.put(Talos::install_disk, talos.text("installDisk"));
    }
    cluster.set(ClusterSpec::talos, Json::Object(written));
}

fn proxmox(import: &mut Import<'_>, found: &Tree) -> Json {
    let mut written = Object::new();
    if let Some(endpoint) = found.text_if("endpoint", |url| url.starts_with("http")) {
        let insecure = found.bool("insecure").unwrap_or(false);
        let target = import.target(&endpoint, insecure, None);
        written.set(ClusterProxmox::target, json!(target));
    } else {
        let (target, _) = import.some_target(&found.place, "`proxmox.endpoint`");
        written.set(ClusterProxmox::target, json!(target));
    }
    written.put(ClusterProxmox::node, found.text("node"));
    if let Some(storage) = found.get("storage") {
        let mut storages = Object::new();
        storages.put(StorageDefaults::disk, storage.text("datastore"));
        storages.put(StorageDefaults::iso_path, storage.text("isoPath"));
        written.put_full(ClusterProxmox::storage, Json::Object(storages));
    }
    if let Some(network) = found.get("network") {
        written.put(
            ClusterProxmox::network,
            network.text("bridge").map(|bridge| only(ProxmoxNetwork::bridge, bridge)),
        );
    }
    if let Some(vm) = found.get("vm") {
        let mut machine = Object::new();
        machine.put(ClusterVm::id_base, vm.int_in("idBase", 100..=999_999_999));
        machine.put(ClusterVm::cpu_type, vm.text("cpuType"));
        machine.put(ClusterVm::onboot, vm.bool("onBoot"));
        machine.put(ClusterVm::force_stop, vm.bool("forceStop"));
        written.put_full(ClusterProxmox::vm, Json::Object(machine));
    }
    Json::Object(written)
}

fn gitops(import: &mut Import<'_>, found: &Tree) -> Option<Json> {
    let mut written = Object::new();
    written.put(Gitops::enabled, found.bool("enabled"));
    if let Some(flux) = found.get("flux") {
        let mut own = Object::new();
        match flux.text_if("repository", |url| url.contains(':')) {
            Some(url) => {
                own.put(Flux::version, flux.text_if("version", is_version).map(with_v));
                own.set(Flux::repository, json!(url));
                own.put(Flux::branch, flux.text("branch"));
                own.set(Flux::path, json!(flux.text("path").unwrap_or_else(|| "infrastructure".to_owned())));
                written.set(Gitops::flux, Json::Object(own));
            }
            None => {
                flux.take_all();
                import
                    .note(Some(&flux.place), "Flux without the address of a repository was not carried over");
            }
        }
    }
    if let Some(infrastructure) = found.get("infrastructure") {
        let mut own = Object::new();
        for (key, there) in [(Infrastructure::core, "core"), (Infrastructure::optional, "optional")] {
            // Names, or mappings with a name.
            let names: Vec<String> = infrastructure
                .list(there)
                .iter()
                .filter_map(|item| match &item.content {
                    Content::Map(_) => item.text("name"),
                    _ => item.as_text(),
                })
                .collect();
            own.put_full(key, json!(names));
        }
        written.put_full(Gitops::infrastructure, Json::Object(own));
    }
    (!written.is_empty()).then_some(Json::Object(written))
}
