//! How things look: text from values, without doing anything.

mod configuration;
pub(crate) mod drift;
pub(crate) mod driven;
pub(crate) mod graph;
pub(crate) mod health;
pub(crate) mod notices;
pub(crate) mod plan;
pub(crate) mod planned;
pub(crate) mod progress;
pub(crate) mod tofu;
pub(crate) mod value;
