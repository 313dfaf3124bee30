//! A random walk over edits of a repository. Whatever a stack is drawn from changed, the stack is among those that can change.

use std::collections::{BTreeMap, BTreeSet};

use strata_review::{ChangedStack, SourceVersion, StackKey};
use strata_source::world::Memory;

use crate::drawn::drawn;

/// The files, with places that are edited.
const FILES: &[(&str, &str)] = &[
    (
        "strata.yaml",
        "repository: {id}
{state}
targets:
  pve: {proxmox: {endpoint: 'https://{endpoint}:8006', token: {env: TOKEN}}}
  far: {proxmox: {endpoint: 'https://{far}:8006', token: {env: TOKEN}}}
secrets: [{sops: secrets.sops.yaml}]
defaults: {vm: {sockets: {sockets}}}
profiles: {p: {memory: {profile}}}
mirrors: {'https://x.example': 'https://{mirror}'}
# {comment}
",
    ),
    ("secrets.sops.yaml", "app: ENC[AES256_GCM,data:{secret}]\nsops: {version: 3.9.0}\n"),
    (
        "hypervisors/dc.yaml",
        "proxmox: {target: pve, nodes: [pve1]}\npools: {{pool}: {}}\nstorages: {tank: {type: {storage}, content: [images, iso]}}\n",
    ),
    (
        "stacks/base/stack.yaml",
        "proxmox: {target: pve, node: pve1, storage: {iso: tank, disk: local-lvm}}
templates: {t: {vmId: {template}, image: {url: 'https://x.example/{image}.qcow2'}}}
",
    ),
    (
        "stacks/web/stack.yaml",
        "# {webcomment}
proxmox: {target: pve, node: pve1, storage: {iso: tank, disk: local-lvm}}
metadata: {dependsOn: [tiny]}
vms:
  a: {vmId: 9100, template: base/t, memory: {memory}, network: [{bridge: vmbr0, ip: 192.0.2.10/24}], cloudInit: {userData: user.yaml}}
  b: {vmId: 9101, disk: 4, use: [p]}
outputs: {o: vms.a.address}
",
    ),
    ("stacks/web/user.yaml", "#cloud-config\npackages: [{package}]\n"),
    ("stacks/web/README.md", "{readme}\n"),
    (
        "stacks/tiny/stack.yaml",
        "proxmox: {target: far, node: pve9}\nvms: {z: {vmId: 9800, disk: {disk}, cloudInit: {user: u, password: {secret: app}}}}\n",
    ),
    ("stacks/hand/stack.yaml", "tofu: {inputs: {address: web.o}}\n"),
    ("stacks/hand/main.tf", "module \"n\" { source = \"../../shared/names\" } # {code}\n"),
    ("modules/net/main.tf", "# {module}\n"),
    ("shared/names/main.tf", "locals { zones = file(\"${path.module}/../zones.txt\") }\n"),
    ("shared/zones.txt", "{zones}\n"),
    ("shared/other.txt", "{other}\n"),
    (
        "clusters/lab/cluster.yaml",
        "cluster:
  talos: {version: v1.13.8, schematic: {extensions: [siderolabs/util-linux-tools]}}
  kubernetes: {version: {kubernetes}}
  network: {cidr: 192.0.2.0/24, gateway: 192.0.2.1, bridge: vmbr0}
  topology: {controlPlane: {count: 1, addresses: 192.0.2.41-192.0.2.49}, workers: {count: {workers}, addresses: 192.0.2.51-192.0.2.59}}
proxmox: {target: pve, nodes: [pve1], storage: {iso: tank, disk: local-lvm}, vm: {idBase: 9300}}
gitops: {flux: {version: v2.9.5, manifests: {file: flux.yaml}, repository: 'https://git.example/a', path: c}}
",
    ),
    ("clusters/lab/nodes.yaml", "nodes: {lab-cp-1: {cores: {nodecores}}}\n"),
    ("clusters/lab/talos.sops.yaml", "cluster: ENC[{keys}]\nsops: {version: 3.9.0}\n"),
    ("flux.yaml", "# {flux}\n"),
    (
        "environments/stage.yaml",
        "profiles: {p: {memory: {stageprofile}}}
stacks:
  tiny: {vms: {z: {vmId: 9900, name: stage-z, disk: {stagedisk}}}}
  web: {vms: {a: {vmId: 9910, name: stage-a, network: [{bridge: vmbr0, ip: 192.0.2.110/24}]}, b: {vmId: 9911, name: stage-b}}}
  {stagebase}
",
    ),
];

/// Each place with what it may say, and the stacks that are drawn from it. `stage` is the other environment.
const PLACES: &[(&str, &[&str], &[&str])] = &[
    ("id", &["demo1", "demo2"], ALL),
    ("state", &["# here", "state: {path: elsewhere}"], ALL),
    (
        "endpoint",
        &["192.0.2.1", "192.0.2.2"],
        &["dc", "base", "web", "lab", "web@stage", "hand", "base@stage"],
    ),
    ("far", &["192.0.2.8", "192.0.2.9"], &["tiny", "tiny@stage"]),
    ("sockets", &["1", "2"], &["web", "tiny", "web@stage", "tiny@stage", "hand"]),
    ("profile", &["600", "700"], &["web", "hand"]),
    ("mirror", &["a.example", "b.example"], ALL),
    ("comment", &["one", "two"], &[]),
    ("secret", &["one", "two"], &["tiny", "tiny@stage", "hand"]),
    ("pool", &["one", "two"], &["dc"]),
    (
        "storage",
        &["dir, path: /srv", "nfs, server: 192.0.2.70, export: /x"],
        &["dc", "base", "web", "lab", "web@stage", "hand", "base@stage"],
    ),
    ("template", &["9000", "9001"], &["base", "web", "web@stage", "hand", "base@stage"]),
    ("image", &["one", "two"], &["base", "web", "web@stage", "hand", "base@stage"]),
    ("webcomment", &["one", "two"], &[]),
    ("memory", &["512", "1024"], &["web", "web@stage", "hand"]),
    ("package", &["vim", "nano"], &["web", "web@stage", "hand"]),
    ("readme", &["one", "two"], &[]),
    ("disk", &["4", "5"], &["tiny"]),
    ("code", &["one", "two"], &["hand"]),
    ("module", &["one", "two"], &["hand"]),
    ("zones", &["one", "two"], &["hand"]),
    ("other", &["one", "two"], &[]),
    ("kubernetes", &["v1.36.1", "v1.36.2"], &["lab"]),
    ("workers", &["1", "2"], &["lab"]),
    ("nodecores", &["2", "3"], &["lab"]),
    ("keys", &["one", "two"], &["lab"]),
    ("flux", &["one", "two"], &["lab"]),
    ("stageprofile", &["800", "900"], &["web@stage"]),
    ("stagedisk", &["6", "7"], &["tiny@stage"]),
    (
        "stagebase",
        &["# base: not here", "base: {templates: {t: {vmId: 9920, name: stage-t}}}"],
        &["base@stage", "web@stage"],
    ),
];

const ALL: &[&str] = &["dc", "base", "web", "tiny", "hand", "lab", "web@stage", "tiny@stage", "base@stage"];

/// Files that come and go as a whole, each with the stacks that are drawn from it.
const WHOLE: &[(&str, &[&str])] = &[
    ("clusters/lab/nodes.yaml", &["lab"]),
    ("clusters/lab/cluster.yaml", &["lab"]),
    ("stacks/hand/stack.yaml", &["hand"]),
    ("hypervisors/dc.yaml", &["dc"]),
    ("flux.yaml", &["lab"]),
    ("stacks/web/README.md", &[]),
    ("clusters/lab/talos.sops.yaml", &["lab"]),
];

/// A version of the repository: what each place says, and which files are not there.
#[derive(Debug, Clone, Default, PartialEq)]
struct Version {
    said: BTreeMap<&'static str, usize>,
    gone: BTreeSet<&'static str>,
}

impl Version {
    fn world(&self) -> Memory {
        let mut world = Memory::new().variable("TOKEN", "t");
        for (path, text) in FILES.iter().filter(|(path, _)| !self.gone.contains(path)) {
            let mut text = (*text).to_owned();
            for (place, choices, _) in PLACES {
                let said = choices[self.said.get(place).copied().unwrap_or_default()];
                text = text.replace(&format!("{{{place}}}"), said);
            }
            world = world.file(path, text);
        }
        world
    }

    fn toggle(&mut self, edit: usize) {
        match PLACES.get(edit) {
            Some((place, choices, _)) => {
                let said = self.said.entry(place).or_default();
                *said = (*said + 1) % choices.len();
            }
            None => {
                let path = WHOLE[edit - PLACES.len()].0;
                if !self.gone.remove(path) {
                    self.gone.insert(path);
                }
            }
        }
    }
}

const EDITS: usize = PLACES.len() + WHOLE.len();

/// A version with what is said of it, and what is drawn from it.
struct Commit {
    source: SourceVersion,
    drawn: BTreeMap<StackKey, String>,
}

impl Version {
    fn commit(&self) -> Commit {
        let world = self.world();
        Commit { source: SourceVersion::read(&world).unwrap(), drawn: drawn(&world) }
    }
}

fn name(key: &StackKey) -> String {
    if key.environment == "default" {
        key.stack.clone()
    } else {
        format!("{}@{}", key.stack, key.environment)
    }
}

/// Every stack of which something else is drawn is among those that can change.
fn assert_none_is_missed(before: &Commit, after: &Commit, what: &str) -> usize {
    let said: BTreeSet<StackKey> =
        before.source.changes_to(&after.source).into_iter().map(|one| one.key).collect();
    let keys: BTreeSet<&StackKey> = before.drawn.keys().chain(after.drawn.keys()).collect();
    let differs = |key: &&StackKey| before.drawn.get(*key) != after.drawn.get(*key);
    let differ: Vec<&StackKey> = keys.into_iter().filter(differs).collect();
    for key in &differ {
        assert!(
            said.contains(*key),
            "{what}: `{}` is drawn otherwise, and nobody said so: {said:?}",
            name(key)
        );
    }
    differ.len()
}

#[test]
fn each_edit_changes_what_is_drawn_from_it_and_nothing_else() {
    let mut wrong = Vec::new();
    for edit in 0..EDITS {
        let (what, expected) = match PLACES.get(edit) {
            Some((place, _, expected)) => (*place, *expected),
            None => WHOLE[edit - PLACES.len()],
        };
        let (before, mut after) = (Version::default(), Version::default());
        after.toggle(edit);
        let (before, after) = (before.commit(), after.commit());
        let found: Vec<ChangedStack> = before.source.changes_to(&after.source);
        let said: BTreeSet<String> = found.iter().map(|one| name(&one.key)).collect();
        // The template is in the other environment only where that says so.
        let here = |stack: &&&str| **stack != "base@stage" || what == "stagebase";
        let expected: BTreeSet<String> =
            expected.iter().filter(here).map(|stack| (*stack).to_owned()).collect();
        if said != expected {
            wrong.push(format!("{what}: said {said:?}, expected {expected:?}"));
        }
        assert!(found.iter().all(|one| !one.reasons.is_empty()), "{what}: {found:#?}");
        assert_none_is_missed(&before, &after, what);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_walk_over_edits_finds_a_stack_that_is_missed() {
    let mut differed = 0;
    for seed in 0..40_u64 {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            usize::try_from(random % below as u64).unwrap()
        };
        let mut version = Version::default();
        let mut commits = vec![version.commit()];
        for step in 0..8 {
            for _ in 0..=next(3) {
                version.toggle(next(EDITS));
            }
            let commit = version.commit();
            // From the commit before, and from any earlier one: a range is as long as it likes.
            let earlier = &commits[next(commits.len())];
            let what = format!("seed {seed}, step {step}");
            differed += assert_none_is_missed(commits.last().unwrap(), &commit, &what);
            differed += assert_none_is_missed(earlier, &commit, &what);
            commits.push(commit);
        }
    }
    assert!(differed > 500, "the walk changed too little: {differed}");
}
