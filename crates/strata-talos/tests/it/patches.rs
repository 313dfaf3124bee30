//! Patches: merged, deleted, translated, refused.

use proptest::prelude::*;
use strata_secret::SecretString;
use strata_talos::{ConfigInput, Contract, MachineConfig, Patch, Role, generate};

use crate::node::secrets;

fn base(contract: Contract, role: Role) -> MachineConfig {
    let input = ConfigInput::new(contract, "homelab", "https://192.0.2.40:6443", "1.34.1");
    generate(&input, &secrets(), role).unwrap_or_else(|error| panic!("{error}"))
}

fn patched(contract: Contract, role: Role, patch: &str) -> Result<MachineConfig, String> {
    let patch = Patch::parse(&SecretString::from(patch)).map_err(|error| error.to_string())?;
    patch.apply(base(contract, role)).map_err(|error| error.to_string())
}

/// The lines that a patch adds to the configuration and those that it takes away.
fn difference(contract: Contract, role: Role, patch: &str) -> String {
    let before = base(contract, role).to_yaml().expose().to_owned();
    let after = patched(contract, role, patch)
        .unwrap_or_else(|error| panic!("{error}"))
        .to_yaml()
        .expose()
        .to_owned();
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let mut shown = Vec::new();
    let (mut old, mut new) = (0, 0);
    while old < before.len() || new < after.len() {
        if old < before.len() && new < after.len() && before[old] == after[new] {
            (old, new) = (old + 1, new + 1);
            continue;
        }
        // The nearest line that both have again.
        let ahead = (0..before.len() + after.len())
            .flat_map(|sum| (0..=sum).map(move |left| (left, sum - left)))
            .find(|(left, right)| match (before.get(old + left), after.get(new + right)) {
                (Some(left), Some(right)) => left == right,
                (None, None) => true,
                _ => false,
            });
        let (left, right) = ahead.expect("the ends meet");
        shown.extend(before[old..(old + left).min(before.len())].iter().map(|line| format!("-{line}")));
        shown.extend(after[new..(new + right).min(after.len())].iter().map(|line| format!("+{line}")));
        (old, new) = (old + left, new + right);
    }
    shown.join("\n")
}

#[test]
fn an_old_patch_changes_the_new_documents() {
    let patch = "machine: {network: {nameservers: [192.0.2.1]}, nodeLabels: {pool: general}, kubelet: {extraArgs: {v: 2}}}";
    assert_eq!(
        difference(Contract::V1_14, Role::Worker, patch),
        "+nameservers:\n+    - address: 192.0.2.1\n+labels:\n+    pool: general\n+extraArgs:\n+    v: \"2\""
    );
    let patch = "cluster: {allowSchedulingOnControlPlanes: true, proxy: {disabled: true}, discovery: {enabled: false}}";
    assert_eq!(
        difference(Contract::V1_14, Role::ControlPlane, patch),
        "-kind: DiscoveryServiceConfig\n-name: default\n-endpoint: https://discovery.talos.dev/\n----\n-apiVersion: v1alpha1\n\
         -taints:\n-    node-role.kubernetes.io/control-plane: NoSchedule\n+enabled: false"
    );
    let patch = "machine: {network: {hostname: cp-1}}";
    for contract in [Contract::V1_12, Contract::V1_13, Contract::V1_14] {
        assert_eq!(difference(contract, Role::Worker, patch), "-auto: stable\n+auto: 'off'\n+hostname: cp-1");
    }
    let patch = "machine: {install: {image: x}}";
    let changed = difference(Contract::V1_14, Role::Worker, patch);
    assert!(
        changed.starts_with("-    image: factory.talos.dev") && changed.ends_with("\n+    image: x"),
        "{changed}"
    );
}

#[test]
fn a_setting_that_did_not_move_stays() {
    let patch = "machine: {time: {servers: [time.example.org]}, sysctls: {a: '1'}}";
    for contract in Contract::ALL {
        let shown = difference(contract, Role::Worker, patch);
        assert_eq!(
            shown,
            "+    time:\n+        servers:\n+            - time.example.org\n+    sysctls:\n+        a: \"1\""
        );
    }
    // Only control planes have the documents of Kubernetes' API.
    let shown = difference(Contract::V1_14, Role::Worker, "cluster: {apiServer: {extraArgs: {v: '2'}}}");
    assert_eq!(shown, "+    apiServer:\n+        extraArgs:\n+            v: \"2\"");
}

#[test]
fn what_cannot_be_translated_is_refused_with_the_document() {
    for (patch, path, kind) in [
        (
            "machine: {kubelet: {extraMounts: [{destination: /a}]}}",
            "machine.kubelet.extraMounts",
            "KubeletConfig",
        ),
        (
            "machine: {install: {extraKernelArgs: [a]}}",
            "machine.install.extraKernelArgs",
            "UnattendedInstallConfig",
        ),
        ("cluster: {ca: {crt: YQ==, key: Yg==}}", "cluster.ca", "KubeAPIServerCAConfig"),
        (
            "cluster: {apiServer: {extraVolumes: [{hostPath: /a}]}}",
            "cluster.apiServer.extraVolumes",
            "KubeAPIServerConfig",
        ),
        ("machine: {kubelet: {$patch: delete}}", "machine.kubelet", "KubeletConfig"),
        ("cluster: {network: {cni: {name: custom}}}", "cluster.network.cni", "KubeFlannelCNIConfig"),
        (
            "machine: {kubelet: {disableManifestsDirectory: false}}",
            "machine.kubelet.disableManifestsDirectory",
            "KubeletConfig",
        ),
    ] {
        let error = patched(Contract::V1_14, Role::ControlPlane, patch).err().expect("an error");
        let expected = format!(
            "`{path}` cannot be patched: in this configuration it is part of the document `{kind}`; patch that document instead"
        );
        assert_eq!(error, expected);
        assert!(patched(Contract::V1_11, Role::ControlPlane, patch).is_ok(), "{patch}");
    }
}

#[test]
fn a_json_patch_names_the_document_to_patch() {
    let patch = "[{op: add, path: /machine/network/hostname, value: a}]";
    assert_eq!(
        patched(Contract::V1_12, Role::Worker, patch).err().as_deref(),
        Some(
            "a JSON patch cannot change a configuration of 2 documents; write `machine.network.hostname` as a strategic \
             merge patch of the document `HostnameConfig`"
        )
    );
    let patch = "[{op: add, path: /machine/sysctls, value: {}}]";
    let error = patched(Contract::V1_14, Role::Worker, patch).err().expect("an error");
    assert!(error.ends_with("strategic merge patch of the document `v1alpha1`"), "{error}");
    assert!(patched(Contract::V1_11, Role::Worker, patch).is_ok());
}

#[test]
fn deletions_take_documents_fields_entries_and_items() {
    let delete = "apiVersion: v1alpha1\nkind: HostnameConfig\n$patch: delete\n";
    assert!(!patched(Contract::V1_13, Role::Worker, delete).unwrap().has("HostnameConfig"));
    let shown = difference(
        Contract::V1_13,
        Role::ControlPlane,
        "cluster: {apiServer: {auditPolicy: {$patch: delete}}}",
    );
    assert!(shown.starts_with("-        auditPolicy:\n-            apiVersion"), "{shown}");
    let item = "cluster: {apiServer: {admissionControl: [{name: PodSecurity, $patch: delete}]}}";
    let config = patched(Contract::V1_13, Role::ControlPlane, item).unwrap();
    assert!(!config.to_yaml().expose().contains("PodSecurity"));
    let label =
        "machine: {nodeLabels: {node.kubernetes.io/exclude-from-external-load-balancers: {$patch: delete}}}";
    assert!(
        difference(Contract::V1_13, Role::ControlPlane, label)
            .contains("-        node.kubernetes.io/exclude")
    );
    // What is not there in a document that is cannot be deleted; a document that is not there need not be.
    assert_eq!(
        patched(Contract::V1_13, Role::Worker, label).err().as_deref(),
        Some(
            "`machine.nodeLabels.node.kubernetes.io/exclude-from-external-load-balancers` is not in the document \
             `v1alpha1`, so it cannot be deleted"
        )
    );
    let absent = "apiVersion: v1alpha1\nkind: KubeletConfig\n$patch: delete\n";
    assert!(patched(Contract::V1_13, Role::Worker, absent).is_ok());
    let inner = "machine: {network: {interfaces: [{interface: eth0, mtu: {$patch: delete}}]}}";
    assert!(
        patched(Contract::V1_13, Role::Worker, inner).err().expect("an error").contains("delete the item")
    );
}

#[test]
fn a_patch_that_is_none_is_refused() {
    for (patch, expected) in [
        ("", "the patch is empty"),
        ("[]", "the patch is empty"),
        ("- {op: add}\n", "line 1: a JSON patch operation needs a `path`"),
        (
            "- {op: grow, path: /a}\n",
            "line 1: the `op` of a JSON patch is add, remove, replace, test, move or copy",
        ),
        (
            "machine: {$patch: delete}\nfoo: 1\n",
            "line 1: the document has no `kind`; without one it must have `machine` or `cluster`",
        ),
        (
            "$patch: delete\nmachine: {}\n",
            "line 1: the document with `machine` and `cluster` cannot be deleted",
        ),
        ("machine: {typ: worker}\n", "line 1: `v1alpha1` has no field `machine.typ`; did you mean `type`?"),
    ] {
        assert_eq!(patched(Contract::V1_11, Role::Worker, patch).err().as_deref(), Some(expected), "{patch}");
    }
}

/// Fragments of patches, from which anything can be put together.
const FRAGMENTS: [&str; 16] = [
    "machine:",
    "cluster:",
    "\n",
    "  ",
    "kubelet:",
    "- ",
    "{",
    "}",
    "[",
    "]",
    ": ",
    "$patch: delete",
    "---\n",
    "apiVersion: v1alpha1\nkind: KubeletConfig\n",
    "op: add",
    "&a *a <<",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn nothing_that_is_read_panics(noise in "\\PC{0,60}", pieces in prop::collection::vec(0..FRAGMENTS.len(), 0..30)) {
        let text: String = pieces.iter().map(|piece| FRAGMENTS[*piece]).collect();
        for text in [noise.clone(), text.clone(), format!("{text}{noise}"), format!("machine: {noise}")] {
            let text = SecretString::from(text);
            let _ = MachineConfig::from_yaml(&text);
            let _ = strata_talos::SecretsBundle::from_yaml(&text);
            if let Ok(patch) = Patch::parse(&text) {
                for contract in [Contract::V1_11, Contract::V1_14] {
                    let _ = patch.apply(base(contract, Role::ControlPlane));
                }
            }
        }
    }

    #[test]
    fn a_damaged_configuration_is_read_or_refused(cut in 0usize..6000, length in 1usize..40) {
        let mut text = base(Contract::V1_14, Role::ControlPlane).to_yaml().expose().to_owned();
        let start = cut.min(text.len());
        text.replace_range(start..(start + length).min(text.len()), "");
        if let Ok(config) = MachineConfig::from_yaml(&SecretString::from(text)) {
            let again = MachineConfig::from_yaml(&config.to_yaml()).unwrap_or_else(|error| panic!("{error}"));
            prop_assert!(again.to_yaml() == config.to_yaml());
        }
    }
}
