//! What a change does to a cluster that runs: one table for every key of `cluster.yaml` (`table.rs`), and the settings that a running
//! cluster or node cannot change at all (`settings.rs`). What a plan refuses, and why, is derived from them.

mod settings;
mod table;

pub use settings::{ARCHITECTURE, CLUSTER_NAME, ROLE, SECURE_BOOT, SETTINGS, Scope, Setting};
pub use table::{FieldImpact, Impact, TABLE, impact_of, matches, rows};

use crate::config::MachineConfig;

/// The settings that a configuration changes and that what runs cannot change.
pub fn broken_by(live: &MachineConfig, wanted: &MachineConfig) -> Vec<&'static Setting> {
    SETTINGS.iter().copied().filter(|setting| setting.breaks(live, wanted)).collect()
}

#[cfg(test)]
mod tests {
    use strata_secret::SecretString;

    use super::*;

    fn config(text: &str) -> MachineConfig {
        MachineConfig::from_yaml(&SecretString::from(text)).unwrap_or_else(|error| panic!("{error}"))
    }

    fn names(live: &str, wanted: &str) -> Vec<&'static str> {
        broken_by(&config(live), &config(wanted)).into_iter().map(|setting| setting.name).collect()
    }

    const OLD: &str = "machine: {type: controlplane}
cluster:
  network: {dnsDomain: cluster.local, podSubnets: [10.244.0.0/16], serviceSubnets: [10.96.0.0/12]}
";
    const NEW: &str = "machine: {type: controlplane}
---
{apiVersion: v1alpha1, kind: KubeNetworkConfig, dnsDomain: cluster.local, podSubnets: [10.244.0.0/16], serviceSubnets: [10.96.0.0/12]}
---
{apiVersion: v1alpha1, kind: KubeFlannelCNIConfig, backendType: vxlan}
---
{apiVersion: v1alpha1, kind: KubeProxyConfig, image: 'registry.k8s.io/kube-proxy:v1.36.0'}
";

    #[test]
    fn f7_networks_and_plug_ins_of_a_running_cluster_do_not_change_in_any_version() {
        assert_eq!(names(OLD, NEW), Vec::<&str>::new(), "an upgrade writes the same in another way");
        for (from, to, name) in [
            ("10.244.0.0/16", "10.200.0.0/16", "the network of pods"),
            ("10.96.0.0/12", "10.112.0.0/12", "the network of services"),
            ("cluster.local", "other.local", "the DNS domain"),
        ] {
            for (live, wanted) in [(OLD, OLD), (NEW, NEW), (OLD, NEW), (NEW, OLD)] {
                assert_eq!(names(live, &wanted.replace(from, to)), [name], "{to}");
            }
        }
        let none = OLD.replace("dnsDomain", "cni: {name: none}, dnsDomain");
        assert_eq!(names(OLD, &none), ["the network plug-in"]);
        assert_eq!(names(&none, OLD), ["the network plug-in"]);
        let off = NEW.replace("kind: KubeProxyConfig,", "kind: KubeProxyConfig, enabled: false,");
        assert_eq!(names(NEW, &off), ["kube-proxy"]);
        assert_eq!(names(OLD, &format!("{OLD}  proxy: {{disabled: true}}\n")), ["kube-proxy"]);
        // Other manifests of the same plug-in are how it is upgraded.
        let custom = |url: &str| {
            OLD.replace("dnsDomain", &format!("cni: {{name: custom, urls: ['{url}']}}, dnsDomain"))
        };
        assert_eq!(names(&custom("https://a.example"), &custom("https://b.example")), Vec::<&str>::new());
        let mask = format!("{OLD}  controllerManager: {{extraArgs: {{node-cidr-mask-size: '22'}}}}\n");
        assert_eq!(names(OLD, &mask), ["the share of each node in the network of pods"]);
    }

    #[test]
    fn f5_the_encryption_of_a_disk_that_is_written_does_not_change_in_any_version() {
        let plain = "machine: {type: worker}\n";
        let volume = |key: &str| {
            format!(
                "{plain}---\n{{apiVersion: v1alpha1, kind: VolumeConfig, name: STATE, encryption: {{provider: luks2, keys: [{key}]}}}}\n"
            )
        };
        let legacy = "machine:\n  type: worker\n  systemDiskEncryption: {state: {provider: luks2, keys: [{slot: 0, nodeID: {}}]}}\n";
        let (node, tpm) = ("{slot: 0, nodeID: {}}", "{slot: 0, tpm: {}}");
        assert_eq!(names(plain, &volume(node)), ["disk encryption"]);
        assert_eq!(names(plain, legacy), ["disk encryption"]);
        assert_eq!(names(&volume(node), plain), ["disk encryption"]);
        assert_eq!(names(&volume(node), &volume(tpm)), ["disk encryption"]);
        assert_eq!(
            names(legacy, &volume(node)),
            Vec::<&str>::new(),
            "an upgrade writes the same in another way"
        );
        // A further key is added with one that opens the volume.
        assert_eq!(
            names(&volume(node), &volume(&format!("{node}, {{slot: 1, tpm: {{}}}}"))),
            Vec::<&str>::new()
        );
        let user = |encryption: &str| {
            format!("{plain}---\n{{apiVersion: v1alpha1, kind: UserVolumeConfig, name: data{encryption}}}\n")
        };
        let sealed = ", encryption: {provider: luks2, keys: [{slot: 0, tpm: {}}]}";
        assert_eq!(names(&user(""), &user(sealed)), ["disk encryption"]);
        assert_eq!(names(plain, &user(sealed)), Vec::<&str>::new(), "a new volume is made as it should be");
    }
}
