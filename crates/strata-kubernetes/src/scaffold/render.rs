//! Components and overlays as text. Written by hand, as people will go on by hand.

use super::ScaffoldCluster;
use super::component::{Component, Group, Size};

type Files = Vec<(String, String)>;

const README: &str = "\
# What runs on the clusters

Flux applies `core/overlays/<cluster>` to each cluster and keeps it so.

- `sources/`: the Helm repositories
- `core/base/`: a folder for each component that every cluster has, with the settings that are the same everywhere
- `core/overlays/<cluster>/`: which components a cluster has, and what is different there
- `optional/`: components that an overlay can name

Add a component as a folder with a `kustomization.yaml`, name it in the overlays, and push. Try an overlay with
`kubectl kustomize core/overlays/<cluster>`. A file whose name ends in `.sops.yaml` is encrypted with `sops`; Flux decrypts it.
";

pub(super) fn readme() -> Files {
    vec![("README.md".to_owned(), README.to_owned())]
}

pub(super) fn sources(components: &[&Component]) -> Files {
    if components.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<(&str, &str)> = components.iter().map(|component| component.source).collect();
    names.sort_unstable();
    names.dedup();
    let resources: Vec<String> = names.iter().map(|(name, _)| format!("{name}.yaml")).collect();
    let mut files = vec![("sources/kustomization.yaml".to_owned(), kustomization(&resources))];
    for (name, url) in names {
        let text = format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata:\n  name: {name}\n  namespace: flux-system\nspec:\n  interval: 12h\n  url: {url}\n"
        );
        files.push((format!("sources/{name}.yaml"), text));
    }
    files
}

pub(super) fn component(component: &Component) -> Files {
    let folder = folder(component);
    let resources = ["namespace.yaml".to_owned(), "helmrelease.yaml".to_owned()];
    vec![
        (format!("{folder}/kustomization.yaml"), kustomization(&resources)),
        (format!("{folder}/namespace.yaml"), namespace(component)),
        (format!("{folder}/helmrelease.yaml"), release(component)),
    ]
}

fn namespace(component: &Component) -> String {
    let name = component.name;
    let labels = if component.privileged {
        "  labels:\n    pod-security.kubernetes.io/enforce: privileged\n"
    } else {
        ""
    };
    format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n{labels}")
}

fn release(component: &Component) -> String {
    let Component { name, version, source: (source, _), values, .. } = component;
    format!(
        "\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: {name}
  namespace: {name}
spec:
  interval: 30m
  chart:
    spec:
      chart: {name}
      version: {version}
      sourceRef:
        kind: HelmRepository
        name: {source}
        namespace: flux-system
  install:
    crds: CreateReplace
    remediation:
      retries: 3
  upgrade:
    crds: CreateReplace
    remediation:
      retries: 3
  values:
{values}"
    )
}

pub(super) fn overlay(cluster: &ScaffoldCluster, components: &[&Component]) -> Files {
    let folder = format!("core/overlays/{}", cluster.name);
    let mut resources = vec!["cluster.yaml".to_owned()];
    if !components.is_empty() {
        resources.push("../../../sources".to_owned());
    }
    resources.extend(components.iter().map(|component| match component.group {
        Group::Core => format!("../../base/{}", component.name),
        Group::Optional => format!("../../../optional/{}", component.name),
    }));
    let mut text = kustomization(&resources);
    let size = Size::of(cluster.environment.as_deref());
    let mut files = vec![(format!("{folder}/cluster.yaml"), settings(cluster))];
    for (index, component) in components.iter().enumerate() {
        if index == 0 {
            text.push_str("patches:\n");
        }
        let name = component.name;
        text.push_str(&format!(
            "  - path: {name}.yaml\n    target:\n      kind: HelmRelease\n      name: {name}\n"
        ));
        files.push((format!("{folder}/{name}.yaml"), patch(component, size)));
    }
    files.push((format!("{folder}/kustomization.yaml"), text));
    files
}

/// What manifests can be told about where they are, by `postBuild.substituteFrom` of a Kustomization.
fn settings(cluster: &ScaffoldCluster) -> String {
    let environment = cluster.environment.as_deref().unwrap_or("dev");
    let quoted = serde_json::Value::from(environment).to_string();
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cluster-settings\n  namespace: flux-system\ndata:\n  cluster: \"{}\"\n  environment: {quoted}\n",
        cluster.name
    )
}

/// A JSON patch of the release's values.
fn patch(component: &Component, size: Size) -> String {
    let operations = (component.patches)(size).iter();
    operations
        .map(|(path, value)| format!("- op: add\n  path: /spec/values/{path}\n  value: {value}\n"))
        .collect()
}

fn folder(component: &Component) -> String {
    match component.group {
        Group::Core => format!("core/base/{}", component.name),
        Group::Optional => format!("optional/{}", component.name),
    }
}

fn kustomization(resources: &[String]) -> String {
    let list: String = resources.iter().map(|resource| format!("  - {resource}\n")).collect();
    format!("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{list}")
}
