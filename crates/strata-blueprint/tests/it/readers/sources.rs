//! A repository with something of everything, and what comes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::OnceLock;

use serde_json::{Value as Json, json};
use strata_blueprint::{Resolver, Site, draw_cluster, draw_hypervisor, draw_stack};
use strata_diagnostics::{Diagnostic, Severity};
use strata_resource::{ChangeEffect, FieldPath, Kind, Lineage, Spec, Value};
use strata_secret::SecretString;
use strata_source::cluster::Cluster;
use strata_source::cluster::flat::{FlatCluster, FlatNodes};
use strata_source::cluster::topology::NodesFile;
use strata_source::environment::Environment;
use strata_source::hypervisor::Hypervisor;
use strata_source::settings::Settings;
use strata_source::stack::Stack;
use strata_source::world::Memory;
use strata_source::{EffectiveStack, Model, Reference, Repository};
use strata_talos::{SecretsBundle, ServiceAccountKey};
use strata_yaml::{Decode, Shape};

/// A file of the source, and the record that describes it.
pub(super) struct File {
    pub(super) name: &'static str,
    /// What it is of, and what else must be there to see a change of it.
    stacks: &'static [&'static str],
    pub(super) shape: Shape,
    pub(super) content: Json,
}

pub(super) fn files() -> Vec<File> {
    let file = |name, stacks, shape, content| File { name, stacks, shape, content };
    vec![
        file("stacks/web/stack.yaml", &["web", "dc"][..], Stack::shape(), machines()),
        file("clusters/lab/cluster.yaml", &["lab"], Cluster::shape(), cluster()),
        file("clusters/edge/cluster.yaml", &["edge"], Cluster::shape(), edge()),
        file(
            "clusters/edge/nodes.yaml",
            &["edge"],
            NodesFile::shape(),
            json!({"nodes": {"edge-cp-1": {"cores": 3}}}),
        ),
        file("clusters/mini/cluster.yaml", &["mini"], Cluster::shape(), mini()),
        file("clusters/flat/cluster.yaml", &["flat"], FlatCluster::shape(), flat()),
        file("clusters/flat/nodes.yaml", &["flat"], FlatNodes::shape(), flat_nodes()),
        file("hypervisors/dc.yaml", &["dc"], Hypervisor::shape(), datacenter()),
        file(
            "stacks/hand/stack.yaml",
            &["hand", "web"],
            Stack::shape(),
            json!({"metadata": {"name": "hand"}, "tofu": {"inputs": {"address": "web.o"}}}),
        ),
        file(
            "stacks/tiny/stack.yaml",
            &["tiny"],
            Stack::shape(),
            json!({"metadata": {"name": "tiny"}, "proxmox": {"target": "pve", "node": "pve1"}, "vms": {"z": {"vmId": 9800, "use": ["p"], "disk": 1, "iso": {"url": "https://x.example/z.iso"}, "network": [{"bridge": "vmbr0", "vlan": 7}]}}}),
        ),
        file(
            "stacks/more/stack.yaml",
            &["more"],
            Stack::shape(),
            json!({"metadata": {"name": "more"}, "proxmox": {"target": "pve"}}),
        ),
        file(
            "strata.yaml",
            &["strata", "web", "tiny"],
            Settings::shape(),
            json!({
                "repository": "demo1234",
                "targets": {
                    "pve": {"proxmox": {"endpoint": "https://192.0.2.10:8006", "token": {"env": "TOKEN"}}},
                    "far": {"proxmox": {"endpoint": "https://192.0.2.11:8006", "token": {"env": "TOKEN"}}},
                    "nas": {"truenas": {"endpoint": "https://192.0.2.12", "apiKey": {"env": "TOKEN"}}},
                    "nas-2": {"truenas": {"endpoint": "https://192.0.2.13", "apiKey": {"env": "TOKEN"}}},
                },
                "secrets": [{"sops": "some.sops.yaml"}],
                "profiles": {"p": {"memory": 700}},
            }),
        ),
        file(
            "environments/stage.yaml",
            &["stage", "tiny", "more", "mini", "dc"],
            Environment::shape(),
            json!({
                "stacks": {"tiny": {"vms": {"z": {"vmId": 9900, "name": "stage-z"}}}},
                "clusters": {"mini": {
                    "cluster": {"talos": {"clusterName": "more"}, "topology": {"controlPlane": {"addresses": "100.64.0.50"}}},
                    "proxmox": {"vm": {"idBase": 9650}},
                }},
                "hypervisors": {"dc": {}},
            }),
        ),
    ]
}

fn machines() -> Json {
    json!({
        "metadata": {"name": "web"},
        "proxmox": {"target": "pve", "node": "pve1", "storage": {"iso": "local", "disk": "local-lvm"}},
        "images": {"i": {"url": "https://x.example/i.qcow2"}},
        "templates": {
            "t": {"vmId": 9000, "image": {"url": "https://x.example/t.qcow2"}},
            "t2": {"vmId": 9001, "image": "i"},
        },
        "vms": {
            "a": {"vmId": 9100, "use": ["p"], "disk": 4, "network": [{"bridge": "vmbr0", "ip": "192.0.2.10/24", "ip6": "2001:db8::10/64"}], "cloudInit": {"user": "u"}},
            "c": {"vmId": 9101, "template": "t", "network": [{"bridge": "vmbr0"}]},
            "d": {"vmId": 9102, "disk": 4, "cloudInit": {"userData": {"secret": "x"}, "allowSecretOnStorage": true}},
            "e": {"vmId": 9110, "count": 2, "disk": 4, "ha": {"maxRestart": 2}, "replication": [{"target": "pve2"}]},
            "f": {"disk": 4, "each": {"k": {"vmId": 9140}}},
        },
        "containers": {"g": {"image": "local:vztmpl/a.tar.zst", "disk": {"size": 4}, "each": {"k": {"vmId": 9240}}}, "b": {"vmId": 9200, "ha": {}, "image": {"url": "https://x.example/b.tar.zst"}, "disk": {"size": 4}, "network": [{"bridge": "vmbr0", "ip": "192.0.2.11/24", "ip6": "2001:db8::11/64"}]}},
        "haRules": {
            "here": {"guests": ["vms.e"], "nodes": ["pve1"]},
            "apart": {"guests": ["vms.e"], "affinity": "negative"},
        },
        "outputs": {"o": "vms.a.address"},
    })
}

fn cluster() -> Json {
    json!({
        "metadata": {"name": "lab"},
        "cluster": {
            "talos": {"version": "v1.13.8", "schematic": {"extensions": ["siderolabs/util-linux-tools"]}},
            "kubernetes": {"version": "v1.36.1"},
            "network": {"cidr": "192.0.2.0/24", "gateway": "192.0.2.1", "bridge": "vmbr0"},
            "topology": {
                "controlPlane": {"count": 1, "addresses": "192.0.2.41-192.0.2.49"},
                "workers": {"count": 1, "use": ["p"], "addresses": "192.0.2.51-192.0.2.59"},
                "pools": [{"name": "gpu", "count": 1, "addresses": "192.0.2.61-192.0.2.69"}],
            },
        },
        "proxmox": {"target": "pve", "nodes": ["pve1"], "storage": {"iso": "local", "disk": "local-lvm"}, "vm": {"idBase": 9300}},
        "gitops": {"flux": {"version": "v2.9.5", "repository": "https://git.example/a", "path": "c"}},
    })
}

/// With single machines, and a repository that is reached over SSH.
fn edge() -> Json {
    json!({
        "metadata": {"name": "edge"},
        "cluster": {
            "talos": {"version": "v1.13.8"},
            "kubernetes": {"version": "v1.36.1"},
            "network": {"cidr": "198.51.100.0/24", "gateway": "198.51.100.1"},
            "topology": {"controlPlane": {"count": 1, "addresses": "198.51.100.41-198.51.100.49"}},
            "nodes": {"loner": {"role": "worker", "address": "198.51.100.80", "vmId": 9450}},
        },
        "proxmox": {"target": "pve", "node": "pve1", "storage": {"iso": "local", "disk": "local-lvm"}, "network": {"bridge": "vmbr0"}, "vm": {"idBase": 9400}},
        "storage": {"truenas": {"target": "nas", "datasets": ["tank/edge"]}},
        "gitops": {"flux": {"version": "v2.9.5", "repository": "ssh://git@git.example/a", "path": "c", "sshKey": {"env": "TOKEN"}, "knownHosts": "git.example ssh-ed25519 AAAA"}},
    })
}

/// As little as there may be: an overlay is laid over it.
fn mini() -> Json {
    json!({
        "cluster": {
            "talos": {"version": "v1.13.8"},
            "kubernetes": {"version": "v1.36.1"},
            "network": {"cidr": "100.64.0.0/24", "gateway": "100.64.0.1", "bridge": "vmbr0"},
            "topology": {"controlPlane": {"count": 1, "addresses": "100.64.0.40"}},
        },
        "proxmox": {"target": "pve", "node": "pve1", "storage": {"iso": "local", "disk": "local-lvm"}, "vm": {"idBase": 9600}},
    })
}

fn flat() -> Json {
    json!({
        "node_cidr": "203.0.113.0/24",
        "node_dns_servers": ["203.0.113.2"],
        "node_vlan_tag": "30",
        "cluster_api_addr": "203.0.113.10",
        "talos_version": "1.13.8",
        "kubernetes_version": "1.36.1",
        "proxmox_api_url": "https://203.0.113.3:8006",
        "proxmox_node": "pve1",
        "proxmox_api_token_id": {"env": "TOKEN"},
        "proxmox_api_token_secret": {"env": "TOKEN"},
        "proxmox_iso_storage": "local",
        "proxmox_disk_storage": "local-lvm",
    })
}

fn flat_nodes() -> Json {
    let node = |name: &str, address: &str, controller: bool, mac: &str, id: u32| {
        json!({
            "name": name, "address": address, "controller": controller, "disk": "/dev/sda", "mac_addr": mac,
            "schematic_id": "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515", "vm_id": id,
        })
    };
    json!({"nodes": [
        node("f1", "203.0.113.11", true, "BC:24:11:00:00:01", 9700),
        node("f2", "203.0.113.12", false, "BC:24:11:00:00:02", 9701),
    ]})
}

fn datacenter() -> Json {
    json!({
        "metadata": {"name": "dc"},
        "proxmox": {"target": "pve", "nodes": ["pve1", "pve2"]},
        "groups": {"g": {}, "h": {}},
        "realms": {
            "dir": {"type": "ldap", "server": "192.0.2.60", "baseDn": "dc=x", "userAttribute": "uid"},
            "ad": {"type": "ad", "server": "192.0.2.61", "domain": "x.example"},
            "sso": {"type": "openid", "issuerUrl": "https://x.example", "clientId": "pve"},
        },
        "realmSyncJobs": {"people": {"realm": "dir", "schedule": "hourly", "scope": "users"}},
        "users": {"a@pve": {"groups": ["g"]}, "b@pve": {}},
        "tokens": {"a@pve!tk": {}, "a@pve!uk": {}},
        "roles": {"r": {"privileges": ["VM.Audit"]}, "s": {"privileges": ["VM.Audit"]}},
        "acl": [{"path": "/vms", "role": "r", "user": "a@pve"}],
        "firewall": {"enabled": true},
        "acme": {
            "accounts": {"default": {"contact": ["a@x.example"]}},
            "plugins": {"cf": {"api": "cf"}, "he": {"api": "he"}},
        },
        "hosts": {
            "pve1": {"wakeOnLan": {"mac": "BC:24:11:00:00:76"}, "firewall": {"enabled": true}, "acme": {"domains": [{"domain": "x.example"}]}},
            "pve2": {"certificate": {"chain": CHAIN, "key": {"env": "HOST_KEY"}}},
        },
        "network": {"vmbr5": {"address": "10.9.0.1/24", "address6": "2001:db8:9::1/64"}},
        "mappings": {
            "pci": {"gpu": {"devices": [{"node": "pve1", "path": "0000:01:00.0", "id": "1234:5678"}]}},
            "usb": {"key": {"devices": [{"node": "pve1", "id": "1234:5678"}]}},
        },
        "storages": {"tank": {"type": "dir", "path": "/srv", "content": ["images"]}},
        "backupJobs": {"nightly": {"schedule": "02:00", "storage": "tank", "guests": [9100]},
            "weekly": {"schedule": "sat 03:30", "storage": "tank", "guests": [9100]}},
        "metricServers": {
            "gr": {"type": "graphite", "server": "192.0.2.70", "port": 2003},
            "in": {"type": "influxdb", "server": "192.0.2.71", "port": 8086},
            "ot": {"type": "opentelemetry", "server": "192.0.2.72", "port": 4318},
        },
        "notifications": {
            "endpoints": {
                "mail": {"type": "sendmail", "to": ["a@x.example"]},
                "smtp": {"type": "smtp", "server": "192.0.2.73", "from": "a@x.example", "to": ["a@x.example"]},
                "push": {"type": "gotify", "server": "https://x.example", "token": {"env": "TOKEN"}},
                "hook": {"type": "webhook", "url": "https://x.example"},
            },
            "matchers": {"errors": {"targets": ["mail"]}},
        },
        "sdn": {
            "ipams": {
                "nb": {"type": "netbox", "url": "https://x.example", "token": {"env": "TOKEN"}},
                "pi": {"type": "phpipam", "url": "https://x.example", "token": {"env": "TOKEN"}, "section": 1},
            },
            "dnsServers": {"pd": {"url": "https://x.example", "key": {"env": "TOKEN"}}},
            "controllers": {
                "ce": {"type": "evpn", "asn": 65000},
                "cb": {"type": "bgp", "asn": 65001, "node": "pve1", "peers": ["192.0.2.80"]},
            },
            "zones": {
                "zs": {"type": "simple"},
                "zv": {"type": "vlan", "bridge": "vmbr5"},
                "zq": {"type": "qinq", "bridge": "vmbr5", "tag": 7},
                "zx": {"type": "vxlan", "peers": ["192.0.2.81"]},
                "ze": {"type": "evpn", "controller": "ce", "vrfVxlan": 100},
            },
            "vnets": {"va": {"zone": "zs", "subnets": {"10.66.0.0/24": {"gateway": "10.66.0.1"}}}},
        },
    })
}

/// A certificate, and its key.
pub(super) const CHAIN: &str = include_str!("../../../../strata-talos/src/pki/pair/ed25519.crt");
const KEY: &str = include_str!("../../../../strata-talos/src/pki/pair/ed25519.key");

struct Given;

impl Resolver for Given {
    fn resolve(&self, reference: &Reference) -> Result<SecretString, Box<Diagnostic>> {
        // The same key in two spellings.
        let source = reference.source.to_string();
        Ok(SecretString::from(match () {
            () if source.contains("SAME_KEY") => format!("{KEY}\n"),
            () if source.contains("HOST_KEY") => KEY.to_owned(),
            () => format!("the value of {source}"),
        }))
    }
}

fn bundle() -> &'static SecretsBundle {
    static BUNDLE: OnceLock<SecretsBundle> = OnceLock::new();
    BUNDLE.get_or_init(|| {
        let mut next = 0_u8;
        let mut random = |buffer: &mut [u8]| {
            for byte in buffer {
                next = next.wrapping_mul(73).wrapping_add(41);
                *byte = next;
            }
        };
        SecretsBundle::generate(jiff::Timestamp::UNIX_EPOCH, ServiceAccountKey::Ecdsa, &mut random)
            .unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Everything that comes of a source, where one file may have changed; the first error if there is one. Fields without a rule are
/// gathered beside it.
pub(super) fn outcome(
    files: &[File],
    changed: usize,
    no_rule: &mut BTreeSet<String>,
) -> Result<String, String> {
    let needed = files[changed].stacks;
    let is_needed = |file: &&File| file.name == "strata.yaml" || needed.contains(&file.stacks[0]);
    let sops = "x: ENC[AES256_GCM,data:x]\nsops: {version: 3.9.0}\n";
    let mut world = Memory::new().variable("TOKEN", "t").file("some.sops.yaml", sops);
    if needed.contains(&"hand") {
        world = world.file("stacks/hand/main.tf", "");
    }
    for file in files.iter().filter(is_needed) {
        world = world.file(file.name, file.content.to_string());
    }
    for path in ["a-file", "stacks/web/a-file", "clusters/lab/a-file", "clusters/edge/a-file"] {
        world = world.file(path, "machine: {}\n");
    }
    let (repository, diagnostics) = Repository::load(&world);
    let mut seen = String::new();
    for one in diagnostics.iter() {
        if one.severity == Severity::Error {
            return Err(format!("{}: {}", one.code, one.message));
        }
        // That a secret is written in the clear is said of every key that takes one.
        if one.code != "plain-secret" {
            let _ = writeln!(seen, "{}", one.message);
        }
    }
    for entry in repository.stacks() {
        let _ = writeln!(seen, "{}", entry.name);
    }
    for stack in repository.effective() {
        draw(&repository, stack, &mut seen, no_rule)?;
    }
    Ok(seen)
}

/// Fields that no rule says of what a change of them means. A map with nothing in it is none.
fn without_rule(kind: Kind, path: &FieldPath, value: &Value, found: &mut BTreeSet<String>) {
    strata_proxmox::kinds::register();
    strata_truenas::kinds::register();
    strata_cluster::kinds::register();
    let (rules, map) = (kind.rules(), value.as_map());
    let is_fixed = matches!(rules.rule(path).effect, ChangeEffect::CreateOnly | ChangeEffect::Computed);
    if (rules.knows(path) && (is_fixed || map.is_none())) || map.is_some_and(Spec::is_empty) {
        return;
    }
    match map.filter(|_| !rules.knows(path) || rules.rule(path).slot) {
        Some(map) => map.iter().for_each(|(key, value)| without_rule(kind, &path.child(key), value, found)),
        None if rules.knows(path) => {}
        None => {
            found.insert(format!("{kind}: {path}"));
        }
    }
}

fn draw(
    repository: &Repository,
    stack: &EffectiveStack,
    seen: &mut String,
    no_rule: &mut BTreeSet<String>,
) -> Result<(), String> {
    let needs: Vec<&str> = stack.needed().collect();
    let _ = writeln!(
        seen,
        "{} {} {} {:?} {needs:?} {:?}",
        stack.name,
        stack.environment,
        stack.is_default_environment,
        stack.layer,
        stack.bundle_path(|_| false)
    );
    let settings = repository.settings(&stack.environment);
    let id = settings.repository.as_ref().map_or("none", |id| id.value.as_str());
    let lineage = Lineage::derive(id, &stack.name);
    let target = repository.target(stack).map(|(name, _)| name);
    let own = stack.own_endpoint().map(|endpoint| endpoint.value.as_str());
    let (shared, templates, origins) = (repository.shared_storages(), BTreeMap::new(), BTreeMap::new());
    let site = Site {
        repository: id,
        environment: (!stack.is_default_environment).then_some(stack.environment.as_str()),
        stack: &stack.name,
        lineage: &lineage,
        origins: &origins,
        default_target: target.or(own),
        homes: &Default::default(),
        shared_storages: &shared,
        foreign_templates: &templates,
        mirror: &|url| settings.mirrored(url),
        resolver: &Given,
        is_secret: &|_| false,
        cluster_secrets: Some(bundle()),
        sources: &repository.sources,
    };
    let drawn = match &stack.model {
        Model::Machines(machines) => draw_stack(&site, machines),
        Model::Cluster(cluster) => draw_cluster(&site, cluster),
        Model::Hypervisor(hypervisor) => draw_hypervisor(&site, hypervisor),
        Model::Tofu(_) | Model::Broken | Model::Removed => return Ok(()),
    };
    let drawn = drawn.map_err(|found| {
        found.iter().map(|one| format!("{}: {}", one.code, one.message)).collect::<Vec<_>>().join("; ")
    })?;
    for resource in drawn.graph.iter() {
        let fields = Value::Map(resource.spec.clone());
        without_rule(resource.kind(), &FieldPath::root(), &fields, no_rule);
        // Where it stands in the file is no effect.
        let mut resource = resource.clone();
        resource.origin = None;
        let _ = writeln!(seen, "{resource:?}");
        resource.spec.values().for_each(|value| plain(value, seen));
    }
    let _ = writeln!(seen, "{:?}", drawn.outputs);
    if let Some(plan) = drawn.cluster {
        let rest = (&plan.endpoint, &plan.vip, plan.waits_for_cni, plan.allow_even);
        let _ = writeln!(seen, "{plan:?} {rest:?}");
        for (name, config) in &plan.configs {
            let _ = writeln!(seen, "{name} {}", config.to_yaml().expose());
        }
    }
    Ok(())
}

/// The secrets of a value in the clear: only here, where a change of one must be seen.
fn plain(value: &Value, into: &mut String) {
    if let Some(secret) = value.as_secret().and_then(|secret| secret.plain()) {
        into.push_str(secret.expose());
    }
    value.as_map().into_iter().flat_map(Spec::values).for_each(|value| plain(value, into));
    value.as_list().into_iter().flatten().for_each(|value| plain(value, into));
}
