//! What is built into Talos images, given to the image factory.

use strata_resource::{Shown, kind};

use super::LETTING_GO;

kind! {
    /// What is built into Talos images, given to the image factory.
    "schematic" {
        called: "schematic {schematic:12}",
        identity: &["schematic"],
        proof: "its id is the digest of its content: it belongs to everybody who writes the same",
        shown: Shown { removal: |_, _| "let go: the image factory keeps it", removing: LETTING_GO, ..Shown::USUAL },
    }
    /// its id: 64 hex digits
    "schematic": Text => InPlace;
    /// what is in it, as YAML
    "content": Text => CreateOnly;
    /// where the image factory is
    "factory": Text => CreateOnly;
}
