//! What the files of Talos' own tools have in common: patches, secrets of a cluster, and the document that they become.

use crate::output::only;
use crate::records::{
    Cluster, ClusterNetwork, ClusterNode, ClusterSpec, Kubernetes, Metadata, Schematic, Talos, Topology,
};
use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use strata_source::world::join;
use strata_talos::Contract;

use super::files::folder_of;
use super::output::{self, Object, Put};
use super::tree::{Content, SourceLine, Tree};
use super::{Import, is_version, name, with_v};
use strata_tofu::resolve_path;
use strata_yaml::plain;

/// What is written down where nobody said a version.
const VERSION: &str = "v1.12.0";

/// A cluster while it is put together.
pub(super) struct TalosCluster {
    /// The name of the stack and of its folder.
    pub(super) stack: String,
    pub(super) talos: Object,
    pub(super) kubernetes: Object,
    pub(super) network: Object,
    pub(super) endpoint: Option<String>,
    pub(super) patches: Vec<Json>,
    pub(super) nodes: Object,
    pub(super) place: SourceLine,
    /// What is filled into patches.
    pub(super) values: BTreeMap<String, String>,
}

impl TalosCluster {
    pub(super) fn new(import: &mut Import<'_>, wanted: &str, place: &SourceLine) -> Self {
        let stack = import.stack_name(wanted, place);
        let mut talos = Object::new();
        if stack != wanted {
            // The name that is in the certificates.
            talos.set(Talos::cluster_name, json!(wanted));
        }
        Self {
            stack,
            talos,
            kubernetes: Object::new(),
            network: Object::new(),
            endpoint: None,
            patches: Vec::new(),
            nodes: Object::new(),
            place: place.clone(),
            values: BTreeMap::new(),
        }
    }

    pub(super) fn folder(&self) -> String {
        format!("clusters/{}", self.stack)
    }

    pub(super) fn document(&self) -> String {
        format!("{}/cluster.yaml", self.folder())
    }

    /// The versions, as `talosVersion` and `kubernetesVersion` say them.
    pub(super) fn versions(
        &mut self,
        import: &mut Import<'_>,
        talos: Option<&Tree>,
        kubernetes: Option<&Tree>,
    ) {
        let version = talos.and_then(|tree| tree.as_text_if(is_version));
        if version.is_none() {
            import.note(Some(&self.place), format!("no version of Talos is written down: `{VERSION}` was"));
        }
        import.check_versions(version.as_deref().zip(talos), kubernetes);
        self.talos.set(Talos::version, json!(version.map_or_else(|| VERSION.to_owned(), with_v)));
        self.kubernetes
            .put(Kubernetes::version, kubernetes.and_then(|tree| tree.as_text_if(is_version)).map(with_v));
    }

    pub(super) fn node(&mut self, import: &mut Import<'_>, own: &str, place: &SourceLine, node: Object) {
        import.origin(&self.document(), "nodes", own, place);
        if self.nodes.contains_key(own) {
            import.note(Some(place), format!("another node is called `{own}` too: this one was left out"));
            return;
        }
        self.nodes.insert(own.to_owned(), Json::Object(node));
    }

    pub(super) fn write(mut self, import: &mut Import<'_>) {
        let (path, place) = (self.document(), self.place.clone());
        for (own, node) in &mut self.nodes {
            if let Some(node) =
                node.as_object_mut().filter(|node| !node.contains_key(ClusterNode::address.name()))
            {
                let address = stand_in(import);
                let at = import.model.origins.get(&(path.clone(), "nodes".to_owned(), own.clone())).cloned();
                import.note(Some(&at.unwrap_or_else(|| place.clone())), no_address(own));
                node.set(ClusterNode::address, json!(address));
                // It lies in no network of the cluster.
                self.network.remove(ClusterNetwork::cidr.name());
            }
        }
        if self.endpoint.is_none() && !self.network.contains_key(ClusterNetwork::vip.name()) {
            let mut masters = self
                .nodes
                .values()
                .filter(|node| node[ClusterNode::role.name()].as_str() == Some("controlPlane"));
            if let Some(address) = masters.next().and_then(|node| node[ClusterNode::address.name()].as_str())
            {
                let url = if address.contains(':') {
                    format!("https://[{address}]:6443")
                } else {
                    format!("https://{address}:6443")
                };
                import.note(
                    Some(&place),
                    format!("no file says the endpoint of the cluster: `{url}`, its first control plane, was written down"),
                );
                if import.model.stood_in.contains(address) {
                    import.model.stood_in.insert(url.clone());
                }
                self.endpoint = Some(url);
            }
        }
        let masters = self
            .nodes
            .values()
            .filter(|node| node[ClusterNode::role.name()].as_str() == Some("controlPlane"))
            .count();
        let mut spec = Object::new();
        spec.set(ClusterSpec::talos, Json::Object(self.talos));
        spec.put_full(ClusterSpec::kubernetes, Json::Object(self.kubernetes));
        if self.network.contains_key(ClusterNetwork::cidr.name()) {
            spec.put_full(ClusterSpec::network, Json::Object(self.network));
        }
        if masters > 0 && masters.is_multiple_of(2) {
            spec.set(ClusterSpec::topology, only(Topology::allow_even, true));
            import.note(
                Some(&place),
                format!("{masters} control planes have no better majority than {}", masters - 1),
            );
        }
        spec.put(ClusterSpec::endpoint, self.endpoint);
        spec.put_full(ClusterSpec::patches, Json::Array(self.patches));
        spec.set(ClusterSpec::nodes, Json::Object(self.nodes));
        let mut document = Object::new();
        document.set(Cluster::metadata, only(Metadata::name, self.stack.as_str()));
        document.set(Cluster::cluster, Json::Object(spec));
        import.write(path, document, &place);
    }

    /// Brings a patch along as a file of its own; how it is named in the list of patches.
    pub(super) fn patch_file(&self, import: &mut Import<'_>, own: &str, text: &str) -> Json {
        let mut path = format!("patches/{own}");
        let mut number = 2;
        let full = |path: &str| format!("{}/{path}", self.folder());
        while import.imported.files.get(&full(&path)).is_some_and(|known| known != text) {
            path = format!("patches/{number}-{own}");
            number += 1;
        }
        import.imported.files.insert(full(&path), text.to_owned());
        json!(path)
    }

    /// The secrets of the cluster, if they are encrypted.
    pub(super) fn secrets(&mut self, import: &mut Import<'_>, path: &str) {
        if !import.files.has(path) {
            return;
        }
        let Some(text) = import.read(path) else { return };
        let (tree, _) = super::parse::yaml(path, &text);
        let place = SourceLine::new(path, 1);
        if !tree.as_ref().is_some_and(|tree| tree.has("sops")) {
            import.note(
                Some(&place),
                format!("the secrets of the cluster are in the clear and were not copied: encrypt them into `{}/talos.sops.yaml`", self.folder()),
            );
            return;
        }
        if tree.is_some_and(|tree| !tree.has("cluster") && !tree.has("secrets")) {
            import.note(Some(&place), "it does not look like the secrets of a cluster and was not copied");
            return;
        }
        let own = "talos.sops.yaml";
        import.imported.files.insert(format!("{}/{own}", self.folder()), text);
        import.note(
            Some(&place),
            format!(
                "it is kept as `{}/{own}`, encrypted as it is: Strata needs the same age key",
                self.folder()
            ),
        );
    }
}

impl Import<'_> {
    /// Tells of a Talos that Strata writes no configurations for, and of a Kubernetes that does not run on it.
    pub(super) fn check_versions(&mut self, talos: Option<(&str, &Tree)>, kubernetes: Option<&Tree>) {
        let Some((written, at)) = talos else { return };
        let known = Contract::ALL.iter().map(Contract::to_string).collect::<Vec<_>>();
        let (Some(first), Some(last)) = (known.first(), known.last()) else { return };
        let Ok(contract) = written.parse::<Contract>() else {
            let minor =
                written.trim_start_matches('v').split('.').nth(1).and_then(|minor| minor.parse::<u8>().ok());
            let old = minor.is_none_or(|minor| minor < Contract::LATEST.minor());
            let what = if old {
                format!(
                    "upgrade the machines with talosctl, one minor version after the other, to {first} or newer, and write that version down"
                )
            } else {
                "wait for a newer Strata, or write an older version down if the machines have one".to_owned()
            };
            let message = format!(
                "Strata configures Talos {first} to {last}, not `{written}`: {what}; until then `strata plan` refuses"
            );
            self.note(Some(&at.place), message);
            return;
        };
        let Some(tree) = kubernetes else { return };
        let Some(version) = tree.peek().filter(|text| is_version(text)) else { return };
        if !contract.runs_kubernetes(&version) {
            let message = format!(
                "Kubernetes `{version}` does not go with Talos `{written}`, which runs {}: write down what the machines have, or upgrade one of the two first",
                contract.kubernetes_range()
            );
            self.note(Some(&tree.place), message);
        }
    }
}

pub(super) const ENCRYPTED: &str = "the patch is encrypted and was left out: write it as a mapping in `patches`, with `{secret: NAME}` for what is secret";
const UNFILLED: &str = "a patch has `${…}` in it, which talhelper fills in: do that by hand";

/// `${NAME}` and `${NAME:-default}` filled in; `$$` is a dollar. What has no value stays.
pub(super) fn substituted(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        if let Some(after) = rest.strip_prefix("$$") {
            out.push('$');
            rest = after;
            continue;
        }
        let Some(end) = rest.find('}').filter(|_| rest.starts_with("${")) else {
            out.push('$');
            rest = &rest[1..];
            continue;
        };
        let inner = &rest[2..end];
        let (name, default) = match inner.split_once(":-").or_else(|| inner.split_once('-')) {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        match values.get(name).map(String::as_str).or(default) {
            Some(value) => out.push_str(value),
            None => out.push_str(&rest[..=end]),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}

/// Patches of a list: texts and mappings stay in place, files are brought along.
pub(super) fn patches(
    import: &mut Import<'_>,
    cluster: &TalosCluster,
    folder: &str,
    tree: &Tree,
    key: &str,
) -> Vec<Json> {
    let mut found = Vec::new();
    for patch in tree.list(key) {
        match &patch.content {
            Content::Text(text) if text.starts_with('@') => {
                let path = text.trim_start_matches('@').to_owned();
                let place = patch.place.clone();
                patch.take_all();
                let there = resolve_path(folder, &path).filter(|path| import.files.has(path));
                let content = there.as_deref().and_then(|path| import.read(path));
                match (there, content) {
                    (Some(there), Some(content)) if content.contains("ENC[AES256_GCM") => {
                        import.note(Some(&SourceLine::new(&there, 1)), ENCRYPTED);
                    }
                    (Some(there), Some(content)) if !content.trim().is_empty() => {
                        let content = substituted(&content, &cluster.values);
                        if let Some(line) = content.lines().position(|line| line.contains("${")) {
                            import.note(Some(&SourceLine::new(&there, line + 1)), UNFILLED);
                        }
                        let own = there.rsplit('/').next().unwrap_or(&there).to_owned();
                        found.push(cluster.patch_file(import, &own, &content));
                    }
                    (Some(_), _) => {}
                    (None, _) => import.note(
                        Some(&place),
                        format!("the patch `{path}` is not there and was not carried over"),
                    ),
                }
            }
            Content::Text(text) if !text.trim().is_empty() => {
                // A single line would be taken for the name of a file.
                let text = if text.contains('\n') { text.clone() } else { format!("{text}\n") };
                patch.take_all();
                if text.contains("${") {
                    let place = patch.place.clone();
                    import.note(Some(&place), UNFILLED);
                }
                found.push(json!(text));
            }
            Content::Map(_) => found.push(json!(plain::write(&as_json(patch)))),
            _ => {}
        }
    }
    found
}

/// Everything of a tree, as it is.
pub(super) fn as_json(tree: &Tree) -> Json {
    match &tree.content {
        Content::Null | Content::Unknown(_) => Json::Null,
        Content::Bool(value) => {
            tree.take_all();
            json!(value)
        }
        Content::Number(number) => {
            tree.take_all();
            if number.fract() == 0.0 { json!(*number as i64) } else { json!(number) }
        }
        Content::Text(text) => {
            tree.take_all();
            json!(text)
        }
        Content::List(items) => Json::Array(items.iter().map(as_json).collect()),
        Content::Map(entries) => {
            Json::Object(entries.iter().map(|(key, tree)| (key.clone(), as_json(tree))).collect())
        }
    }
}

/// A value as a patch at a path of the machine configuration.
pub(super) fn patch_at(path: &[&str], value: Json) -> Json {
    let whole = path.iter().rev().fold(value, |inner, key| json!({*key: inner}));
    json!(plain::write(&whole))
}

/// A schematic: by its id, or by what is in it.
pub(super) fn schematic(tree: &Tree) -> Option<Json> {
    let found = tree.get("customization")?;
    let mut own = Object::new();
    if let Some(extensions) = found.get("systemExtensions") {
        own.put_full(Schematic::extensions, json!(extensions.texts("officialExtensions")));
    }
    own.put_full(Schematic::extra_kernel_args, json!(found.texts("extraKernelArgs")));
    (!own.is_empty()).then_some(Json::Object(own))
}

/// Labels, annotations and taints are texts, whatever they look like.
pub(super) fn words(tree: &Tree, key: &str) -> Json {
    let entries = tree.map(key).iter();
    Json::Object(entries.filter_map(|(key, value)| Some((key.clone(), json!(value.as_word()?)))).collect())
}

/// An address for documents, where nobody says the real one; another one each time.
pub(super) fn stand_in(import: &mut Import<'_>) -> String {
    let networks = ["192.0.2", "198.51.100", "203.0.113"];
    let index = import.stand_ins;
    import.stand_ins += 1;
    let address = format!("{}.{}", networks[(index / 250) % networks.len()], index % 250 + 1);
    import.model.stood_in.insert(address.clone());
    address
}

pub(super) fn no_address(own: &str) -> String {
    format!(
        "`{own}` has its address in no file, and Strata has to know it: one for documents stands in for it, write the real one"
    )
}

/// A file beside another one.
pub(super) fn beside(path: &str, other: &str) -> String {
    let folder = folder_of(path);
    resolve_path(folder, other).unwrap_or_else(|| join(folder, other))
}

/// A name for a node, from one that may have a domain.
pub(super) fn host(text: &str) -> String {
    let short = text.split('.').next().unwrap_or(text);
    if output::is_host(short) { short.to_ascii_lowercase() } else { name(short) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_value_is_filled_in_and_two_dollars_are_one() {
        let values = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let found = substituted("$$patch: delete ${A} ${B} ${C:-2} ${D-3} $x 5$", &values);
        assert_eq!(found, "$patch: delete 1 ${B} 2 3 $x 5$");
    }
}
