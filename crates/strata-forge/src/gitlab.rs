//! GitLab.

use async_trait::async_trait;
use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Api, Twice, cut, encoded};
use crate::{
    Approval, ChangeRequest, Comment, ErrorKind, Forge, ForgeError, Issue, Kind, Outcome, PostedStatus,
    RequestState, Status,
};

/// The role Developer.
const DEVELOPER: u32 = 30;

pub(crate) struct GitLab {
    api: Api,
    /// `/api/v4/projects/group%2Fname`.
    project: String,
}

#[derive(Deserialize)]
struct User {
    id: u64,
    username: String,
    #[serde(default)]
    bot: bool,
}

#[derive(Deserialize)]
struct MergeRequest {
    iid: u64,
    author: User,
    state: String,
    sha: Option<String>,
    target_branch: String,
    merge_commit_sha: Option<String>,
    squash_commit_sha: Option<String>,
    /// None where the fork was deleted.
    source_project_id: Option<u64>,
    target_project_id: u64,
}

impl From<MergeRequest> for ChangeRequest {
    fn from(request: MergeRequest) -> Self {
        let state = match request.state.as_str() {
            "opened" => RequestState::Open,
            "merged" => RequestState::Merged,
            // `locked` while it is being merged.
            _ => RequestState::Closed,
        };
        let head = request.sha.unwrap_or_default();
        // Without a commit of the merge the branch itself was taken over.
        let merged = request.merge_commit_sha.or(request.squash_commit_sha).or_else(|| Some(head.clone()));
        Self {
            number: request.iid,
            author: request.author.username,
            state,
            is_fork: request.source_project_id != Some(request.target_project_id),
            base: request.target_branch,
            merge_commit: merged.filter(|_| state == RequestState::Merged),
            head,
        }
    }
}

#[derive(Deserialize)]
struct Note {
    id: u64,
    author: User,
    body: String,
    system: bool,
    created_at: Timestamp,
}

#[derive(Deserialize)]
struct StatusRow {
    id: u64,
    status: String,
    name: String,
    description: Option<String>,
    created_at: Timestamp,
    finished_at: Option<Timestamp>,
    author: Option<User>,
}

#[derive(Deserialize)]
struct Approvals {
    approved_by: Vec<ApprovedBy>,
}

#[derive(Deserialize)]
struct ApprovedBy {
    user: User,
    /// Older ones do not say.
    approved_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Version {
    head_commit_sha: String,
    created_at: Timestamp,
}

#[derive(Deserialize)]
struct Member {
    access_level: u32,
}

#[derive(Deserialize)]
struct IssueRow {
    iid: u64,
    author: User,
    title: String,
    description: Option<String>,
}

impl GitLab {
    pub(crate) fn new(api: Api, project: &str) -> Self {
        Self { api, project: format!("/api/v4/projects/{}", encoded(project)) }
    }

    fn path(&self, rest: &str) -> String {
        format!("{}{rest}", self.project)
    }

    async fn notes(&self, number: u64) -> Result<Vec<Note>, ForgeError> {
        let path = self.path(&format!("/merge_requests/{number}/notes"));
        self.api.list(&path, "order_by=created_at&sort=asc").await
    }

    async fn is_bot(&self, user: u64) -> Result<bool, ForgeError> {
        Ok(self.api.get::<User>(&format!("/api/v4/users/{user}")).await?.bot)
    }

    async fn may_write(&self, user: u64) -> Result<bool, ForgeError> {
        let found: Option<Member> = self.api.find(&self.path(&format!("/members/all/{user}"))).await?;
        Ok(found.is_some_and(|member| member.access_level >= DEVELOPER))
    }
}

#[async_trait]
impl Forge for GitLab {
    fn kind(&self) -> Kind {
        Kind::GitLab
    }

    async fn me(&self) -> Result<String, ForgeError> {
        Ok(self.api.get::<User>("/api/v4/user").await?.username)
    }

    async fn request(&self, number: u64) -> Result<ChangeRequest, ForgeError> {
        Ok(self.api.get::<MergeRequest>(&self.path(&format!("/merge_requests/{number}"))).await?.into())
    }

    async fn requests_of(&self, commit: &str) -> Result<Vec<ChangeRequest>, ForgeError> {
        let path = self.path(&format!("/repository/commits/{}/merge_requests", encoded(commit)));
        let rows: Vec<MergeRequest> = match self.api.list(&path, "").await {
            Err(error) if error.kind == ErrorKind::NotFound => Vec::new(),
            listed => listed?,
        };
        Ok(rows.into_iter().map(ChangeRequest::from).filter(|request| request.is_of(commit)).collect())
    }

    async fn comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError> {
        let own = self.notes(number).await?.into_iter().filter(|note| !note.system);
        Ok(own.map(|note| Comment { id: note.id, author: note.author.username, text: note.body }).collect())
    }

    async fn add_comment(&self, number: u64, text: &str) -> Result<(), ForgeError> {
        let path = self.path(&format!("/merge_requests/{number}/notes"));
        self.api.write(Method::POST, &path, &json!({"body": text}), Twice::Never).await.map(drop)
    }

    async fn edit_comment(&self, number: u64, comment: u64, text: &str) -> Result<(), ForgeError> {
        let path = self.path(&format!("/merge_requests/{number}/notes/{comment}"));
        self.api.write(Method::PUT, &path, &json!({"body": text}), Twice::Harmless).await.map(drop)
    }

    async fn set_status(&self, commit: &str, status: &Status) -> Result<(), ForgeError> {
        let state = match status.outcome {
            Outcome::Pending => "pending",
            Outcome::Success => "success",
            Outcome::Failure => "failed",
        };
        let body = json!({"state": state, "name": status.context, "description": cut(&status.description)});
        let path = self.path(&format!("/statuses/{}", encoded(commit)));
        match self.api.write(Method::POST, &path, &body, Twice::Harmless).await {
            // What is pending cannot become pending.
            Err(error) if error.kind == ErrorKind::Rejected && status.outcome == Outcome::Pending => Ok(()),
            done => done.map(drop),
        }
    }

    async fn statuses(&self, commit: &str) -> Result<Vec<PostedStatus>, ForgeError> {
        let path = self.path(&format!("/repository/commits/{}/statuses", encoded(commit)));
        let mut rows: Vec<StatusRow> = self.api.list(&path, "all=true").await?;
        rows.sort_by_key(|row| row.id);
        let posted = rows.into_iter().map(|row| PostedStatus {
            author: row.author.map(|user| user.username),
            outcome: match row.status.as_str() {
                "success" => Outcome::Success,
                "created" | "pending" | "running" => Outcome::Pending,
                _ => Outcome::Failure,
            },
            context: row.name,
            description: row.description.unwrap_or_default(),
            // One that was pending before keeps the time at which it was made.
            at: row.finished_at.unwrap_or(row.created_at),
        });
        Ok(posted.collect())
    }

    /// GitLab knows of no commit that was approved: it is the one that was the head at that time.
    async fn approvals(&self, request: &ChangeRequest) -> Result<Vec<Approval>, ForgeError> {
        let path = self.path(&format!("/merge_requests/{}", request.number));
        let given: Approvals = self.api.get(&format!("{path}/approvals")).await?;
        if given.approved_by.is_empty() {
            return Ok(Vec::new());
        }
        let versions: Vec<Version> = self.api.list(&format!("{path}/versions"), "").await?;
        let notes = self.notes(request.number).await?;
        let noted = |user: u64| {
            let own = notes.iter().filter(|note| note.system && note.author.id == user);
            own.filter(|note| note.body == "approved this merge request").map(|note| note.created_at).max()
        };
        let mut approvals = Vec::new();
        for ApprovedBy { user, approved_at } in given.approved_by {
            let Some(at) = approved_at.or_else(|| noted(user.id)) else { continue };
            let before = versions.iter().filter(|version| version.created_at <= at);
            let Some(head) = before.max_by_key(|version| version.created_at) else { continue };
            approvals.push(Approval {
                is_bot: self.is_bot(user.id).await?,
                may_write: self.may_write(user.id).await?,
                by: user.username,
                head: head.head_commit_sha.clone(),
                at,
            });
        }
        Ok(approvals)
    }

    async fn own_issues(&self) -> Result<Vec<Issue>, ForgeError> {
        let rows: Vec<IssueRow> =
            self.api.list(&self.path("/issues"), "state=opened&scope=created_by_me").await?;
        let issue = |row: IssueRow| Issue {
            number: row.iid,
            author: row.author.username,
            title: row.title,
            text: row.description.unwrap_or_default(),
        };
        Ok(rows.into_iter().map(issue).collect())
    }

    async fn open_issue(&self, title: &str, text: &str) -> Result<(), ForgeError> {
        let body = json!({"title": title, "description": text});
        self.api.write(Method::POST, &self.path("/issues"), &body, Twice::Never).await.map(drop)
    }

    async fn edit_issue(&self, number: u64, title: &str, text: &str) -> Result<(), ForgeError> {
        self.change_issue(number, &json!({"title": title, "description": text})).await
    }

    async fn close_issue(&self, number: u64) -> Result<(), ForgeError> {
        self.change_issue(number, &json!({"state_event": "close"})).await
    }
}

impl GitLab {
    async fn change_issue(&self, number: u64, change: &Value) -> Result<(), ForgeError> {
        let path = self.path(&format!("/issues/{number}"));
        self.api.write(Method::PUT, &path, change, Twice::Harmless).await.map(drop)
    }
}
