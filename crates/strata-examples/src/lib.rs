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

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

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

/// What an example needs to know of the datacenter that it is for.
pub struct ExampleTarget {
    /// The address of its API.
    pub endpoint: String,
    /// The token that is encrypted into the secrets of the repository.
    pub token: String,
    /// The fingerprint of its certificate.
    pub fingerprint: String,
    /// The proxy that leads to its machines.
    pub gateway: String,
}

impl ExampleTarget {
    /// The default world of `strata sim`, which a build without the simulator knows too: its examples fit to the simulator of any other.
    pub fn default_world() -> Self {
        Self {
            endpoint: "https://127.0.0.1:18006".to_owned(),
            token: "strata@pve!demo=5174a7a0-0d9e-4c0f-8f3d-6d6f2d73696d".to_owned(),
            fingerprint: FINGERPRINT.to_owned(),
            gateway: "http://127.0.0.1:18008".to_owned(),
        }
    }
}

/// The fingerprint of the simulator's certificate.
const FINGERPRINT: &str =
    "E7:BB:A5:1F:3F:2C:00:66:6A:1F:E1:89:AD:BC:D8:F0:EE:A1:D0:31:49:00:1E:31:B7:08:7B:50:79:7C:04:36";

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

/// What to do next with a repository that was made from an example, or from nothing.
pub fn advice(from_example: bool) -> [&'static str; 3] {
    [
        if from_example {
            "next: `strata sim` in another terminal, then `strata plan` here"
        } else {
            "next: put your Proxmox endpoint and token into strata.yaml, then add stacks/NAME/stack.yaml"
        },
        "keep a copy of `age.key` outside of this folder: git ignores it, and nobody can read the secrets without it",
        "in git: `git config core.hooksPath .githooks` looks for secrets in the clear before each commit",
    ]
}

/// Writes a file, and the folders that it is in.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode).open(path)?.write_all(bytes)
}

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

    /// The same for a datacenter, in a repository with this id.
    pub fn filled<'e>(
        &'e self,
        target: &'e ExampleTarget,
        repository: &'e str,
    ) -> impl Iterator<Item = (&'static str, String)> + 'e {
        self.files().map(move |(path, text)| {
            let text = text
                .replace("@ENDPOINT@", &target.endpoint)
                .replace("@FINGERPRINT@", &target.fingerprint)
                .replace("@GATEWAY@", &target.gateway)
                .replace("@REPOSITORY@", repository);
            (path, text)
        })
    }
}
