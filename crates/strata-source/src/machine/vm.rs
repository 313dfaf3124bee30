//! Virtual machines.

use strata_yaml::{Spanned, record};

use crate::machine::cloud_init::CloudInit;
use crate::machine::guest::Guest;
use crate::machine::hardware::Hardware;
use crate::machine::image::ImageRef;

record! {
    /// How a VM is copied from its template.
    pub struct CloneMode [shorthand("full")] {
        /// a full copy; otherwise the disks are linked to the template's
        "full" full: bool = true;
    }
}

record! {
    /// A virtual machine, or `count` equal ones.
    pub struct Vm [at_most_one(&["template", "image", "iso"])] {
        ..guest: Guest;
        /// the template it is cloned from: of this stack, or `stack/template`
        "template" template: Option<Spanned<String>>;
        /// how it is cloned
        "clone" clone_mode: Option<CloneMode>;
        /// a disk image that its first disk begins as a copy of
        "image" image: Option<ImageRef>;
        /// a CD image that it boots from
        "iso" iso: Option<ImageRef>;
        ..hardware: Hardware;
        /// what it is told at its first boot
        "cloudInit" cloud_init: Option<CloudInit>;
    }
}
