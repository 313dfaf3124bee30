//! Change validation: what a commit range can change.
//!
//! # Main types
//!
//! - [`Git`]: a clone, read through the program `git`; [`CommitFiles`] are the files of one commit as a world that a repository is loaded from.
//! - [`SourceVersion`]: every stack of one version of the source, and what each is made from. [`SourceVersion::changes_to`] says what differs.
//! - [`Range`]: two versions of a repository, by their commits.
//!
//! - [`forge::Desk`]: the request that a review is about, at GitHub, GitLab, Gitea or Forgejo; [`approval`] says whose approval counts.
//!
//! # Invariants
//!
//! - A stack whose plan can differ is among those that changed: a stack counts as changed when anything that it is made from does, and where
//!   nobody can say, every stack does.
//! - Nothing is decrypted. Files of secrets count by their encrypted bytes.
//!
//! # Use
//!
//! ```
//! use strata_review::SourceVersion;
//! use strata_source::world::Memory;
//!
//! let stack = |memory: u32| {
//!     Memory::new()
//!         .file("strata.yaml", "repository: demo1\ntargets: {pve: {proxmox: {endpoint: 'https://192.0.2.1:8006', token: {env: T}}}}\n")
//!         .file("stacks/web/stack.yaml", format!("proxmox: {{node: pve1}}\nvms: {{app: {{vmId: 9100, memory: {memory}}}}}\n"))
//!         .variable("T", "t")
//! };
//! let (before, after) = (stack(512), stack(1024));
//! let (before, after) = (SourceVersion::read(&before).unwrap(), SourceVersion::read(&after).unwrap());
//! let changed = before.changes_to(&after);
//! assert_eq!(changed[0].reasons[0].text, "`stacks/web/stack.yaml`");
//! assert!(after.changes_to(&after).is_empty());
//! ```

pub mod announce;
pub mod approval;
pub mod audit;
pub mod base;
pub mod changed;
pub mod comment;
pub mod cost;
pub mod difference;
pub mod effects;
mod error;
pub mod finding;
pub mod forge;
mod git;
pub mod guard;
pub mod outline;
pub mod planning;
mod range;
pub mod remainder;
pub mod report;
pub mod reviewed;
pub mod rules;
pub mod sealed;
pub mod signing;
pub mod text;
pub mod verbs;

pub use changed::{Change, ChangedStack, Part, Reason, SourceVersion, StackKey};
pub use git::{CommitFiles, Git, GitError};
pub use range::{Range, RangeError, short};
