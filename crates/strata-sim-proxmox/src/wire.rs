//! HTTP as the original speaks it: how requests are read, in which order they are checked, how answers look.

mod format;
mod multipart;
mod request;
mod server;
mod service;

pub use server::serve;
pub(crate) use service::execute;
