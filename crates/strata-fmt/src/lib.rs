//! YAML files in one layout: the same keys in the same order, every comment, the same meaning.
//!
//! [`format()`] is pure: a text becomes a text, or it is left alone and says why ([`Left`]). [`verb`] is `strata fmt`, over files and whole
//! repositories.
//!
//! # What always holds
//!
//! - What is written means what was read: both texts are parsed and compared, for readers by YAML 1.2 and for those of Go, before anybody
//!   sees the new one. Every comment is in it, in the same order.
//! - Formatting twice changes nothing more.
//! - Encrypted files are not touched, nor templates: what is no plain YAML comes back as [`Left`].
//!
//! ```
//! let untidy = "vms:\n   web:\n      memory:   4096   # MiB\n      tags: [ \"web\",'eu' ]\n";
//! assert_eq!(
//!     strata_fmt::format(untidy).unwrap(),
//!     "vms:\n  web:\n    memory: 4096   # MiB\n    tags: [web, eu]\n"
//! );
//! ```

mod align;
mod block;
mod flow;
mod layout;
mod left;
mod meaning;
mod scalar;
mod templates;
mod token;
mod tree;
pub mod verb;

pub use layout::WIDTH;
pub use left::Left;

/// The text in Strata's layout.
pub fn format(text: &str) -> Result<String, Left> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let has_crlf = body.lines().count() > 0 && body.split_inclusive('\n').all(|line| line.ends_with("\r\n"));
    let unix = body.replace("\r\n", "\n");
    let blame = |problem| templates::blame(&unix, problem);
    let tokens = token::read(&unix).map_err(blame)?;
    templates::refuse(&unix, &tokens)?;
    let documents = tree::read(&unix, &tokens).map_err(blame)?;
    templates::refuse_encrypted(&documents)?;
    let formatted = layout::write(&unix, &documents, &tokens);
    meaning::same(&unix, &formatted)?;
    Ok(if has_crlf { formatted.replace('\n', "\r\n") } else { formatted })
}
