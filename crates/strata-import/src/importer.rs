//! The families of repositories that are read, in the order in which they are looked for: what an earlier one has read is not read again.

use crate::context::Import;
use crate::{clusters, environments, flat, kept, roots, talconfig, topf};

/// One family: looks for its files, writes documents of the new repository, and notes what it leaves out.
pub(crate) type Importer = fn(&mut Import<'_>);

pub(crate) const IMPORTERS: [Importer; 7] = [
    // The cluster-template family: `cluster.yaml` with `nodes.yaml`, or `cluster.toml`.
    flat::import,
    // Files that SOPS encrypted, which stay as they are.
    kept::keep,
    // One `cluster.yaml` for each cluster.
    clusters::import,
    // Templates, VMs and containers by environment.
    environments::import,
    // OpenTofu and Terraform: layers, stacks, and any code with a provider of Proxmox.
    roots::import,
    talconfig::import,
    topf::import,
];
