//! The file of a cluster's own secrets: where it is, and whose it is.
//!
//! One set of keys is one cluster. So each environment of a cluster has a file of its own, and the file says who it was made for.

use std::path::{Component, Path, PathBuf};

use strata_diagnostics::{Diagnostics, SourceMap};
use strata_yaml::{Node, Parsed, parse};

use crate::repository::EffectiveStack;

/// Not encrypted by SOPS, so that it can be compared without a key.
const OWNER: &str = "strata_unencrypted";

/// Who a bundle was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleOwner {
    /// The id of the repository.
    pub repository: String,
    pub environment: String,
    /// The name of the stack.
    pub cluster: String,
}

impl BundleOwner {
    /// The owner that a file names; none if it was made by another program.
    pub fn read(content: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(content).ok()?;
        let mut sources = SourceMap::new();
        let file = sources.add("bundle", text);
        let Parsed::Document(tree) = parse(&sources, file, &mut Diagnostics::new()) else { return None };
        let text = |key: &str| {
            let node: &Node = tree.at(&[OWNER, key])?;
            node.as_scalar().map(|scalar| scalar.text.clone())
        };
        Some(Self {
            repository: text("repository")?,
            environment: text("environment")?,
            cluster: text("cluster")?,
        })
    }

    /// The lines that say so, for the end of the file.
    pub fn to_yaml(&self) -> String {
        let Self { repository, environment, cluster } = self;
        let quote = |text: &str| serde_json::Value::from(text).to_string();
        format!(
            "{OWNER}:\n    repository: {}\n    environment: {}\n    cluster: {}\n",
            quote(repository),
            quote(environment),
            quote(cluster)
        )
    }
}

impl std::fmt::Display for BundleOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` in `{}`", self.cluster, self.environment)
    }
}

impl EffectiveStack {
    /// The file of the cluster's own secrets, from the root of the repository. An environment that is laid over the cluster has one
    /// of its own.
    pub fn bundle_path(&self, is_file: impl Fn(&Path) -> bool) -> Option<PathBuf> {
        let cluster = self.cluster()?;
        if let Some(named) = &cluster.cluster.talos.secrets {
            return Some(self.beside(&named.value));
        }
        let of_environment = |name: &str| match self.is_default_environment {
            true => self.beside(&format!("{name}.sops.yaml")),
            false => self.beside(&format!("{name}.{}.sops.yaml", self.environment)),
        };
        // What talhelper calls it.
        let talhelper = of_environment("talsecret");
        Some(if is_file(&talhelper) { talhelper } else { of_environment("talos") })
    }

    /// The files that every environment shared before each had its own.
    pub fn former_bundle_paths(&self) -> Vec<PathBuf> {
        let named = self.cluster().is_none_or(|cluster| cluster.cluster.talos.secrets.is_some());
        if named || self.is_default_environment {
            return Vec::new();
        }
        ["talsecret.sops.yaml", "talos.sops.yaml"].iter().map(|name| self.beside(name)).collect()
    }

    /// A path from the folder of the stack, without detours, so that two ways to one file are equal.
    fn beside(&self, path: &str) -> PathBuf {
        let mut straight = PathBuf::new();
        for part in Path::new(&self.folder).join(path).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir if straight.file_name().is_some() => {
                    straight.pop();
                }
                part => straight.push(part),
            }
        }
        straight
    }
}
