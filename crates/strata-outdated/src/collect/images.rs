//! Images of machines: cloud images, CD images, templates of containers.

use strata_source::EffectiveStack;
use strata_source::machine::hardware::Hardware;
use strata_source::machine::image::{Image, ImageRef};
use strata_source::stack::Stack;

use super::Pins;
use crate::pin::{Group, What};

pub(super) fn of(pins: &mut Pins<'_>, stack: &EffectiveStack) {
    let Some(machines) = stack.machines() else { return };
    for image in machines.images.values().chain(inline(machines)) {
        let name = image.url.rsplit('/').next().unwrap_or_default();
        let text = image.checksum.as_ref().map(ToString::to_string);
        let checksum_at = text.and_then(|text| pins.beside(&image.url, "checksum", &text));
        let what = What::Image { checksum: image.checksum.clone(), checksum_at };
        pins.add(stack, Group::Images, name, &image.url, what);
    }
}

fn inline(machines: &Stack) -> Vec<&Image> {
    let mut all: Vec<&ImageRef> = Vec::new();
    for template in machines.templates.values() {
        all.extend(&template.image);
        all.extend(of_disks(&template.hardware));
    }
    for vm in machines.vms.values() {
        all.extend(vm.image.iter().chain(&vm.iso));
        all.extend(of_disks(&vm.hardware));
    }
    all.extend(machines.containers.values().map(|container| &container.image));
    let described = |image: &&'_ ImageRef| matches!(image, ImageRef::Inline(_));
    all.into_iter()
        .filter(described)
        .filter_map(|image| match image {
            ImageRef::Inline(image) => Some(image.as_ref()),
            _ => None,
        })
        .collect()
}

fn of_disks(hardware: &Hardware) -> impl Iterator<Item = &ImageRef> {
    let all = hardware.disk.iter().chain(hardware.disks.iter().map(|(_, disk)| disk));
    all.flat_map(|disk| disk.import.iter().chain(&disk.iso))
}
