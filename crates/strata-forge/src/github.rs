//! GitHub, and GitHub Enterprise Server.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Api, Twice, encoded};
use crate::commit_status;
use crate::{
    Approval, ChangeRequest, Comment, ErrorKind, Forge, ForgeError, Issue, Kind, PostedStatus, RequestState,
    Status,
};

pub(crate) struct GitHub {
    api: Api,
    /// `/repos/owner/name`.
    repository: String,
    graphql: &'static str,
}

#[derive(Deserialize)]
struct User {
    login: String,
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct Repository {
    full_name: String,
}

#[derive(Deserialize)]
struct Side {
    sha: String,
    #[serde(rename = "ref")]
    name: String,
    /// None where the fork was deleted.
    repo: Option<Repository>,
}

#[derive(Deserialize)]
struct Pull {
    number: u64,
    state: String,
    user: Option<User>,
    head: Side,
    base: Side,
    merged_at: Option<String>,
    merge_commit_sha: Option<String>,
}

impl From<Pull> for ChangeRequest {
    fn from(pull: Pull) -> Self {
        let is_merged = pull.merged_at.is_some();
        let full_name = |side: &Side| side.repo.as_ref().map(|repo| repo.full_name.clone());
        Self {
            number: pull.number,
            author: login(pull.user),
            state: match (is_merged, pull.state.as_str()) {
                (true, _) => RequestState::Merged,
                (false, "open") => RequestState::Open,
                (false, _) => RequestState::Closed,
            },
            is_fork: full_name(&pull.head).is_none() || full_name(&pull.head) != full_name(&pull.base),
            head: pull.head.sha,
            base: pull.base.name,
            // Of an open one it is a trial of GitHub's.
            merge_commit: pull.merge_commit_sha.filter(|_| is_merged),
        }
    }
}

#[derive(Deserialize)]
struct CommentRow {
    id: u64,
    user: Option<User>,
    body: Option<String>,
}

#[derive(Deserialize)]
struct StatusRow {
    state: String,
    context: String,
    description: Option<String>,
    created_at: Timestamp,
    creator: Option<User>,
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

#[derive(Deserialize)]
struct IssueRow {
    number: u64,
    user: Option<User>,
    title: String,
    body: Option<String>,
    pull_request: Option<Value>,
}

/// Who left GitHub is nobody.
fn login(user: Option<User>) -> String {
    user.map(|user| user.login).unwrap_or_default()
}

impl GitHub {
    pub(crate) fn new(api: Api, repository: &str, is_own: bool) -> Self {
        let repository: Vec<String> = repository.split('/').map(encoded).collect();
        let prefix = if is_own { "/api/v3" } else { "" };
        let graphql = if is_own { "/api/graphql" } else { "/graphql" };
        Self { api, repository: format!("{prefix}/repos/{}", repository.join("/")), graphql }
    }

    fn path(&self, rest: &str) -> String {
        format!("{}{rest}", self.repository)
    }

    async fn may_write(&self, login: &str) -> Result<bool, ForgeError> {
        let path = self.path(&format!("/collaborators/{}/permission", encoded(login)));
        let found: Option<Permission> = self.api.find(&path).await?;
        Ok(found.is_some_and(|own| matches!(own.permission.as_str(), "write" | "maintain" | "admin")))
    }
}

#[async_trait]
impl Forge for GitHub {
    fn kind(&self) -> Kind {
        Kind::GitHub
    }

    /// The token of a workflow may not ask the REST API who it is.
    async fn me(&self) -> Result<String, ForgeError> {
        let query = json!({"query": "query { viewer { login } }"});
        let answer = self.api.write(Method::POST, self.graphql, &query, Twice::Harmless).await?;
        answer["data"]["viewer"]["login"].as_str().map(str::to_owned).ok_or_else(|| {
            self.api.error(
                ErrorKind::Unexpected,
                "say whose token this is",
                "its answer has no login".to_owned(),
            )
        })
    }

    async fn request(&self, number: u64) -> Result<ChangeRequest, ForgeError> {
        Ok(self.api.get::<Pull>(&self.path(&format!("/pulls/{number}"))).await?.into())
    }

    async fn requests_of(&self, commit: &str) -> Result<Vec<ChangeRequest>, ForgeError> {
        let path = self.path(&format!("/commits/{}/pulls", encoded(commit)));
        let pulls: Vec<Pull> = match self.api.list(&path, "").await {
            // A commit that it does not have.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Rejected) => Vec::new(),
            listed => listed?,
        };
        Ok(pulls.into_iter().map(ChangeRequest::from).filter(|request| is_of(request, commit)).collect())
    }

    async fn comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError> {
        let rows: Vec<CommentRow> =
            self.api.list(&self.path(&format!("/issues/{number}/comments")), "").await?;
        let comment = |row: CommentRow| Comment {
            id: row.id,
            author: login(row.user),
            text: row.body.unwrap_or_default(),
        };
        Ok(rows.into_iter().map(comment).collect())
    }

    async fn add_comment(&self, number: u64, text: &str) -> Result<(), ForgeError> {
        let path = self.path(&format!("/issues/{number}/comments"));
        self.api.write(Method::POST, &path, &json!({"body": text}), Twice::Never).await.map(drop)
    }

    async fn edit_comment(&self, _: u64, comment: u64, text: &str) -> Result<(), ForgeError> {
        let path = self.path(&format!("/issues/comments/{comment}"));
        self.api.write(Method::PATCH, &path, &json!({"body": text}), Twice::Harmless).await.map(drop)
    }

    async fn set_status(&self, commit: &str, status: &Status) -> Result<(), ForgeError> {
        let path = self.path(&format!("/statuses/{}", encoded(commit)));
        let body = commit_status::posted(status);
        self.api.write(Method::POST, &path, &body, Twice::Harmless).await.map(drop)
    }

    async fn statuses(&self, commit: &str) -> Result<Vec<PostedStatus>, ForgeError> {
        let path = self.path(&format!("/commits/{}/statuses", encoded(commit)));
        let rows: Vec<StatusRow> = self.api.list(&path, "").await?;
        // The newest are listed first, which orders those of one second.
        let posted = rows.into_iter().rev().map(|row| PostedStatus {
            author: row.creator.map(|user| user.login),
            outcome: commit_status::outcome(&row.state),
            context: row.context,
            description: row.description.unwrap_or_default(),
            at: row.created_at,
        });
        Ok(posted.collect())
    }

    async fn approvals(&self, request: &ChangeRequest) -> Result<Vec<Approval>, ForgeError> {
        let path = self.path(&format!("/pulls/{}/reviews", request.number));
        let reviews: Vec<Review> = self.api.list(&path, "").await?;
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
                let may_write = self.may_write(&by).await?;
                approvals.push(Approval { by, is_bot, may_write, head, at });
            }
        }
        Ok(approvals)
    }

    async fn own_issues(&self) -> Result<Vec<Issue>, ForgeError> {
        let query = format!("state=open&creator={}", encoded(&self.me().await?));
        let rows: Vec<IssueRow> = self.api.list(&self.path("/issues"), &query).await?;
        let issue = |row: IssueRow| Issue {
            number: row.number,
            author: login(row.user),
            title: row.title,
            text: row.body.unwrap_or_default(),
        };
        Ok(rows.into_iter().filter(|row| row.pull_request.is_none()).map(issue).collect())
    }

    async fn open_issue(&self, title: &str, text: &str) -> Result<(), ForgeError> {
        let body = json!({"title": title, "body": text});
        self.api.write(Method::POST, &self.path("/issues"), &body, Twice::Never).await.map(drop)
    }

    async fn edit_issue(&self, number: u64, title: &str, text: &str) -> Result<(), ForgeError> {
        let path = self.path(&format!("/issues/{number}"));
        self.api
            .write(Method::PATCH, &path, &json!({"title": title, "body": text}), Twice::Harmless)
            .await
            .map(drop)
    }

    async fn close_issue(&self, number: u64) -> Result<(), ForgeError> {
        let path = self.path(&format!("/issues/{number}"));
        self.api.write(Method::PATCH, &path, &json!({"state": "closed"}), Twice::Harmless).await.map(drop)
    }
}

/// Whether a request is open with this head, or was merged as this commit.
pub(crate) fn is_of(request: &ChangeRequest, commit: &str) -> bool {
    match request.state {
        RequestState::Open => request.head == commit,
        RequestState::Merged => request.merge_commit.as_deref() == Some(commit),
        RequestState::Closed => false,
    }
}
