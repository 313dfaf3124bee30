//! GitHub, and GitHub Enterprise Server.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::api::{Api, Twice, encoded};
use crate::github_api::{Dialect, GitHubApi, Pull, Repository, StatusRow, User};
use crate::{Approval, ChangeRequest, ErrorKind, ForgeError, Kind};

pub(crate) struct GitHub {
    graphql: &'static str,
}

#[derive(Deserialize)]
struct Review {
    user: Option<User>,
    state: String,
    commit_id: Option<String>,
    submitted_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Permission {
    permission: String,
}

impl GitHub {
    /// A repository there; `is_own` at a server of one's own.
    pub(crate) fn open(api: Api, repository: &str, is_own: bool) -> GitHubApi<Self> {
        let prefix = if is_own { "/api/v3/repos" } else { "/repos" };
        let graphql = if is_own { "/api/graphql" } else { "/graphql" };
        GitHubApi { repository: Repository::new(api, prefix, repository), dialect: Self { graphql } }
    }
}

async fn may_write(repository: &Repository, login: &str) -> Result<bool, ForgeError> {
    let path = repository.path(&format!("/collaborators/{}/permission", encoded(login)));
    let found: Option<Permission> = repository.api.find(&path).await?;
    Ok(found.is_some_and(|own| matches!(own.permission.as_str(), "write" | "maintain" | "admin")))
}

#[async_trait]
impl Dialect for GitHub {
    const KIND: Kind = Kind::GitHub;

    /// The token of a workflow may not ask the REST API who it is.
    async fn me(&self, repository: &Repository) -> Result<String, ForgeError> {
        let query = json!({"query": "query { viewer { login } }"});
        let answer = repository.api.write(Method::POST, self.graphql, &query, Twice::Harmless).await?;
        answer["data"]["viewer"]["login"].as_str().map(str::to_owned).ok_or_else(|| {
            let reason = "its answer has no login".to_owned();
            repository.api.error(ErrorKind::Unexpected, "say whose token this is", reason)
        })
    }

    async fn pulls_with(&self, repository: &Repository, commit: &str) -> Result<Vec<Pull>, ForgeError> {
        let path = repository.path(&format!("/commits/{}/pulls", encoded(commit)));
        match repository.api.list(&path, "").await {
            // A commit that it does not have.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Rejected) => Ok(Vec::new()),
            listed => listed,
        }
    }

    fn statuses_of(&self, commit: &str) -> String {
        format!("/commits/{}/statuses", encoded(commit))
    }

    /// The newest are listed first, which orders those of one second.
    fn sort(&self, statuses: &mut [StatusRow]) {
        statuses.reverse();
    }

    async fn approvals(
        &self,
        repository: &Repository,
        request: &ChangeRequest,
    ) -> Result<Vec<Approval>, ForgeError> {
        let path = repository.path(&format!("/pulls/{}/reviews", request.number));
        let reviews: Vec<Review> = repository.api.list(&path, "").await?;
        let mut last: BTreeMap<String, Review> = BTreeMap::new();
        for review in reviews {
            // A comment takes no approval back.
            if let ("APPROVED" | "CHANGES_REQUESTED" | "DISMISSED", Some(user)) =
                (review.state.as_str(), &review.user)
            {
                last.insert(user.login.clone(), review);
            }
        }
        let mut approvals = Vec::new();
        for (by, review) in last {
            if let ("APPROVED", Some(head), Some(at)) =
                (review.state.as_str(), review.commit_id, review.submitted_at)
            {
                let is_bot = review.user.is_none_or(|user| user.kind != "User");
                let may_write = may_write(repository, &by).await?;
                approvals.push(Approval { by, is_bot, may_write, head, at });
            }
        }
        Ok(approvals)
    }

    fn issues_by(&self, login: &str) -> String {
        format!("state=open&creator={login}")
    }
}
