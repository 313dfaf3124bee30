//! From the family's words to ours, with the family's defaults.

use strata_diagnostics::{Diagnostic, Diagnostics, Span};
use strata_yaml::{Entry, Node, Spanned, Value};

use super::{FlatAdvanced, FlatCluster, FlatCni, FlatNode, FlatSize};
use crate::value::address::advance;
use crate::value::size::{DiskSize, MemorySize};

/// The family leaves VMIDs to Proxmox; ours are decided before anything is made.
const FIRST_CONTROLLER: u32 = 800;
const FIRST_WORKER: u32 = 810;

/// A mapping under construction. What is not given is left out.
struct Tree {
    entries: Vec<Entry>,
    /// Where what has no place of its own is said to be.
    at: Span,
}

impl Tree {
    fn new(at: Span) -> Self {
        Self { entries: Vec::new(), at }
    }

    fn node(mut self, key: &str, value: Option<Node>) -> Self {
        if let Some(value) = value {
            self.entries.push(Entry { key: Spanned::new(key.to_owned(), value.span), value });
        }
        self
    }

    /// Text, whatever it looks like.
    fn text<T: ToString>(self, key: &str, value: Option<&Spanned<T>>) -> Self {
        let node = value.map(|value| Node::text(value.to_string(), value.span));
        self.node(key, node)
    }

    /// A number or a truth value.
    fn plain<T: ToString>(self, key: &str, value: Option<&Spanned<T>>) -> Self {
        let node = value.map(|value| Node::scalar(value.to_string(), value.span));
        self.node(key, node)
    }

    /// A number or a truth value, or the family's default.
    fn plain_or<T: ToString>(self, key: &str, value: Option<&Spanned<T>>, default: &str) -> Self {
        let at = self.at;
        match value {
            Some(_) => self.plain(key, value),
            None => self.node(key, Some(Node::scalar(default, at))),
        }
    }

    fn text_or<T: ToString>(self, key: &str, value: Option<&Spanned<T>>, default: &str) -> Self {
        let at = self.at;
        match value {
            Some(_) => self.text(key, value),
            None => self.node(key, Some(Node::text(default, at))),
        }
    }

    fn texts<T: ToString>(self, key: &str, values: &[Spanned<T>]) -> Self {
        let at = values.first().map_or(self.at, |value| value.span);
        let list = values.iter().map(|value| Node::text(value.to_string(), value.span)).collect();
        self.node(key, (!values.is_empty()).then(|| Node::list(list, at)))
    }

    fn done(self) -> Option<Node> {
        (!self.entries.is_empty()).then(|| Node::mapping(self.entries, self.at))
    }
}

pub(super) fn convert(
    cluster: &FlatCluster,
    nodes: &[FlatNode],
    diagnostics: &mut Diagnostics,
) -> Option<Node> {
    let at = cluster.places.owner();
    let infrastructure = cluster.proxmox_api_url.is_some() && cluster.proxmox_node.is_some();
    let talos = Tree::new(at).text_or("version", cluster.talos_version.as_ref(), "1.12.0");
    let kubernetes = Tree::new(at)
        .text_or("version", cluster.kubernetes_version.as_ref(), "1.35.0")
        .text_or("podCidr", cluster.cluster_pod_cidr.as_ref(), "10.42.0.0/16")
        .text_or("serviceCidr", cluster.cluster_svc_cidr.as_ref(), "10.43.0.0/16");
    // The family installs Cilium, which does the work of kube-proxy, too.
    let flannel = cluster.cluster_cni.as_ref().filter(|cni| cni.value == FlatCni::Flannel);
    let kubernetes = match flannel {
        Some(cni) => kubernetes.text("cni", Some(&Spanned::new("flannel", cni.span))),
        None => {
            kubernetes.text_or::<String>("cni", None, "none").plain_or::<bool>("kubeProxy", None, "false")
        }
    };
    let inner = Tree::new(at)
        .node("talos", talos.done())
        .node("kubernetes", kubernetes.done())
        .node("network", network(cluster, diagnostics))
        .node("nodes", machines(cluster, nodes, infrastructure, diagnostics));
    Tree::new(at)
        .node("cluster", inner.done())
        .node("proxmox", infrastructure.then(|| proxmox(cluster)).flatten())
        .done()
}

fn network(cluster: &FlatCluster, diagnostics: &mut Diagnostics) -> Option<Node> {
    let at = cluster.places.owner();
    let cidr = cluster.node_cidr;
    let gateway = match cluster.node_default_gateway {
        Some(gateway) => Some(gateway.map(|gateway| gateway.to_string())),
        None => first_address(cidr.value).map(|first| Spanned::new(first, cidr.span)),
    };
    let vlan = cluster.node_vlan_tag.as_ref().and_then(|tag| {
        let number = tag.parse::<u16>().ok().filter(|tag| (1..=4094).contains(tag));
        if number.is_none() {
            let message = format!("`{tag}` is not a VLAN tag: it takes a number from 1 to 4094");
            diagnostics.push(Diagnostic::error("invalid-value", message).at(tag.span));
        }
        number.map(|number| Spanned::new(number, tag.span))
    });
    let key = if cluster.proxmox_vlan_mode { "vlan" } else { "guestVlan" };
    let bridge = cluster.proxmox_vm_advanced.as_ref().and_then(|advanced| advanced.network_bridge.as_ref());
    let defaults = [Spanned::new("1.1.1.1", at), Spanned::new("1.0.0.1", at)];
    let tree = Tree::new(at)
        .text("cidr", Some(&cidr))
        .text("gateway", gateway.as_ref())
        .text("vip", Some(&cluster.cluster_api_addr))
        .text_or("bridge", bridge, "vmbr0")
        .plain(key, vlan.as_ref())
        .texts("apiNames", &cluster.cluster_api_tls_sans);
    let tree = match cluster.node_dns_servers.as_slice() {
        [] => tree.texts("nameservers", &defaults),
        servers => tree.texts("nameservers", servers),
    };
    let tree = match cluster.node_ntp_servers.as_slice() {
        [] => tree
            .texts("timeServers", &[Spanned::new("162.159.200.1", at), Spanned::new("162.159.200.123", at)]),
        servers => tree.texts("timeServers", servers),
    };
    tree.done()
}

/// The family's default router: the first address of the network.
fn first_address(cidr: crate::value::address::Cidr) -> Option<String> {
    let number = crate::value::address::number(cidr.address);
    let bits: u32 = if cidr.address.is_ipv4() { 32 } else { 128 };
    let size = 1_u128.checked_shl(bits - u32::from(cidr.prefix))?;
    let network = number - number % size;
    let first = match cidr.address {
        std::net::IpAddr::V4(_) => std::net::Ipv4Addr::from(u32::try_from(network).ok()?).into(),
        std::net::IpAddr::V6(_) => std::net::Ipv6Addr::from(network).into(),
    };
    advance(first, 1).map(|address| address.to_string())
}

fn machines(
    cluster: &FlatCluster,
    nodes: &[FlatNode],
    infrastructure: bool,
    diagnostics: &mut Diagnostics,
) -> Option<Node> {
    let at = cluster.places.owner();
    let mut next = [FIRST_CONTROLLER, FIRST_WORKER];
    let mut entries: Vec<Entry> = Vec::new();
    for node in nodes {
        if let Some(first) = entries.iter().find(|entry| entry.key == node.name) {
            let problem =
                Diagnostic::error("name-collision", format!("two machines are called `{}`", node.name));
            diagnostics.push(problem.at(node.name.span).also(first.key.span, "first here"));
            continue;
        }
        let counter = &mut next[usize::from(!node.controller.value)];
        let vm_id = node.vm_id.or_else(|| {
            let id = *counter;
            if infrastructure {
                let message = format!("`{}` has no `vm_id`; it gets {id}", node.name);
                let problem = Diagnostic::warning("no-vmid", message).at(node.name.span);
                diagnostics.push(problem.hint(format!("write `vm_id: {id}`, so that it stays")));
            }
            infrastructure.then(|| Spanned::new(id, node.name.span))
        });
        *counter += 1;
        entries.push(Entry { key: node.name.clone(), value: machine(cluster, node, vm_id) });
    }
    (!entries.is_empty()).then(|| Node::mapping(entries, at))
}

fn machine(cluster: &FlatCluster, node: &FlatNode, vm_id: Option<Spanned<u32>>) -> Node {
    let at = node.name.span;
    let role = if node.controller.value { "controlPlane" } else { "worker" };
    let (of_role, cores, memory, disk) = if node.controller.value {
        (&cluster.proxmox_vm_controller_defaults, 4, 8192, 64)
    } else {
        (&cluster.proxmox_vm_worker_defaults, 8, 16384, 256)
    };
    let sizes: Vec<&FlatSize> = of_role.iter().chain(&cluster.proxmox_vm_defaults).collect();
    let cores = first(node.vm_cores, &sizes, |size| size.cores).unwrap_or(cores);
    let sockets = first(node.vm_sockets, &sizes, |size| size.sockets).unwrap_or(1);
    let memory = first(node.vm_memory, &sizes, |size| size.memory).unwrap_or(MemorySize::from_mib(memory));
    let disk = first(node.vm_disk_size, &sizes, |size| size.disk_size).unwrap_or(DiskSize::from_gib(disk));
    let startup = Tree::new(at)
        .plain("order", node.vm_startup_order.as_ref())
        .plain("upDelay", node.vm_startup_delay.as_ref())
        .plain("downDelay", node.vm_shutdown_delay.as_ref());
    let tree = Tree::new(at)
        .text("role", Some(&Spanned::new(role, node.controller.span)))
        .text("address", Some(&node.address))
        .text("mac", Some(&node.mac_addr))
        .plain("vmId", vm_id.as_ref())
        .text("installDisk", Some(&node.disk))
        .node("schematic", Tree::new(at).text("id", Some(&node.schematic_id)).done())
        .plain("mtu", node.mtu.as_ref())
        .plain("secureBoot", node.secureboot.as_ref())
        .plain("encryptDisk", node.encrypt_disk.as_ref())
        .texts("kernelModules", node.kernel_modules.as_deref().unwrap_or_default())
        .plain("cores", Some(&Spanned::new(cores, at)))
        .plain("sockets", Some(&Spanned::new(sockets, at)))
        .plain("memory", Some(&Spanned::new(memory.mib(), at)))
        .text("disk", Some(&Spanned::new(disk, at)))
        .node("startup", startup.done());
    tree.done().unwrap_or_else(|| Node::mapping(Vec::new(), at))
}

/// The machine's own, then its role's, then what all have.
fn first<T>(own: Option<T>, sizes: &[&FlatSize], get: impl Fn(&FlatSize) -> Option<T>) -> Option<T> {
    own.or_else(|| sizes.iter().find_map(|size| get(size)))
}

fn proxmox(cluster: &FlatCluster) -> Option<Node> {
    let at = cluster.places.owner();
    let url = cluster.proxmox_api_url.as_ref()?;
    let url = url.as_ref().map(|url| {
        let url = url.trim_end_matches('/');
        url.strip_suffix("/api2/json").unwrap_or(url).to_owned()
    });
    let storage = Tree::new(at).text_or("iso", cluster.proxmox_iso_storage.as_ref(), "local").text_or(
        "disk",
        cluster.proxmox_disk_storage.as_ref(),
        "local-lvm",
    );
    Tree::new(at)
        .text("endpoint", Some(&url))
        .node("tokenId", outside(given(&cluster.proxmox_api_token_id)))
        .node("token", outside(given(&cluster.proxmox_api_token_secret)))
        .node("tls", Tree::new(at).text("fingerprint", cluster.proxmox_tls_fingerprint.as_ref()).done())
        .text("node", cluster.proxmox_node.as_ref())
        .node("storage", storage.done())
        .node("vm", hardware(cluster.proxmox_vm_advanced.as_ref(), at))
        .done()
}

/// The family's files come with empty texts to be filled in.
fn given(value: &Option<Spanned<Value<String>>>) -> Option<&Spanned<Value<String>>> {
    value.as_ref().filter(|value| value.value.literal().is_none_or(|text| !text.is_empty()))
}

/// A text, or where it comes from.
fn outside(value: Option<&Spanned<Value<String>>>) -> Option<Node> {
    let value = value?;
    Some(match &value.value {
        Value::Literal(text) => Node::text(text.clone(), value.span),
        Value::Reference(reference) => {
            let name = Node::text(reference.source.name(), value.span);
            let key = Spanned::new(reference.source.key().to_owned(), value.span);
            Node::mapping(vec![Entry { key, value: name }], value.span)
        }
    })
}

fn hardware(advanced: Option<&FlatAdvanced>, at: Span) -> Option<Node> {
    macro_rules! given {
        ($field:ident) => {
            advanced.and_then(|advanced| advanced.$field.as_ref())
        };
    }
    let cpu = Tree::new(at).text_or("type", given!(cpu_type), "host").plain_or("numa", given!(numa), "true");
    let disk = Tree::new(at)
        .plain_or("discard", given!(disk_discard), "true")
        .plain_or("ssd", given!(disk_ssd), "true")
        .plain_or("backup", given!(disk_backup), "false")
        .plain_or("replicate", given!(disk_replicate), "false")
        .plain_or::<bool>("iothread", None, "true");
    let nic = Tree::new(at)
        .text_or("bridge", given!(network_bridge), "vmbr0")
        .plain_or("queues", given!(net_queues), "4")
        .done()?;
    let efi = Tree::new(at).text_or::<String>("type", None, "4m").plain_or::<bool>(
        "preEnrolledKeys",
        None,
        "false",
    );
    let defaults = ["kubernetes", "linux", "talos"].map(|tag| Spanned::new(tag.to_owned(), at));
    Tree::new(at)
        .text_or("bios", given!(bios), "ovmf")
        .text_or("machine", given!(machine), "q35")
        .node("cpu", cpu.done())
        .text_or("scsiController", given!(scsi_hw), "virtio-scsi-pci")
        .plain_or("balloon", given!(balloon), "0")
        .plain_or("agent", given!(qemu_agent), "true")
        .node("disk", disk.done())
        .node("network", Some(Node::list(vec![nic], at)))
        .node("efi", efi.done())
        .texts("tags", given!(tags).map_or(&defaults[..], |tags| tags.as_slice()))
        .text_or("osType", given!(ostype), "l26")
        .done()
}
