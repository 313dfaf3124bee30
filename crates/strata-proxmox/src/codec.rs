//! What a spec says, in the keys and property strings of a guest's configuration, and back.
//!
//! One table for each kind of guest (`qemu`, `lxc`) serves both directions. An update edits the live text of a key: what the
//! spec has no field for stays as it is.
//!
//! A table is made with [`keys!`](crate::keys): the key, where in the spec its value is, what the text is made of, and the privilege that a
//! change needs. The table of the kind (`kinds/vm.rs`, made with [`strata_resource::kind!`]) says the rest about a field: its type, what a
//! change of it means, and the same key, which a test compares.
//!
//! Public so that its example is compiled; nothing outside of this crate has tables of its own.

mod declare;
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

pub use decode::read;
pub(crate) use decode::{beyond, decode};
pub(crate) use drive::{is_strata_cidata, storage_of};
pub use encode::{CodecError, write};
pub(crate) use encode::{Edit, KeyChange, create_params, edit_key};
pub use form::Form;
pub(crate) use keys::{field_of, keys_of};
pub(crate) use live::LiveConfig;
#[cfg(test)]
pub(crate) use live::live;
pub use rule::{Content, Key, KeyRule, Part, Property, Table};
pub(crate) use rule::{GuestKind, is_root_only, privilege_of, table};
pub(crate) use size::{to_gib, to_size_text};
pub(crate) use volume::volume_size;
pub(crate) use volumes::{attached_now, detached_now, volume_key};
