//! What an ISO or an installer holds: identified by the names under which the image factory serves them.

use serde::{Deserialize, Serialize};

use super::config::image_tag;
use super::version::Version;

/// A build of Talos: what is booted from a CD, or what an installer puts on a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// `v1.13.0`.
    pub version: String,
    /// Empty where it is not known.
    pub schematic: String,
    /// `nocloud` or `metal`.
    pub platform: String,
    pub secure_boot: bool,
}

impl Image {
    /// By the URL that it was downloaded from: `…/image/SCHEMATIC/VERSION/PLATFORM-ARCH[-secureboot].iso`.
    pub fn from_url(url: &str) -> Option<Self> {
        let path = url.split(['?', '#']).next()?;
        let (_, rest) = path.split_once("/image/")?;
        let mut parts = rest.split('/');
        let (schematic, version, file) = (parts.next()?, parts.next()?, parts.next()?);
        Version::parse(version)?;
        let platform = file.split('-').next()?;
        Some(Self {
            version: version.to_owned(),
            schematic: schematic.to_owned(),
            platform: platform.to_owned(),
            secure_boot: file.contains("-secureboot"),
        })
    }

    /// By the name of its file, for one that was uploaded: it has `talos` and a version in it.
    pub fn from_file(name: &str) -> Option<Self> {
        let file = name.rsplit('/').next()?;
        if !file.contains("talos") {
            return None;
        }
        let version =
            file.split(['-', '_']).find(|part| part.starts_with('v') && Version::parse(part).is_some())?;
        let version = version.trim_end_matches(".iso").to_owned();
        let platform = if file.contains("metal") { "metal" } else { "nocloud" };
        Some(Self {
            version,
            schematic: String::new(),
            platform: platform.to_owned(),
            secure_boot: file.contains("-secureboot"),
        })
    }

    /// By the reference of an installer: `HOST/PLATFORM-installer[-secureboot]/SCHEMATIC:VERSION`.
    pub fn from_installer(reference: &str) -> Option<Self> {
        let version = image_tag(reference)?;
        Version::parse(version)?;
        let name = reference.split('@').next()?.rsplit_once(':')?.0;
        let mut parts = name.rsplit('/');
        let last = parts.next()?;
        let (schematic, kind) = match parts.next() {
            Some(kind) if kind.contains("installer") => (last.to_owned(), kind),
            _ => (String::new(), last),
        };
        if !kind.contains("installer") {
            return None;
        }
        let platform = kind.split_once("-installer").map_or("metal", |(platform, _)| platform);
        Some(Self {
            version: version.to_owned(),
            schematic,
            platform: platform.to_owned(),
            secure_boot: kind.ends_with("-secureboot"),
        })
    }

    pub fn parsed(&self) -> Version {
        Version::parse(&self.version).unwrap_or(Version { major: 1, minor: 11, patch: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_names() {
        let iso = Image::from_url("https://factory.talos.dev/image/abc/v1.13.2/nocloud-amd64-secureboot.iso")
            .unwrap();
        assert_eq!(
            (iso.version.as_str(), iso.platform.as_str(), iso.secure_boot),
            ("v1.13.2", "nocloud", true)
        );
        assert!(Image::from_url("https://example.test/debian.iso").is_none());
        let file = Image::from_file("iso/strata-1-talos-v1.12.0-nocloud-amd64-376567988ad3.iso").unwrap();
        assert_eq!((file.version.as_str(), file.platform.as_str()), ("v1.12.0", "nocloud"));
        let installer = Image::from_installer("factory.talos.dev/nocloud-installer/abc:v1.11.1").unwrap();
        assert_eq!((installer.schematic.as_str(), installer.version.as_str()), ("abc", "v1.11.1"));
        let plain = Image::from_installer("ghcr.io/siderolabs/installer:v1.11.1").unwrap();
        assert_eq!((plain.schematic.as_str(), plain.platform.as_str()), ("", "metal"));
        assert!(Image::from_installer("registry.k8s.io/pause:3.9").is_none());
    }
}
