//! How the machines of a root are filed: what its shape and its folder say.

use super::super::tree::Tree;
use super::super::{groups, layered, name, stacks};
use super::{Kind, Root, own_name};

/// What the variables of a root look like; it says how things are filed, and stands in for code that is not there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shape {
    Stacks,
    Groups,
    Cluster,
}

impl Shape {
    pub(super) fn of(kind: Kind, root: &Root<'_>, values: &Tree) -> Option<Self> {
        if kind == Kind::Stack && stacks::fits(values) {
            Some(Self::Stacks)
        } else if groups::fits(values) {
            Some(Self::Groups)
        } else if layered::is_cluster(root) && kind != Kind::Other {
            Some(Self::Cluster)
        } else {
            None
        }
    }
}

/// Where the machines of a root go.
pub(in super::super) struct Filing {
    /// The name that the stack would like.
    pub(in super::super) stack: String,
    /// The folder below `stacks/` that it lies in; nothing or with a slash behind it.
    pub(in super::super) above: String,
    pub(in super::super) environment: Option<String>,
    pub(in super::super) layer: Option<&'static str>,
}

impl Filing {
    pub(super) fn of(
        root: &Root<'_>,
        kind: Kind,
        shape: Option<Shape>,
        values: &Tree,
        several: bool,
    ) -> Self {
        let environment = root.variant.clone().filter(|_| several || shape.is_some());
        let environment = environment.or_else(|| of_folder(&root.folder));
        let plain = Self {
            stack: own_name(root),
            above: String::new(),
            environment: environment.clone(),
            layer: layer(&root.folder).filter(|_| kind == Kind::Layered),
        };
        match shape {
            Some(Shape::Groups) => {
                let said = values.get("environment_name").and_then(Tree::as_text).or(environment);
                Self { stack: said.clone().unwrap_or(plain.stack), environment: said, ..plain }
            }
            Some(Shape::Cluster) => {
                Self { environment: environment.or_else(|| layered::environment(root)), ..plain }
            }
            _ if kind == Kind::Stack => {
                let inner = root.folder.split_once("stacks/").map_or(root.folder.as_str(), |(_, rest)| rest);
                let mut parts: Vec<String> = inner.split('/').map(name).collect();
                let last = parts.pop().unwrap_or_default();
                let stack = match &root.variant {
                    Some(variant) => format!("{last}-{variant}"),
                    None => last,
                };
                let above = parts.iter().map(|part| format!("{part}/")).collect();
                Self { stack, above, ..plain }
            }
            _ => plain,
        }
    }
}

/// The environment that a root is in by its folder: `environments/dev`.
fn of_folder(folder: &str) -> Option<String> {
    let (above, own) = folder.rsplit_once('/')?;
    let last = above.rsplit('/').next().unwrap_or(above);
    ["environments", "envs", "env", "live"].contains(&last).then(|| own.to_owned())
}

/// The layer that a folder of layered Terraform is for.
fn layer(folder: &str) -> Option<&'static str> {
    folder.split('/').find_map(|part| {
        match part.trim_start_matches(|letter: char| letter.is_ascii_digit() || "-_".contains(letter)) {
            "hypervisors" => Some("hypervisors"),
            "platforms" => Some("platforms"),
            "legacy" => Some("workloads"),
            _ => None,
        }
    })
}
