//! A volume that Proxmox downloads itself. Its name says what it is, so a new content is a new volume.
//! ```text
//! volume: Text volid   storage, node: Text (the node that downloads)   content: Text "iso" | "import" | "vztmpl"   shared: Bool
//! url: Text   checksum: Text "sha256:…"   size: Int bytes (fact once downloaded)
//! ```

use crate::rules::ChangeEffect::{CreateOnly, Replace};
use crate::rules::{FieldRule, KindRules};

pub(super) fn rules() -> KindRules {
    KindRules::new(vec![
        FieldRule::new("volume", Replace).because("another image is another volume"),
        FieldRule::new("storage", Replace).because("an image stays on the storage it was downloaded to"),
        FieldRule::new("node", Replace).because("the storage is not shared between hypervisors"),
        FieldRule::new("content", Replace).because("the volume has another content type"),
        FieldRule::new("shared", CreateOnly),
        FieldRule::new("url", CreateOnly),
        FieldRule::new("checksum", CreateOnly),
        FieldRule::new("size", CreateOnly).bytes(),
    ])
}
