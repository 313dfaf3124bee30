//! An LXC container.

use strata_resource::kind;

use super::guest::{self, GUEST};

kind! {
    /// A container.
    "container" {
        called: "container {vmid} on {node}",
        shares: &[guest::FIELDS],
        ..GUEST
    }
    /// its host name
    "name": Text => Restart [unfelt];
    /// the archive that it is made from
    "image": Text => CreateOnly;
    /// it is converted to a template at the end
    "template": Bool => InPlace [off_by_default];
    /// the distribution that it is set up for
    "ostype": Text => CreateOnly;
    /// the password of root
    "password": Text => CreateOnly [write_only];
    /// keys that root is reached with
    "ssh_keys": List => CreateOnly [write_only];
    /// its root is nobody on the host
    "unprivileged": Bool => Replace [on_by_default, because("a container cannot change between privileged and unprivileged")];
    /// cores that it may use
    "cpu.cores": Int => InPlace;
    /// its weight among others
    "cpu.units": Int => InPlace;
    /// at most so many cores' worth of time
    "cpu.limit": Text => InPlace;
    /// memory
    "memory.size": Int => InPlace [default_int(512), mebibytes];
    /// swap space
    "memory.swap": Int => InPlace [default_int(512), mebibytes];
    /// the size of its root file system
    "rootfs.size": Int => Grow [bytes];
    /// the storage of its root file system
    "rootfs.storage": Text => InPlace;
    /// nothing can be written to it
    "rootfs.readonly": Bool => Restart [off_by_default];
    /// quotas are kept
    "rootfs.quota": Bool => Restart [off_by_default];
    /// it is part of replication
    "rootfs.replicate": Bool => InPlace [on_by_default];
    /// any other key of the root file system
    "rootfs.*": Any => Restart;
    /// a mount, by its slot: `mp0`
    "mounts.*": Map => Restart [slot, volume];
    /// its size
    "mounts.*.size": Int => Grow [bytes];
    /// its storage
    "mounts.*.storage": Text => InPlace;
    /// it is part of backups
    "mounts.*.backup": Bool => Restart [off_by_default];
    /// nothing can be written to it
    "mounts.*.readonly": Bool => Restart [off_by_default];
    /// quotas are kept
    "mounts.*.quota": Bool => Restart [off_by_default];
    /// it is there on every hypervisor
    "mounts.*.shared": Bool => Restart [off_by_default];
    /// it is part of replication
    "mounts.*.replicate": Bool => Restart [on_by_default];
    /// any other key of a mount
    "mounts.*.*": Any => Restart;
    /// a network device, by its slot: `net0`
    "networks.*": Map => InPlace [slot];
    /// its traffic goes through the firewall
    "networks.*.firewall": Bool => InPlace [off_by_default];
    /// unplugged
    "networks.*.link_down": Bool => InPlace [off_by_default];
    /// any other key of a network device
    "networks.*.*": Any => InPlace;
    /// what it may do besides: nesting, keyctl, fuse and others
    "features.*": Bool => Restart [off_by_default];
    /// file systems that it may mount
    "features.mount": List => Restart [set];
    /// name servers
    "nameservers": List => Restart;
    /// the domain that names are looked up in
    "searchdomain": Text => Restart;
    /// its time zone
    "timezone": Text => Restart;
    /// it has a console
    "console.enabled": Bool => Restart [on_by_default];
    /// what the console shows
    "console.mode": Text => Restart [default_text("tty")];
    /// how many terminals it has
    "console.tty": Int => Restart [default_int(2)];
}
