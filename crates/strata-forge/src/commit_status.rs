//! Statuses of commits in the words of GitHub, which Gitea and Forgejo have too. GitLab has others.

use serde_json::{Value, json};

use crate::api::cut;
use crate::{Outcome, Status};

/// What is posted for a commit.
pub(crate) fn posted(status: &Status) -> Value {
    let state = match status.outcome {
        Outcome::Pending => "pending",
        Outcome::Success => "success",
        Outcome::Failure => "failure",
    };
    json!({"state": state, "context": status.context, "description": cut(&status.description)})
}

/// What a word means; those that are not ours stand for a failure.
pub(crate) fn outcome(state: &str) -> Outcome {
    match state {
        "success" => Outcome::Success,
        "pending" => Outcome::Pending,
        _ => Outcome::Failure,
    }
}
