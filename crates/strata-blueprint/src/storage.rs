//! The storages that things go to where nothing says otherwise: those of a fresh Proxmox installation.

use strata_source::machine::image::ContentType;
use strata_source::stack::{Stack, StorageDefaults};
use strata_yaml::Spanned;

/// The defaults of a stack, and what one machine says for its own disks.
#[derive(Clone, Copy)]
pub(crate) struct Storages<'a> {
    stack: Option<&'a StorageDefaults>,
    disks: Option<&'a str>,
}

impl<'a> Storages<'a> {
    pub(crate) fn of(stack: &'a Stack, own: Option<&'a Spanned<String>>) -> Self {
        let defaults = stack.proxmox.as_ref().and_then(|proxmox| proxmox.storage.as_ref());
        Self { stack: defaults, disks: own.map(|own| own.value.as_str()) }
    }

    /// Of a cluster.
    pub(crate) fn new(defaults: Option<&'a StorageDefaults>) -> Self {
        Self { stack: defaults, disks: None }
    }

    pub(crate) fn of_disks(&self) -> &'a str {
        self.chosen_for_disks().unwrap_or("local-lvm")
    }

    /// The storage that the source says disks go to.
    pub(crate) fn chosen_for_disks(&self) -> Option<&'a str> {
        let whole = self.stack.and_then(|stack| stack.disk.as_ref()).map(|storage| storage.value.as_str());
        self.disks.or(whole)
    }

    pub(crate) fn of_images(&self, content: ContentType) -> &'a str {
        let chosen = self.stack.and_then(|stack| {
            let own = match content {
                ContentType::Iso => None,
                ContentType::Import => stack.import.as_ref(),
                ContentType::Vztmpl => stack.vztmpl.as_ref(),
            };
            own.or(stack.iso.as_ref())
        });
        chosen.map_or("local", |storage| storage.value.as_str())
    }
}
