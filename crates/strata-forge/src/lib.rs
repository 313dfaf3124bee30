//! Forges: where changes are requested, discussed, approved and merged.
//!
//! [`Forge`] is what a review needs of one, the same for GitHub, GitLab, Gitea and Forgejo: [`connect`] makes it from [`ForgeOptions`]. [`Place`] finds
//! out from the variables of a pipeline where it runs. [`upsert_comment`] and [`upsert_issue`] keep one comment and one issue up to date.
//!
//! # Invariants
//!
//! - What others wrote is never edited and never taken for our own: a comment, an issue or a status is ours by its author, which the forge says, and by its
//!   marker.
//! - A token goes to the endpoint of the options and nowhere else: links in answers are followed by their page, never by their host.
//! - A request that may have had an effect is sent again only where that does nothing twice.
//!
//! # Use
//!
//! ```no_run
//! use strata_forge::{Forge, ForgeOptions, Kind, connect, upsert_comment};
//! use strata_secret::SecretString;
//!
//! # async fn example() -> Result<(), strata_forge::ForgeError> {
//! let options = ForgeOptions::new(Kind::Gitea, "https://git.example.org", "ops/infra", SecretString::new("token"));
//! let forge = connect(options)?;
//! for request in forge.requests_of("5b0c6b6f9f4a1c1a3a8c9b0f1d2e3f4a5b6c7d8e").await? {
//!     upsert_comment(forge.as_ref(), request.number, "<!-- mine -->", "<!-- mine -->\nplanned").await?;
//! }
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod api;
mod error;
mod forge;
mod gitea;
mod github;
mod github_api;
mod gitlab;
mod options;
mod place;
mod upsert;

pub use error::{ErrorKind, ForgeError};
pub use forge::{
    Approval, ChangeRequest, Comment, Forge, Issue, Outcome, PostedStatus, RequestState, Status,
};
pub use options::{ForgeOptions, Kind, connect};
pub use place::{Place, Token};
pub use upsert::{Upserted, upsert_comment, upsert_issue};
