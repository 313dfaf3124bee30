//! What the tests share: files beside the workspace, options from a command line, randomness from a seed.

use std::path::{Path, PathBuf};

use strata_secret::SecretString;
use strata_talos::{GenConfigArgs, PatchSource};

/// A directory beside the workspace, if it is there.
pub(crate) fn beside_workspace(path: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.parent()?.parent()?;
    Some(root.join(path)).filter(|path| path.is_dir())
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The flags of `talosctl gen config` as our options.
pub(crate) fn with_flags(mut args: GenConfigArgs, flags: &[String]) -> GenConfigArgs {
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        let (flag, value) = match flag.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (flag.as_str(), None),
        };
        let mut value = || value.clone().or_else(|| flags.next().cloned()).expect("a value");
        let list = |value: String| value.split(',').map(str::to_owned).collect::<Vec<_>>();
        match flag {
            "--kubernetes-version" => args.kubernetes_version = Some(value()),
            "--additional-sans" => args.additional_sans.extend(list(value())),
            "--registry-mirror" => args.registry_mirrors.extend(list(value())),
            "--dns-domain" => args.dns_domain = Some(value()),
            "--install-disk" => args.install_disk = Some(value()),
            "--install-image" => args.install_image = Some(value()),
            "--with-kubespan" => args.with_kubespan = true,
            "--with-cluster-discovery" => args.with_cluster_discovery = value() == "true",
            "--config-patch" => args.config_patches.push(patch(&value())),
            "--config-patch-control-plane" => args.config_patches_control_plane.push(patch(&value())),
            "--config-patch-worker" => args.config_patches_worker.push(patch(&value())),
            flag => panic!("no option for `{flag}`"),
        }
    }
    args
}

pub(crate) fn patch(text: &str) -> PatchSource {
    let text = match text.strip_prefix('@') {
        Some(path) => read(Path::new(path)),
        None => text.to_owned(),
    };
    PatchSource { origin: "a test".to_owned(), text: SecretString::from(text) }
}

/// Bytes that look random and are the same every time.
pub(crate) fn seeded(seed: u64) -> impl FnMut(&mut [u8]) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |buffer: &mut [u8]| {
        for byte in buffer {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = (state >> 32) as u8;
        }
    }
}

/// A moment that every test agrees on.
pub(crate) fn now() -> jiff::Timestamp {
    "2026-11-15T12:00:00Z".parse().expect("a time")
}
