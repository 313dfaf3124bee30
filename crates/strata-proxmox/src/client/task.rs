//! Following a task until it has ended.

use std::time::Duration;

use super::{CallError, Client};
use crate::api::{LogLine, Params, TaskFailure, TaskRow, TaskStatus, Upid, encode_path_part, only_warns};

const FIRST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(2);
/// How much of a failed task's log is shown.
const TAIL: usize = 20;
const PAGE: usize = 500;
/// How long a node may be out of reach while a task on it is followed.
const LONGEST_AWAY: Duration = Duration::from_secs(30);

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskEnd {
    Done,
    /// It ended, and warns of something: the lines of its log that say so.
    Warned {
        status: String,
        log: Vec<String>,
    },
    Failed {
        failure: TaskFailure,
        log: Vec<String>,
    },
    /// The node does not know it any more.
    Forgotten,
    /// It still runs after the time that was given.
    StillRunning,
}

impl Client {
    /// Waits for a task; asks often at first, then every two seconds.
    pub(crate) async fn follow(&self, upid: &Upid, patience: Duration) -> Result<TaskEnd, CallError> {
        let end = self.clock().monotonic() + patience;
        let mut wait = FIRST_POLL;
        let mut away_since = None;
        loop {
            let now = self.clock().monotonic();
            match self.task_status(upid).await {
                Err(error) if error.says_no_task() => return Ok(TaskEnd::Forgotten),
                // A task goes on while its node cannot be reached from here.
                Err(error) if error.is_unreachable_node() => {
                    if now - *away_since.get_or_insert(now) >= LONGEST_AWAY || now >= end {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
                Ok(status) if status.status != "running" => return self.ended(upid, status).await,
                Ok(_) if self.clock().monotonic() >= end => return Ok(TaskEnd::StillRunning),
                Ok(_) => {}
            }
            self.clock().sleep(wait).await;
            wait = (wait * 3 / 2).min(LONGEST_POLL);
        }
    }

    async fn ended(&self, upid: &Upid, status: TaskStatus) -> Result<TaskEnd, CallError> {
        let exit = status.exitstatus.unwrap_or_default();
        if exit == "OK" {
            return Ok(TaskEnd::Done);
        }
        // Without its log the failure can still be told.
        let log = self.task_log(upid).await.unwrap_or_default();
        let scrub = |line: &String| self.redactor().redact(line).into_owned();
        if only_warns(&exit) {
            let warns = |line: &&String| line.to_ascii_uppercase().starts_with("WARN");
            let log = log.iter().filter(warns).take(TAIL).map(scrub).collect();
            return Ok(TaskEnd::Warned { status: exit, log });
        }
        let tail = log.len().saturating_sub(TAIL);
        Ok(TaskEnd::Failed {
            failure: TaskFailure::read(self.redactor().redact(&exit)),
            log: log[tail..].iter().map(scrub).collect(),
        })
    }

    async fn task_status(&self, upid: &Upid) -> Result<TaskStatus, CallError> {
        let path = format!("/nodes/{}/tasks/{}/status", upid.node, encode_path_part(upid.as_str()));
        self.get(&path, Params::new()).await
    }

    /// The lines of a task's log, all of them up to a bound.
    pub(crate) async fn task_log(&self, upid: &Upid) -> Result<Vec<String>, CallError> {
        const MOST: usize = 20 * PAGE;
        let path = format!("/nodes/{}/tasks/{}/log", upid.node, encode_path_part(upid.as_str()));
        let mut lines = Vec::new();
        loop {
            let query = Params::new().with("start", lines.len()).with("limit", PAGE);
            let page: Vec<LogLine> = self.get(&path, query).await?;
            let full = page.len() == PAGE;
            lines.extend(page.into_iter().map(|line| line.t));
            if !full || lines.len() >= MOST {
                return Ok(lines);
            }
        }
    }

    /// The tasks of ours that run on a node.
    pub(crate) async fn running_tasks(&self, node: &str) -> Result<Vec<Upid>, CallError> {
        let query = Params::new().with("source", "active").with("limit", PAGE);
        let rows: Vec<TaskRow> = self.get(&format!("/nodes/{node}/tasks"), query).await?;
        Ok(self.own(rows.iter().filter(|row| row.is_running())))
    }

    /// The tasks of ours that a node remembers since then, however they ended.
    pub(crate) async fn past_tasks(&self, node: &str, since: i64) -> Result<Vec<Upid>, CallError> {
        let query = Params::new().with("source", "all").with("since", since).with("limit", PAGE);
        let rows: Vec<TaskRow> = self.get(&format!("/nodes/{node}/tasks"), query).await?;
        Ok(self.own(rows.iter()))
    }

    fn own<'r>(&self, rows: impl Iterator<Item = &'r TaskRow>) -> Vec<Upid> {
        rows.filter_map(|row| row.upid.parse().ok()).filter(|upid: &Upid| self.is_ours(&upid.user)).collect()
    }

    /// Whether a task's user is us: by token, or by the ticket that is used beside it.
    fn is_ours(&self, user: &str) -> bool {
        user == self.identity() || self.auth.login_user().is_some_and(|login| login == user)
    }
}
