//! The families of repositories that are read, in the order in which they are looked for: what an earlier one has read is not read again.

use crate::context::Import;
use crate::{clusters, environments, flat, kept, roots, talconfig, topf};

/// One family of repositories.
pub(crate) trait Importer {
    /// Looks for the files of the family, adds what they say to the [`Model`](crate::model::Model), and notes what is left out.
    fn import(&self, import: &mut Import<'_>);
}

/// Declares the families: what each is, and the function that reads it.
macro_rules! families {
    ($( $(#[doc = $doc:literal])* $name:ident => $import:path; )*) => {
        $(
            $(#[doc = $doc])*
            struct $name;

            impl Importer for $name {
                fn import(&self, import: &mut Import<'_>) {
                    $import(import);
                }
            }
        )*

        pub(crate) const IMPORTERS: &[&dyn Importer] = &[$(&$name),*];
    };
}

families! {
    /// The cluster-template family: `cluster.yaml` with `nodes.yaml`, or `cluster.toml`.
    ClusterTemplate => flat::import;
    /// Files that SOPS encrypted, which stay as they are.
    EncryptedFiles => kept::keep;
    /// One `cluster.yaml` for each cluster.
    Clusters => clusters::import;
    /// Templates, VMs and containers by environment.
    Environments => environments::import;
    /// OpenTofu and Terraform: layers, stacks, and any code with a provider of Proxmox.
    Tofu => roots::import;
    /// talhelper: `talconfig.yaml`.
    Talhelper => talconfig::import;
    /// topf: `topf.yaml`.
    Topf => topf::import;
}
