//! Volumes in a state: those that OpenTofu downloaded become images of the stack, all others are named as they are.

use crate::records::Image;
use std::collections::BTreeSet;

use serde_json::Value as Json;
use strata_source::machine::image::ImageFormat;

use super::{DOWNLOADS, StateNote};
use crate::name;
use crate::output::{Object, Put, checksum};
use strata_tofu::{TofuResource, TofuState};

/// The downloads of a state, and which of them something refers to.
pub(super) struct Images<'s> {
    downloads: Vec<(String, &'s TofuResource)>,
    used: BTreeSet<String>,
}

impl<'s> Images<'s> {
    pub(super) fn of(state: &'s TofuState) -> Self {
        let mut taken = BTreeSet::new();
        let is_download =
            |resource: &&TofuResource| !resource.is_data && DOWNLOADS.contains(&resource.kind.as_str());
        let mut downloads = Vec::new();
        for resource in state.resources.iter().filter(is_download) {
            let attributes = resource.attributes();
            let file = attributes.text("file_name").unwrap_or_default();
            let stem = file.split(['.', '_']).next().unwrap_or_default();
            // A key such as `talos@pve1` names the node, which the stack knows by itself.
            let key = resource.key.as_deref().map(|key| key.split('@').next().unwrap_or(key));
            let speaks = |word: &&str| {
                word.starts_with(|first: char| first.is_ascii_alphabetic())
                    && !["this", "image", "main"].contains(word)
            };
            let wanted =
                name([key, Some(resource.label.as_str())].into_iter().flatten().find(speaks).unwrap_or(stem));
            let free =
                (1..).map(|number| if number == 1 { wanted.clone() } else { format!("{wanted}-{number}") });
            let own = free.into_iter().find(|name| !taken.contains(name)).unwrap_or(wanted.clone());
            taken.insert(own.clone());
            downloads.push((own, resource));
        }
        Self { downloads, used: BTreeSet::new() }
    }

    /// How a machine on a node refers to a volume. An image is one on the node that it was downloaded to; on another node the volume is
    /// only named, or Strata would bring it there too.
    pub(super) fn reference(&mut self, volume: &str, node: &str) -> String {
        let found = self.downloads.iter().find(|(_, resource)| {
            let attributes = resource.attributes();
            attributes.text("id") == Some(volume)
                && attributes.text("node_name") == Some(node)
                && attributes.text("url").is_some()
                && format(resource).is_some()
        });
        match found {
            Some((name, _)) => {
                self.used.insert(name.clone());
                name.clone()
            }
            None => volume.to_owned(),
        }
    }

    /// The `images` of the stack.
    pub(super) fn written(&self, notes: &mut Vec<StateNote>) -> Object {
        let mut images = Object::new();
        for (name, resource) in &self.downloads {
            let attributes = resource.attributes();
            if !self.used.contains(name) {
                let volume = attributes.text("id").unwrap_or_default();
                let message =
                    format!("the volume `{volume}` stays as it is: no machine on its node is made of it");
                notes.push(StateNote::new(&resource.address, message));
                continue;
            }
            let mut image = Object::new();
            image.put(Image::url, attributes.text("url"));
            let sum = attributes.text("checksum").map(str::to_owned);
            image.put(
                Image::checksum,
                checksum(sum, attributes.text("checksum_algorithm").map(str::to_owned)),
            );
            image.put(Image::storage, attributes.text("datastore_id"));
            image.put(Image::file_name, attributes.text("file_name"));
            image.put(Image::content_type, attributes.text("content_type"));
            let url = attributes.text("url").unwrap_or_default();
            if ImageFormat::of_name(url.split(['?', '#']).next().unwrap_or_default()).is_none() {
                image.put(Image::format, format(resource).map(|format| format.to_string()));
            }
            if let Some(algorithm) = attributes.text("decompression_algorithm") {
                let message = format!(
                    "Strata does not unpack `{algorithm}`: a new download would need an image that is unpacked"
                );
                notes.push(StateNote::new(&resource.address, message));
            }
            images.insert(name.clone(), Json::Object(image));
        }
        images
    }
}

fn format(resource: &TofuResource) -> Option<ImageFormat> {
    let attributes = resource.attributes();
    [attributes.text("file_name"), attributes.text("url")]
        .into_iter()
        .flatten()
        .find_map(ImageFormat::of_name)
}
