//! Virtual machines.

use strata_yaml::{Map, Partial, Spanned, record};

use crate::machine::cloud_init::CloudInit;
use crate::machine::guest::Guest;
use crate::machine::hardware::Hardware;
use crate::machine::image::ImageRef;
use crate::value::name::HOST;

record! {
    /// How a VM is copied from its template.
    pub struct CloneMode [shorthand("full")] {
        /// a full copy; otherwise the disks are linked to the template's
        "full" full: bool = true;
    }
}

record! {
    /// A virtual machine, `count` equal ones, or one for each entry of `each`.
    pub struct Vm [at_most_one(&["template", "image", "iso"]), at_most_one(&["each", "count"]), lenders(&["use", "each"])] {
        ..guest: Guest;
        /// one guest for each entry: `web-alice`, `web-bob`; an entry has its `vmId`, and what else differs from the others
        "each" each: Map<Partial<Vm>> [keys(HOST)];
        /// the template it is cloned from: of this stack, or `stack/template`
        "template" template: Option<Spanned<String>>;
        /// how it is cloned
        "clone" clone_mode: Option<CloneMode>;
        /// a disk image that its first disk begins as a copy of
        "image" image: Option<ImageRef>;
        /// a CD image that it boots from
        "iso" iso: Option<ImageRef>;
        ..hardware: Hardware;
        /// what cloud-init configures at its first boot
        "cloudInit" cloud_init: Option<CloudInit>;
    }
}
