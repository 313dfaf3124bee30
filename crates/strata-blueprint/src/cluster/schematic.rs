//! The id of a schematic: as the user gives it, or as the image factory would name what the user describes.

use strata_source::cluster::Schematic;

pub(crate) fn id(schematic: &Schematic) -> String {
    match &schematic.id {
        Some(id) => id.value.clone(),
        None => described(schematic).id(),
    }
}

fn described(schematic: &Schematic) -> strata_talos::Schematic {
    strata_talos::Schematic {
        extensions: schematic.extensions.iter().map(|extension| extension.value.clone()).collect(),
        extra_kernel_args: schematic.extra_kernel_args.clone(),
        ..strata_talos::Schematic::default()
    }
}

/// The schematic with nothing added.
pub(crate) fn plain_id() -> String {
    strata_talos::Schematic::default().id()
}

/// What the factory is told; nothing for one that it knows by its id.
pub(crate) fn content(schematic: &Schematic) -> Option<String> {
    if schematic.id.is_some() {
        return None;
    }
    Some(described(schematic).to_yaml())
}
