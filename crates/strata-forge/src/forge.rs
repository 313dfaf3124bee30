//! What a review needs of a forge.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::{ForgeError, Kind};

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestState {
    /// Neither of the others yet.
    Open,
    /// It was merged.
    Merged,
    /// It was closed without that.
    Closed,
}

/// A pull request, or a merge request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRequest {
    /// What the forge counts it by.
    pub number: u64,
    /// Who opened it.
    pub author: String,
    /// Where it stands.
    pub state: RequestState,
    /// The newest commit of its branch.
    pub head: String,
    /// The branch that it is to be merged into.
    pub base: String,
    /// What the base branch got by the merge: the last commit of it.
    pub merge_commit: Option<String>,
    /// Its branch is in another repository.
    pub is_fork: bool,
}

impl ChangeRequest {
    /// Whether it is open with this head, or was merged as this commit.
    pub(crate) fn is_of(&self, commit: &str) -> bool {
        match self.state {
            RequestState::Open => self.head == commit,
            RequestState::Merged => self.merge_commit.as_deref() == Some(commit),
            RequestState::Closed => false,
        }
    }
}

/// A comment of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// What the forge counts it by.
    pub id: u64,
    /// Who wrote it.
    pub author: String,
    /// As it was written, in Markdown.
    pub text: String,
}

/// What a status says of its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is not known yet.
    Pending,
    /// It may be merged.
    Success,
    /// It may not.
    Failure,
}

/// What a commit is to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What it says.
    pub outcome: Outcome,
    /// By it statuses of one kind are told from others.
    pub context: String,
    /// At most 140 characters: what is longer is cut.
    pub description: String,
}

/// What a commit shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostedStatus {
    /// Nobody where the forge does not say.
    pub author: Option<String>,
    /// What it says.
    pub outcome: Outcome,
    /// By it statuses of one kind are told from others.
    pub context: String,
    /// A sentence for people.
    pub description: String,
    /// When it became what it is.
    pub at: Timestamp,
}

/// The last word of somebody about a request, if that is an approval which was not dismissed or withdrawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Whose it is.
    pub by: String,
    /// Not a person: a program, or a forge's own user.
    pub is_bot: bool,
    /// Whether this person may write to the repository: everybody can approve what everybody can read.
    pub may_write: bool,
    /// The head that it was given to.
    pub head: String,
    /// When it was given.
    pub at: Timestamp,
}

/// An issue of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// What the forge counts it by.
    pub number: u64,
    /// Who opened it.
    pub author: String,
    /// Its first line.
    pub title: String,
    /// As it was written, in Markdown.
    pub text: String,
}

/// One repository at a forge, as one user.
#[async_trait]
pub trait Forge: Send + Sync {
    /// Which forge it is.
    fn kind(&self) -> Kind;

    /// Whose token it is.
    async fn me(&self) -> Result<String, ForgeError>;

    /// The request with a number.
    async fn request(&self, number: u64) -> Result<ChangeRequest, ForgeError>;

    /// Open requests with this head, and merged ones that ended in this commit.
    async fn requests_of(&self, commit: &str) -> Result<Vec<ChangeRequest>, ForgeError>;

    /// The oldest first.
    async fn comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError>;

    /// Writes a comment of this user.
    async fn add_comment(&self, number: u64, text: &str) -> Result<(), ForgeError>;

    /// Makes a comment of a request say this.
    async fn edit_comment(&self, number: u64, comment: u64, text: &str) -> Result<(), ForgeError>;

    /// Posts what a commit is to show from now on.
    async fn set_status(&self, commit: &str, status: &Status) -> Result<(), ForgeError>;

    /// Everything that was posted, the oldest first.
    async fn statuses(&self, commit: &str) -> Result<Vec<PostedStatus>, ForgeError>;

    /// One for each person.
    async fn approvals(&self, request: &ChangeRequest) -> Result<Vec<Approval>, ForgeError>;

    /// The open issues that this user opened.
    async fn own_issues(&self) -> Result<Vec<Issue>, ForgeError>;

    /// Opens an issue as this user.
    async fn open_issue(&self, title: &str, text: &str) -> Result<(), ForgeError>;

    /// Makes an issue say this.
    async fn edit_issue(&self, number: u64, title: &str, text: &str) -> Result<(), ForgeError>;

    /// Closes an issue, which stays readable.
    async fn close_issue(&self, number: u64) -> Result<(), ForgeError>;
}
