//! Gitea, and Forgejo, whose API is the same.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::api::{Api, Twice, encoded};
use crate::commit_status;
use crate::github::is_of;
use crate::{
    Approval, ChangeRequest, Comment, Forge, ForgeError, Issue, Kind, PostedStatus, RequestState, Status,
};

pub(crate) struct Gitea {
    api: Api,
    /// `/api/v1/repos/owner/name`.
    repository: String,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    id: i64,
    login: String,
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
    repo: Option<Repository>,
}

#[derive(Deserialize)]
struct Pull {
    number: u64,
    state: String,
    user: Option<User>,
    head: Side,
    base: Side,
    merged: bool,
    merge_commit_sha: Option<String>,
}

impl From<Pull> for ChangeRequest {
    fn from(pull: Pull) -> Self {
        let full_name = |side: &Side| side.repo.as_ref().map(|repo| repo.full_name.clone());
        Self {
            number: pull.number,
            author: login(pull.user),
            state: match (pull.merged, pull.state.as_str()) {
                (true, _) => RequestState::Merged,
                (false, "open") => RequestState::Open,
                (false, _) => RequestState::Closed,
            },
            is_fork: full_name(&pull.head).is_none() || full_name(&pull.head) != full_name(&pull.base),
            head: pull.head.sha,
            base: pull.base.name,
            merge_commit: pull.merge_commit_sha.filter(|_| pull.merged),
        }
    }
}

#[derive(Deserialize)]
struct CommentRow {
    id: u64,
    user: Option<User>,
    body: String,
}

#[derive(Deserialize)]
struct StatusRow {
    id: u64,
    status: String,
    context: String,
    description: String,
    created_at: Timestamp,
    creator: Option<User>,
}

#[derive(Deserialize)]
struct Review {
    user: Option<User>,
    state: String,
    commit_id: String,
    /// Something was pushed since.
    stale: bool,
    /// Its author may approve here.
    official: bool,
    dismissed: bool,
    submitted_at: Timestamp,
}

#[derive(Deserialize)]
struct IssueRow {
    number: u64,
    user: Option<User>,
    title: String,
    body: String,
}

fn login(user: Option<User>) -> String {
    user.map(|user| user.login).unwrap_or_default()
}

impl Gitea {
    pub(crate) fn new(api: Api, repository: &str) -> Self {
        let repository: Vec<String> = repository.split('/').map(encoded).collect();
        Self { api, repository: format!("/api/v1/repos/{}", repository.join("/")) }
    }

    fn path(&self, rest: &str) -> String {
        format!("{}{rest}", self.repository)
    }
}

#[async_trait]
impl Forge for Gitea {
    fn kind(&self) -> Kind {
        Kind::Gitea
    }

    async fn me(&self) -> Result<String, ForgeError> {
        Ok(self.api.get::<User>("/api/v1/user").await?.login)
    }

    async fn request(&self, number: u64) -> Result<ChangeRequest, ForgeError> {
        Ok(self.api.get::<Pull>(&self.path(&format!("/pulls/{number}"))).await?.into())
    }

    /// It finds the merged one by itself; of open ones it has nothing but the listing.
    async fn requests_of(&self, commit: &str) -> Result<Vec<ChangeRequest>, ForgeError> {
        let merged: Option<Pull> =
            self.api.find(&self.path(&format!("/commits/{}/pull", encoded(commit)))).await?;
        let open: Vec<Pull> = self.api.list(&self.path("/pulls"), "state=open").await?;
        let all = merged.into_iter().chain(open).map(ChangeRequest::from);
        let mut found: Vec<ChangeRequest> = all.filter(|request| is_of(request, commit)).collect();
        found.dedup_by_key(|request| request.number);
        Ok(found)
    }

    async fn comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError> {
        let rows: Vec<CommentRow> =
            self.api.list(&self.path(&format!("/issues/{number}/comments")), "").await?;
        let mut comments: Vec<Comment> = rows
            .into_iter()
            .map(|row| Comment { id: row.id, author: login(row.user), text: row.body })
            .collect();
        // A server that does not know pages lists all of them on each.
        comments.sort_by_key(|comment| comment.id);
        comments.dedup_by_key(|comment| comment.id);
        Ok(comments)
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
        let path = self.path(&format!("/statuses/{}", encoded(commit)));
        let mut rows: Vec<StatusRow> = self.api.list(&path, "").await?;
        rows.sort_by_key(|row| row.id);
        let posted = rows.into_iter().map(|row| PostedStatus {
            author: row.creator.map(|user| user.login),
            outcome: commit_status::outcome(&row.status),
            context: row.context,
            description: row.description,
            at: row.created_at,
        });
        Ok(posted.collect())
    }

    async fn approvals(&self, request: &ChangeRequest) -> Result<Vec<Approval>, ForgeError> {
        let path = self.path(&format!("/pulls/{}/reviews", request.number));
        let reviews: Vec<Review> = self.api.list(&path, "").await?;
        let mut last: BTreeMap<String, Review> = BTreeMap::new();
        for review in reviews {
            if let ("APPROVED" | "REQUEST_CHANGES", Some(user)) = (review.state.as_str(), &review.user) {
                let is_newer =
                    last.get(&user.login).is_none_or(|other| other.submitted_at <= review.submitted_at);
                if is_newer {
                    last.insert(user.login.clone(), review);
                }
            }
        }
        // A stale one is of another head, by which it is told apart.
        let is_good = |review: &Review| {
            review.state == "APPROVED"
                && !review.dismissed
                && !(review.stale && review.commit_id == request.head)
        };
        let good = last.into_iter().filter(|(_, review)| is_good(review));
        let approval = |(by, review): (String, Review)| Approval {
            by,
            // Users of its own making, such as that of its pipelines.
            is_bot: review.user.is_none_or(|user| user.id < 0),
            may_write: review.official,
            head: review.commit_id,
            at: review.submitted_at,
        };
        Ok(good.map(approval).collect())
    }

    async fn own_issues(&self) -> Result<Vec<Issue>, ForgeError> {
        let query = format!("state=open&type=issues&created_by={}", encoded(&self.me().await?));
        let rows: Vec<IssueRow> = self.api.list(&self.path("/issues"), &query).await?;
        let issue = |row: IssueRow| Issue {
            number: row.number,
            author: login(row.user),
            title: row.title,
            text: row.body,
        };
        Ok(rows.into_iter().map(issue).collect())
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
