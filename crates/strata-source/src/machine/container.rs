//! LXC containers.

use strata_yaml::{Map, Partial, Raw, Spanned, Value, choice, record};

use crate::machine::guest::Guest;
use crate::machine::image::ImageRef;
use crate::value::address::{Addressing, Ip, Mac};
use crate::value::name::{HOST, ID};
use crate::value::place::{ADDRESS, BRIDGE, VLAN};
use crate::value::size::{DiskSize, MemorySize};
use crate::value::slot::{MountSlots, NetSlots, Slots};

choice! {
    /// The distribution inside, which Proxmox sets up accordingly.
    pub enum ContainerOs {
        Debian = "debian",
        Devuan = "devuan",
        Ubuntu = "ubuntu",
        Centos = "centos",
        Fedora = "fedora",
        Opensuse = "opensuse",
        Archlinux = "archlinux",
        Alpine = "alpine",
        Gentoo = "gentoo",
        Nixos = "nixos",
        Unmanaged = "unmanaged",
    }
}

choice! {
    /// What the console is attached to.
    pub enum ConsoleMode { Tty = "tty", Console = "console", Shell = "shell" }
}

record! {
    /// The console.
    pub struct Console [shorthand("enabled")] {
        /// whether there is one
        "enabled" enabled: bool = true;
        /// how many terminals
        "tty" tty: Option<u8> [range(0, 6)];
        /// what it is attached to
        "mode" mode: Option<ConsoleMode>;
    }
}

record! {
    /// The root file system.
    pub struct RootFs [shorthand("size")] {
        /// in GiB, or with a unit
        "size" size: Option<DiskSize>;
        /// the storage it is on
        "storage" storage: Option<Spanned<String>> [text(ID)];
        /// access control lists
        "acl" acl: Option<bool>;
        /// user quotas
        "quota" quota: Option<bool>;
        /// included in storage replication
        "replicate" replicate: Option<bool>;
        /// the container cannot write to it
        "readOnly" read_only: Option<bool>;
        /// `noatime`, `nodev`, `noexec`, `nosuid`, `lazytime`, `discard`
        "mountOptions" mount_options: Vec<String>;
    }
}

record! {
    /// A volume or a folder of the host inside the container.
    pub struct MountPoint [at_most_one(&["storage", "volume"])] {
        /// where it is seen inside
        "path" path: Spanned<String>;
        /// a new volume on this storage
        "storage" storage: Option<Spanned<String>> [text(ID)];
        /// a volume that is there already, or a folder of the host (needs root)
        "volume" volume: Option<Spanned<String>>;
        /// of a new volume: in GiB, or with a unit
        "size" size: Option<DiskSize>;
        /// the container cannot write to it
        "readOnly" read_only: Option<bool>;
        /// included in backups
        "backup" backup: Option<bool>;
        /// user quotas
        "quota" quota: Option<bool>;
        /// access control lists
        "acl" acl: Option<bool>;
        /// included in storage replication
        "replicate" replicate: Option<bool>;
        /// `noatime`, `nodev`, `noexec`, `nosuid`, `lazytime`, `discard`
        "mountOptions" mount_options: Vec<String>;
        /// the same on every node
        "shared" shared: Option<bool>;
    }
}

record! {
    /// A network device of a container, and its address.
    pub struct ContainerNic [shorthand("bridge")] {
        /// the bridge it is plugged into
        "bridge" bridge: Option<Spanned<String>> [text(ID), label(BRIDGE)];
        /// the name inside; otherwise `eth0`, `eth1`, …
        "name" name: Option<String>;
        /// otherwise Strata derives one that stays the same
        "mac" mac: Option<Spanned<Mac>>;
        /// the VLAN tag
        "vlan" vlan: Option<u16> [range(1, 4094), label(VLAN)];
        /// VLANs that are passed through tagged
        "trunks" trunks: Vec<u16> [range(1, 4094), label(VLAN)];
        /// the largest packet
        "mtu" mtu: Option<u16> [range(64, 65535)];
        /// whether the container's firewall rules apply here
        "firewall" firewall: Option<bool>;
        /// limit in megabytes per second
        "rate" rate: Option<f64> [range(0, 1_000_000)];
        /// unplugged
        "linkDown" link_down: Option<bool>;
        /// `dhcp`, or an address with its prefix; `count` containers take one after the other
        "ip" ip: Option<Spanned<Addressing>> [label(ADDRESS)];
        /// the IPv4 router
        "gateway" gateway: Option<Spanned<Ip>> [label(ADDRESS)];
        /// `auto`, `dhcp`, or an address with its prefix
        "ip6" ip6: Option<Spanned<Addressing>> [label(ADDRESS)];
        /// the IPv6 router
        "gateway6" gateway6: Option<Spanned<Ip>> [label(ADDRESS)];
        /// any other property that Proxmox knows, as it is
        "options" options: Map<Raw>;
    }
}

record! {
    /// What a container may do beyond the ordinary.
    pub struct Features {
        /// run containers inside
        "nesting" nesting: Option<bool>;
        /// the kernel's key ring; needs root@pam
        "keyctl" keyctl: Option<bool>;
        /// FUSE file systems; needs root@pam
        "fuse" fuse: Option<bool>;
        /// file systems it may mount, such as `nfs`; needs root@pam
        "mount" mount: Vec<String>;
        /// make device nodes; needs root@pam
        "mknod" mknod: Option<bool>;
    }
}

record! {
    /// An LXC container, `count` equal ones, or one for each entry of `each`.
    pub struct Container [at_most_one(&["each", "count"]), lenders(&["use", "each"])] {
        ..guest: Guest;
        /// one guest for each entry: `dns-alice`, `dns-bob`; an entry has its `vmId`, and what else differs from the others
        "each" each: Map<Partial<Container>> [keys(HOST)];
        /// the root file system it begins with
        "image" image: ImageRef;
        /// the distribution inside; otherwise Proxmox finds out
        "osType" os_type: Option<ContainerOs>;
        /// the root file system
        "disk" disk: Option<RootFs> [aliases(&["rootfs"])];
        /// volumes by slot: `mp0`, `mp1`, …
        "mountPoints" mount_points: Slots<MountPoint, MountSlots>;
        /// network devices: a list for `net0`, `net1`, …, or by slot
        "network" network: Slots<ContainerNic, NetSlots>;
        /// what it may do beyond the ordinary
        "features" features: Option<Features>;
        /// root inside is nobody outside
        "unprivileged" unprivileged: bool = true;
        /// otherwise the name
        "hostname" hostname: Option<String> [text(HOST), env()];
        /// name servers; otherwise the host's
        "nameservers" nameservers: Vec<Spanned<Ip>> [label(ADDRESS)];
        /// the domain that short names are looked up in
        "searchDomain" search_domain: Option<String> [env()];
        /// keys that may log in as root
        "sshKeys" ssh_keys: Vec<Value<String>>;
        /// root's password; by reference
        "password" password: Option<Value<String>> [secret];
        /// processor cores
        "cores" cores: Option<u32> [range(1, 8192)];
        /// the weight against other guests
        "cpuUnits" cpu_units: Option<u32> [range(0, 500_000)];
        /// at most this many cores' worth of time
        "cpuLimit" cpu_limit: Option<f64> [range(0, 8192)];
        /// in MiB, or with a unit
        "memory" memory: Option<MemorySize>;
        /// in MiB; 0 for none
        "swap" swap: Option<u64> [range(0, 1 << 42)];
        /// the console
        "console" console: Option<Console>;
        /// `host`, or a zone such as `Europe/Paris`
        "timezone" timezone: Option<String>;
        /// the storage of its volumes; otherwise the stack's
        "storage" storage: Option<Spanned<String>> [text(ID)];
    }
}
