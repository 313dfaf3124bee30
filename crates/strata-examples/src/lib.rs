//! The example repositories, as files that are part of the program.
//!
//! What always holds: an example is what `examples/` of this repository has, to the byte, and the tests apply each of them.
//!
//! ```
//! use strata_examples::{Example, names};
//!
//! let homelab = Example::named("homelab").expect("there is one");
//! assert!(homelab.files().any(|(path, content)| path == "strata.yaml" && content.contains("targets:")));
//! assert!(names().contains(&"prod"));
//! assert!(Example::named("no such").is_none());
//! ```

#![warn(missing_docs)]

/// A repository as a list of files.
pub struct Example {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

macro_rules! example {
    ($name:literal, $($path:literal),* $(,)?) => {
        Example {
            name: $name,
            files: &[$(($path, include_str!(concat!("../../../examples/", $name, "/", $path)))),*],
        }
    };
}

const EXAMPLES: &[Example] = &[
    example!("empty", "strata.yaml"),
    example!(
        "homelab",
        "strata.yaml",
        "clusters/homelab/cluster.yaml",
        "flux/simulated.yaml",
        "stacks/pihole/stack.yaml",
    ),
    example!(
        "prod",
        "strata.yaml",
        "hypervisors/datacenter.yaml",
        "clusters/prod/cluster.yaml",
        "clusters/prod/nodes.yaml",
        "flux/simulated.yaml",
        "stacks/web/stack.yaml",
        "stacks/web/cloud-init/database.yaml",
    ),
    example!("datacenter", "strata.yaml", "hypervisors/datacenter.yaml", "stacks/shop/stack.yaml",),
    example!(
        "environments",
        "strata.yaml",
        "stacks/app/stack.yaml",
        "environments/staging.yaml",
        "environments/prod.yaml",
    ),
];

/// What no repository should commit.
const GITIGNORE: &str = "\
# Strata's own files, keys, and plans
.strata/
age.key
*.agekey
*.plan
# what opens a cluster: `strata talos kubeconfig` and `strata talos config` write it
kubeconfig
*.kubeconfig
talosconfig
*.talosconfig
controlplane.yaml
worker.yaml
/*-cp-*.yaml
/*-worker-*.yaml
# what OpenTofu keeps here
.terraform/
*.tfstate
*.tfstate.*
";

/// The path and the text of a hook of git, to be activated by the user: a clone must not run what it brings along.
pub const PRE_COMMIT: (&str, &str) = (
    ".githooks/pre-commit",
    "#!/bin/sh\n# Keeps secrets in the clear out of the history. Once for each clone: git config core.hooksPath .githooks\nexec strata secrets check\n",
);

/// What there is.
pub fn names() -> Vec<&'static str> {
    EXAMPLES.iter().map(|example| example.name).collect()
}

impl Example {
    /// The one that is called so.
    pub fn named(name: &str) -> Option<&'static Self> {
        EXAMPLES.iter().find(|example| example.name == name)
    }

    /// Paths below the repository, and what is in them.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.files.iter().copied().chain([(".gitignore", GITIGNORE)])
    }
}
