//! The API that GitHub has, and that Gitea and Forgejo took over. What they answer alike is here; the rest is said by a [`Dialect`].

use async_trait::async_trait;
use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Api, Twice, cut, encoded};
use crate::{
    Approval, ChangeRequest, Comment, Forge, ForgeError, Issue, Kind, Outcome, PostedStatus, RequestState,
    Status,
};

/// One repository at a forge of this family.
pub(crate) struct GitHubApi<D> {
    pub(crate) repository: Repository,
    pub(crate) dialect: D,
}

pub(crate) struct Repository {
    pub(crate) api: Api,
    path: String,
}

impl Repository {
    /// Below `prefix`, which ends in `/repos`.
    pub(crate) fn new(api: Api, prefix: &str, name: &str) -> Self {
        let parts: Vec<String> = name.split('/').map(encoded).collect();
        Self { api, path: format!("{prefix}/{}", parts.join("/")) }
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("{}{rest}", self.path)
    }

    async fn edit_issue(&self, number: u64, body: Value) -> Result<(), ForgeError> {
        let path = self.path(&format!("/issues/{number}"));
        self.api.write(Method::PATCH, &path, &body, Twice::Harmless).await.map(drop)
    }
}

/// Where the forges of this family differ.
#[async_trait]
pub(crate) trait Dialect: Send + Sync {
    const KIND: Kind;

    async fn me(&self, repository: &Repository) -> Result<String, ForgeError>;

    /// The requests that may have ended in a commit, or have it as their head; others do no harm.
    async fn pulls_with(&self, repository: &Repository, commit: &str) -> Result<Vec<Pull>, ForgeError>;

    /// Where the statuses of a commit are listed.
    fn statuses_of(&self, commit: &str) -> String;

    /// Brings listed statuses into the order of their making.
    fn sort(&self, statuses: &mut [StatusRow]);

    async fn approvals(
        &self,
        repository: &Repository,
        request: &ChangeRequest,
    ) -> Result<Vec<Approval>, ForgeError>;

    /// What the listing of issues is asked for, to have those that somebody opened.
    fn issues_by(&self, login: &str) -> String;
}

#[derive(Deserialize)]
pub(crate) struct User {
    /// A negative one is of Gitea's own making, such as that of its pipelines.
    #[serde(default)]
    pub(crate) id: i64,
    pub(crate) login: String,
    /// GitHub's word: `User`, `Bot`.
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
}

/// Who left the forge is nobody.
fn login(user: Option<User>) -> String {
    user.map(|user| user.login).unwrap_or_default()
}

#[derive(Deserialize)]
struct FullName {
    full_name: String,
}

#[derive(Deserialize)]
struct Side {
    sha: String,
    #[serde(rename = "ref")]
    name: String,
    /// None where the fork was deleted.
    repo: Option<FullName>,
}

#[derive(Deserialize)]
pub(crate) struct Pull {
    number: u64,
    state: String,
    user: Option<User>,
    head: Side,
    base: Side,
    /// Gitea's, and of single requests GitHub's too.
    #[serde(default)]
    merged: bool,
    merged_at: Option<String>,
    merge_commit_sha: Option<String>,
}

impl From<Pull> for ChangeRequest {
    fn from(pull: Pull) -> Self {
        let is_merged = pull.merged || pull.merged_at.is_some();
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
pub(crate) struct StatusRow {
    pub(crate) id: u64,
    #[serde(alias = "status")]
    state: String,
    context: String,
    description: Option<String>,
    created_at: Timestamp,
    creator: Option<User>,
}

#[derive(Deserialize)]
struct IssueRow {
    number: u64,
    user: Option<User>,
    title: String,
    body: Option<String>,
    /// GitHub lists requests as issues, too.
    pull_request: Option<Value>,
}

#[async_trait]
impl<D: Dialect> Forge for GitHubApi<D> {
    fn kind(&self) -> Kind {
        D::KIND
    }

    async fn me(&self) -> Result<String, ForgeError> {
        self.dialect.me(&self.repository).await
    }

    async fn request(&self, number: u64) -> Result<ChangeRequest, ForgeError> {
        let path = self.repository.path(&format!("/pulls/{number}"));
        Ok(self.repository.api.get::<Pull>(&path).await?.into())
    }

    async fn requests_of(&self, commit: &str) -> Result<Vec<ChangeRequest>, ForgeError> {
        let pulls = self.dialect.pulls_with(&self.repository, commit).await?;
        let requests = pulls.into_iter().map(ChangeRequest::from);
        let mut found: Vec<ChangeRequest> = requests.filter(|request| request.is_of(commit)).collect();
        found.dedup_by_key(|request| request.number);
        Ok(found)
    }

    async fn comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError> {
        let path = self.repository.path(&format!("/issues/{number}/comments"));
        let rows: Vec<CommentRow> = self.repository.api.list(&path, "").await?;
        let comment = |row: CommentRow| Comment {
            id: row.id,
            author: login(row.user),
            text: row.body.unwrap_or_default(),
        };
        let mut comments: Vec<Comment> = rows.into_iter().map(comment).collect();
        // A server that does not know pages lists all of them on each.
        comments.sort_by_key(|comment| comment.id);
        comments.dedup_by_key(|comment| comment.id);
        Ok(comments)
    }

    async fn add_comment(&self, number: u64, text: &str) -> Result<(), ForgeError> {
        let path = self.repository.path(&format!("/issues/{number}/comments"));
        let body = json!({"body": text});
        self.repository.api.write(Method::POST, &path, &body, Twice::Never).await.map(drop)
    }

    async fn edit_comment(&self, _: u64, comment: u64, text: &str) -> Result<(), ForgeError> {
        let path = self.repository.path(&format!("/issues/comments/{comment}"));
        let body = json!({"body": text});
        self.repository.api.write(Method::PATCH, &path, &body, Twice::Harmless).await.map(drop)
    }

    async fn set_status(&self, commit: &str, status: &Status) -> Result<(), ForgeError> {
        let path = self.repository.path(&format!("/statuses/{}", encoded(commit)));
        let state = match status.outcome {
            Outcome::Pending => "pending",
            Outcome::Success => "success",
            Outcome::Failure => "failure",
        };
        let body =
            json!({"state": state, "context": status.context, "description": cut(&status.description)});
        self.repository.api.write(Method::POST, &path, &body, Twice::Harmless).await.map(drop)
    }

    async fn statuses(&self, commit: &str) -> Result<Vec<PostedStatus>, ForgeError> {
        let path = self.repository.path(&self.dialect.statuses_of(commit));
        let mut rows: Vec<StatusRow> = self.repository.api.list(&path, "").await?;
        self.dialect.sort(&mut rows);
        let posted = rows.into_iter().map(|row| PostedStatus {
            author: row.creator.map(|user| user.login),
            outcome: match row.state.as_str() {
                "success" => Outcome::Success,
                "pending" => Outcome::Pending,
                // Words that are not ours are no success.
                _ => Outcome::Failure,
            },
            context: row.context,
            description: row.description.unwrap_or_default(),
            at: row.created_at,
        });
        Ok(posted.collect())
    }

    async fn approvals(&self, request: &ChangeRequest) -> Result<Vec<Approval>, ForgeError> {
        self.dialect.approvals(&self.repository, request).await
    }

    async fn own_issues(&self) -> Result<Vec<Issue>, ForgeError> {
        let query = self.dialect.issues_by(&encoded(&self.me().await?));
        let rows: Vec<IssueRow> = self.repository.api.list(&self.repository.path("/issues"), &query).await?;
        let issue = |row: IssueRow| Issue {
            number: row.number,
            author: login(row.user),
            title: row.title,
            text: row.body.unwrap_or_default(),
        };
        Ok(rows.into_iter().filter(|row| row.pull_request.is_none()).map(issue).collect())
    }

    async fn open_issue(&self, title: &str, text: &str) -> Result<(), ForgeError> {
        let (path, body) = (self.repository.path("/issues"), json!({"title": title, "body": text}));
        self.repository.api.write(Method::POST, &path, &body, Twice::Never).await.map(drop)
    }

    async fn edit_issue(&self, number: u64, title: &str, text: &str) -> Result<(), ForgeError> {
        self.repository.edit_issue(number, json!({"title": title, "body": text})).await
    }

    async fn close_issue(&self, number: u64) -> Result<(), ForgeError> {
        self.repository.edit_issue(number, json!({"state": "closed"})).await
    }
}
