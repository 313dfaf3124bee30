//! An LXC container.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Purpose, Rollout, kind};

use super::guest::{self, GUEST};
use super::managed::ManagedKind;
use super::shared::NO_FIELD;
use crate::codec::GuestKind;
use crate::preflight::Needs;

kind! {
    /// A container.
    "container" {
        called: "container {vmid} on {node}",
        shares: &[guest::FIELDS],
        rollout: Rollout::Member { always: false, follows: |_| false, group: guest::restart_group },
        adopted_by: Some("vmid"),
        ..GUEST
    }
    /// its host name
    "name": Text => Restart [remote("hostname"), unfelt, purpose(Purpose::Name)];
    /// the archive that it is made from
    "image": Text => CreateOnly [remote("ostemplate")];
    /// it is converted to a template at the end
    "template": Bool => InPlace [remote("template"), off_by_default, no_tofu("the module makes no templates of containers")];
    /// how long steps may take, in seconds; never compared
    "timeouts": Map => Computed [unfelt, no_tofu("the module of containers has no timeouts")];
    /// the distribution that it is set up for
    "ostype": Text => CreateOnly [remote("ostype")];
    /// the password of root
    "password": Text => CreateOnly [remote("password"), write_only];
    /// keys that root is reached with
    "ssh_keys": List => CreateOnly [remote("ssh-public-keys"), write_only];
    /// its root is nobody on the host
    "unprivileged": Bool => Replace [remote("unprivileged"), on_by_default, because("a container cannot change between privileged and unprivileged")];
    /// cores that it may use
    "cpu.cores": Int => InPlace [remote("cores")];
    /// its weight among others
    "cpu.units": Int => InPlace [remote("cpuunits")];
    /// at most so many cores' worth of time
    "cpu.limit": Text => InPlace [remote("cpulimit")];
    /// memory
    "memory.size": Int => InPlace [remote("memory"), default_int(512), mebibytes];
    /// swap space
    "memory.swap": Int => InPlace [remote("swap"), default_int(512), mebibytes];
    /// the size of its root file system
    "rootfs.size": Int => Grow [bytes];
    /// the storage of its root file system
    "rootfs.storage": Text => InPlace;
    /// nothing can be written to it
    "rootfs.readonly": Bool => Restart [remote("rootfs.ro"), off_by_default, no_tofu(NO_FIELD)];
    /// quotas are kept
    "rootfs.quota": Bool => Restart [remote("rootfs.quota"), off_by_default];
    /// it is part of replication
    "rootfs.replicate": Bool => InPlace [remote("rootfs.replicate"), on_by_default];
    /// any other key of the root file system
    "rootfs.*": Any => Restart [no_tofu(NO_FIELD)];
    /// a mount, by its slot: `mp0`
    "mounts.*": Map => Restart [remote("mpN"), slot, volume];
    /// its size
    "mounts.*.size": Int => Grow [bytes];
    /// its storage
    "mounts.*.storage": Text => InPlace;
    /// it is part of backups
    "mounts.*.backup": Bool => Restart [remote("mpN.backup"), off_by_default];
    /// nothing can be written to it
    "mounts.*.readonly": Bool => Restart [remote("mpN.ro"), off_by_default];
    /// quotas are kept
    "mounts.*.quota": Bool => Restart [remote("mpN.quota"), off_by_default];
    /// it is there on every hypervisor
    "mounts.*.shared": Bool => Restart [remote("mpN.shared"), off_by_default];
    /// it is part of replication
    "mounts.*.replicate": Bool => Restart [remote("mpN.replicate"), on_by_default];
    /// any other key of a mount
    "mounts.*.*": Any => Restart [no_tofu(NO_FIELD)];
    /// a network device, by its slot: `net0`
    "networks.*": Map => InPlace [remote("netN"), slot];
    /// its traffic goes through the firewall
    "networks.*.firewall": Bool => InPlace [remote("netN.firewall"), off_by_default];
    /// unplugged
    "networks.*.link_down": Bool => InPlace [remote("netN.link_down"), off_by_default, no_tofu(NO_FIELD)];
    /// any other key of a network device
    "networks.*.*": Any => InPlace [no_tofu(NO_FIELD)];
    /// what it may do besides: nesting, keyctl, fuse and others
    "features.*": Bool => Restart [off_by_default];
    /// file systems that it may mount
    "features.mount": List => Restart [remote("features.mount"), set];
    /// name servers
    "nameservers": List => Restart [remote("nameserver")];
    /// the domain that names are looked up in
    "searchdomain": Text => Restart [remote("searchdomain")];
    /// its time zone
    "timezone": Text => Restart [remote("timezone"), no_tofu(NO_FIELD)];
    /// it has a console
    "console.enabled": Bool => Restart [remote("console"), on_by_default];
    /// what the console shows
    "console.mode": Text => Restart [remote("cmode"), default_text("tty")];
    /// how many terminals it has
    "console.tty": Int => Restart [remote("tty"), default_int(2)];
}

pub(super) struct Container;

#[async_trait]
impl ManagedKind for Container {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn guest(&self) -> Option<GuestKind> {
        Some(GuestKind::Lxc)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.guest(operation, GuestKind::Lxc);
    }
}
