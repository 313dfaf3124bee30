//! Cases made on the spot by a real `talosctl`, which STRATA_TALOSCTL names.

use std::path::Path;
use std::process::{Command, Output};

use strata_secret::SecretString;
use strata_talos::{
    Cni, Contract, DiskKey, GenConfigArgs, Link, MachineConfig, NodeInput, Role, SecretsBundle,
    ServiceAccountKey, gen_config, node_config,
};

use crate::node::{full, input};
use crate::world::{now, patch, read, seeded, with_flags};

struct Talosctl {
    program: String,
    directory: tempfile::TempDir,
}

impl Talosctl {
    /// With a bundle of ours in its directory.
    fn find() -> Self {
        let program = std::env::var("STRATA_TALOSCTL").expect("STRATA_TALOSCTL is set");
        let talosctl = Self { program, directory: tempfile::tempdir().expect("a directory") };
        let secrets = SecretsBundle::generate(now(), ServiceAccountKey::Rsa, &mut seeded(3));
        let secrets = secrets.unwrap_or_else(|error| panic!("{error}"));
        talosctl.put("secrets.yaml", secrets.to_yaml().expose());
        talosctl
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn put(&self, name: &str, content: &str) {
        std::fs::write(self.path().join(name), content).expect("a file");
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(&self.program).args(arguments).current_dir(self.path()).output().expect("talosctl runs")
    }

    /// What it makes for a role; the error if it makes nothing.
    fn generate(&self, contract: Contract, role: Role, flags: &[String]) -> Result<String, String> {
        let contract = contract.to_string();
        let mut arguments =
            vec!["gen", "config", "c", "https://192.0.2.40:6443", "--with-secrets", "secrets.yaml"];
        arguments.extend(["--with-docs=false", "--with-examples=false", "--talos-version", &contract]);
        arguments.extend(["--output", "-", "--output-types", role.name()]);
        arguments.extend(flags.iter().map(String::as_str));
        let output = self.run(&arguments);
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).expect("UTF-8")),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Fails if it would refuse the configuration.
    fn validate(&self, config: &str, what: &str) {
        self.put("config.yaml", config);
        let output = self.run(&["validate", "--mode", "metal", "--config", "config.yaml"]);
        assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn ours(&self, contract: Contract, flags: &[String]) -> Result<[String; 2], String> {
        let secrets = SecretString::from(read(&self.path().join("secrets.yaml")));
        let args = GenConfigArgs::new(secrets, contract, "c", "https://192.0.2.40:6443");
        let made =
            gen_config(&with_flags(args, flags), now(), &mut seeded(5)).map_err(|error| error.to_string())?;
        Ok([0, 1].map(|index| made.files[index].content.expose().to_owned()))
    }

    fn compare(&self, contract: Contract, flags: &[String]) {
        let ours = self.ours(contract, flags).unwrap_or_else(|error| panic!("{contract} {flags:?}: {error}"));
        for (ours, role) in ours.iter().zip(Role::ALL) {
            let theirs = self
                .generate(contract, role, flags)
                .unwrap_or_else(|error| panic!("{contract} {flags:?}: {error}"));
            assert_eq!(*ours, theirs, "{contract} {role:?} {flags:?}");
            self.validate(ours, &format!("{contract} {role:?} {flags:?}"));
        }
    }
}

/// A choice of flags from a seed.
fn random_flags(seed: u64) -> Vec<String> {
    let mut random = seeded(seed);
    let mut yes = |percent: u8| {
        let mut byte = [0];
        random(&mut byte);
        u16::from(byte[0]) * 100 / 256 < u16::from(percent)
    };
    let mut flags = Vec::new();
    let mut add = |flag: &str, value: &str| flags.extend([flag.to_owned(), value.to_owned()]);
    add("--kubernetes-version", if yes(50) { "1.34.1" } else { "v1.33.0" });
    if yes(50) {
        add("--additional-sans", "k8s.example.org,192.0.2.41,2001:db8::1");
    }
    if yes(30) {
        add("--additional-sans", "other.example.org");
    }
    if yes(50) {
        add("--registry-mirror", "docker.io=https://mirror.example.org");
    }
    if yes(30) {
        add(
            "--registry-mirror",
            "registry.k8s.io=http://192.0.2.9:5000,docker.io=https://second.example.org",
        );
    }
    if yes(40) {
        add("--dns-domain", "lab.internal");
    }
    if yes(40) {
        add("--install-disk", if yes(50) { "/dev/nvme0n1" } else { "/dev/disk/by-id/ata-\"x\"" });
    }
    if yes(40) {
        add("--install-image", "factory.talos.dev/nocloud-installer/ce4c980550dd:v1.13.9");
    }
    let discovery = !yes(30);
    if !discovery {
        flags.push("--with-cluster-discovery=false".to_owned());
    } else if yes(40) {
        flags.push("--with-kubespan".to_owned());
    }
    flags
}

#[test]
#[ignore = "needs talosctl: just interop talos"]
fn talosctl_makes_the_same_from_random_flags() {
    let talosctl = Talosctl::find();
    for seed in 1..=10 {
        let flags = random_flags(seed);
        Contract::ALL.into_iter().for_each(|contract| talosctl.compare(contract, &flags));
    }
}

#[test]
#[ignore = "needs talosctl: just interop talos"]
fn talosctl_applies_json_patches_the_same() {
    let talosctl = Talosctl::find();
    for operations in [
        "[{op: add, path: /machine/network/hostname, value: a}]",
        "- {op: replace, path: /cluster/network/dnsDomain, value: b.internal}\n- {op: remove, path: /machine/install/image}",
        "[{\"op\": \"add\", \"path\": \"/machine/sysctls\", \"value\": {\"a/b\": \"1\"}}]",
        "- {op: add, path: /machine/sysctls, value: {a: '1'}}\n- {op: move, from: /machine/sysctls/a, path: /machine/sysctls/b~1c}",
        "- {op: add, path: /machine/certSANs/-, value: x}\n- {op: add, path: /machine/certSANs/0, value: w}\n- {op: copy, from: /machine/certSANs/1, path: /machine/certSANs/-}",
        "- {op: test, path: /machine/features/kubePrism/port, value: 7445}\n- {op: replace, path: /machine/features/kubePrism/port, value: 7446}",
    ] {
        talosctl.compare(Contract::V1_11, &["--config-patch".to_owned(), operations.to_owned()]);
    }
    for refused in [
        "[{op: remove, path: /machine/nothing}]",
        "[{op: replace, path: /machine/nothing/at/all, value: 1}]",
        "[{op: test, path: /machine/type, value: other}]",
        "[{op: add, path: /machine/certSANs/9, value: x}]",
        "[{op: add, path: /machine/unknown, value: x}]",
        "[{op: add, path: /machine/kubelet/extraArgs, value: [x]}]",
    ] {
        let flags = ["--config-patch".to_owned(), refused.to_owned()];
        assert!(talosctl.ours(Contract::V1_11, &flags).is_err(), "{refused}");
        assert!(talosctl.generate(Contract::V1_11, Role::Worker, &flags).is_err(), "{refused}");
    }
}

/// Patches in the style of the one document, whose settings have moved.
const OLD_STYLE: [&str; 18] = [
    "machine: {network: {nameservers: [192.0.2.1], searchDomains: [lab.internal]}, time: {servers: [time.example.org]}}",
    "machine: {network: {hostname: node-1}}",
    "machine: {features: {stableHostname: true, hostDNS: {enabled: true, resolveMemberNames: true}, kubePrism: {enabled: true, port: 7777}}}",
    "machine: {kubelet: {extraArgs: {v: 2}, extraConfig: {maxPods: 200}, clusterDNS: [10.96.0.10], nodeIP: {validSubnets: [192.0.2.0/24]}, disableManifestsDirectory: true}}",
    "machine: {nodeLabels: {pool: general}, nodeTaints: {a: 'b:NoSchedule'}, nodeAnnotations: {c: d}}",
    "machine: {install: {disk: /dev/vdb, image: 'factory.example/x:v1', wipe: true}}",
    "cluster: {allowSchedulingOnControlPlanes: true, apiServer: {extraArgs: {v: '2'}, certSANs: [a.example.org], auditPolicy: {apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None}]}, disablePodSecurityPolicy: true, admissionControl: [{name: PodSecurity, configuration: {exemptions: {namespaces: [x]}}}]}}",
    "cluster: {network: {cni: {name: none}, podSubnets: [10.1.0.0/16], serviceSubnets: [10.2.0.0/16], dnsDomain: x.internal}}",
    "cluster: {network: {cni: {name: custom, urls: ['https://cni.example.org/a.yaml', 'https://cni.example.org/b.yaml']}}}",
    "cluster: {controllerManager: {extraArgs: {bind-address: 0.0.0.0}}, scheduler: {extraArgs: {bind-address: 0.0.0.0}}, proxy: {disabled: true}, coreDNS: {disabled: true}}",
    "cluster: {discovery: {enabled: false}}",
    "machine: {sysctls: {a.b: 1}, sysfs: {a: b}, udev: {rules: [x]}, env: {A: b}, kernel: {modules: [{name: nbd, parameters: [a=1]}]}}",
    "machine: {registries: {mirrors: {ghcr.io: {endpoints: ['https://m.example'], skipFallback: true}}, config: {m.example: {auth: {username: u, password: p}, tls: {insecureSkipVerify: true}}}}}",
    "machine: {network: {interfaces: [{interface: eth0, addresses: [192.0.2.5/24], routes: [{network: 0.0.0.0/0, gateway: 192.0.2.1}], mtu: 1400}], extraHostEntries: [{ip: 192.0.2.9, aliases: [nas]}], kubespan: {enabled: true, mtu: 1300}}}",
    "machine: {systemDiskEncryption: {ephemeral: {provider: luks2, keys: [{slot: 0, nodeID: {}}]}}, logging: {destinations: [{endpoint: 'udp://192.0.2.9:5140', format: json_lines}]}}",
    "cluster: {extraManifests: ['https://example.org/a.yaml'], inlineManifests: [{name: a, contents: b}], adminKubeconfig: {certLifetime: 8h}, externalCloudProvider: {enabled: true}}",
    "cluster: {apiServer: {image: 'registry.k8s.io/kube-apiserver:v1.34.2', env: {A: b}, resources: {requests: {cpu: 1}}}, scheduler: {config: {profiles: [{schedulerName: x}]}}, controllerManager: {env: {A: b}}}",
    "cluster: {clusterName: other, controlPlane: {endpoint: 'https://192.0.2.50:6443', localAPIServerPort: 6444}}",
];

#[test]
#[ignore = "needs talosctl: just interop talos"]
fn talosctl_accepts_what_old_patches_become() {
    let talosctl = Talosctl::find();
    for contract in Contract::ALL {
        for old in OLD_STYLE {
            let flags = ["--config-patch".to_owned(), old.to_owned()];
            let made =
                talosctl.ours(contract, &flags).unwrap_or_else(|error| panic!("{contract} {old}: {error}"));
            made.iter().for_each(|config| talosctl.validate(config, &format!("{contract} {old}")));
        }
    }
}

#[test]
#[ignore = "needs talosctl: just interop talos"]
fn talosctl_accepts_every_machine() {
    let talosctl = Talosctl::find();
    let secrets = SecretsBundle::from_yaml(&SecretString::from(read(&talosctl.path().join("secrets.yaml"))));
    let secrets = secrets.unwrap_or_else(|error| panic!("{error}"));
    for contract in Contract::ALL {
        for role in Role::ALL {
            let mut dynamic = full(role, None);
            dynamic.disk_key = Some(DiskKey::Tpm);
            dynamic.cni = Cni::Custom(vec!["https://cni.example.org/a.yaml".to_owned()]);
            if let Some(network) = &mut dynamic.network {
                network.link = Link::Only;
                network.addresses.clear();
                network.gateway = None;
            }
            let mut named = full(role, Some(20));
            if let Some(network) = &mut named.network {
                network.link = Link::Name("eth0".to_owned());
            }
            for node in [full(role, None), full(role, Some(20)), dynamic, named, NodeInput::new(role)] {
                let config = node_config(&input(contract), &secrets, &node, &[]);
                let config = config.unwrap_or_else(|error| panic!("{contract} {role:?}: {error}"));
                talosctl.validate(config.to_yaml().expose(), &format!("{contract} {node:?}"));
            }
        }
    }
}

#[test]
#[ignore = "needs talosctl: just interop talos"]
fn secrets_and_clients_are_understood_by_both() {
    let talosctl = Talosctl::find();
    assert!(talosctl.run(&["gen", "secrets", "-o", "theirs.yaml"]).status.success());
    let theirs = read(&talosctl.path().join("theirs.yaml"));
    let bundle = SecretsBundle::from_yaml(&SecretString::from(theirs.as_str()))
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(bundle.to_yaml().expose(), theirs);
    for contract in Contract::ALL {
        let config =
            talosctl.generate(contract, Role::ControlPlane, &[]).unwrap_or_else(|error| panic!("{error}"));
        let config =
            MachineConfig::from_yaml(&SecretString::from(config)).unwrap_or_else(|error| panic!("{error}"));
        let taken = SecretsBundle::from_config(&config).unwrap_or_else(|error| panic!("{contract}: {error}"));
        assert_eq!(taken.to_yaml().expose(), read(&talosctl.path().join("secrets.yaml")));
    }
    let today = jiff::Timestamp::now();
    let client = bundle.talosconfig("homelab", &["192.0.2.41".to_owned()], today, &mut seeded(9));
    talosctl.put("talosconfig", client.unwrap_or_else(|error| panic!("{error}")).to_yaml().expose());
    let output = talosctl.run(&["--talosconfig", "talosconfig", "config", "info"]);
    let info = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && info.contains("os:admin") && info.contains("192.0.2.41"), "{info}");
    assert!(info.contains("1 year") || info.contains("12 months"), "{info}");
}

/// A sanity check of this file's own flags.
#[test]
fn a_json_patch_is_refused_for_several_documents() {
    let secrets = SecretString::from(crate::node::secrets().to_yaml().expose());
    let mut args = GenConfigArgs::new(secrets, Contract::V1_14, "c", "https://192.0.2.40:6443");
    args.config_patches.push(patch("[{op: add, path: /machine/kubelet/extraArgs, value: {v: '2'}}]"));
    let error = gen_config(&args, now(), &mut seeded(5)).err().expect("an error").to_string();
    assert!(error.contains("patch `a test`: a JSON patch cannot change a configuration of"), "{error}");
    assert!(error.contains("strategic merge patch of the document `KubeletConfig`"), "{error}");
}
