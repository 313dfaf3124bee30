//! Images: one volume for each image, storage, and node where the storage is not shared.
//!
//! The name of the volume says what it is: our lineage, what it holds, and the checksum (or, without one, a hash of the URL).

use sha2::{Digest, Sha256};
use strata_diagnostics::Span;
use strata_resource::{Address, Kind, Resource, RestartPolicy, Spec, Stage};
use strata_source::machine::image::{ContentType, Image, ImageFormat, ImageRef};
use strata_source::stack::Stack;

use crate::fields::Fields;
use crate::kinds;
use crate::site::Draft;
use crate::storage::Storages;

/// What an image is to its user: a volume, and the resource that brings it, if Strata does.
pub(crate) struct Volume {
    pub(crate) id: String,
    pub(crate) resource: Option<Address>,
    pub(crate) content: ContentType,
}

/// Who asks for an image, and where it must be.
pub(crate) struct ImageUse<'a> {
    /// The name for the resource, if the image has none of its own.
    pub(crate) name: &'a str,
    pub(crate) node: &'a str,
    /// What the user of it takes.
    pub(crate) wanted: ContentType,
    pub(crate) storage: Storages<'a>,
}

/// A volume that Proxmox fetches.
pub(crate) struct Download<'a> {
    pub(crate) name: &'a str,
    pub(crate) file: String,
    pub(crate) storage: String,
    pub(crate) content: ContentType,
    pub(crate) url: &'a str,
    pub(crate) checksum: Option<String>,
    pub(crate) span: Span,
}

impl Draft<'_> {
    pub(crate) fn image(
        &mut self,
        stack: Option<&Stack>,
        reference: &ImageRef,
        used: &ImageUse<'_>,
    ) -> Option<Volume> {
        match reference {
            ImageRef::Volume(volume) => {
                let content = ImageFormat::of_name(volume).map_or(used.wanted, ImageFormat::content_type);
                Some(Volume { id: volume.value.clone(), resource: None, content })
            }
            ImageRef::Named(name) => match stack.and_then(|stack| stack.images.get(name.as_str())) {
                Some(image) => self.download(name, image, used),
                None => {
                    self.refuse("unknown-image", format!("there is no image `{name}`"), name.span);
                    None
                }
            },
            ImageRef::Inline(image) => self.download(used.name, image, used),
        }
    }

    fn download(&mut self, name: &str, image: &Image, used: &ImageUse<'_>) -> Option<Volume> {
        let Some(format) = image.detected_format() else {
            let message = format!("the URL does not show what kind of file `{name}` is");
            self.refuse("unknown-format", message, image.url.span);
            return None;
        };
        let content = image.content_type.unwrap_or_else(|| format.content_type());
        let storage = match &image.storage {
            Some(storage) => storage.value.clone(),
            None => used.storage.of_images(content).to_owned(),
        };
        let download = Download {
            name,
            file: file_name(self.site.lineage.short(), image, format),
            storage,
            content,
            url: &image.url,
            checksum: image.checksum.as_ref().map(ToString::to_string),
            span: image.url.span,
        };
        let (id, address) = self.downloaded(download, used.node);
        Some(Volume { id, resource: Some(address), content })
    }

    /// One resource for each volume, however many ask for it.
    pub(crate) fn downloaded(&mut self, download: Download<'_>, node: &str) -> (String, Address) {
        let Download { name, file, storage, content, url, checksum, span } = download;
        let id = format!("{storage}:{content}/{file}");
        let shared = self.is_shared(&storage);
        let key = (storage.clone(), if shared { String::new() } else { node.to_owned() }, id.clone());
        if let Some(address) = self.images.get(&key) {
            return (self.as_made(address, &id), address.clone());
        }
        let name = if shared { name.to_owned() } else { format!("{name}@{node}") };
        let address = self.unused(kinds::IMAGE, &name);
        self.images.insert(key, address.clone());
        let id = self.as_made(&address, &id);
        let mut spec = Spec::new();
        spec.put("volume", id.clone());
        spec.put("storage", storage.clone());
        spec.put("node", node);
        spec.put("content", content.to_string());
        spec.put("shared", shared);
        spec.put("url", (self.site.mirror)(url));
        spec.put_some("checksum", checksum);
        self.insert(Resource {
            address: address.clone(),
            target: self.target.clone(),
            spec,
            depends_on: Default::default(),
            stage: Stage::Compute,
            protect: false,
            on_change: RestartPolicy::default(),
            ignore: Vec::new(),
            limits: vec![format!("storage:{node}/{storage}")],
            origin: self.origin(span),
        });
        (id, address)
    }

    /// Two different images that want one name: the second gets a number.
    fn unused(&self, kind: Kind, name: &str) -> Address {
        let first = self.address(kind, name);
        if self.blueprint.graph.get(&first).is_none() {
            return first;
        }
        let numbered = (2_u32..).map(|number| self.address(kind, &format!("{name}-{number}")));
        numbered.into_iter().find(|address| self.blueprint.graph.get(address).is_none()).unwrap_or(first)
    }
}

/// `strata-<lineage>-<what>-<content>.<extension>`, unless the source names it.
fn file_name(lineage: &str, image: &Image, format: ImageFormat) -> String {
    if let Some(own) = &image.file_name {
        return own.value.clone();
    }
    let url = image.url.split(['?', '#']).next().unwrap_or_default();
    let last = url.rsplit('/').next().unwrap_or_default();
    let stem = [".iso", ".qcow2", ".img", ".raw", ".vmdk", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.zst"]
        .iter()
        .find_map(|end| last.strip_suffix(end))
        .unwrap_or(last);
    let what: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' })
        .take(48)
        .collect();
    let content = match &image.checksum {
        Some(checksum) => checksum.hex.chars().take(16).collect(),
        None => hex::encode(&Sha256::digest(image.url.as_bytes())[..8]),
    };
    format!("strata-{lineage}-{what}-{content}.{format}")
}
