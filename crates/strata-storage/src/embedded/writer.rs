//! The one thread that writes. What arrives while it syncs is taken together into the next transaction, so a hundred clients wait for one
//! sync and not for a hundred.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::reader::Pins;
use super::{failed, tables};
use crate::head::{Head, Version};
use crate::name::StateName;
use crate::rules::{Command, Content, Effect, Outcome, Refusal, decide};
use crate::{CHUNK, Failure, Retention, StorageError};

/// Requests that wait for the writer; more wait at their connection.
const QUEUE: usize = 1024;
/// One transaction takes at most this many requests, and about this many bytes.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 8 * 1024 * 1024;

pub(super) type Done<T> = oneshot::Sender<Result<T, StorageError>>;

pub(super) enum Job {
    Execute { name: StateName, command: Command, done: Done<Result<Outcome, Refusal>> },
    Stage { done: Done<i64> },
    Piece { content: i64, part: i64, piece: Bytes, done: Done<()> },
    Discard { content: i64 },
    Sweep { now: Option<i64>, done: Done<()> },
    ImportVersion { name: StateName, version: Version, content: Content, current: bool, done: Done<()> },
    ImportHead { name: StateName, head: Head, journal: Bytes, done: Done<()> },
    Nothing { done: Done<()> },
}

/// What the writer did since it started.
#[derive(Debug, Default)]
pub struct CommitStats {
    pub commits: AtomicU64,
    pub jobs: AtomicU64,
}

#[derive(Clone)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    stats: Arc<CommitStats>,
}

impl Writer {
    pub(super) fn start(db: Connection, retention: Retention, pins: Arc<Pins>) -> Result<Self, StorageError> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let stats = Arc::new(CommitStats::default());
        // What a former process had staged is of no use to anybody.
        for content in tables::unused(&db).map_err(failed)? {
            tables::drop_content(&db, content).map_err(failed)?;
        }
        let newest = tables::newest_content(&db).map_err(failed)?;
        let worker = Worker {
            db,
            retention,
            pins,
            next_content: newest + 1,
            ripe: HashSet::new(),
            lazy: false,
            broken: None,
            stats: Arc::clone(&stats),
        };
        std::thread::Builder::new()
            .name("states-writer".to_owned())
            .spawn(move || worker.run(queue))
            .map_err(|error| Failure::of("cannot start the writer", error))?;
        Ok(Self { jobs, stats })
    }

    /// One that does nothing.
    pub(super) fn none() -> Self {
        Self { jobs: mpsc::channel(1).0, stats: Arc::default() }
    }

    pub(super) fn stats(&self) -> Arc<CommitStats> {
        Arc::clone(&self.stats)
    }

    pub(super) async fn ask<T>(&self, job: impl FnOnce(Done<T>) -> Job) -> Result<T, StorageError> {
        let (done, answer) = oneshot::channel();
        let stopped = || StorageError::Broken(Failure::new("nobody writes"));
        self.jobs.send(job(done)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// For what nobody waits for; lost if the queue is full, and done by the next start instead.
    pub(super) fn send(&self, job: Job) {
        let _ = self.jobs.try_send(job);
    }
}

struct Worker {
    db: Connection,
    retention: Retention,
    pins: Arc<Pins>,
    next_content: i64,
    /// Contents that were unused at the last sweep already.
    ripe: HashSet<i64>,
    /// Commits do not wait for the disk now.
    lazy: bool,
    /// After a failed sync nobody knows what is on the disk.
    broken: Option<Failure>,
    stats: Arc<CommitStats>,
}

impl Worker {
    fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        while let Some(first) = queue.blocking_recv() {
            let mut bytes = size(&first);
            let mut batch = vec![first];
            while batch.len() < BATCH && bytes < BATCH_BYTES {
                let Ok(job) = queue.try_recv() else { break };
                bytes += size(&job);
                batch.push(job);
            }
            self.stats.jobs.fetch_add(batch.len() as u64, Ordering::Relaxed);
            if let Some(reason) = &self.broken {
                let error = StorageError::Broken(reason.clone());
                batch.into_iter().for_each(|job| refuse(job, &error));
                continue;
            }
            self.commit(batch);
        }
    }

    /// All in one transaction; if that fails each in its own, so that one that is too large does not take the others with it.
    fn commit(&mut self, batch: Vec<Job>) {
        match self.attempt(&batch) {
            Ok(answers) => answers.into_iter().zip(batch).for_each(|(answer, job)| answer.give(job)),
            Err(Attempt::Unknown(reason)) => self.stop(batch, reason),
            Err(Attempt::Undone(error)) if batch.len() == 1 => {
                batch.into_iter().for_each(|job| refuse(job, &error));
            }
            Err(Attempt::Undone(_)) => {
                for job in batch {
                    self.commit(vec![job]);
                }
            }
        }
    }

    fn stop(&mut self, batch: Vec<Job>, reason: Failure) {
        let error = StorageError::Broken(reason.clone());
        self.broken = Some(reason);
        batch.into_iter().for_each(|job| refuse(job, &error));
    }

    fn attempt(&mut self, batch: &[Job]) -> Result<Vec<Given>, Attempt> {
        // Pieces of a content mean nothing until a version names them. A synced commit syncs the whole log, so what was lazy before
        // is durable with it.
        let durable = batch.iter().any(|job| match job {
            Job::Execute { command, .. } => command.is_durable(),
            Job::Piece { .. } | Job::Stage { .. } | Job::Discard { .. } | Job::Nothing { .. } => false,
            Job::Sweep { .. } | Job::ImportVersion { .. } | Job::ImportHead { .. } => true,
        });
        if self.lazy == durable {
            let level = if durable { "full" } else { "normal" };
            self.db.pragma_update(None, "synchronous", level).map_err(undone)?;
            self.lazy = !durable;
        }
        let next_content = self.next_content;
        self.db.execute_batch("BEGIN IMMEDIATE").map_err(undone)?;
        let mut given = Vec::with_capacity(batch.len());
        for job in batch {
            match self.apply(job) {
                Ok(answer) => given.push(answer),
                Err(error) => {
                    self.next_content = next_content;
                    return Err(self.roll_back(failed(error)));
                }
            }
        }
        match self.db.execute_batch("COMMIT") {
            Ok(()) => {
                self.stats.commits.fetch_add(1, Ordering::Relaxed);
                Ok(given)
            }
            Err(error) => {
                self.next_content = next_content;
                match failed(error) {
                    error @ (StorageError::Full(_) | StorageError::Busy) => Err(self.roll_back(error)),
                    error => Err(Attempt::Unknown(Failure::from_error(error))),
                }
            }
        }
    }

    fn roll_back(&self, error: StorageError) -> Attempt {
        // Some errors have rolled back by themselves.
        if !self.db.is_autocommit()
            && let Err(problem) = self.db.execute_batch("ROLLBACK")
        {
            return Attempt::Unknown(Failure::from_error(problem));
        }
        Attempt::Undone(error)
    }

    fn apply(&mut self, job: &Job) -> rusqlite::Result<Given> {
        match job {
            Job::Execute { name, command, .. } => {
                self.execute(name, command).map(|outcome| Given::Outcome(Box::new(outcome)))
            }
            Job::Stage { .. } => {
                let content = self.new_content();
                tables::mark_unused(&self.db, content)?;
                Ok(Given::Content(content))
            }
            Job::Piece { content, part, piece, .. } => {
                tables::add_piece(&self.db, *content, *part, piece)?;
                Ok(Given::Nothing)
            }
            Job::Discard { content } => {
                tables::drop_content(&self.db, *content)?;
                Ok(Given::Nothing)
            }
            Job::Sweep { now, .. } => self.sweep(*now).map(|()| Given::Nothing),
            Job::ImportVersion { name, version, content, current, .. } => {
                let state = self.state(name)?;
                let content = self.content(content)?;
                tables::add_version(&self.db, state, version, content)?;
                tables::set_current(&self.db, state, current.then_some(version.version), version.version)?;
                Ok(Given::Nothing)
            }
            Job::ImportHead { name, head, journal, .. } => {
                let state = self.state(name)?;
                tables::set_lock(&self.db, state, head.lock.as_ref())?;
                let current = head.current.as_ref().map(|current| current.version);
                tables::set_current(&self.db, state, current, head.last_version)?;
                if !journal.is_empty() {
                    tables::append_journal(&self.db, state, journal)?;
                }
                Ok(Given::Nothing)
            }
            Job::Nothing { .. } => Ok(Given::Nothing),
        }
    }

    fn execute(&mut self, name: &StateName, command: &Command) -> rusqlite::Result<Result<Outcome, Refusal>> {
        let found = tables::find(&self.db, name)?;
        let nothing = Head::default();
        let head = found.as_ref().map_or(&nothing, |found| &found.head);
        let decided = decide(head, command);
        let effect = match &decided {
            Ok(decision) => decision.effect.as_ref(),
            Err(_) => None,
        };
        if let Some(effect) = effect {
            let state = match &found {
                Some(found) => found.id,
                None => tables::add_state(&self.db, name)?,
            };
            self.effect(state, head, command, effect)?;
        }
        Ok(decided.map(|decision| decision.outcome))
    }

    fn effect(
        &mut self,
        state: i64,
        head: &Head,
        command: &Command,
        effect: &Effect,
    ) -> rusqlite::Result<()> {
        match (effect, command) {
            (Effect::SetLock(lock), _) => tables::set_lock(&self.db, state, lock.as_ref()),
            (Effect::PutVersion { version, current }, Command::Write(write)) => {
                let content = self.content(&write.content)?;
                tables::add_version(&self.db, state, version, content)?;
                let current = current.then_some(version.version);
                tables::set_current(&self.db, state, current, version.version)?;
                let last = version.version.saturating_sub(self.retention.count.max(1));
                self.forget(state, last, None)
            }
            (Effect::PutVersion { .. }, _) => Ok(()),
            (Effect::RemoveCurrent, _) => tables::set_current(&self.db, state, None, head.last_version),
            (Effect::AppendJournal(lines), _) => tables::append_journal(&self.db, state, lines),
            (Effect::ClearJournal, _) => tables::clear_journal(&self.db, state),
        }
    }

    fn state(&self, name: &StateName) -> rusqlite::Result<i64> {
        match tables::find(&self.db, name)? {
            Some(found) => Ok(found.id),
            None => tables::add_state(&self.db, name),
        }
    }

    fn new_content(&mut self) -> i64 {
        let content = self.next_content;
        self.next_content += 1;
        content
    }

    /// Puts a content in its place; from here on a version names it.
    fn content(&mut self, content: &Content) -> rusqlite::Result<i64> {
        match content {
            Content::Inline(bytes) => {
                let content = self.new_content();
                for (part, piece) in (0..).zip(bytes.chunks(CHUNK)) {
                    tables::add_piece(&self.db, content, part, piece)?;
                }
                Ok(content)
            }
            Content::Staged(staged) => {
                let content = staged.parse().map_err(|_| rusqlite::Error::InvalidQuery)?;
                tables::mark_used(&self.db, content)?;
                Ok(content)
            }
        }
    }

    fn forget(&self, state: i64, last: u64, before: Option<i64>) -> rusqlite::Result<()> {
        for (version, content, size) in tables::expired(&self.db, state, last, before)? {
            tables::drop_version(&self.db, state, version)?;
            // What is read in one go cannot be missed halfway.
            if size <= CHUNK as i64 {
                tables::drop_content(&self.db, content)?;
            } else {
                tables::mark_unused(&self.db, content)?;
            }
        }
        Ok(())
    }

    /// Contents go at the second sweep that finds them unused: whoever found them in use before has pinned them by then. Those that are
    /// being staged are unused as well, and pinned by their upload. A staged content that was refused goes like any other.
    fn sweep(&mut self, now: Option<i64>) -> rusqlite::Result<()> {
        if let (Some(age), Some(now)) = (self.retention.age, now) {
            let before = now.saturating_sub(age.try_into().unwrap_or(i64::MAX));
            for (state, last_version) in tables::states(&self.db)? {
                self.forget(state, last_version.saturating_sub(Retention::SPARED), Some(before))?;
            }
        }
        let unused: HashSet<i64> = tables::unused(&self.db)?.into_iter().collect();
        for content in unused.intersection(&self.ripe) {
            if !self.pins.holds(*content) {
                tables::drop_content(&self.db, *content)?;
            }
        }
        self.ripe = unused;
        Ok(())
    }
}

/// How an attempt failed.
enum Attempt {
    /// Nothing was changed.
    Undone(StorageError),
    Unknown(Failure),
}

fn undone(error: rusqlite::Error) -> Attempt {
    Attempt::Undone(failed(error))
}

/// What a job is answered with once the transaction is committed.
enum Given {
    Nothing,
    Content(i64),
    Outcome(Box<Result<Outcome, Refusal>>),
}

impl Given {
    fn give(self, job: Job) {
        // Who does not wait any more needs no answer.
        match (self, job) {
            (Self::Outcome(outcome), Job::Execute { done, .. }) => drop(done.send(Ok(*outcome))),
            (Self::Content(content), Job::Stage { done }) => drop(done.send(Ok(content))),
            (
                _,
                Job::Piece { done, .. }
                | Job::Sweep { done, .. }
                | Job::ImportVersion { done, .. }
                | Job::ImportHead { done, .. }
                | Job::Nothing { done },
            ) => drop(done.send(Ok(()))),
            (_, Job::Discard { .. } | Job::Execute { .. } | Job::Stage { .. }) => {}
        }
    }
}

fn refuse(job: Job, error: &StorageError) {
    let error = error.clone();
    match job {
        Job::Execute { done, .. } => drop(done.send(Err(error))),
        Job::Stage { done } => drop(done.send(Err(error))),
        Job::Piece { done, .. }
        | Job::Sweep { done, .. }
        | Job::ImportVersion { done, .. }
        | Job::ImportHead { done, .. }
        | Job::Nothing { done } => drop(done.send(Err(error))),
        Job::Discard { .. } => {}
    }
}

fn size(job: &Job) -> usize {
    match job {
        Job::Execute { command: Command::Write(write), .. } => match &write.content {
            Content::Inline(bytes) => bytes.len(),
            Content::Staged(_) => 0,
        },
        Job::Execute { command: Command::AppendJournal { lines, .. }, .. } => lines.len(),
        Job::Piece { piece, .. } => piece.len(),
        _ => 0,
    }
}
