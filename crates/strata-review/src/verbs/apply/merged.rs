//! The merged request: whether it is in what is checked out, and what was approved there.

use std::collections::BTreeSet;

use strata_session::SessionError;

use crate::error::of_forge;
use crate::git::Git;
use crate::range::short;
use crate::{approval, forge};

/// What was approved, and by whom.
pub(super) struct Approved {
    pub(super) digest: Option<String>,
    /// The commit whose plan it is; of a digest alone nobody says.
    pub(super) commit: Option<String>,
    pub(super) by: BTreeSet<String>,
    /// Why others do not count.
    pub(super) others: Vec<String>,
}

/// The commit that is checked out has the merge in it.
pub(super) fn holds(git: &Git, told: &forge::Desk, merged: &str) -> Result<(), SessionError> {
    let number = told.request.number;
    let Some(commit) = told.request.merge_commit.as_deref() else {
        return Err(SessionError::refused(format!(
            "the forge does not say as which commit request {number} was merged"
        )));
    };
    let holds = commit == merged
        || git.commit(commit).is_ok() && git.merge_base(commit, merged)?.as_deref() == Some(commit);
    if holds {
        return Ok(());
    }
    Err(SessionError::refused(format!(
        "request {number} was merged as {}, which is not in what is checked out",
        short(commit)
    ))
    .hint("check out the base branch after the merge, with enough of its history"))
}

/// What the request showed, and who approved that.
pub(super) async fn approved(told: &forge::Desk) -> Result<Approved, SessionError> {
    let request = &told.request;
    let statuses = told.forge.statuses(&request.head).await.map_err(of_forge)?;
    let Some(shown) = approval::shown(&statuses, &told.me, &told.context("plan")) else {
        let error =
            format!("{} shows no plan of `{}` that could have been approved", short(&request.head), told.me);
        return Err(SessionError::refused(error).hint(
            "`strata review plan --forge` shows one; it and this command use a token of the same user",
        ));
    };
    let counted =
        approval::count(request, &told.forge.approvals(request).await.map_err(of_forge)?, &told.me, &shown);
    if counted.by.is_empty() {
        let mut error =
            SessionError::refused(format!("nobody approved the plan of request {}", request.number));
        error.details = counted.others;
        return Err(error
            .detail(format!("its digest: {}", shown.digest))
            .hint("an approval counts if it is of the head, later than the plan, and of somebody else who may write to the repository")
            .hint("`--approve DIGEST` without `--forge` says by hand which plan was approved"));
    }
    let commit = Some(request.head.clone());
    Ok(Approved { digest: Some(shown.digest), commit, by: counted.by, others: counted.others })
}
