//! Images: that the named ones exist, and what the repository's policy asks of the others.

use strata_diagnostics::{Diagnostic, Diagnostics};

use super::{left_out, suggestion};
use crate::machine::hardware::Hardware;
use crate::machine::image::{Image, ImageRef};
use crate::repository::Repository;
use crate::settings::Policy;
use crate::stack::Stack;

pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    for effective in repository.effective() {
        let Some(stack) = effective.machines() else { continue };
        let policy = repository.settings(&effective.environment).policy.as_ref();
        for image in stack.images.values() {
            described(image, policy, diagnostics);
        }
        for image in used(stack) {
            match image {
                ImageRef::Inline(image) => described(image, policy, diagnostics),
                ImageRef::Volume(_) => {}
                ImageRef::Named(name) if stack.images.names(name) => {}
                ImageRef::Named(name) if effective.left_out("images", name).is_some() => {
                    diagnostics.extend(left_out::entry(effective, ("images", "image"), name, name.span));
                }
                ImageRef::Named(name) => {
                    let known: Vec<&str> = stack.images.keys().collect();
                    let hint = suggestion(name, &known).unwrap_or_else(|| {
                        "add it under `images`, or write a volume: `local:iso/debian.iso`".into()
                    });
                    let problem = Diagnostic::error(
                        "unknown-image",
                        format!("there is no image `{name}` in this stack"),
                    );
                    diagnostics.push(problem.at(name.span).hint(hint));
                }
            }
        }
    }
}

/// Every image that something in the stack uses.
fn used(stack: &Stack) -> Vec<&ImageRef> {
    let mut images = Vec::new();
    for template in stack.templates.values() {
        images.extend(&template.image);
        images.extend(disk_images(&template.hardware));
    }
    for vm in stack.vms.values() {
        images.extend(vm.image.iter().chain(&vm.iso));
        images.extend(disk_images(&vm.hardware));
    }
    images.extend(stack.containers.values().map(|container| &container.image));
    images
}

fn disk_images(hardware: &Hardware) -> impl Iterator<Item = &ImageRef> {
    let all = hardware.disk.iter().chain(hardware.disks.iter().map(|(_, disk)| disk));
    all.flat_map(|disk| disk.import.iter().chain(&disk.iso))
}

fn described(image: &Image, policy: Option<&Policy>, diagnostics: &mut Diagnostics) {
    if image.checksum.is_none() {
        let required = policy.is_some_and(|policy| policy.require_checksum);
        let message = "the image has no checksum: the download is not verified";
        let problem = if required {
            Diagnostic::error("no-checksum", message).note("`policy.requireChecksum` asks for one")
        } else {
            Diagnostic::warning("no-checksum", message)
        };
        diagnostics.push(problem.at(image.url.span).hint("add `checksum: \"sha256:…\"`"));
    }
    let sources = policy.map(|policy| policy.image_sources.as_slice()).unwrap_or_default();
    if !sources.is_empty() && !sources.iter().any(|source| image.url.starts_with(source)) {
        let problem =
            Diagnostic::error("forbidden-source", "images may not come from here").at(image.url.span);
        diagnostics.push(problem.note(format!("`policy.imageSources` allows {}", sources.join(", "))));
    }
}
