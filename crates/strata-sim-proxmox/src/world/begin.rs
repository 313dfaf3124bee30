//! The worlds a simulator can begin with.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use strata_sim_core::Seed;

use super::access::{Role, Token, User};
use super::disks::Disk;
use super::node::Iface;
use super::{Access, Cluster, Guest, GuestKind, Node, Pool, Storage, Volume, Volumes, World, WorldKind};

const GIB: u64 = 1 << 30;

/// The API token of the default world, for the examples. It is worth nothing outside the simulator.
pub const DEMO_TOKEN: &str = "strata@pve!demo=5174a7a0-0d9e-4c0f-8f3d-6d6f2d73696d";
/// A token of root in the default world, for tools that want everything.
pub const ROOT_TOKEN: &str = "root@pam!sim=00a11ce5-51d3-4b0a-9c0d-73747261746d";
/// The password of root@pam unless another one is chosen.
pub const ROOT_PASSWORD: &str = "strata-sim";
/// The role that the demo token's user has on `/`.
const DEMO_ROLE: &str = "StrataDemo";
const DEMO_PRIVILEGES: &[&str] = &[
    "Datastore.Allocate",
    "Datastore.AllocateSpace",
    "Datastore.AllocateTemplate",
    "Datastore.Audit",
    "Mapping.Audit",
    "Mapping.Modify",
    "Mapping.Use",
    "Pool.Allocate",
    "Pool.Audit",
    "Realm.Allocate",
    "Realm.AllocateUser",
    "SDN.Allocate",
    "SDN.Audit",
    "SDN.Use",
    "Sys.AccessNetwork",
    "Sys.Audit",
    "Sys.Console",
    "Sys.Modify",
    "User.Modify",
    "VM.Allocate",
    "VM.Audit",
    "VM.Backup",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Cloudinit",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.Console",
    "VM.GuestAgent.Audit",
    "VM.Migrate",
    "VM.PowerMgmt",
    "VM.Replicate",
    "VM.Snapshot",
    "VM.Snapshot.Rollback",
];

/// What a world begins with.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// Which one.
    pub world: WorldKind,
    /// What everything that the server makes up derives from.
    pub seed: Seed,
    /// A token `user@realm!name=secret` without privilege separation to have besides the world's own.
    pub token: Option<String>,
    /// The password of root@pam.
    pub password: Option<String>,
    /// This many stopped VMs, numbered from 10000.
    pub guests: usize,
}

impl Default for Beginning {
    fn default() -> Self {
        Self { world: WorldKind::Default, seed: Seed(1), token: None, password: None, guests: 0 }
    }
}

/// The first guest of those that `Beginning::guests` asks for.
const FIRST_GUEST: u32 = 10_000;

impl World {
    /// A new world.
    pub fn begin(options: &Beginning) -> Self {
        let mut world = Self {
            kind: options.world,
            seed: options.seed,
            nodes: IndexMap::new(),
            storages: IndexMap::new(),
            volumes: Volumes::default(),
            guests: BTreeMap::new(),
            access: Access::fresh(),
            pools: BTreeMap::new(),
            firewall: BTreeMap::new(),
            cluster: Cluster::default(),
            ipam: Default::default(),
            daemons: Default::default(),
            tasks: Default::default(),
            clock: Default::default(),
        };
        match options.world {
            WorldKind::Default => world.furnish_default(),
            WorldKind::Single => world.furnish_single(),
            WorldKind::LivedIn => world.furnish_lived_in(),
        }
        world.populate(options.guests);
        world
    }

    fn furnish_single(&mut self) {
        let mut node = Node::new("pve", "192.0.2.10");
        node.cpus = 2;
        node.memory = 24 * GIB;
        node.ifaces = ifaces("192.0.2.10", &["vmbr0"]);
        self.nodes.insert("pve".into(), node);
        let content = "iso,vztmpl,backup,images,rootdir,snippets,import";
        self.add_storage("local", "dir", &[("path", "/var/lib/vz"), ("content", content)], 252, 45);
        self.add_file("local", "pve", "iso", "test.iso", "iso", 3_000_000);
        let template = "debian-12-standard_12.7-1_amd64.tar.zst";
        self.add_file("local", "pve", "vztmpl", template, "tzst", 1_112_146);
    }

    fn furnish_default(&mut self) {
        self.cluster.name = "strata".into();
        for (n, name) in ["pve1", "pve2", "pve3"].into_iter().enumerate() {
            let ip = format!("192.0.2.{}", 11 + n);
            let mut node = Node::new(name, &ip);
            node.ifaces = ifaces(&ip, &["vmbr0", "vmbr1"]);
            node.disks.all.extend(spare_disks(name));
            self.nodes.insert(name.into(), node);
        }
        let files = "iso,vztmpl,import,backup,snippets";
        self.add_storage("local", "dir", &[("path", "/var/lib/vz"), ("content", files)], 100, 8);
        let thin = [("thinpool", "data"), ("vgname", "pve"), ("content", "images,rootdir")];
        self.add_storage("local-lvm", "lvmthin", &thin, 800, 0);
        let nfs = [
            ("server", "192.0.2.20"),
            ("export", "/tank/pve"),
            ("path", "/mnt/pve/tank"),
            ("content", "images,rootdir,iso,import,vztmpl"),
        ];
        self.add_storage("tank", "nfs", &nfs, 20_000, 0);
        for node in ["pve1", "pve2", "pve3"] {
            let template = "debian-12-standard_12.7-1_amd64.tar.zst";
            self.add_file("local", node, "vztmpl", template, "tzst", 1_112_146);
        }
        let production = Pool { comment: Some("production".into()), ..Pool::default() };
        self.pools.insert("production".into(), production);
        self.furnish_operator();
    }

    /// The user of the examples with what an operator needs and no more, and both tokens.
    pub(super) fn furnish_operator(&mut self) {
        let role = Role { privs: DEMO_PRIVILEGES.iter().map(|p| (*p).to_owned()).collect(), special: false };
        self.access.roles.insert(DEMO_ROLE.into(), role);
        self.access.users.insert("strata@pve".into(), User { enable: true, ..User::default() });
        self.access.grant("/", "strata@pve", DEMO_ROLE, true);
        self.add_token(DEMO_TOKEN);
        self.add_token(ROOT_TOKEN);
    }

    /// The password of root and the token that were asked for; also into a world that was kept.
    pub fn open_doors(&mut self, options: &Beginning) {
        if let Some(root) = self.access.users.get_mut("root@pam") {
            let kept = root.password.take().unwrap_or_else(|| ROOT_PASSWORD.to_owned());
            root.password = Some(options.password.clone().unwrap_or(kept));
        }
        match &options.token {
            Some(token) => self.add_token(token),
            None if self.kind == WorldKind::Single => self.add_token(ROOT_TOKEN),
            None => {}
        }
    }

    /// Adds `user!token=secret`, and the user if there is none; the user of an unknown token is an administrator.
    fn add_token(&mut self, token: &str) {
        let Some((id, secret)) = token.split_once('=') else { return };
        let Some((user, name)) = id.split_once('!') else { return };
        if !self.access.users.contains_key(user) {
            self.access.users.insert(user.to_owned(), User { enable: true, ..User::default() });
            self.access.grant("/", user, "Administrator", true);
        }
        if let Some(user) = self.access.users.get_mut(user) {
            user.tokens.insert(name.to_owned(), Token { secret: secret.to_owned(), ..Token::default() });
        }
    }

    fn add_storage(&mut self, id: &str, kind: &str, props: &[(&str, &str)], capacity: u64, taken: u64) {
        let props = props.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let storage =
            Storage { id: id.into(), kind: kind.into(), props, capacity: capacity * GIB, taken: taken * GIB };
        self.storages.insert(id.into(), storage);
    }

    /// A file that is there from now on.
    pub fn add_file(
        &mut self,
        storage: &str,
        node: &str,
        content: &str,
        name: &str,
        format: &str,
        size: u64,
    ) {
        let ctime = self.now();
        let place = (storage.to_owned(), node.to_owned(), format!("{content}/{name}"));
        let volume =
            Volume { content: content.into(), format: format.into(), size, ctime, ..Volume::default() };
        self.volumes.insert(place, volume);
    }

    /// Many small stopped VMs, for measurements.
    fn populate(&mut self, count: usize) {
        let nodes: Vec<String> = self.nodes.keys().cloned().collect();
        let storage = if self.storages.contains_key("tank") { "tank" } else { "local" };
        let created = self.now_ms() - 3_600_000;
        for (n, vmid) in (FIRST_GUEST..).take(count).enumerate() {
            let node = &nodes[n % nodes.len()];
            let mut guest = Guest::new(vmid, node, GuestKind::Qemu, "root@pam", created);
            let number = vmid.to_string();
            let mac = self.mac(&[&number, "net0", "root@pam"]);
            let disk = Volume {
                content: "images".into(),
                format: "raw".into(),
                size: GIB,
                vmid: Some(vmid),
                ..Volume::default()
            };
            let volid = self.allocate(storage, node, disk, &format!("vm-{vmid}-disk-0")).unwrap_or_default();
            let uuid = self.uuid(&["smbios1", &number, "root@pam"]);
            let options = [
                ("boot", "order=scsi0".to_owned()),
                ("cores", "2".to_owned()),
                ("memory", "2048".to_owned()),
                ("meta", "creation-qemu=10.2.1,ctime=1794771654".to_owned()),
                ("name", format!("guest-{vmid}")),
                ("net0", format!("virtio={mac},bridge=vmbr0")),
                ("scsi0", format!("{volid},size=1G")),
                ("scsihw", "virtio-scsi-single".to_owned()),
                ("smbios1", format!("uuid={uuid}")),
                ("vmgenid", self.uuid(&["vmgenid", &number, "root@pam"])),
            ];
            guest.config = options.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
            self.guests.insert(vmid, guest);
        }
    }
}

/// Disks with nothing on them.
fn spare_disks(node: &str) -> impl Iterator<Item = Disk> {
    ["sdb", "sdc", "sdd", "sde"].into_iter().enumerate().map(move |(n, name)| Disk {
        path: format!("/dev/{name}"),
        model: "SIMULATED_SSD".to_owned(),
        serial: format!("{}-{n}", node.to_uppercase()),
        size: 500 * GIB,
        ..Disk::default()
    })
}

/// One network card, and bridges of which the first has it and the node's address.
fn ifaces(ip: &str, bridges: &[&str]) -> IndexMap<String, Iface> {
    let text = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<IndexMap<_, _>>()
    };
    let mut all = IndexMap::new();
    let card = Iface { kind: "eth".into(), props: text(&[("method", "manual")]), active: true };
    all.insert("eno1".to_owned(), card);
    for (n, bridge) in bridges.iter().enumerate() {
        let cidr = format!("{ip}/24");
        let mut props = text(&[("autostart", "1"), ("bridge_stp", "off"), ("bridge_fd", "0")]);
        if n == 0 {
            props.extend(text(&[("cidr", &cidr), ("gateway", "192.0.2.1"), ("bridge_ports", "eno1")]));
        } else {
            props.extend(text(&[("bridge_ports", "")]));
        }
        all.insert((*bridge).to_owned(), Iface { kind: "bridge".into(), props, active: true });
    }
    all
}
