//! The id of a schematic: as the user gives it, or as the image factory would name what the user describes.

use strata_source::cluster::Schematic;

pub(crate) fn id(schematic: &Schematic) -> String {
    match &schematic.id {
        Some(id) => id.value.clone(),
        None => strata_talos::Schematic {
            extensions: schematic.extensions.iter().map(|extension| extension.value.clone()).collect(),
            extra_kernel_args: schematic.extra_kernel_args.clone(),
            ..strata_talos::Schematic::default()
        }
        .id(),
    }
}

/// The schematic with nothing added.
pub(crate) fn plain_id() -> String {
    strata_talos::Schematic::default().id()
}
