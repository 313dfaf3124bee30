//! What was proven wrong in `strata sync`: each test is named after its finding.

use std::collections::BTreeSet;

use strata_source::world::Memory;
use strata_tofu::Files;

use crate::world::rendered;

const METAL: &str = "metadata: {name: barn}
cluster:
  talos:
    version: v1.13.9
    secureBoot: true
    encryptDisk: true
    registryMirrors: {docker.io: ['https://mirror.example']}
  kubernetes: {version: v1.35.0, podCidr: 10.30.0.0/16, cni: none, scheduleOnControlPlanes: true}
  network: {cidr: 192.0.2.0/24, gateway: 192.0.2.1, vip: 192.0.2.40, nameservers: [192.0.2.2], timeServers: [192.0.2.3], apiNames: [api.example]}
  patches:
    - |
      machine:
        nodeLabels:
          old:
            $patch: delete
  nodes:
    owl: {role: controlPlane, address: 192.0.2.41, mac: 'bc:24:11:00:00:01', installDisk: /dev/nvme0n1, labels: {roof: tin}}
    mouse: {role: worker, address: 192.0.2.42, mac: 'bc:24:11:00:00:02', secureBoot: false, labels: {floor: hay}, taints: {small: 'yes:NoSchedule'}}
";

fn barn() -> Files {
    rendered(
        &Memory::new().file("strata.yaml", "repository: golden\n").file("clusters/barn/cluster.yaml", METAL),
    )
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn e7_talhelper_reads_what_strata_wrote() {
    let files = barn();
    let text = files.get("clusters/barn/talos/talconfig.yaml").unwrap();
    has(
        text,
        &[
            "$$patch: delete",
            "cniConfig:\n  name: none",
            "metal-installer-secureboot/",
            "metal-installer/",
            "mode: metal",
        ],
    );
    assert!(!text.contains("nocloud"), "bare metal has no drive for its address: {text}");
    // No other dollar is left for talhelper to fill in.
    assert!(!text.replace("$$", "").contains('$'), "{text}");
    // What talhelper would otherwise drop: it writes labels in place of Talos' own.
    let owl = text.split("hostname: owl").nth(1).unwrap().split("hostname:").next().unwrap();
    has(
        owl,
        &[
            "exclude-from-external-load-balancers",
            "systemDiskEncryption",
            "192.0.2.3",
            "https://mirror.example",
            "tpm: {}",
        ],
    );
    let mouse = text.split("hostname: mouse").nth(1).unwrap().split("hostname: owl").next().unwrap();
    assert!(!mouse.contains("exclude-from-external-load-balancers"), "only control planes have it: {mouse}");
    has(mouse, &["nodeID: {}"]);
}

/// The keys that topf reads: of the file, and of a node in it.
const TOPF: [&str; 14] = [
    "clusterName",
    "clusterEndpoint",
    "kubernetesVersion",
    "talosVersion",
    "schematicId",
    "factory",
    "platform",
    "secureboot",
    "secretsProvider",
    "nodesProvider",
    "patchesDir",
    "secretsPath",
    "nodes",
    "data",
];
const TOPF_NODE: [&str; 9] =
    ["host", "ip", "role", "data", "talosVersion", "schematicId", "factory", "platform", "secureboot"];

#[test]
fn e7_topf_reads_what_strata_wrote() {
    let files = barn();
    let text = files.get("clusters/barn/talos/topf.yaml").unwrap();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let known: &[&str] = if line.starts_with(' ') { &TOPF_NODE } else { &TOPF };
        let key = line.trim_start_matches([' ', '-']).split(':').next().unwrap();
        assert!(known.contains(&key), "topf does not know `{key}`: {text}");
    }
    has(
        text,
        &[
            "clusterName: barn",
            "clusterEndpoint: https://192.0.2.40:6443",
            "kubernetesVersion: \"1.35.0\"",
            "talosVersion: \"1.13.9\"",
            "platform: metal",
            "secretsPath: ../talos.sops.yaml",
            "role: control-plane",
            "role: worker",
        ],
    );
    // One of the two has no Secure Boot, which a node cannot say where the cluster says otherwise.
    assert!(!text.lines().any(|line| line.starts_with("secureboot")), "{text}");
    assert_eq!(text.matches("secureboot: true").count(), 1, "{text}");
    let folder = "clusters/barn/talos/topf";
    let below: BTreeSet<&str> =
        files.iter().filter_map(|(path, _)| path.strip_prefix(folder)?.split('/').nth(1)).collect();
    assert_eq!(below, BTreeSet::from(["all", "control-plane", "node"]), "topf looks nowhere else");
    has(files.get(&format!("{folder}/all/10-cluster.yaml")).unwrap(), &["name: none", "10.30.0.0/16"]);
    let masters = files.get(&format!("{folder}/control-plane/10-cluster.yaml")).unwrap();
    has(masters, &["allowSchedulingOnControlPlanes: true", "api.example"]);
    let owl = files.get(&format!("{folder}/node/owl/10-machine.yaml")).unwrap();
    has(
        owl,
        &[
            "/dev/nvme0n1",
            "192.0.2.41/24",
            "roof: tin",
            "kind: HostnameConfig",
            "hostname: owl",
            "ip: \"192.0.2.40\"",
        ],
    );
    let all: String = files
        .iter()
        .filter(|(path, _)| path.starts_with(&format!("{folder}/node/owl/")))
        .map(|(_, text)| text)
        .collect();
    // topf fills nothing in: a dollar is one there.
    has(&all, &["$patch: delete", "systemDiskEncryption", "https://mirror.example"]);
    assert!(!all.contains("$$"), "{all}");
}

#[test]
fn e7_topf_is_told_what_it_cannot_do() {
    let cluster =
        METAL.replace("patches:\n", "patches:\n    - |\n      - {op: remove, path: /machine/time}\n");
    let world =
        Memory::new().file("strata.yaml", "repository: golden\n").file("clusters/barn/cluster.yaml", cluster);
    let files = rendered(&world);
    assert!(files.gaps.iter().any(|gap| gap.reason.contains("a list of operations")), "{:?}", files.gaps);
}

#[test]
fn e8_arguments_and_locks_are_handed_on() {
    let files = barn();
    let text = files.get("Taskfile.yml").unwrap();
    let task = |name: &str| {
        let from =
            text.split(&format!("\n  {name}:\n")).nth(1).unwrap_or_else(|| panic!("no `{name}` in {text}"));
        from.split("\n\n").next().unwrap().to_owned()
    };
    for verb in [
        "init",
        "plan",
        "apply",
        "apply-auto",
        "destroy",
        "output",
        "state-list",
        "validate",
        "fmt",
        "fmt-check",
    ] {
        let own = task(&format!("infra:{verb}"));
        assert!(own.contains("{{if .CLI_ARGS}} -- {{.CLI_ARGS}}{{end}}"), "{own}");
    }
    for verb in
        ["bootstrap:talos", "bootstrap:preflight", "talos:reset", "talos:upgrade-node", "infra:verify-nodes"]
    {
        assert!(task(verb).contains("{{if .CLI_ARGS}} {{.CLI_ARGS}}{{end}}"), "{verb}");
    }
    assert!(task("infra:force-unlock").contains("-- {{.LOCK_ID}} {{.CLI_ARGS}}"));
    has(&task("configure"), &["strata validate", "strata sync", "task: infra:prepared"]);
    has(&task("infra:prepared"), &["strata tofu init", "barn) test -d clusters/barn/terraform/.terraform"]);
    for verb in ["plan", "apply", "apply-auto", "destroy", "output", "state-list"] {
        assert!(task(&format!("infra:{verb}")).contains("deps: [infra:prepared]"), "{verb}");
    }
}
