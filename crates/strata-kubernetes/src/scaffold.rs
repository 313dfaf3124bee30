//! The `infrastructure/` tree that Flux follows: sources, core components with an overlay for each cluster, optional ones.
//!
//! It is a beginning and belongs to its readers: plain Kustomize, with nothing in it that only Strata understands. The same
//! clusters always give the same files.

mod component;
mod render;

use std::collections::BTreeSet;
use std::path::PathBuf;

use self::component::core_components;
pub use self::component::optional_components;
use self::component::{COMPONENTS, Component, Group};

/// What one cluster gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaffoldCluster {
    pub name: String,
    /// Decides on sizes and replicas: `prod` and `production` are spread, `staging` is in between, all others are small.
    pub environment: Option<String>,
    pub core: Vec<String>,
    pub optional: Vec<String>,
}

impl ScaffoldCluster {
    /// With all core components and no optional one.
    pub fn new(name: impl Into<String>, environment: Option<&str>) -> Self {
        Self {
            name: name.into(),
            environment: environment.map(str::to_owned),
            core: core_components().map(str::to_owned).collect(),
            optional: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScaffoldError {
    #[error("there is no {group} component `{name}`; there are: {known}")]
    Unknown { group: &'static str, name: String, known: String },
    #[error("`{0}` cannot be the name of an overlay: it takes lower-case letters, digits and `-`")]
    Name(String),
    #[error("the cluster `{0}` is there twice")]
    Twice(String),
}

/// The files below `infrastructure/`, by path, in order.
pub fn scaffold(clusters: &[ScaffoldCluster]) -> Result<Vec<(PathBuf, String)>, ScaffoldError> {
    let mut chosen = Vec::with_capacity(clusters.len());
    let mut names = BTreeSet::new();
    for cluster in clusters {
        if !is_name(&cluster.name) {
            return Err(ScaffoldError::Name(cluster.name.clone()));
        }
        if !names.insert(cluster.name.as_str()) {
            return Err(ScaffoldError::Twice(cluster.name.clone()));
        }
        let mut components = find(Group::Core, &cluster.core)?;
        components.extend(find(Group::Optional, &cluster.optional)?);
        chosen.push((cluster, components));
    }
    // In the order of the table, each once.
    let used: Vec<&Component> = COMPONENTS
        .iter()
        .filter(|component| chosen.iter().any(|(_, list)| list.iter().any(|one| one.name == component.name)))
        .collect();
    let mut files = render::readme();
    files.extend(render::sources(&used));
    files.extend(used.iter().flat_map(|component| render::component(component)));
    for (cluster, components) in &chosen {
        files.extend(render::overlay(cluster, components));
    }
    files.sort();
    Ok(files.into_iter().map(|(path, text)| (PathBuf::from(path), text)).collect())
}

fn find(group: Group, names: &[String]) -> Result<Vec<&'static Component>, ScaffoldError> {
    let known = || COMPONENTS.iter().filter(move |component| component.group == group);
    for name in names {
        if !known().any(|component| component.name == name) {
            return Err(ScaffoldError::Unknown {
                group: group.word(),
                name: name.clone(),
                known: known().map(|component| component.name).collect::<Vec<_>>().join(", "),
            });
        }
    }
    Ok(known().filter(|component| names.iter().any(|name| name == component.name)).collect())
}

fn is_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty()
        && name.len() <= 63
        && name.chars().all(good)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::read_values;

    fn files() -> Vec<(PathBuf, String)> {
        let mut prod = ScaffoldCluster::new("prod", Some("production"));
        prod.optional.push("kube-prometheus-stack".to_owned());
        scaffold(&[ScaffoldCluster::new("homelab", None), prod]).unwrap()
    }

    #[test]
    fn has_the_tree_that_people_know() {
        let files = files();
        let paths: Vec<_> = files.iter().map(|(path, _)| path.to_str().unwrap()).collect();
        assert_eq!(
            paths,
            [
                "README.md",
                "core/base/cert-manager/helmrelease.yaml",
                "core/base/cert-manager/kustomization.yaml",
                "core/base/cert-manager/namespace.yaml",
                "core/base/ingress-nginx/helmrelease.yaml",
                "core/base/ingress-nginx/kustomization.yaml",
                "core/base/ingress-nginx/namespace.yaml",
                "core/overlays/homelab/cert-manager.yaml",
                "core/overlays/homelab/cluster.yaml",
                "core/overlays/homelab/ingress-nginx.yaml",
                "core/overlays/homelab/kustomization.yaml",
                "core/overlays/prod/cert-manager.yaml",
                "core/overlays/prod/cluster.yaml",
                "core/overlays/prod/ingress-nginx.yaml",
                "core/overlays/prod/kube-prometheus-stack.yaml",
                "core/overlays/prod/kustomization.yaml",
                "optional/kube-prometheus-stack/helmrelease.yaml",
                "optional/kube-prometheus-stack/kustomization.yaml",
                "optional/kube-prometheus-stack/namespace.yaml",
                "sources/ingress-nginx.yaml",
                "sources/jetstack.yaml",
                "sources/kustomization.yaml",
                "sources/prometheus-community.yaml",
            ]
        );
        assert_eq!(files, self::files());
    }

    #[test]
    fn every_file_is_yaml_and_every_reference_leads_somewhere() {
        let files = files();
        for (path, text) in files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "yaml")) {
            let values = read_values(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(values.len(), 1, "{}", path.display());
            for resource in values[0].get("resources").and_then(|list| list.as_array()).into_iter().flatten()
            {
                let mut target = path.parent().unwrap().to_path_buf();
                for part in resource.as_str().unwrap().split('/') {
                    if part == ".." {
                        target.pop();
                    } else {
                        target.push(part);
                    }
                }
                let there = |(path, _): &(PathBuf, String)| {
                    *path == target || *path == target.join("kustomization.yaml")
                };
                assert!(files.iter().any(there), "{}: {resource}", path.display());
            }
        }
    }

    #[test]
    fn environments_differ() {
        let files = files();
        let text = |path: &str| files.iter().find(|(p, _)| p.to_str() == Some(path)).unwrap().1.as_str();
        assert_ne!(
            text("core/overlays/homelab/ingress-nginx.yaml"),
            text("core/overlays/prod/ingress-nginx.yaml")
        );
    }

    #[test]
    fn says_what_it_does_not_know() {
        let mut cluster = ScaffoldCluster::new("a", None);
        cluster.core = vec!["traefik".to_owned()];
        assert_eq!(
            scaffold(&[cluster]).unwrap_err().to_string(),
            "there is no core component `traefik`; there are: cert-manager, ingress-nginx"
        );
        assert!(matches!(scaffold(&[ScaffoldCluster::new("../x", None)]), Err(ScaffoldError::Name(_))));
        let twice = [ScaffoldCluster::new("a", None), ScaffoldCluster::new("a", None)];
        assert_eq!(scaffold(&twice), Err(ScaffoldError::Twice("a".to_owned())));
    }
}
