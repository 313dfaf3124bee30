//! What a spec says, in the keys and property strings of a guest's configuration, and back.
//!
//! One table for each kind of guest (`qemu`, `lxc`) serves both directions. An update edits the live text of a key: what the
//! spec has no field for stays as it is.

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

pub(crate) use decode::decode;
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
