//! The `infrastructure/` tree that Flux follows, as a beginning: what is there already belongs to its readers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use strata_kubernetes::scaffold::{ScaffoldCluster, scaffold};

use strata_session::{SessionError, Workspace};

/// The files of the tree that are not there yet. Only clusters that choose components have a part in it.
pub fn missing_infrastructure(workspace: &Workspace) -> Result<Vec<(PathBuf, String)>, SessionError> {
    let mut clusters: BTreeMap<&str, ScaffoldCluster> = BTreeMap::new();
    for stack in workspace.repository().effective() {
        let chosen = stack.cluster().and_then(|cluster| cluster.gitops.as_ref()?.infrastructure.as_ref());
        let Some(chosen) = chosen else { continue };
        clusters.entry(&stack.name).or_insert_with(|| ScaffoldCluster {
            name: stack.name.clone(),
            environment: Some(stack.environment.clone()),
            core: chosen.core.iter().map(|name| name.value.clone()).collect(),
            optional: chosen.optional.iter().map(|name| name.value.clone()).collect(),
        });
    }
    if clusters.is_empty() {
        return Ok(Vec::new());
    }
    let clusters: Vec<ScaffoldCluster> = clusters.into_values().collect();
    let files = scaffold(&clusters).map_err(|error| {
        SessionError::failed(error.to_string()).hint("see `gitops.infrastructure` in cluster.yaml")
    })?;
    let placed = files.into_iter().map(|(path, text)| (Path::new("infrastructure").join(path), text));
    Ok(placed.filter(|(path, _)| !workspace.root().join(path).exists()).collect())
}
