//! A commit range: which two versions of the source are compared, and what is said when one of them cannot be read.

use std::collections::BTreeMap;

use strata_events::Event;

use crate::changed::{ChangedStack, SourceVersion};
use crate::git::{Git, GitError};

/// What was found out about a commit range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The commit that the range begins after: where head and base parted. None where this clone does not have it.
    pub merge_base: Option<String>,
    pub head: String,
    /// Every stack in every environment, as of the head.
    pub source: SourceVersion,
    pub changed: Vec<ChangedStack>,
    /// Why every stack counts as changed, where nobody can say more.
    pub unknown: Option<String>,
    /// What a reader should know of the range.
    pub remark: Option<String>,
}

/// Why nothing can be said of a range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the source of {commit} is not valid: {reason}")]
    Invalid { commit: String, reason: String },
}

impl Range {
    /// Compares the head with the commit at which it left the base. A base that cannot be read makes every stack one that can change.
    pub fn read(
        git: &Git,
        base: &str,
        head: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<Self, RangeError> {
        let head = git.commit(head)?;
        let source = version(git, &head, env)?
            .map_err(|reason| RangeError::Invalid { commit: short(&head).to_owned(), reason })?;
        let mut range =
            Self { merge_base: None, head, source, changed: Vec::new(), unknown: None, remark: None };
        match before(git, base, &range.head, env)? {
            Ok(Before { merge_base, remark, source }) => {
                range.changed = source.changes_to(&range.source);
                (range.merge_base, range.remark) = (Some(merge_base), remark);
            }
            Err(why) => {
                range.changed = range.source.everything(&why);
                range.unknown = Some(why);
            }
        }
        Ok(range)
    }
}

impl Range {
    /// For programs: the range as a whole.
    pub fn event(&self) -> Event<'_> {
        Event::CommitRange {
            base: self.merge_base.as_deref(),
            head: &self.head,
            changed: self.changed.len(),
            stacks: self.source.len(),
            unknown: self.unknown.as_deref(),
            remark: self.remark.as_deref(),
        }
    }

    /// For people: `2 of 14 stacks can change between 1a2b and 3c4d`.
    pub fn line(&self) -> String {
        let all = match self.source.len() {
            1 => "1 stack".to_owned(),
            several => format!("{several} stacks"),
        };
        let head = short(&self.head);
        match &self.merge_base {
            Some(base) => {
                format!("{} of {all} can change between {} and {head}", self.changed.len(), short(base))
            }
            None => format!("{} of {all} can change up to {head}", self.changed.len()),
        }
    }
}

/// The source before the range.
struct Before {
    merge_base: String,
    remark: Option<String>,
    source: SourceVersion,
}

/// The inner error is the reason why nobody can say what was there before.
fn before(
    git: &Git,
    base: &str,
    head: &str,
    env: &BTreeMap<String, String>,
) -> Result<Result<Before, String>, RangeError> {
    let commit = match git.commit(base) {
        Ok(commit) => commit,
        Err(GitError::NoCommit { shallow: true, .. }) => {
            return Ok(Err(format!("this clone is shallow and does not have `{base}`")));
        }
        Err(error) => return Err(error.into()),
    };
    let (merge_base, remark) = match git.merge_base(&commit, head)? {
        Some(found) if found == commit => (found, None),
        Some(found) => {
            let remark =
                format!("`{base}` has moved on since {}; a rebased head shows the rest", short(&found));
            (found, Some(remark))
        }
        None if git.is_shallow()? => {
            let remark = format!(
                "this clone is shallow and does not show where `{base}` and the head parted: compared with `{base}` itself"
            );
            (commit, Some(remark))
        }
        None => {
            return Ok(Err(format!("`{base}` and the head have no commit in common")));
        }
    };
    let source = version(git, &merge_base, env)?;
    Ok(source
        .map(|source| Before { remark, source, merge_base: merge_base.clone() })
        .map_err(|reason| format!("the source of {} is not valid: {reason}", short(&merge_base))))
}

fn version(
    git: &Git,
    commit: &str,
    env: &BTreeMap<String, String>,
) -> Result<Result<SourceVersion, String>, GitError> {
    Ok(SourceVersion::read(&git.files(commit, env.clone())?))
}

/// As people write commits.
pub fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}
