//! What a person is told when a range or a file cannot be read.

use strata_forge::ForgeError;
use strata_session::SessionError;

use crate::git::GitError;
use crate::range::RangeError;

impl From<GitError> for SessionError {
    fn from(error: GitError) -> Self {
        let own = Self::failed(error.to_string());
        match error {
            GitError::NoGit(_) => own.hint("commits are read by `git`: install it"),
            GitError::NoRepository(_) => {
                own.hint("`git init` makes one; a change is validated between two commits")
            }
            GitError::BadName(_) => own.hint("name a commit, a branch or a tag: `origin/main`"),
            GitError::NoCommit { name, shallow: true } => own.hint(format!(
                "the clone is shallow: `git fetch --depth 100 origin {name}` brings more of it"
            )),
            GitError::NoCommit { name, .. } => {
                own.hint(format!("`git fetch origin {name}` brings it, if it is there"))
            }
            GitError::Failed(_) => own,
        }
    }
}

impl From<RangeError> for SessionError {
    fn from(error: RangeError) -> Self {
        match error {
            RangeError::Git(error) => error.into(),
            RangeError::Invalid { .. } => Self::failed(error.to_string())
                .hint("`strata validate` shows everything that is wrong, at that commit"),
        }
    }
}

/// An error of a forge.
pub(crate) fn of_forge(error: ForgeError) -> SessionError {
    let own = SessionError::failed(error.to_string());
    let own = match error.hint() {
        Some(hint) => own.hint(hint),
        None => own,
    };
    own.because(error)
}
