//! A NoCloud ISO for one VM. The hash of its content is part of its name, so a change is a new volume.
//! ```text
//! volume: Text volid   storage, node: Text   shared: Bool   vmid: Int
//! files: {user-data, meta-data, vendor-data, network-config: Secret}
//! ```
//! Every file is a secret here: the state holds a digest of it, never the text.

use crate::rules::ChangeEffect::{CreateOnly, InPlace, Replace};
use crate::rules::{FieldRule, KindRules};

pub(super) fn rules() -> KindRules {
    KindRules::new(vec![
        FieldRule::new("volume", Replace).because("the cloud-init data changed"),
        FieldRule::new("storage", Replace).because("the ISO belongs on another storage"),
        FieldRule::new("node", Replace).because("the storage is not shared between hypervisors"),
        FieldRule::new("vmid", InPlace),
        FieldRule::new("shared", CreateOnly),
        FieldRule::new("files.*", CreateOnly).write_only(),
        FieldRule::new("files", CreateOnly).write_only(),
        FieldRule::new("size", CreateOnly).bytes(),
    ])
}
