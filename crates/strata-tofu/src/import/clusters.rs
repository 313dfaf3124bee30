//! One `cluster.yaml` for each cluster, with Terraform and Talos beside it.

use serde_json::{Value as Json, json};

use super::flat::with_v;
use super::output::{Object, Put};
use super::tree::{Content, Tree};
use super::{Import, base, name};

pub(super) fn import(import: &mut Import<'_>) {
    for folder in import.folders("clusters") {
        let path = format!("clusters/{folder}/cluster.yaml");
        let Some(tree) = import.yaml(&path).filter(|tree| tree.has("cluster")) else { continue };
        import.found("one cluster.yaml for each cluster");
        cluster(import, &folder, &tree);
        for backend in ["terraform-backend.yaml", "terraform/terraform-backend.yaml"] {
            let Some(found) = import.yaml(&format!("clusters/{folder}/{backend}")) else { continue };
            if let Some(block) = found.get("backend") {
                let kind = block.text("type").unwrap_or_else(|| "s3".to_owned());
                import.backend(&kind, block);
            }
        }
    }
    if let Some(found) = import.yaml("terraform-backend.yaml")
        && let Some(block) = found.get("backend")
    {
        let kind = block.text("type").unwrap_or_else(|| "s3".to_owned());
        import.backend(&kind, block);
    }
}

fn cluster(import: &mut Import<'_>, folder: &str, tree: &Tree) {
    let metadata = tree.get("metadata");
    let own = metadata.and_then(|metadata| metadata.text("name")).unwrap_or_else(|| folder.to_owned());
    let stack = name(&own);
    let mut document = Object::new();
    let mut written = Object::new();
    written.insert("name".into(), json!(stack));
    if let Some(metadata) = metadata {
        written.put("environment", metadata.text("environment").map(|environment| name(&environment)));
        written.put("description", metadata.text("description"));
    }
    document.insert("metadata".into(), Json::Object(written));
    let Some(spec) = tree.get("cluster") else { return };
    let mut cluster = Object::new();
    talos(import, spec, &mut cluster);
    if let Some(kubernetes) = spec.get("kubernetes") {
        let version = kubernetes.as_text().or_else(|| kubernetes.text("version"));
        cluster.put("kubernetes", version.map(|version| json!({"version": with_v(version)})));
    }
    // Names there have no dash before the number.
    cluster.insert("naming".into(), json!("{cluster}-{role}{n}"));
    let mut topology = Object::new();
    if let Some(found) = spec.get("topology") {
        for (key, needed) in [("controlPlane", 1), ("workers", 0)] {
            let Some(pool) = found.get(key) else { continue };
            let mut written = Object::new();
            let count = pool.int("count").unwrap_or(needed);
            if key == "controlPlane" && count > 9 {
                import
                    .note(Some(&pool.place), "more than nine control planes take the numbers of the workers");
            }
            written.insert("count".into(), json!(count));
            if let Some(resources) = pool.get("resources") {
                let mut sizes = Object::new();
                for size in ["cores", "memory", "disk"] {
                    sizes.put(size, resources.int(size));
                }
                written.put_full("resources", Json::Object(sizes));
            }
            topology.insert(key.into(), Json::Object(written));
        }
    }
    cluster.insert("topology".into(), Json::Object(topology));
    document.insert("cluster".into(), Json::Object(cluster));
    if let Some(found) = tree.get("proxmox") {
        document.insert("proxmox".into(), proxmox(import, found));
    }
    if let Some(found) = tree.get("gitops") {
        document.put("gitops", gitops(import, found));
    }
    import.report(tree);
    import.write(format!("clusters/{folder}/cluster.yaml"), document);
}

fn talos(import: &mut Import<'_>, spec: &Tree, cluster: &mut Object) {
    let mut written = Object::new();
    let found = spec.get("talos");
    let version = found.and_then(|talos| talos.text("version"));
    if version.is_none() {
        import.note(Some(&spec.place), "the version of Talos is not there: `v1.12.0` was written down");
    }
    written.insert("version".into(), json!(version.map_or_else(|| "v1.12.0".to_owned(), with_v)));
    if let Some(talos) = found {
        written.put("clusterName", talos.text("clusterName").map(|text| name(&text)));
        match talos.get("factorySchematic").map(|tree| (tree, tree.as_text().unwrap_or_default())) {
            Some((_, id)) if id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                written.insert("factorySchematic".into(), json!(id));
            }
            Some((tree, id)) => {
                let place = tree.place.clone();
                import.note(Some(&place), format!("`{id}` is no id of a schematic: the plain one is used"));
            }
            None => {}
        }
        written.put("installDisk", talos.text("installDisk"));
    }
    cluster.insert("talos".into(), Json::Object(written));
}

fn proxmox(import: &mut Import<'_>, found: &Tree) -> Json {
    let mut written = Object::new();
    if let Some(endpoint) = found.text("endpoint") {
        let insecure = found.bool("insecure").unwrap_or(false);
        let target = import.target("pve", &base(&endpoint), insecure, None);
        written.insert("target".into(), json!(target));
    }
    written.put("node", found.text("node"));
    if let Some(storage) = found.get("storage") {
        let mut storages = Object::new();
        storages.put("disk", storage.text("datastore"));
        storages.put("isoPath", storage.text("isoPath"));
        written.put_full("storage", Json::Object(storages));
    }
    if let Some(network) = found.get("network") {
        written.put("network", network.text("bridge").map(|bridge| json!({"bridge": bridge})));
    }
    if let Some(vm) = found.get("vm") {
        let mut machine = Object::new();
        machine.put("idBase", vm.int("idBase"));
        machine.put("cpuType", vm.text("cpuType"));
        machine.put("onboot", vm.bool("onBoot"));
        machine.put("forceStop", vm.bool("forceStop"));
        written.put_full("vm", Json::Object(machine));
    }
    Json::Object(written)
}

fn gitops(import: &mut Import<'_>, found: &Tree) -> Option<Json> {
    let mut written = Object::new();
    written.put("enabled", found.bool("enabled"));
    if let Some(flux) = found.get("flux") {
        let mut own = Object::new();
        match flux.text("repository").filter(|url| url.contains(':')) {
            Some(url) => {
                own.put("version", flux.text("version").filter(|version| version != "latest").map(with_v));
                own.insert("repository".into(), json!(url));
                own.put("branch", flux.text("branch"));
                own.insert(
                    "path".into(),
                    json!(flux.text("path").unwrap_or_else(|| "infrastructure".to_owned())),
                );
                written.insert("flux".into(), Json::Object(own));
            }
            None => import
                .note(Some(&flux.place), "Flux without the address of a repository was not carried over"),
        }
    }
    if let Some(infrastructure) = found.get("infrastructure") {
        let mut own = Object::new();
        for key in ["core", "optional"] {
            let Some(list) = infrastructure.get(key) else { continue };
            // Names, or mappings with a name.
            let names: Vec<String> = list
                .items()
                .iter()
                .filter_map(|item| match &item.content {
                    Content::Map(_) => item.text("name"),
                    _ => item.as_text(),
                })
                .collect();
            own.put_full(key, json!(names));
        }
        written.put_full("infrastructure", Json::Object(own));
    }
    (!written.is_empty()).then_some(Json::Object(written))
}
