//! What every guest has, virtual machine or container.

use strata_yaml::{Map, Raw, Spanned, choice, record};

use crate::machine::firewall::Firewall;
use crate::value::address::Addressing;
use crate::value::duration::Seconds;
use crate::value::name::{HOST, ID, TAG};
use crate::value::place::{ADDRESS, VM_ID};

choice! {
    /// What to do about a change that a running guest does not see.
    pub enum OnChange {
        /// Leave it running; the change waits for the next start.
        Ignore = "ignore",
        /// Restart it.
        Reboot = "reboot",
        /// Destroy it and recreate it.
        Recreate = "recreate",
    }
}

record! {
    /// When a guest starts and stops with its host.
    pub struct Startup [shorthand("order")] {
        /// lower starts earlier and stops later
        "order" order: Option<u32>;
        /// how long to wait after it started
        "upDelay" up_delay: Option<Seconds>;
        /// how long to wait for it to stop
        "downDelay" down_delay: Option<Seconds>;
    }
}

record! {
    /// A field that is set when a guest is made, and not corrected after that.
    pub struct IgnoredChanges [shorthand("field")] {
        /// the field as plans show it, `cpu.cores`; everything below it, too: `disks.scsi1`
        "field" field: Spanned<String>;
        /// why, for people: plans and drift say it
        "reason" reason: Option<String>;
    }
}

record! {
    /// How long the steps of a guest may take.
    pub struct Timeouts {
        /// making it
        "create" create: Option<Seconds>;
        /// copying its template
        "clone" clone_: Option<Seconds>;
        /// starting it
        "start" start: Option<Seconds>;
        /// shutting it down before it is stopped hard
        "shutdown" shutdown: Option<Seconds>;
        /// moving it to another node
        "migrate" migrate: Option<Seconds>;
        /// deleting it
        "delete" delete: Option<Seconds>;
    }
}

record! {
    /// How it is known that a guest works again.
    pub struct RolloutCheck [at_most_one(&["tcp", "agent"])] {
        /// it accepts connections at this port of its address
        "tcp" tcp: Option<u16> [range(1, 65535)];
        /// its guest agent answers
        "agent" agent: Option<bool>;
    }
}

record! {
    /// How equal guests restart: those of a `count` or an `each`, or the guests of a pool that say so.
    pub struct Rollout {
        /// how many of them may be down at once
        "maxUnavailable" max_unavailable: Option<u32> [range(1, 1000)];
        /// what is waited for after the restart of one; otherwise that it runs
        "check" check: Option<RolloutCheck>;
    }
}

choice! {
    /// What high availability keeps a guest in.
    pub enum HaState {
        /// It runs, and is started again elsewhere if its host is lost.
        Started = "started",
        /// It is off, and is moved elsewhere if its host is lost.
        Stopped = "stopped",
        /// It is off, and stays where it is.
        Disabled = "disabled",
        /// Known to high availability, and left alone by it.
        Ignored = "ignored",
    }
}

record! {
    /// How high availability keeps a guest.
    pub struct HighAvailability {
        /// what it is kept in; otherwise as `started` says
        "state" state: Option<HaState>;
        /// how often a start that failed is tried again on the same host; otherwise once
        "maxRestart" max_restart: Option<u32> [range(0, 10)];
        /// how often it is tried on another host after that; otherwise once
        "maxRelocate" max_relocate: Option<u32> [range(0, 10)];
        /// moved back to the host that its rules prefer as soon as that is there again
        "failback" failback: Option<bool>;
        /// for people
        "comment" comment: Option<String> [env()];
    }
}

record! {
    /// A copy of a guest's disks on another host, brought up to date at set times.
    pub struct Replication [shorthand("target")] {
        /// the Proxmox node that the copy is on
        "target" target: Spanned<String> [text(ID)];
        /// the number of the job; otherwise its place in the list, from 0
        "job" job: Option<u32> [range(0, 9)];
        /// when, as a calendar event of systemd; otherwise every quarter of an hour
        "schedule" schedule: Option<String>;
        /// at most so many MB a second
        "rate" rate: Option<u32> [range(1, 100_000)];
        /// whether it runs
        "enabled" enabled: bool = true;
        /// for people
        "comment" comment: Option<String> [env()];
    }
}

choice! {
    /// A change that a guest may not survive as it was.
    pub enum RiskyChange {
        /// It is restarted.
        Restart = "restart",
        /// It is destroyed and made again: its snapshots go with it, so it is backed up.
        Replace = "replace",
        /// One of its disks is added, changed or taken away.
        Disks = "disks",
    }
}

record! {
    /// A way back, made directly before a change.
    pub struct SnapshotBefore [shorthand("changes")] {
        /// before which changes: `restart`, `replace`, `disks`
        "changes" changes: Vec<RiskyChange>;
        /// how many of them stay, otherwise 3; older ones that Strata made are deleted
        "keep" keep: Option<u32> [range(1, 50)];
        /// where the backup before a replacement goes; otherwise the only storage that takes backups
        "storage" storage: Option<Spanned<String>> [text(ID)];
    }
}

record! {
    /// How a guest is backed up at set times.
    pub struct GuestBackup [shorthand("job")] {
        /// the backup job of the datacenter that it is part of: one of `backupJobs`
        "job" job: Spanned<String> [text(ID), env()];
    }
}

/// The node of a guest that may stand anywhere.
pub const ANY_NODE: &str = "any";

record! {
    /// Keys that go to Proxmox as they are.
    pub struct ProxmoxOptions {
        /// any key that Proxmox knows and Strata has no field for
        "options" options: Map<Raw>;
    }
}

record! {
    /// What every guest has.
    pub struct Guest {
        /// the number in the Proxmox cluster; with `count`, of the first
        "vmId" vm_id: Spanned<u32> [range(100, 999_999_999), label(VM_ID)];
        /// how many equal ones: `web-1`, `web-2`, … with numbers one after the other
        "count" count: Option<u32> [range(0, 1000)];
        /// profiles whose fields it has where it says nothing itself; later ones win
        "use" profiles: Vec<Spanned<String>>;
        /// the address of its first network device: short for `network: {net0: {ip: …}}`
        "ip" ip: Option<Spanned<Addressing>> [label(ADDRESS)];
        /// otherwise the key; with `count`, the part before the number; with `each`, the part before the name of the entry
        "name" name: Option<Spanned<String>> [text(HOST), env()];
        /// the Proxmox node; `any` has one chosen when it is made, and leaves moves to HA and people; otherwise the stack's
        "node" node: Option<Spanned<String>> [text(ID), aliases(&["hypervisor"])];
        /// the pool it is a member of
        "pool" pool: Option<Spanned<String>> [env()];
        /// tags, for people
        "tags" tags: Vec<String> [text(TAG), env()];
        /// notes, for people; Strata adds a line of its own
        "notes" notes: Option<String> [env()];
        /// Strata refuses to destroy it
        "protect" protect: bool = false;
        /// Proxmox refuses to remove it and its disks
        "protection" protection: Option<bool>;
        /// started with its host
        "onboot" onboot: Option<bool> [aliases(&["onBoot"])];
        /// when it starts and stops with its host
        "startup" startup: Option<Startup>;
        /// whether it runs
        "started" started: bool = true;
        /// its firewall
        "firewall" firewall: Option<Firewall>;
        /// high availability keeps it running when a host is lost: `ha: {}`
        "ha" ha: Option<HighAvailability>;
        /// hosts that its disks are copied to, at set times: `replication: [{target: pve2}]`
        "replication" replication: Vec<Replication>;
        /// what to do about a change that needs a restart
        "onChange" on_change: Option<OnChange>;
        /// the backup job that it is part of: `nightly`
        "backup" backup: Option<GuestBackup>;
        /// a snapshot is taken before such changes: `[restart, disks]`
        "snapshotBefore" snapshot_before: Option<SnapshotBefore>;
        /// fields that are set when it is made and left to others after that, as plans show them: `cpu.cores`, `tags`
        "ignoreChanges" ignore_changes: Vec<IgnoredChanges>;
        /// how long its steps may take
        "timeouts" timeouts: Option<Timeouts>;
        /// how it restarts beside its equals; otherwise one after the other with `count` or `each`
        "rollout" rollout: Option<Rollout>;
        /// guests of this stack that are made before this one: `vms.db`, `containers.dns`
        "dependsOn" depends_on: Vec<Spanned<String>>;
        /// any key that Proxmox knows and Strata has no field for
        "options" options: Map<Raw>;
        /// the same, under another name
        "proxmox" proxmox: Option<ProxmoxOptions>;
    }
}

impl Guest {
    /// The raw keys, from both places; `proxmox.options` wins.
    pub fn raw_options(&self) -> impl Iterator<Item = (&Spanned<String>, &Raw)> {
        let more = self.proxmox.as_ref().map(|proxmox| &proxmox.options);
        let shadowed = move |key: &str| more.is_some_and(|more| more.get(key).is_some());
        let own = self.options.iter().filter(move |(key, _)| !shadowed(key));
        own.chain(more.into_iter().flat_map(|more| more.iter()))
    }
}
