//! Images: what a VM boots from, a template is made of, or a container begins with.

use strata_yaml::{Context, Decode, Node, Shape, Spanned, TextRule, TextShape, choice, record};

use crate::value::checksum::Checksum;
use crate::value::name::{ID, URL};

choice! {
    /// The kind of volume that an image becomes.
    pub enum ContentType {
        /// A CD image.
        Iso = "iso",
        /// A disk image that disks are imported from.
        Import = "import",
        /// A container's root file system.
        Vztmpl = "vztmpl",
    }
}

const FILE: TextRule = TextRule {
    shape: TextShape {
        what: "a file name of letters, digits, `-`, `_`, `.` and `+`",
        pattern: Some("^[A-Za-z0-9][A-Za-z0-9._+-]{0,254}$"),
    },
    accepts: |text| {
        let mut bytes = text.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
            && text.len() <= 255
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+'))
    },
};

record! {
    /// A file that Proxmox downloads by itself.
    pub struct Image {
        /// where Proxmox downloads it from
        "url" url: Spanned<String> [text(URL)];
        /// what the file must hash to, with the algorithm: `sha256:…`
        "checksum" checksum: Option<Checksum>;
        /// the storage it is kept on; otherwise the stack's storage for images
        "storage" storage: Option<Spanned<String>> [text(ID)];
        /// the extension of the stored file where the URL does not show it: `iso`, `qcow2`, `raw`, `vmdk`, `tar.zst`
        "format" format: Option<ImageFormat>;
        /// the name of the stored file; otherwise Strata makes one that says what is in it. A file of this name that is there already is not
        /// taken for ours
        "fileName" file_name: Option<Spanned<String>> [text(FILE)];
        /// the kind of volume; otherwise by the extension and by what uses the image
        "contentType" content_type: Option<ContentType>;
    }
}

choice! {
    /// What is inside an image file.
    pub enum ImageFormat {
        Iso = "iso",
        Qcow2 = "qcow2",
        Raw = "raw",
        Vmdk = "vmdk",
        TarGz = "tar.gz",
        TarXz = "tar.xz",
        TarZst = "tar.zst",
    }
}

impl ImageFormat {
    pub fn content_type(self) -> ContentType {
        match self {
            Self::Iso => ContentType::Iso,
            Self::Qcow2 | Self::Raw | Self::Vmdk => ContentType::Import,
            Self::TarGz | Self::TarXz | Self::TarZst => ContentType::Vztmpl,
        }
    }

    /// By the end of a file name; `.img` is the qcow2 image of Ubuntu and others.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let ends = [
            (".iso", Self::Iso),
            (".qcow2", Self::Qcow2),
            (".img", Self::Qcow2),
            (".raw", Self::Raw),
            (".vmdk", Self::Vmdk),
            (".tar.gz", Self::TarGz),
            (".tgz", Self::TarGz),
            (".tar.xz", Self::TarXz),
            (".txz", Self::TarXz),
            (".tar.zst", Self::TarZst),
        ];
        ends.iter().find(|(end, _)| name.ends_with(end)).map(|(_, format)| *format)
    }
}

impl Image {
    /// What is inside, as written or by the URL.
    pub fn detected_format(&self) -> Option<ImageFormat> {
        let path = self.url.split(['?', '#']).next().unwrap_or_default();
        let by_name = || self.file_name.as_ref().and_then(|name| ImageFormat::of_name(name));
        self.format.or_else(|| ImageFormat::of_name(path)).or_else(by_name)
    }
}

/// An image where it is used.
#[derive(Debug, Clone, PartialEq)]
pub enum ImageRef {
    /// One of the stack's `images`.
    Named(Spanned<String>),
    /// A volume that is there already: `local:iso/debian.iso`. Strata neither makes nor deletes it.
    Volume(Spanned<String>),
    /// Described in place.
    Inline(Box<Image>),
}

const TEXT: TextShape = TextShape {
    what: "a mapping with a `url`, the name of one of `images`, or a volume such as `local:iso/debian.iso`",
    pattern: None,
};

impl Decode for ImageRef {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Text(TEXT), Image::shape()])
    }

    fn decode(node: &Node, cx: &mut Context<'_>) -> Option<Self> {
        if node.as_mapping().is_some_and(|mapping| !mapping.keys().any(|key| key == "env" || key == "file")) {
            return Image::decode(node, cx).map(|image| Self::Inline(Box::new(image)));
        }
        let name = strata_yaml::decode_text(node, TEXT, cx, |text| {
            if text.starts_with("http://") || text.starts_with("https://") {
                return Err(format!("a URL stands in a mapping, with its checksum: `{{url: {text}}}`"));
            }
            Ok(text.to_owned())
        })?;
        let name = Spanned::new(name, node.span);
        Some(if name.contains(':') { Self::Volume(name) } else { Self::Named(name) })
    }
}
