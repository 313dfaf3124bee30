//! Patches other than server-side apply: JSON patch, JSON merge patch, strategic merge patch.

mod json_patch;
mod merge;

pub use json_patch::json_patch;
pub use merge::{merge_patch, strategic_merge};
