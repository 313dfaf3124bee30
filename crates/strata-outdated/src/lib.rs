//! Which pinned versions of a repository have newer ones, and the edits that write them.
//!
//! [`pins`] finds what a repository pins, with the place of each: Talos, Kubernetes, Flux, images with their checksums, providers and modules
//! of code for OpenTofu. [`look()`] asks the places that publish versions, over the trait [`Fetch`], and says for each pin what it can become. [`edited`]
//! makes the files as they would be, and [`Branches`] commits them to branches.
//!
//! # What always holds
//!
//! - Nothing goes back: what is older than the pin is no version of it, and a checksum is never replaced by one of a weaker algorithm.
//! - What Strata does not know is not proposed, nor what does not go together with what else the same cluster has.
//! - A source that does not answer, or answers nonsense, is named; what depends on it is unknown, and everything else is looked at all the same.
//! - An edit changes the values that it names and not one byte more.
//!
//! ```
//! use strata_outdated::{Group, pins};
//! use strata_source::Repository;
//! use strata_source::world::Memory;
//!
//! let world = Memory::new()
//!     .file("strata.yaml", "targets: {}\n")
//!     .file("stacks/app/stack.yaml", "tofu: {}\n")
//!     .file("stacks/app/main.tf", "module \"net\" {\n  source  = \"a/b/c\"\n  version = \"~> 5.1\"\n}\n");
//! let (repository, _) = Repository::load(&world);
//! let found = pins(&repository, &world);
//! assert_eq!((found[0].group, found[0].place.line), (Group::Modules, 3));
//! assert_eq!(found[0].current, "~> 5.1");
//! ```

#![warn(missing_docs)]

mod branches;
mod collect;
mod constraint;
mod edit;
mod fetch;
mod image;
mod look;
mod pin;
mod tokens;
pub mod verb;
mod web;

pub use branches::{BranchError, Branches, Committed};
pub use collect::pins;
pub use edit::edited;
pub use fetch::{Answer, Fetch, FetchError};
pub use look::{Finding, Looked, Proposal, Unanswered, look};
pub use pin::{At, Edit, Group, Pin, Place};
pub use tokens::Tokens;
pub use web::Web;
