//! The rules, one change at a time.

use strata_secret::SecretString;

use super::*;

fn config(text: &str) -> MachineConfig {
    MachineConfig::from_yaml(&SecretString::from(text)).unwrap_or_else(|error| panic!("{error}: {text}"))
}

const BASE: &str = "version: v1alpha1
machine:
  type: controlplane
  token: aaaaaa.1111111111111111
  kubelet: {image: 'kubelet:v1.35.0'}
  kernel: {modules: [{name: zfs}, {name: nbd, parameters: ['max_part=8']}]}
  features: {rbac: true}
cluster:
  token: bbbbbb.2222222222222222
  etcd: {extraArgs: {election-timeout: '5000'}}
";

/// The base with a text in another's place.
fn with(from: &str, to: &str) -> MachineConfig {
    assert!(BASE.contains(from), "{from}");
    config(&BASE.replace(from, to))
}

/// The base with a document after it.
fn and(document: &str) -> MachineConfig {
    config(&format!("{BASE}---\napiVersion: v1alpha1\n{document}"))
}

#[test]
fn every_rule_of_every_version() {
    use RebootEffect::{MayReboot, NoReboot, Reboot};

    let machine =
        |text: &str| with("  features: {rbac: true}\n", &format!("  features: {{rbac: true}}\n  {text}\n"));
    let base = || config(BASE);
    let volume = "kind: VolumeConfig\nname: EPHEMERAL\nprovisioning: {maxSize: 10GB}\n";
    let encrypted = format!("{volume}encryption: {{provider: luks2, keys: [{{slot: 0, nodeID: {{}}}}]}}\n");
    let user = "kind: UserVolumeConfig\nname: data\nprovisioning: {maxSize: 10GB}\n";
    let user_encrypted =
        format!("{user}encryption: {{provider: luks2, keys: [{{slot: 0, nodeID: {{}}}}]}}\n");
    // What changes, from what, to what; up to 1.13, whether it stays pending there, and from 1.14 on.
    let rules: Vec<(&str, MachineConfig, MachineConfig, RebootEffect, bool, RebootEffect)> = vec![
        ("nothing", base(), base(), NoReboot, false, NoReboot),
        ("kubelet", base(), with("v1.35.0", "v1.36.0"), NoReboot, false, NoReboot),
        ("cluster token", base(), with("bbbbbb", "cccccc"), NoReboot, false, NoReboot),
        ("network", base(), machine("network: {hostname: a}"), NoReboot, false, NoReboot),
        ("install", base(), machine("install: {disk: /dev/sdb}"), NoReboot, false, NoReboot),
        ("sysctls", base(), machine("sysctls: {a: b}"), NoReboot, false, NoReboot),
        ("labels", base(), machine("nodeLabels: {a: b}"), NoReboot, false, NoReboot),
        ("etcd", base(), with("'5000'", "'9000'"), NoReboot, true, Reboot),
        (
            "a module more",
            base(),
            with("[{name: zfs}", "[{name: drbd}, {name: zfs}"),
            NoReboot,
            false,
            NoReboot,
        ),
        ("a module less", base(), with("{name: zfs}, ", ""), NoReboot, true, Reboot),
        ("another parameter", base(), with("max_part=8", "max_part=9"), NoReboot, true, Reboot),
        (
            "kubePrism",
            base(),
            with("{rbac: true}", "{rbac: true, kubePrism: {enabled: true}}"),
            NoReboot,
            false,
            NoReboot,
        ),
        ("rbac", base(), with("{rbac: true}", "{rbac: false}"), Reboot, false, MayReboot),
        ("all features", with("  features: {rbac: true}\n", ""), base(), Reboot, false, MayReboot),
        ("type", base(), with("controlplane", "worker"), Reboot, false, MayReboot),
        ("machine token", base(), with("aaaaaa", "dddddd"), Reboot, false, MayReboot),
        ("env", base(), machine("env: {http_proxy: x}"), Reboot, false, Reboot),
        (
            "files",
            base(),
            machine("files: [{path: /var/a, content: b, permissions: 0o600, op: create}]"),
            Reboot,
            false,
            Reboot,
        ),
        ("udev", base(), machine("udev: {rules: [a]}"), Reboot, false, NoReboot),
        ("runtime spec", base(), machine("baseRuntimeSpecOverrides: {a: b}"), Reboot, false, NoReboot),
        ("disks", base(), machine("disks: [{device: /dev/sdb}]"), Reboot, false, MayReboot),
        ("environment", base(), and("kind: EnvironmentConfig\nvariables: {a: b}\n"), NoReboot, true, Reboot),
        ("hostname", base(), and("kind: HostnameConfig\nhostname: a\n"), NoReboot, false, NoReboot),
        ("size of a volume", base(), and(volume), NoReboot, false, NoReboot),
        ("encryption", and(volume), and(&encrypted), NoReboot, true, Reboot),
        ("encrypted from now on", base(), and(&encrypted), NoReboot, true, Reboot),
        ("a new volume", base(), and(&user_encrypted), NoReboot, false, NoReboot),
        ("a volume's keys", and(user), and(&user_encrypted), NoReboot, true, Reboot),
        (
            "a module's document",
            base(),
            and("kind: KernelModuleConfig\nname: zram\n"),
            NoReboot,
            false,
            NoReboot,
        ),
        (
            "no module's document",
            and("kind: KernelModuleConfig\nname: zram\n"),
            base(),
            NoReboot,
            true,
            Reboot,
        ),
        (
            "isolation",
            base(),
            and("kind: SecurityProfileConfig\nworkloadIsolation: true\n"),
            NoReboot,
            true,
            Reboot,
        ),
    ];
    for (what, live, wanted, old, pending, new) in &rules {
        for talos in [Contract::V1_11, Contract::V1_12, Contract::V1_13] {
            let forecast = forecast(talos, live, wanted);
            assert_eq!(forecast.effect(), *old, "{what} on {talos}: {forecast:?}");
            let found = forecast.changes.iter().any(|change| change.pending);
            assert_eq!(found, *pending, "{what} on {talos}: {forecast:?}");
        }
        let forecast = forecast(Contract::V1_14, live, wanted);
        assert_eq!(forecast.effect(), *new, "{what} on v1.14: {forecast:?}");
        assert_eq!(forecast.is_empty(), *what == "nothing", "{what}");
        assert!(forecast.changes.iter().all(|change| !change.pending), "{what}");
        assert_eq!(forecast.because_of().next().is_some(), *new > NoReboot, "{what}");
    }
}

fn told(live: &MachineConfig, wanted: &MachineConfig) -> Vec<String> {
    forecast(Contract::V1_13, live, wanted).changes.iter().map(ToString::to_string).collect()
}

#[test]
fn changes_are_told_by_their_paths() {
    let wanted = and("kind: HostnameConfig\nhostname: a\n");
    assert_eq!(told(&config(BASE), &wanted), ["HostnameConfig: + {hostname: a}"]);
    assert_eq!(told(&wanted, &config(BASE)), ["HostnameConfig: - {hostname: a}"]);
    let other = and("kind: HostnameConfig\nhostname: b\n");
    assert_eq!(told(&wanted, &other), ["HostnameConfig: hostname: a → b"]);
    assert_eq!(
        told(&config(BASE), &with("max_part=8", "max_part=9")),
        ["machine.kernel.modules[1].parameters[0]: max_part=8 → max_part=9"]
    );
    assert_eq!(
        told(&config(BASE), &with("  etcd: {extraArgs: {election-timeout: '5000'}}\n", "")),
        ["cluster.etcd: - {extraArgs: {election-timeout: 5000}}"]
    );
}

#[test]
fn secrets_are_never_told() {
    let key = "LS0tLS1CRUdJTi1LRVk=";
    let (old, new) = (
        format!("{BASE}  ca: {{crt: YQ==, key: {key}}}\n  secretboxEncryptionSecret: hush-1\n"),
        format!("{BASE}  ca: {{crt: YQ==, key: Yg==}}\n  secretboxEncryptionSecret: hush-2\n"),
    );
    let (old, new) = (config(&old), config(&new.replace("aaaaaa", "hush-3")));
    let told = [told(&old, &new), told(&config(BASE), &new), told(&new, &config(BASE))].concat();
    assert!(told.contains(&"machine.token: <secret> → another <secret>".to_owned()), "{told:?}");
    assert!(told.contains(&"cluster.secretboxEncryptionSecret: + <secret>".to_owned()), "{told:?}");
    for line in &told {
        assert!(!line.contains("hush") && !line.contains(key) && !line.contains("Yg=="), "{line}");
    }
    let files = |content: &str| {
        let file =
            format!("  files: [{{path: /var/a, content: {content}, permissions: 0o600, op: create}}]\n");
        with("  features: {rbac: true}\n", &format!("  features: {{rbac: true}}\n{file}"))
    };
    let told = [self::told(&files("hush-4"), &files("hush-5")), self::told(&config(BASE), &files("hush-6"))]
        .concat();
    assert_eq!(told[0], "machine.files[0].content: <secret> → another <secret>");
    assert!(told.iter().all(|line| !line.contains("hush")), "{told:?}");
}
