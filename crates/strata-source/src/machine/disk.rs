//! Disks of a VM, by slot.

use strata_yaml::{Map, Raw, Spanned, choice, record};

use crate::machine::image::ImageRef;
use crate::value::name::ID;
use crate::value::size::DiskSize;

choice! {
    /// How writes are cached on the host.
    pub enum DiskCache {
        None = "none",
        Writeback = "writeback",
        Writethrough = "writethrough",
        Directsync = "directsync",
        Unsafe = "unsafe",
    }
}

choice! {
    /// How the host does asynchronous input and output.
    pub enum DiskAio { Native = "native", Threads = "threads", IoUring = "io_uring" }
}

choice! {
    /// How the volume is stored.
    pub enum DiskFormat { Raw = "raw", Qcow2 = "qcow2", Vmdk = "vmdk" }
}

record! {
    /// A disk, or a CD drive.
    pub struct Disk [shorthand("size"), at_most_one(&["import", "volume", "iso"])] {
        /// in GiB, or with a unit; growing is in place, shrinking is refused
        "size" size: Option<DiskSize>;
        /// the storage it is on
        "storage" storage: Option<Spanned<String>> [text(ID)];
        /// shown to the guest as a solid-state disk
        "ssd" ssd: Option<bool>;
        /// space that the guest frees is given back
        "discard" discard: Option<bool>;
        /// a thread of its own for this disk
        "iothread" iothread: Option<bool>;
        /// how writes are cached on the host
        "cache" cache: Option<DiskCache>;
        /// included in backups
        "backup" backup: Option<bool>;
        /// included in storage replication
        "replicate" replicate: Option<bool>;
        /// how the host does asynchronous input and output
        "aio" aio: Option<DiskAio>;
        /// how the volume is stored
        "format" format: Option<DiskFormat>;
        /// the guest cannot write to it
        "readOnly" read_only: Option<bool>;
        /// a disk image that the disk begins as a copy of
        "import" import: Option<ImageRef>;
        /// a volume that is there already
        "volume" volume: Option<Spanned<String>>;
        /// a CD image: the slot is a CD drive
        "iso" iso: Option<ImageRef>;
        /// the serial number that the guest sees
        "serial" serial: Option<String>;
        /// any other property that Proxmox knows, as it is
        "options" options: Map<Raw>;
    }
}
