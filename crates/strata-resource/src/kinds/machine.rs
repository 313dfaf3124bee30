//! The Talos of one node.
//! ```text
//! machine: Text (the node's name)   role: Text "controlplane" | "worker"   address: Text (where its API answers)
//! vm: Input (the uuid of its VM; a machine of another VM is another machine)
//! version: Text "v1.13.9"   installer: Text (the image that it is installed and upgraded with; another schematic is another one)
//! arch: Text "amd64" (never changes)
//! cordoned: Bool (by an interrupted run of ours)
//! unregistered: Bool (a node that runs, and whose Node is not in Kubernetes; it does not come back by itself)
//! left_etcd: Bool (a control plane whose member was taken out of etcd, and that does not join by itself)
//! media: Text "ejected" (the ISO that it was installed from)
//! config: {<document>: {…}}   the machine configuration as a tree, by document; secrets in it are secrets here.
//!         What other resources own is not in it: the versions of Kubernetes' components, the installer
//! foreign: [Text]   paths of the live configuration that are not in ours; a machine configuration is sent as a whole, so they go
//! ```
//! Whether a change of the configuration reboots the node depends on the path and on the version of Talos: the provider forecasts it.

use crate::rules::ChangeEffect::{InPlace, Replace};
use crate::rules::{FieldRule, KindRules};

pub(super) fn rules() -> KindRules {
    KindRules::new(vec![
        FieldRule::new("role", Replace)
            .because("a node is made a control plane or a worker when it is installed"),
        FieldRule::new("vm", Replace).because("its VM is made anew"),
        FieldRule::new("machine", InPlace),
        FieldRule::new("address", InPlace),
        FieldRule::new("version", InPlace),
        FieldRule::new("installer", InPlace),
        FieldRule::new("arch", InPlace),
        FieldRule::new("cordoned", InPlace).off_by_default(),
        FieldRule::new("left_etcd", InPlace).off_by_default(),
        FieldRule::new("unregistered", InPlace).off_by_default(),
        FieldRule::new("media", InPlace),
        FieldRule::new("foreign", InPlace).set(),
        FieldRule::new("config.*", InPlace).slot().document(),
    ])
}
