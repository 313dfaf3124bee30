//! What is at a forge, whatever its API.

use std::collections::{BTreeMap, VecDeque};

use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Dialect, Fault};

/// So few rows on a page that every listing has several.
const PAGE: usize = 3;

pub(super) struct User {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) may_write: bool,
    pub(super) is_bot: bool,
    pub(super) token: String,
}

pub(super) struct Comment {
    pub(super) id: u64,
    pub(super) by: String,
    pub(super) text: String,
    pub(super) at: i64,
    /// Made by the forge itself.
    pub(super) is_system: bool,
}

pub(super) struct Review {
    pub(super) by: String,
    pub(super) approves: bool,
    pub(super) head: String,
    pub(super) at: i64,
    pub(super) is_withdrawn: bool,
}

pub(super) struct Pull {
    pub(super) number: u64,
    pub(super) author: String,
    pub(super) is_fork: bool,
    pub(super) is_open: bool,
    pub(super) merge_commit: Option<String>,
    /// Every head, with the time of its push.
    pub(super) versions: Vec<(String, i64)>,
    pub(super) comments: Vec<Comment>,
    pub(super) reviews: Vec<Review>,
}

impl Pull {
    pub(super) fn head(&self) -> &str {
        &self.versions.last().unwrap().0
    }

    /// Whether a listing of the requests of a commit has it.
    pub(super) fn has(&self, commit: &str) -> bool {
        self.versions.iter().any(|(head, _)| head == commit) || self.merge_commit.as_deref() == Some(commit)
    }
}

pub(super) struct Status {
    pub(super) id: u64,
    pub(super) commit: String,
    pub(super) by: String,
    pub(super) context: String,
    pub(super) state: String,
    pub(super) description: String,
    pub(super) at: i64,
    pub(super) finished: Option<i64>,
}

pub(super) struct Issue {
    pub(super) number: u64,
    pub(super) by: String,
    pub(super) title: String,
    pub(super) text: String,
    pub(super) is_open: bool,
}

pub(super) struct World {
    pub(super) dialect: Dialect,
    pub(super) users: Vec<User>,
    pub(super) pulls: Vec<Pull>,
    pub(super) statuses: Vec<Status>,
    pub(super) issues: Vec<Issue>,
    pub(super) faults: VecDeque<Fault>,
    pub(super) log: Vec<String>,
    /// From this request on every one is refused.
    pub(super) broken_from: Option<usize>,
    now: i64,
    ids: u64,
}

/// One request of the API.
pub(super) struct Call {
    pub(super) method: String,
    pub(super) path: Vec<String>,
    pub(super) query: BTreeMap<String, String>,
    pub(super) body: Value,
    pub(super) who: String,
}

impl Call {
    pub(super) fn text(&self, key: &str) -> String {
        self.body[key].as_str().unwrap_or_default().to_owned()
    }
}

pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Reply {
    pub(super) fn ok(body: Value) -> Self {
        Self { status: 200, body }
    }

    pub(super) fn made(body: Value) -> Self {
        Self { status: 201, body }
    }

    pub(super) fn error(status: u16, message: &str) -> Self {
        Self { status, body: json!({"message": message}) }
    }

    pub(super) fn missing() -> Self {
        Self::error(404, "Not Found")
    }
}

pub(super) fn time(at: i64) -> String {
    Timestamp::from_second(at).unwrap().to_string()
}

impl World {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            users: Vec::new(),
            pulls: Vec::new(),
            statuses: Vec::new(),
            issues: Vec::new(),
            faults: VecDeque::new(),
            log: Vec::new(),
            broken_from: None,
            now: 1_790_000_000,
            ids: 100,
        }
    }

    /// Every event has a second of its own.
    pub(super) fn tick(&mut self) -> i64 {
        self.now += 1;
        self.now
    }

    pub(super) fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(super) fn user(&mut self, name: &str, may_write: bool, is_bot: bool) -> String {
        let (id, token) = (self.id(), format!("token-of-{name}"));
        self.users.push(User { id, name: name.to_owned(), may_write, is_bot, token: token.clone() });
        token
    }

    pub(super) fn named(&self, name: &str) -> &User {
        self.users.iter().find(|user| user.name == name).unwrap()
    }

    pub(super) fn signed_in(&self, headers: &HeaderMap) -> Option<String> {
        let name = if self.dialect == Dialect::GitLab { "private-token" } else { "authorization" };
        let given = headers.get(name)?.to_str().ok()?;
        let given = match self.dialect {
            Dialect::GitHub => given.strip_prefix("Bearer ")?,
            Dialect::Gitea => given.strip_prefix("token ")?,
            Dialect::GitLab => given,
        };
        self.users.iter().find(|user| user.token == given).map(|user| user.name.clone())
    }

    pub(super) fn open(&mut self, author: &str, head: &str, is_fork: bool) -> u64 {
        let (at, number) = (self.tick(), (self.pulls.len() + self.issues.len()) as u64 + 1);
        self.pulls.push(Pull {
            number,
            author: author.to_owned(),
            is_fork,
            is_open: true,
            merge_commit: None,
            versions: vec![(head.to_owned(), at)],
            comments: Vec::new(),
            reviews: Vec::new(),
        });
        number
    }

    pub(super) fn pull(&mut self, number: u64) -> &mut Pull {
        self.pulls.iter_mut().find(|pull| pull.number == number).unwrap()
    }

    pub(super) fn push(&mut self, number: u64, head: &str) {
        let at = self.tick();
        self.pull(number).versions.push((head.to_owned(), at));
    }

    pub(super) fn review(&mut self, number: u64, who: &str, approves: bool) {
        let at = self.tick();
        let pull = self.pull(number);
        let head = pull.head().to_owned();
        pull.reviews.push(Review { by: who.to_owned(), approves, head, at, is_withdrawn: false });
        if self.dialect == Dialect::GitLab && approves {
            self.say(number, who, "approved this merge request", true);
        }
    }

    pub(super) fn withdraw(&mut self, number: u64, who: &str) {
        for review in self.pull(number).reviews.iter_mut().filter(|review| review.by == who) {
            review.is_withdrawn = true;
        }
        if self.dialect == Dialect::GitLab {
            self.say(number, who, "unapproved this merge request", true);
        }
    }

    pub(super) fn merge(&mut self, number: u64, commit: &str) {
        self.tick();
        let pull = self.pull(number);
        pull.is_open = false;
        pull.merge_commit = Some(commit.to_owned());
    }

    pub(super) fn comment(&mut self, number: u64, who: &str, text: &str) -> u64 {
        self.say(number, who, text, false)
    }

    fn say(&mut self, number: u64, who: &str, text: &str, is_system: bool) -> u64 {
        let (id, at) = (self.id(), self.tick());
        self.pull(number).comments.push(Comment {
            id,
            by: who.to_owned(),
            text: text.to_owned(),
            at,
            is_system,
        });
        id
    }

    pub(super) fn rewrite(&mut self, number: u64, place: usize, text: &str) {
        let mut own = self.pull(number).comments.iter_mut().filter(|comment| !comment.is_system);
        own.nth(place).unwrap().text = text.to_owned();
    }

    /// Whether there was such a comment.
    pub(super) fn edit_comment(&mut self, id: u64, text: &str) -> bool {
        let mut all = self.pulls.iter_mut().flat_map(|pull| &mut pull.comments);
        let found = all.find(|comment| comment.id == id);
        found.map(|comment| comment.text = text.to_owned()).is_some()
    }

    pub(super) fn texts(&mut self, number: u64) -> Vec<(String, String)> {
        let own = self.pull(number).comments.iter().filter(|comment| !comment.is_system);
        own.map(|comment| (comment.by.clone(), comment.text.clone())).collect()
    }

    pub(super) fn post_status(
        &mut self,
        commit: &str,
        who: &str,
        context: &str,
        state: &str,
        description: &str,
    ) {
        let (id, at) = (self.id(), self.tick());
        let is_finished = !matches!(state, "pending" | "running");
        self.statuses.push(Status {
            id,
            commit: commit.to_owned(),
            by: who.to_owned(),
            context: context.to_owned(),
            state: state.to_owned(),
            description: description.to_owned(),
            at,
            finished: is_finished.then_some(at),
        });
    }

    pub(super) fn posted(&self, commit: &str) -> Vec<[String; 4]> {
        let own = self.statuses.iter().filter(|status| status.commit == commit);
        own.map(|one| [one.by.clone(), one.context.clone(), one.state.clone(), one.description.clone()])
            .collect()
    }

    pub(super) fn open_issue(&mut self, who: &str, title: &str, text: &str) -> u64 {
        let number = (self.pulls.len() + self.issues.len()) as u64 + 1;
        let (by, title, text) = (who.to_owned(), title.to_owned(), text.to_owned());
        self.issues.push(Issue { number, by, title, text, is_open: true });
        number
    }

    /// Changes what is given; whether there was such an issue.
    pub(super) fn edit_issue(&mut self, number: u64, title: &str, text: &str, close: bool) -> bool {
        let Some(issue) = self.issues.iter_mut().find(|issue| issue.number == number) else { return false };
        if !title.is_empty() {
            issue.title = title.to_owned();
        }
        if !text.is_empty() {
            issue.text = text.to_owned();
        }
        issue.is_open &= !close;
        true
    }

    pub(super) fn issue_texts(&self) -> Vec<(String, String, bool)> {
        self.issues.iter().map(|issue| (issue.title.clone(), issue.text.clone(), issue.is_open)).collect()
    }

    /// One page of a list, and the headers that say whether there are more.
    pub(super) fn paged(&self, call: &Call, path: &str, body: Value) -> (Value, Vec<(&'static str, String)>) {
        let Value::Array(rows) = body else { return (body, Vec::new()) };
        let number = |name: &str| call.query.get(name).and_then(|text| text.parse::<usize>().ok());
        let size = if self.dialect == Dialect::Gitea { "limit" } else { "per_page" };
        let (page, size) = (number("page").unwrap_or(1).max(1), number(size).unwrap_or(PAGE).min(PAGE));
        let all = rows.len();
        let mut headers = Vec::new();
        if self.dialect == Dialect::Gitea {
            headers.push(("x-total-count", all.to_string()));
        }
        if page * size < all {
            // With a host that nobody must follow.
            headers.push((
                "link",
                format!("<http://192.0.2.1{path}?page={}>; rel=\"next\", <x>; rel=\"last\"", page + 1),
            ));
        }
        (rows.into_iter().skip((page - 1) * size).take(size).collect(), headers)
    }
}
