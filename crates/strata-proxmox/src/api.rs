//! The wire format of the Proxmox VE API, without IO: parameters, answers, errors, task ids.

mod answers;
mod classify;
mod error;
mod params;
mod scalar;
mod upid;

pub use answers::Version;
pub(crate) use answers::{
    ContentRow, Envelope, GuestRow, GuestStatus, LogLine, MigrationCheck, NetworkRow, NodeRow, PendingRow,
    PoolRow, StagedEnvelope, StorageRow, TaskRow, TaskStatus, Ticket,
};
pub(crate) use classify::{TaskFailure, TaskFailureKind, only_warns};
pub use error::{ApiError, ApiErrorKind};
pub(crate) use params::{Params, encode_path_part, url_encode};
pub(crate) use scalar::{Scalar, flag, whole};
pub use upid::Upid;
