//! Which changes need a reboot, by version.
//!
//! Up to 1.13 a node compares its document with `machine` and `cluster` to the new one, apart from the parts that it can apply at once;
//! if anything else differs it reboots. It does not look at the other documents, nor at whether a part that it applies really
//! has an effect. From 1.14 on it applies everything and never reboots: what only the boot reads stays pending.

use crate::config::MachineConfig;
use crate::contract::Contract;
use crate::document::DocumentId;
use crate::shape::V1ALPHA1;
use crate::tree::Value;

use super::RebootEffect;

/// What a node up to 1.13 applies at once.
const IMMEDIATE: [&str; 20] = [
    "debug",
    "cluster",
    "machine.ca",
    "machine.acceptedCAs",
    "machine.time",
    "machine.certSANs",
    "machine.install",
    "machine.network",
    "machine.sysfs",
    "machine.sysctls",
    "machine.logging",
    "machine.controlPlane",
    "machine.kubelet",
    "machine.kernel",
    "machine.registries",
    "machine.pods",
    "machine.seccompProfiles",
    "machine.nodeAnnotations",
    "machine.nodeLabels",
    "machine.nodeTaints",
];

/// The same, if there are features before and after.
const IMMEDIATE_FEATURES: [&str; 5] = [
    "machine.features.kubernetesTalosAPIAccess",
    "machine.features.kubePrism",
    "machine.features.hostDNS",
    "machine.features.imageCache",
    "machine.features.nodeAddressSortAlgorithm",
];

/// What became immediate with 1.14.
const IMMEDIATE_SINCE_14: [&str; 2] = ["machine.udev", "machine.baseRuntimeSpecOverrides"];

/// What only the boot reads: etcd is never restarted by itself, files are written and variables set on the way up, and a
/// volume's keys change when it is unlocked.
const AT_BOOT: [&str; 4] = ["cluster.etcd", "machine.env", "machine.files", "machine.systemDiskEncryption"];

/// Documents that the boot alone reads: environments of services, and whether these run in a sandbox.
const DOCUMENTS_AT_BOOT: [&str; 2] = ["EnvironmentConfig", "SecurityProfileConfig"];

const MODULES: &str = "machine.kernel.modules";

/// A change to judge.
pub(super) struct Touch<'c> {
    pub(super) document: &'c DocumentId,
    /// The names on the way to it; none if the whole document comes or goes.
    pub(super) keys: &'c [String],
    /// It was not there before.
    pub(super) comes: bool,
}

impl Touch<'_> {
    fn is_v1alpha1(&self) -> bool {
        self.document.kind == V1ALPHA1
    }

    /// Whether it is at or below this path.
    fn is_in(&self, path: &str) -> bool {
        let mut keys = self.keys.iter();
        path.split('.').all(|name| keys.next().is_some_and(|key| key == name))
    }

    /// Whether it is above this path, so that it may change what is there.
    fn covers(&self, path: &str) -> bool {
        let mut names = path.split('.');
        self.keys.iter().all(|key| names.next().is_some_and(|name| key == name))
    }

    fn is_in_any(&self, paths: &[&str]) -> bool {
        paths.iter().any(|path| self.is_in(path))
    }
}

pub(super) struct Rules<'c> {
    talos: Contract,
    live: &'c MachineConfig,
    wanted: &'c MachineConfig,
}

impl<'c> Rules<'c> {
    pub(super) fn new(talos: Contract, live: &'c MachineConfig, wanted: &'c MachineConfig) -> Self {
        Self { talos, live, wanted }
    }

    /// The effect, and whether it stays pending.
    pub(super) fn judge(&self, touch: &Touch<'_>) -> (RebootEffect, bool) {
        let at_boot = self.is_at_boot(touch);
        if self.talos >= Contract::V1_14 {
            let effect = match self.is_known(touch) {
                _ if at_boot => RebootEffect::Reboot,
                true => RebootEffect::NoReboot,
                false => RebootEffect::MayReboot,
            };
            return (effect, false);
        }
        let immediate =
            touch.is_in_any(&IMMEDIATE) || self.has_features() && touch.is_in_any(&IMMEDIATE_FEATURES);
        match touch.is_v1alpha1() && !immediate {
            true => (RebootEffect::Reboot, false),
            false => (RebootEffect::NoReboot, at_boot),
        }
    }

    /// Whether 1.14 applies it at once.
    fn is_known(&self, touch: &Touch<'_>) -> bool {
        !touch.is_v1alpha1()
            || touch.is_in_any(&IMMEDIATE)
            || touch.is_in_any(&IMMEDIATE_FEATURES)
            || touch.is_in_any(&IMMEDIATE_SINCE_14)
    }

    fn is_at_boot(&self, touch: &Touch<'_>) -> bool {
        match touch.document.kind {
            V1ALPHA1 if touch.is_in(MODULES) || touch.covers(MODULES) => self.modules_go_or_change(),
            V1ALPHA1 => AT_BOOT.iter().any(|path| touch.is_in(path) || touch.covers(path)),
            // A module is loaded when it comes, and never unloaded.
            "KernelModuleConfig" => !(touch.comes && touch.keys.is_empty()),
            // The partitions of Talos itself are there before any document is.
            "VolumeConfig" => touch
                .keys
                .first()
                .map_or_else(|| self.has_encryption(touch.document), |key| key == "encryption"),
            "RawVolumeConfig" | "SwapVolumeConfig" | "UserVolumeConfig" => {
                touch.keys.first().is_some_and(|key| key == "encryption")
            }
            kind => DOCUMENTS_AT_BOOT.contains(&kind),
        }
    }

    /// Sections that are added or removed as a whole count as changed, whatever is in them.
    fn has_features(&self) -> bool {
        [self.live, self.wanted].iter().all(|config| {
            config.v1alpha1().is_some_and(|document| document.at(&["machine", "features"]).is_some())
        })
    }

    fn has_encryption(&self, id: &DocumentId) -> bool {
        let documents = self.live.documents().iter().chain(self.wanted.documents());
        documents
            .filter(|document| document.id() == *id)
            .any(|document| document.at(&["encryption"]).is_some())
    }

    /// Whether a module that is loaded would not be, or would be with other parameters.
    fn modules_go_or_change(&self) -> bool {
        let modules = |config: &'c MachineConfig| -> &'c [Value] {
            let list = config.v1alpha1().and_then(|document| document.at(&["machine", "kernel", "modules"]));
            list.and_then(Value::as_list).unwrap_or_default()
        };
        let wanted = modules(self.wanted);
        modules(self.live).iter().any(|module| !wanted.contains(module))
    }
}
