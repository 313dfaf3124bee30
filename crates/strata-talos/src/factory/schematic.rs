//! Schematics: what is built into an image. The factory names one by the digest of its canonical text.

use sha2::{Digest as _, Sha256};

use crate::tree::{Map, Value, tree};
use crate::yaml::write;

/// What is built into an image, in the order that it is written in; the order of lists counts for the id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schematic {
    pub overlay: Option<Overlay>,
    /// A machine configuration inside the image.
    pub embedded_machine_configuration: Option<String>,
    /// Added to the kernel's command line.
    pub extra_kernel_args: Vec<String>,
    /// Initial values of Talos' META partition, by key.
    pub meta: Vec<(u8, String)>,
    /// System extensions such as `siderolabs/qemu-guest-agent`.
    pub extensions: Vec<String>,
    pub bootloader: Option<String>,
    pub secure_boot: SecureBoot,
    /// Bytes in a sector of a disk image.
    pub sector_size: Option<u32>,
}

/// What a single-board computer needs on top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay {
    pub image: String,
    pub name: String,
    pub options: Vec<(String, String)>,
}

/// How keys of Secure Boot are enrolled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecureBoot {
    pub enroll_keys: Option<String>,
    pub include_well_known_certificates: bool,
}

impl Schematic {
    /// The text that is posted to the factory, and that the id is made from.
    pub fn to_yaml(&self) -> String {
        let mut root = Map::new();
        if let Some(overlay) = &self.overlay {
            root.insert("overlay".to_owned(), overlay.to_value());
        }
        root.insert("customization".to_owned(), Value::Map(self.customization()));
        write(&Value::Map(root)).to_string()
    }

    /// The SHA-256 of the text, in hex.
    pub fn id(&self) -> String {
        hex::encode(Sha256::digest(self.to_yaml()))
    }

    fn customization(&self) -> Map {
        let mut map = Map::new();
        let mut set = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
        if let Some(configuration) =
            self.embedded_machine_configuration.as_ref().filter(|text| !text.is_empty())
        {
            set("embeddedMachineConfiguration", configuration.as_str().into());
        }
        if !self.extra_kernel_args.is_empty() {
            set("extraKernelArgs", Value::texts(self.extra_kernel_args.iter().cloned()));
        }
        if !self.meta.is_empty() {
            let value =
                |(key, value): &(u8, String)| tree! { "key" => u16::from(*key), "value" => value.as_str() };
            set("meta", Value::List(self.meta.iter().map(value).collect()));
        }
        if !self.extensions.is_empty() {
            let extensions = Value::texts(self.extensions.iter().cloned());
            set("systemExtensions", tree! { "officialExtensions" => extensions });
        }
        if let Some(bootloader) = &self.bootloader {
            set("bootloader", bootloader.as_str().into());
        }
        let mut secure_boot = Map::new();
        if let Some(enroll) = &self.secure_boot.enroll_keys {
            secure_boot.insert("enrollKeys".to_owned(), enroll.as_str().into());
        }
        if self.secure_boot.include_well_known_certificates {
            secure_boot.insert("includeWellKnownCertificates".to_owned(), true.into());
        }
        if !secure_boot.is_empty() {
            set("secureboot", Value::Map(secure_boot));
        }
        if let Some(size) = self.sector_size {
            set("diskImage", tree! { "sectorSize" => size });
        }
        map
    }
}

impl Overlay {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("image".to_owned(), self.image.as_str().into());
        map.insert("name".to_owned(), self.name.as_str().into());
        if !self.options.is_empty() {
            let mut options: Map =
                self.options.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
            options.sort_unstable_keys();
            map.insert("options".to_owned(), Value::Map(options));
        }
        Value::Map(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The ids are those that the image factory's own tests and pages give.
    #[test]
    fn ids_are_those_of_the_factory() {
        let texts = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let schematics = [
            (Schematic::default(), "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"),
            (
                Schematic { extensions: texts(&["siderolabs/qemu-guest-agent"]), ..Schematic::default() },
                "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515",
            ),
            (
                Schematic { extra_kernel_args: texts(&["noapic", "nolapic"]), ..Schematic::default() },
                "9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c",
            ),
            (
                Schematic { meta: vec![(10, "foo".to_owned())], ..Schematic::default() },
                "d308a2a5ee2277bed5fbaa104fcbc8d59122abfa737df987a95b4ca763459a7f",
            ),
            (
                Schematic {
                    secure_boot: SecureBoot { enroll_keys: None, include_well_known_certificates: true },
                    ..Schematic::default()
                },
                "fa8e05f142a851d3ee568eb0a8e5841eaf6b0ebc8df9a63df16ac5ed2c04f3e6",
            ),
            (
                Schematic { sector_size: Some(4096), ..Schematic::default() },
                "92833e9ddd9bb9e11b2464fa5525429f01866306d52ebd882ee08d7918f6d1ea",
            ),
            (
                Schematic {
                    overlay: Some(Overlay {
                        image: "siderolabs/sbc-raspberrypi".to_owned(),
                        name: "rpi_generic".to_owned(),
                        options: Vec::new(),
                    }),
                    ..Schematic::default()
                },
                "ee21ef4a5ef808a9b7484cc0dda0f25075021691c8c09a276591eedb638ea1f9",
            ),
        ];
        for (schematic, id) in schematics {
            assert_eq!(schematic.id(), id, "{}", schematic.to_yaml());
        }
    }

    #[test]
    fn long_values_are_blocks() {
        let schematic = Schematic {
            embedded_machine_configuration: Some("machine:\n  x: y".to_owned()),
            meta: vec![(10, "a: b\nc:\n  - d\n".to_owned()), (11, "x".to_owned())],
            ..Schematic::default()
        };
        let expected = "customization:\n    embeddedMachineConfiguration: |-\n        machine:\n          x: y\n    meta:\n        \
                        - key: 10\n          value: |\n            a: b\n            c:\n              - d\n        \
                        - key: 11\n          value: x\n";
        assert_eq!(schematic.to_yaml(), expected);
    }

    #[test]
    fn what_could_be_mistaken_is_quoted() {
        let arguments = ["-console", "console=ttyS0,115200", "a: b", "0644", "on", "# no"];
        let schematic = Schematic {
            extra_kernel_args: arguments.iter().map(|text| text.to_string()).collect(),
            ..Schematic::default()
        };
        let expected = "customization:\n    extraKernelArgs:\n        - -console\n        - console=ttyS0,115200\n        \
                        - 'a: b'\n        - \"0644\"\n        - 'on'\n        - '# no'\n";
        assert_eq!(schematic.to_yaml(), expected);
    }
}
