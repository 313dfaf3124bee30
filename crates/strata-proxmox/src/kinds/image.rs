//! A volume that Proxmox downloads itself. Its name says what it is, so another content is another volume.

use strata_resource::{Content, kind};

use super::volume::VOLUME;

kind! {
    /// An ISO, a cloud image or a container archive that Proxmox downloads.
    "image" {
        content: Some(Content { name: "volume", by: &["checksum", "url"] }),
        ..VOLUME
    }
    /// the volume
    "volume": Text => Replace [because("another image is another volume")];
    /// the storage that it is on
    "storage": Text => Replace [because("an image stays on the storage it was downloaded to")];
    /// the hypervisor that downloads it
    "node": Text => Replace [because("the storage is not shared between hypervisors")];
    /// `iso`, `import` or `vztmpl`
    "content": Text => Replace [because("the volume has another content type")];
    /// the storage is the same on every hypervisor
    "shared": Bool => CreateOnly;
    /// where it is downloaded from
    "url": Text => CreateOnly;
    /// what the download must add up to: `sha256:…`
    "checksum": Text => CreateOnly;
    /// its size once downloaded
    "size": Int => CreateOnly [bytes];
}

#[cfg(test)]
mod tests {
    use strata_resource::Spec;

    use super::TABLE;

    #[test]
    fn the_node_is_part_of_a_volume_only_where_the_storage_is_not_shared() {
        let volume = |node: &str, shared: bool| -> Spec {
            let json =
                serde_json::json!({"storage": "s", "node": node, "volume": "s:iso/x", "shared": shared});
            serde_json::from_value(json).unwrap()
        };
        let identity = |node, shared| TABLE.identity_of(&volume(node, shared));
        assert_eq!(identity("a", true), identity("b", true));
        assert_ne!(identity("a", false), identity("b", false));
        // The identity of an identity is itself, with or without the node that a journal entry adds.
        let mut entry = identity("a", true);
        assert_eq!(TABLE.identity_of(&entry), entry);
        entry.insert("node".to_owned(), "a".into());
        assert_eq!(TABLE.identity_of(&entry), identity("a", true));
    }
}
