//! With the real programs; run by `just interop`, which sets the variables.

mod control_plane;
mod gitops;

use std::fs;
use std::process::Command;

use strata_kubernetes::read_manifest;
use strata_kubernetes::scaffold::{ScaffoldCluster, optional_components, scaffold};

/// The program that a variable names.
fn program(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set"))
}

#[test]
#[ignore = "needs kubectl: just interop kustomize"]
fn kustomize_builds_every_overlay() {
    let clusters = [("homelab", None), ("staging", Some("staging")), ("prod", Some("prod"))].map(
        |(name, environment)| {
            let mut cluster = ScaffoldCluster::new(name, environment);
            cluster.optional = optional_components().map(str::to_owned).collect();
            cluster
        },
    );
    let bare = ScaffoldCluster { core: Vec::new(), ..ScaffoldCluster::new("bare", None) };
    let clusters: Vec<_> = clusters.into_iter().chain([bare]).collect();
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in scaffold(&clusters).unwrap() {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    for cluster in &clusters {
        let overlay = folder.path().join("core/overlays").join(&cluster.name);
        let output = Command::new(program("STRATA_KUBECTL")).arg("kustomize").arg(overlay).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {errors}", cluster.name);
        assert_eq!(errors, "", "{}", cluster.name);
        let objects = read_manifest(&output.stdout).unwrap();
        let releases: Vec<_> = objects.iter().filter(|object| object.kind() == "HelmRelease").collect();
        assert_eq!(releases.len(), cluster.core.len() + cluster.optional.len());
        let sources = objects.iter().filter(|object| object.kind() == "HelmRepository").count();
        assert_eq!(sources > 0, !releases.is_empty());
        let replicas = releases.iter().find_map(|release| release.at("/spec/values/controller/replicaCount"));
        let expected = match cluster.name.as_str() {
            "homelab" => Some(1),
            "staging" => Some(2),
            "prod" => Some(3),
            _ => None,
        };
        assert_eq!(replicas.and_then(|replicas| replicas.as_i64()), expected, "{}", cluster.name);
    }
}
