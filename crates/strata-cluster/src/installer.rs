//! What a node was installed from: the schematic, whether it boots securely, and how that is written as the reference of an installer.

use strata_engine::ProviderError;
use strata_talos_client::{ResourceKind, TalosError, TalosReason};

use crate::cluster::Cluster;
use crate::error::talos;

/// The parts of `HOST/PLATFORM-installer[-secureboot]/SCHEMATIC:VERSION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Installer<'r> {
    /// Everything before the schematic.
    repository: &'r str,
    schematic: Option<&'r str>,
}

/// What a node says about itself; what it does not say is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Installed {
    pub(crate) schematic: Option<String>,
    pub(crate) secure_boot: Option<bool>,
}

impl<'r> Installer<'r> {
    pub(crate) fn of(reference: &'r str) -> Self {
        let bare = reference.split('@').next().unwrap_or(reference);
        let bare = match bare.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => name,
            _ => bare,
        };
        match bare.rsplit_once('/') {
            Some((repository, schematic)) if repository.contains("installer") => {
                Self { repository, schematic: Some(schematic) }
            }
            _ => Self { repository: bare, schematic: None },
        }
    }

    pub(crate) fn secure_boot(self) -> bool {
        self.repository.ends_with("-secureboot")
    }
}

impl Installed {
    /// Whether a node that says this was installed from this image, in whatever version. What is not known is no difference.
    pub(crate) fn is_from(&self, reference: &str) -> bool {
        let installer = Installer::of(reference);
        let schematic = self.schematic.as_deref().zip(installer.schematic);
        schematic.is_none_or(|(own, wanted)| own == wanted)
            && self.secure_boot.is_none_or(|secure| secure == installer.secure_boot())
    }

    /// The reference of what the node has, in the words of the wanted one.
    pub(crate) fn reference(&self, wanted: &str) -> String {
        if self.is_from(wanted) {
            return wanted.to_owned();
        }
        let installer = Installer::of(wanted);
        let plain = installer.repository.trim_end_matches("-secureboot");
        let suffix = if self.secure_boot.unwrap_or(installer.secure_boot()) { "-secureboot" } else { "" };
        let tag = wanted.rsplit_once(':').map_or("", |(_, tag)| tag);
        match self.schematic.as_deref().or(installer.schematic) {
            Some(schematic) => format!("{plain}{suffix}/{schematic}:{tag}"),
            None => format!("{plain}{suffix}:{tag}"),
        }
    }
}

impl Cluster {
    /// Asks a node what it was installed from. A node that does not know the question says nothing.
    pub(crate) async fn installed(&self, address: &str) -> Result<Installed, ProviderError> {
        let client = self.talos(address)?;
        let unknown = |error: &TalosError| {
            error.is_transient()
                || error.is_unreachable()
                || matches!(error.reason, TalosReason::Refused(_) | TalosReason::Unimplemented(_))
        };
        let extensions = match client.list(ResourceKind::EXTENSIONS).await {
            Ok(extensions) => extensions,
            Err(error) if unknown(&error) => return Ok(Installed::default()),
            Err(error) => return Err(talos(error)),
        };
        let named = |resource: &&strata_talos_client::Resource| {
            resource.text(&["metadata", "name"]).as_deref() == Some("schematic")
        };
        let schematic = extensions.iter().find(named).and_then(|own| own.text(&["metadata", "version"]));
        let security = match client.get(ResourceKind::SECURITY, "securitystate").await {
            Ok(security) => security,
            Err(error) if unknown(&error) => None,
            Err(error) => return Err(talos(error)),
        };
        let secure_boot = security.and_then(|own| own.spec.at(&["secureBoot"])?.as_bool());
        Ok(Installed { schematic: schematic.filter(|id| !id.is_empty()), secure_boot })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "factory.talos.dev/nocloud-installer/abc:v1.13.9";

    #[test]
    fn f12_another_schematic_is_another_installer_and_another_version_is_not() {
        let seen = |schematic: &str, secure: Option<bool>| Installed {
            schematic: Some(schematic.to_owned()),
            secure_boot: secure,
        };
        assert_eq!(seen("abc", None).reference(PLAIN), PLAIN);
        assert_eq!(seen("def", None).reference(PLAIN), "factory.talos.dev/nocloud-installer/def:v1.13.9");
        assert_eq!(
            seen("abc", Some(true)).reference(PLAIN),
            "factory.talos.dev/nocloud-installer-secureboot/abc:v1.13.9"
        );
        assert_eq!(Installed::default().reference(PLAIN), PLAIN, "what is not known is no change");
        assert!(seen("abc", None).is_from(PLAIN) && !seen("def", None).is_from(PLAIN));
        assert_eq!(Installer::of(PLAIN), Installer::of("factory.talos.dev/nocloud-installer/abc:v1.12.0"));
        let foreign = "registry.example:5000/siderolabs/installer:v1.13.9";
        assert_eq!(seen("abc", Some(false)).reference(foreign), foreign);
        assert_eq!(Installer::of("registry.example:5000/installer/abc").schematic, Some("abc"));
    }
}
