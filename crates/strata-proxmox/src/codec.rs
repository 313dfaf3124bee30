//! What a spec says, in the keys and property strings of a guest's configuration, and back.
//!
//! One table for each kind of guest (`qemu`, `lxc`) serves both directions. An update edits the live text of a key: what the
//! spec has no field for stays as it is.
//!
//! A row of a table says the key, where in the spec its value is, what the text is made of, and the privilege that a change needs:
//!
//! ```ignore
//! KeyRule::new(Exact("cores"), &["cpu", "cores"], Value(Int), CPU),        // cores: 2
//! KeyRule::new(Exact("cpu"), &["cpu"], Parts(&PROCESSOR), CPU),            // cpu: host,flags=+aes
//! KeyRule::new(Slot("net"), &["networks"], QemuNet(&NET), NETWORK),        // net0: virtio=BC:24:…,bridge=vmbr0
//! KeyRule::new(Slot("scsi"), &["disks"], Drive(&DISK_OPTIONS), DISK),      // scsi0: tank:vm-9100-disk-0,ssd=1
//!
//! static PROCESSOR: Property = Property {
//!     default_key: "cputype",                                              // what stands first may go without its name
//!     parts: &[Part::new("cputype", "type", Text), Part::new("flags", "flags", List(';'))],
//! };
//! ```
//!
//! `Form` says how one value is written (`Int`, `Bool`, `Tags`, …). The table of the kind (`kinds/vm.rs`) says the rest about a field: its
//! type, what a change of it means, and the same key, which a test compares.

mod decode;
mod drive;
mod encode;
mod form;
mod keys;
mod live;
mod lxc;
mod notes;
mod property;
mod qemu;
mod rule;
mod size;
mod volume;
mod volumes;

#[cfg(test)]
mod round_trip;

pub(crate) use decode::{beyond, decode};
pub(crate) use drive::{is_strata_cidata, storage_of};
pub(crate) use encode::{CodecError, Edit, KeyChange, create_params, edit_key};
pub(crate) use keys::{field_of, keys_of};
pub(crate) use live::LiveConfig;
#[cfg(test)]
pub(crate) use live::live;
pub(crate) use rule::{GuestKind, is_root_only, privilege_of};
pub(crate) use size::to_size_text;
pub(crate) use volume::volume_size;
pub(crate) use volumes::{attached_now, detached_now, volume_key};
