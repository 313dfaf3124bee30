//! The image factory: schematics, their ids, and the names of images.

mod schematic;

use std::fmt;

pub use schematic::{Overlay, Schematic, SecureBoot};

/// The installer that talosctl 1.14.1 names where nobody does: no extensions, bare metal.
pub(crate) const DEFAULT_INSTALLER: &str = "factory.talos.dev/metal-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.14.1";

/// Where a machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Platform {
    /// Proxmox: Talos reads its address from a NoCloud drive.
    NoCloud,
    /// Bare metal.
    Metal,
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCloud => "nocloud",
            Self::Metal => "metal",
        })
    }
}

/// The processor architecture of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Arch {
    #[default]
    Amd64,
    Arm64,
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        })
    }
}

/// One image of the factory: a schematic in a version, for a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactoryImage {
    /// 64 hex digits.
    pub schematic: String,
    /// With or without the `v`.
    pub version: String,
    pub platform: Platform,
    pub arch: Arch,
    pub secure_boot: bool,
}

/// An image factory: the public one, or one's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factory {
    base: String,
}

/// The factory's address is no HTTP URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address of an image factory; write `https://HOST`")]
pub struct BadFactory(String);

impl Default for Factory {
    fn default() -> Self {
        Self { base: "https://factory.talos.dev".to_owned() }
    }
}

impl Factory {
    /// A factory at this URL, or a mirror of one.
    pub fn new(url: &str) -> Result<Self, BadFactory> {
        let bad = || BadFactory(url.to_owned());
        let parsed = url::Url::parse(url).map_err(|_| bad())?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
            return Err(bad());
        }
        Ok(Self { base: url.trim_end_matches('/').to_owned() })
    }

    pub fn url(&self) -> &str {
        &self.base
    }

    /// Where a schematic is posted to; the answer has its id.
    pub fn schematics_url(&self) -> String {
        format!("{}/schematics", self.base)
    }

    /// The ISO that a machine boots from first.
    pub fn iso_url(&self, image: &FactoryImage) -> String {
        let FactoryImage { schematic, platform, arch, .. } = image;
        let version = image.tag();
        format!("{}/image/{schematic}/{version}/{platform}-{arch}{}.iso", self.base, image.suffix())
    }

    /// The container image that a machine is installed and upgraded from.
    pub fn installer(&self, image: &FactoryImage) -> String {
        let registry = self.base.split_once("://").map_or(self.base.as_str(), |(_, registry)| registry);
        let FactoryImage { schematic, platform, .. } = image;
        format!("{registry}/{platform}-installer{}/{schematic}:{}", image.suffix(), image.tag())
    }
}

impl FactoryImage {
    fn tag(&self) -> String {
        format!("v{}", self.version.strip_prefix('v').unwrap_or(&self.version))
    }

    fn suffix(&self) -> &'static str {
        if self.secure_boot { "-secureboot" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_as_the_factory_names_them() {
        let mut image = FactoryImage {
            schematic: Schematic::default().id(),
            version: "1.14.1".to_owned(),
            platform: Platform::Metal,
            arch: Arch::Amd64,
            secure_boot: false,
        };
        let factory = Factory::default();
        assert_eq!(factory.installer(&image), DEFAULT_INSTALLER);
        image.platform = Platform::NoCloud;
        image.secure_boot = true;
        image.version = "v1.13.9".to_owned();
        let id = &image.schematic;
        assert_eq!(
            factory.iso_url(&image),
            format!("https://factory.talos.dev/image/{id}/v1.13.9/nocloud-amd64-secureboot.iso")
        );
        let own =
            Factory::new("https://factory.internal.example:8443/").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            own.installer(&image),
            format!("factory.internal.example:8443/nocloud-installer-secureboot/{id}:v1.13.9")
        );
        assert_eq!(own.schematics_url(), "https://factory.internal.example:8443/schematics");
        for bad in ["factory.talos.dev", "ftp://x", ""] {
            assert_eq!(Factory::new(bad), Err(BadFactory(bad.to_owned())));
        }
    }
}
