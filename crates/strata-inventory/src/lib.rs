//! The guests and machines of stacks, as other programs want to be told of them.
//!
//! [`Inventory::of`] reads the states of stacks, and the addresses that the source says where a state does not: an ISO can carry one. It
//! is pure: nothing is asked, nothing is printed. The formats are functions of an inventory: [`ansible`], [`ssh`], [`prometheus`], [`hosts`].
//!
//! What always holds: only the fields of a [`Host`] leave a state, and none of them is a secret; a name, tag or pool is text that
//! somebody chose, and cannot end a line, begin a comment, or be evaluated in any of the formats ([`alias`]).
//!
//! ```
//! use strata_inventory::{Inventory, hosts};
//!
//! assert_eq!(hosts::render(&Inventory::of(&[])), "");
//! ```

#![warn(missing_docs)]

pub mod ansible;
mod collect;
mod host;
pub mod hosts;
mod name;
pub mod prometheus;
pub mod ssh;

#[cfg(test)]
mod tests;

pub use collect::StackState;
pub use host::{Host, HostKind, Inventory};
pub use name::alias;
