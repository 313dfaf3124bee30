//! An LXC container.

use strata_resource::{Resource, Spec, Stage, Value};
use strata_source::machine::container::{Container, ContainerNic, MountPoint, RootFs};
use strata_source::machine::image::ContentType;
use strata_source::stack::Stack;
use strata_source::stack::expand::Instance;

use crate::cloud_init::addressing;
use crate::fields::{Fields, decimal, int, list};
use crate::guest::{Equals, group, policy, put_raw};
use crate::hardware::trunks;
use crate::image::ImageUse;
use crate::kinds;
use crate::resolved::Resolved;
use crate::site::Draft;
use crate::storage::Storages;

/// The root file system where the source gives no size.
const ROOT_GIB: u64 = 8;

impl Draft<'_> {
    pub(crate) fn container(&mut self, stack: &Stack, instance: &Instance<'_, Container>) {
        let (container, guest) = (instance.spec, &instance.spec.guest);
        let address = self.address(kinds::CONTAINER, &instance.name);
        let Some(written) = self.node(instance.node.as_ref(), instance.key) else { return };
        let node = self.home(&address, written);
        let storage = Storages::of(stack, container.storage.as_ref());
        let used = ImageUse { name: instance.key, node: &node, wanted: ContentType::Vztmpl, storage };
        let Some(image) = self.image(Some(stack), &container.image, &used) else { return };
        let disks = storage.of_disks();
        let name = container.hostname.as_ref().filter(|_| instance.index.is_none()).unwrap_or(&instance.name);
        let mut spec = self.guest(&address, instance.vm_id, &node, name, guest);
        spec.put("image", image.id);
        spec.put("unprivileged", container.unprivileged);
        spec.put_some("ostype", container.os_type.map(|os| os.to_string()));
        spec.put_some("pool", self.pool(stack, guest.pool.as_ref()));
        spec.put_some("password", container.password.as_ref().and_then(|password| self.secret(password)));
        let keys = self.keys(&container.ssh_keys).into_iter().map(Resolved::into_value);
        spec.put_full("ssh_keys", Value::List(keys.collect()));
        let mut cpu = Spec::new();
        cpu.put_some("cores", container.cores.map(int));
        cpu.put_some("units", container.cpu_units.map(int));
        cpu.put_some("limit", container.cpu_limit.map(decimal));
        spec.put_full("cpu", Value::Map(cpu));
        let mut memory = Spec::new();
        memory.put("size", int(container.memory.map_or(512, |memory| memory.mib())));
        memory.put_some("swap", container.swap.map(int));
        spec.put("memory", memory);
        spec.put("rootfs", rootfs(container.disk.as_ref(), disks));
        let mounts = container
            .mount_points
            .iter()
            .map(|(slot, mount)| (slot.value.clone(), mount_point(mount, disks)));
        spec.put_full("mounts", Value::Map(mounts.collect()));
        let firewalled = guest.firewall.as_ref().is_some_and(|firewall| firewall.enabled);
        let networks = container.network.iter().map(|(slot, nic)| {
            let mac = instance.mac(nic.mac.as_ref().map(|mac| mac.value)).map(|mac| mac.to_string());
            let mac = mac.unwrap_or_else(|| self.derived_mac(&address, slot));
            (slot.value.clone(), Value::Map(network(instance, slot, nic, mac, firewalled)))
        });
        let networks = Value::Map(networks.collect());
        let mut fixed =
            container.network.iter().filter_map(|(_, nic)| instance.addressing(nic.ip.as_ref()?.value));
        let fixed = fixed.find_map(|ip| ip.address());
        self.blueprint.addresses.extend(fixed.map(|cidr| (address.clone(), cidr.address.to_string())));
        let pool = self.pool(stack, guest.pool.as_ref());
        let equals = Equals {
            address: &address,
            key: instance.key,
            counted: instance.index.is_some(),
            each: container.each.keys().next().map(AsRef::as_ref),
            pool: pool.as_deref(),
            fixed: fixed.map(|cidr| cidr.address),
        };
        spec.put_some("rollout", self.rollout(guest, equals));
        spec.put_full("networks", networks);
        spec.put_full("features", features(container));
        spec.put_full("nameservers", list(container.nameservers.iter().map(|server| server.0)));
        spec.put_some("searchdomain", container.search_domain.clone());
        spec.put_some("timezone", container.timezone.clone());
        spec.put_some("console", container.console.as_ref().map(console));
        let mut depends_on = self.dependencies(stack, &guest.depends_on);
        depends_on.extend(image.resource);
        let ignore = self.ignored(kinds::CONTAINER, guest);
        let group = group(&spec);
        let mut resource = Resource {
            address,
            target: self.target.clone(),
            spec,
            depends_on,
            stage: Stage::Compute,
            protect: guest.protect,
            on_change: policy(guest.on_change),
            ignore,
            limits: vec![format!("storage:{node}/{disks}")],
            origin: self.origin(instance.key.span),
        };
        self.leave_open(written, group, &mut resource);
        self.insert(resource);
    }
}

fn rootfs(root: Option<&RootFs>, default: &str) -> Value {
    let mut spec = Spec::new();
    let storage =
        root.and_then(|root| root.storage.as_ref()).map_or(default, |storage| storage.value.as_str());
    spec.put("storage", storage);
    spec.put("size", int(root.and_then(|root| root.size).map_or(ROOT_GIB << 30, |size| size.bytes())));
    if let Some(root) = root {
        spec.put_some("acl", root.acl);
        spec.put_some("quota", root.quota);
        spec.put_some("replicate", root.replicate);
        spec.put_some("readonly", root.read_only);
        spec.put_some("mountoptions", mount_options(&root.mount_options));
    }
    Value::Map(spec)
}

fn mount_point(mount: &MountPoint, default: &str) -> Value {
    let mut spec = Spec::new();
    spec.put("path", mount.path.value.clone());
    match &mount.volume {
        Some(volume) => spec.put("volume", volume.value.clone()),
        None => spec.put("storage", mount.storage.as_ref().map_or(default, |storage| storage.value.as_str())),
    }
    spec.put_some("size", mount.size.map(|size| int(size.bytes())));
    spec.put_some("readonly", mount.read_only);
    spec.put_some("backup", mount.backup);
    spec.put_some("quota", mount.quota);
    spec.put_some("acl", mount.acl);
    spec.put_some("replicate", mount.replicate);
    spec.put_some("shared", mount.shared);
    spec.put_some("mountoptions", mount_options(&mount.mount_options));
    Value::Map(spec)
}

fn mount_options(options: &[String]) -> Option<String> {
    (!options.is_empty()).then(|| options.join(";"))
}

fn network(
    instance: &Instance<'_, Container>,
    slot: &str,
    nic: &ContainerNic,
    mac: String,
    firewalled: bool,
) -> Spec {
    let mut spec = Spec::new();
    spec.put("name", nic.name.clone().unwrap_or_else(|| slot.replace("net", "eth")));
    spec.put("mac", mac);
    spec.put("bridge", nic.bridge.as_ref().map_or("vmbr0", |bridge| bridge.value.as_str()));
    spec.put_some("vlan", nic.vlan.map(int));
    spec.put_full("trunks", trunks(&nic.trunks));
    spec.put_some("mtu", nic.mtu.map(int));
    spec.put_some("firewall", nic.firewall.or(firewalled.then_some(true)));
    spec.put_some("rate", nic.rate.map(decimal));
    spec.put_some("link_down", nic.link_down);
    spec.put_some("ip", nic.ip.as_ref().and_then(|ip| instance.addressing(ip.value)).map(addressing));
    spec.put_some("gateway", nic.gateway.as_ref().map(|gateway| gateway.0.to_string()));
    spec.put_some("ip6", nic.ip6.as_ref().and_then(|ip| instance.addressing(ip.value)).map(addressing));
    spec.put_some("gateway6", nic.gateway6.as_ref().map(|gateway| gateway.0.to_string()));
    put_raw(&mut spec, &nic.options);
    spec
}

fn features(container: &Container) -> Value {
    let mut spec = Spec::new();
    if let Some(features) = &container.features {
        spec.put_some("nesting", features.nesting);
        spec.put_some("keyctl", features.keyctl);
        spec.put_some("fuse", features.fuse);
        spec.put_some("mknod", features.mknod);
        spec.put_full("mount", list(&features.mount));
    }
    Value::Map(spec)
}

fn console(console: &strata_source::machine::container::Console) -> Value {
    let mut spec = Spec::new();
    spec.put("enabled", console.enabled);
    spec.put_some("tty", console.tty.map(int));
    spec.put_some("mode", console.mode.map(|mode| mode.to_string()));
    Value::Map(spec)
}
