//! HTTP as the original speaks it: how requests are read, in which order they are checked, how answers look.

mod format;
mod multipart;
mod request;
mod server;
mod service;

pub(crate) use format::Body;
pub(crate) use server::{listen, serve};
pub(crate) use service::{Cut, Plain, execute};
