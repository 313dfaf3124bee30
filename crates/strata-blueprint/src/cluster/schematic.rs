//! The id of a schematic: the image factory names it by the SHA-256 of its canonical YAML.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use strata_source::cluster::Schematic;

pub(crate) fn id(schematic: &Schematic) -> String {
    match &schematic.id {
        Some(id) => id.value.clone(),
        None => {
            let extensions: Vec<&str> =
                schematic.extensions.iter().map(|extension| extension.as_str()).collect();
            hash(&schematic.extra_kernel_args, &extensions)
        }
    }
}

/// The schematic with nothing added.
pub(crate) fn plain_id() -> String {
    hash(&[], &[])
}

fn hash(kernel_args: &[String], extensions: &[&str]) -> String {
    let mut yaml = String::new();
    if kernel_args.is_empty() && extensions.is_empty() {
        yaml.push_str("customization: {}\n");
    } else {
        yaml.push_str("customization:\n");
    }
    if !kernel_args.is_empty() {
        yaml.push_str("    extraKernelArgs:\n");
        for argument in kernel_args {
            let _ = writeln!(yaml, "        - {argument}");
        }
    }
    if !extensions.is_empty() {
        yaml.push_str("    systemExtensions:\n        officialExtensions:\n");
        for extension in extensions {
            let _ = writeln!(yaml, "            - {extension}");
        }
    }
    hex::encode(Sha256::digest(yaml))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_the_factory() {
        assert_eq!(plain_id(), "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba");
        assert_eq!(
            hash(&[], &["siderolabs/qemu-guest-agent"]),
            "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
        );
    }
}
