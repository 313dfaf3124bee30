//! Templates: VMs that others are cloned from.

use strata_yaml::{Map, Raw, Spanned, record};

use crate::machine::cloud_init::CloudInit;
use crate::machine::guest::{ProxmoxOptions, Timeouts};
use crate::machine::hardware::Hardware;
use crate::machine::image::ImageRef;
use crate::value::name::{HOST, ID, TAG};
use crate::value::place::VM_ID;

record! {
    /// A template made from a cloud image, or adopted as it is.
    pub struct Template [at_most_one(&["node", "nodes"]), lenders(&["use"])] {
        /// the number in the Proxmox cluster; with `nodes`, of the first
        "vmId" vm_id: Spanned<u32> [range(100, 999_999_999), label(VM_ID)];
        /// profiles whose fields it has where it says nothing itself; later ones win
        "use" profiles: Vec<Spanned<String>>;
        /// the disk image it is made of; without one it is never made, only kept as it was adopted
        "image" image: Option<ImageRef>;
        /// otherwise the key
        "name" name: Option<Spanned<String>> [text(HOST), env()];
        /// the Proxmox node; otherwise the stack's
        "node" node: Option<Spanned<String>> [text(ID), aliases(&["hypervisor"])];
        /// one template on each of these nodes, where their storage is not shared
        "nodes" nodes: Vec<Spanned<String>> [text(ID)];
        /// the storage of its disk
        "storage" storage: Option<Spanned<String>> [text(ID)];
        ..hardware: Hardware;
        /// what cloud-init configures in its clones at their first boot, unless they say otherwise
        "cloudInit" cloud_init: Option<CloudInit>;
        /// the pool it is a member of
        "pool" pool: Option<Spanned<String>> [env()];
        /// tags, for people
        "tags" tags: Vec<String> [text(TAG), env()];
        /// notes, for people; Strata adds a line of its own
        "notes" notes: Option<String> [env()];
        /// Strata refuses to destroy it
        "protect" protect: bool = false;
        /// Proxmox refuses to remove it
        "protection" protection: Option<bool>;
        /// how long its steps may take
        "timeouts" timeouts: Option<Timeouts>;
        /// any key that Proxmox knows and Strata has no field for
        "options" options: Map<Raw>;
        /// the same, under another name
        "proxmox" proxmox: Option<ProxmoxOptions>;
    }
}
