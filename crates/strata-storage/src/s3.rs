//! States in a bucket. One object for each state says everything but the contents, and is only ever replaced if nobody else did: that is
//! the one step in which a command is decided and done. Several servers may share a bucket.
//!
//! ```text
//! heads/<name>               lock, versions, which parts the journal has
//! contents/<id>/<part>       a version's bytes, never changed
//! journals/<id>              lines of a journal, never changed
//! ```

mod connector;
mod leftovers;
mod objects;
mod probe;
mod record;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;

use crate::head::{Head, Version};
use crate::name::StateName;
use crate::rules::{Command, Content, Decision, Effect, Outcome, Refusal, decide};
use crate::{ContentStream, Failure, FailureKind, Retention, Staging, Storage, StorageError, Which};
use leftovers::Leftovers;
use record::{Kept, Record, head_path};

pub use objects::{AwsCredentials, BucketOptions, Found, Listed, Objects};
pub use probe::respects_conditions;

/// A part of a content. Larger than a piece, since every request to a bucket takes its time.
const PART: usize = 4 * 1024 * 1024;
/// How often a command is tried while others change the same state.
const ATTEMPTS: u32 = 40;
/// A journal of more parts than this is put together.
const MAX_PARTS: usize = 32;
/// What nothing has named for this long goes.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(2 * 3600);

/// The objects of a bucket whose server was found to respect conditions.
pub async fn conditional_objects(options: &BucketOptions) -> Result<Objects, Failure> {
    let objects = Objects::new(options)?;
    probe::respects_conditions(&objects).await?;
    Ok(objects)
}

pub struct S3Storage {
    objects: Objects,
    place: String,
    retention: Retention,
    leftovers: Arc<Leftovers>,
}

fn failed(error: Failure) -> StorageError {
    match error.kind {
        FailureKind::Full => StorageError::Full(error),
        _ => StorageError::Failed(error),
    }
}

fn new_id() -> Result<String, StorageError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| Failure::new(format!("no random numbers: {error}")))?;
    Ok(hex::encode(bits))
}

fn journal_part(journal: &str) -> String {
    format!("journals/{journal}")
}

/// How many objects a content of this size has.
fn parts(size: u64) -> u64 {
    size.div_ceil(PART as u64).max(1)
}

fn content_part(content: &str, part: u64) -> String {
    format!("contents/{content}/{part:05}")
}

/// What a step leaves behind that nothing names any more.
#[derive(Default)]
struct Litter {
    contents: Vec<Kept>,
    journals: Vec<String>,
}

impl S3Storage {
    /// Fails if the server does not honour the conditions of a write.
    pub async fn open(options: &BucketOptions, retention: Retention) -> Result<Self, StorageError> {
        let objects = conditional_objects(options).await.map_err(failed)?;
        let place = format!("s3://{}/{}", options.bucket, options.prefix);
        Ok(Self { objects, place, retention, leftovers: Arc::new(Leftovers::after(LEFT_OVER_AFTER)) })
    }

    /// What nothing has named for this long goes with a sweep, and no upload may take longer than half of it.
    #[must_use]
    pub fn with_leftovers_after(self, after: Duration) -> Self {
        Self { leftovers: Arc::new(Leftovers::after(after)), ..self }
    }

    async fn record(&self, name: &StateName) -> Result<(Record, Option<String>), StorageError> {
        match self.objects.get(&head_path(name)).await.map_err(failed)? {
            Some(found) => Ok((Record::parse(name, &found.bytes)?, Some(found.tag))),
            None => Ok((Record::new(name), None)),
        }
    }

    /// Replaces the record if it is still the one that was read.
    async fn swap(&self, name: &StateName, record: &Record, tag: Option<&str>) -> Result<bool, StorageError> {
        let path = head_path(name);
        let bytes = record.to_bytes()?;
        let swapped = match tag {
            Some(tag) => self.objects.replace(&path, bytes, tag).await,
            None => self.objects.create(&path, bytes).await,
        };
        Ok(swapped.map_err(failed)?.is_some())
    }

    /// Changes the record until nobody was faster.
    async fn change<T>(
        &self,
        name: &StateName,
        mut change: impl FnMut(&mut Record) -> Step<T>,
    ) -> Result<T, StorageError> {
        for attempt in 0..ATTEMPTS {
            let (mut record, tag) = self.record(name).await?;
            let (value, litter) = match change(&mut record) {
                Step::Nothing(value) => return Ok(value),
                Step::Changed(value, litter) => (value, litter),
            };
            if self.swap(name, &record, tag.as_deref()).await? {
                self.tidy(litter).await;
                return Ok(value);
            }
            let mut random = [0];
            let _ = getrandom::fill(&mut random);
            tokio::time::sleep(Duration::from_millis(u64::from(random[0]) * u64::from(attempt.min(8)) / 16))
                .await;
        }
        Err(StorageError::Busy)
    }

    /// What cannot be deleted now costs space and nothing else.
    async fn tidy(&self, litter: Litter) {
        for kept in litter.contents {
            self.drop_content(&kept.content, kept.version.size).await;
        }
        for journal in litter.journals {
            let _ = self.objects.delete(&journal_part(&journal)).await;
        }
    }

    async fn drop_content(&self, content: &str, size: u64) {
        for part in 0..parts(size) {
            let _ = self.objects.delete(&content_part(content, part)).await;
        }
    }

    /// All records; fails if one of them cannot be read.
    async fn records(&self) -> Result<Vec<(StateName, Record)>, StorageError> {
        let listed = self.objects.list("heads").await.map_err(failed)?;
        let read = futures::stream::iter(listed).map(async |object| {
            let found = self.objects.get(&object.path).await.map_err(failed)?;
            found.map(|found| Record::named(&object.path, &found.bytes)).transpose()
        });
        let mut records = Vec::new();
        let mut read = read.buffer_unordered(16);
        while let Some(found) = read.next().await {
            records.extend(found?);
        }
        Ok(records)
    }

    async fn drop_leftovers(&self) -> Result<(), StorageError> {
        // Listed before the records are read: what is named in between is in them.
        let mut unnamed = HashSet::new();
        for folder in ["contents", "journals"] {
            let listed = self.objects.list(folder).await.map_err(failed)?;
            unnamed.extend(listed.into_iter().map(|object| object.path));
        }
        for (_, record) in self.records().await? {
            for kept in &record.versions {
                for part in 0..parts(kept.version.size) {
                    unnamed.remove(&content_part(&kept.content, part));
                }
            }
            for journal in &record.journal {
                unnamed.remove(&journal_part(journal));
            }
        }
        for path in self.leftovers.ripe(unnamed, Instant::now()) {
            self.objects.delete(&path).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn put_content(&self, content: Content) -> Result<String, StorageError> {
        match content {
            Content::Staged(id) => Ok(id),
            Content::Inline(bytes) => {
                let id = new_id()?;
                let mut part = 0;
                let mut rest = bytes;
                loop {
                    let now = rest.split_to(rest.len().min(PART));
                    self.objects.put(&content_part(&id, part), now).await.map_err(failed)?;
                    part += 1;
                    if rest.is_empty() {
                        return Ok(id);
                    }
                }
            }
        }
    }

    async fn lines(&self, parts: &[String]) -> Result<BytesMut, StorageError> {
        let mut lines = BytesMut::new();
        for part in parts {
            let found = self.objects.get(&journal_part(part)).await.map_err(failed)?;
            let found = found.ok_or_else(|| StorageError::damaged("a part of a journal is missing"))?;
            lines.extend_from_slice(&found.bytes);
        }
        Ok(lines)
    }

    /// Puts the parts of a long journal together, if they are still the first ones then.
    async fn compact(&self, name: &StateName) -> Result<(), StorageError> {
        let parts = self.record(name).await?.0.journal;
        if parts.len() <= MAX_PARTS {
            return Ok(());
        }
        let all = self.lines(&parts).await?.freeze();
        let id = new_id()?;
        self.objects.put(&journal_part(&id), all).await.map_err(failed)?;
        let used = self
            .change(name, |record| {
                if !record.journal.starts_with(&parts) {
                    return Step::Nothing(false);
                }
                record.journal.splice(..parts.len(), [id.clone()]);
                Step::Changed(true, Litter { journals: parts.clone(), ..Litter::default() })
            })
            .await?;
        if !used {
            self.tidy(Litter { journals: vec![id], ..Litter::default() }).await;
        }
        Ok(())
    }
}

enum Step<T> {
    Nothing(T),
    Changed(T, Litter),
}

#[async_trait]
impl Storage for S3Storage {
    fn describe(&self) -> String {
        format!("`{}`", self.place)
    }

    async fn ready(&self) -> Result<(), StorageError> {
        self.objects.get("conditional-writes").await.map_err(failed).map(|_| ())
    }

    async fn heads(&self) -> Result<Vec<(StateName, Head)>, StorageError> {
        let records = self.records().await?;
        let mut heads: Vec<_> = records.into_iter().map(|(name, record)| (name, record.head)).collect();
        heads.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(heads)
    }

    async fn head(&self, name: &StateName) -> Result<Head, StorageError> {
        Ok(self.record(name).await?.0.head)
    }

    async fn execute(
        &self,
        name: &StateName,
        command: Command,
    ) -> Result<Result<Outcome, Refusal>, StorageError> {
        // What the record will name is there before it does. A first look spares the work where the answer is no anyway.
        let content = match &command {
            Command::Write(write) => {
                let inline = matches!(write.content, Content::Inline(_));
                let first = self.record(name).await?.0;
                match decide(&first.head, &command) {
                    Ok(Decision { effect: Some(_), .. }) => {
                        Some(self.put_content(write.content.clone()).await?)
                    }
                    other => {
                        if let (false, Content::Staged(id)) = (inline, &write.content) {
                            self.drop_content(id, write.size).await;
                        }
                        return Ok(other.map(|decision| decision.outcome));
                    }
                }
            }
            _ => None,
        };
        let journal = match &command {
            Command::AppendJournal { lines, .. } => {
                let id = new_id()?;
                self.objects.put(&journal_part(&id), lines.clone()).await.map_err(failed)?;
                Some(id)
            }
            _ => None,
        };
        let count = self.retention.count.max(1);
        let (outcome, parts) = self
            .change(name, |record| {
                let decision = match decide(&record.head, &command) {
                    Ok(decision) => decision,
                    Err(refusal) => return Step::Nothing((Err(refusal), 0)),
                };
                let mut litter = Litter::default();
                match (decision.effect, &content, &journal) {
                    (None, ..) => return Step::Nothing((Ok(decision.outcome), 0)),
                    (Some(Effect::SetLock(lock)), ..) => record.head.lock = lock,
                    (Some(Effect::PutVersion { version, current }), Some(content), _) => {
                        let last = version.version.saturating_sub(count);
                        record.put(version, content.clone(), current);
                        litter.contents = record.forget(last, i64::MAX);
                    }
                    (Some(Effect::AppendJournal(_)), _, Some(added)) => record.journal.push(added.clone()),
                    (Some(Effect::RemoveCurrent), ..) => record.head.current = None,
                    (Some(Effect::ClearJournal), ..) => litter.journals = std::mem::take(&mut record.journal),
                    (Some(Effect::PutVersion { .. } | Effect::AppendJournal(_)), ..) => {}
                }
                Step::Changed((Ok(decision.outcome), record.journal.len()), litter)
            })
            .await?;
        if parts > MAX_PARTS {
            // It is only long until the next append.
            let _ = self.compact(name).await;
        }
        let used = matches!(&outcome, Ok(Outcome::Written(_) | Outcome::Journaled));
        if !used {
            if let (Some(content), Command::Write(write)) = (&content, &command) {
                self.drop_content(content, write.size).await;
            }
            self.tidy(Litter { journals: journal.into_iter().collect(), ..Litter::default() }).await;
        }
        Ok(outcome)
    }

    async fn stage(&self, _: &StateName) -> Result<Box<dyn Staging>, StorageError> {
        let (objects, content) = (self.objects.clone(), new_id()?);
        let until = Instant::now() + self.leftovers.longest_upload();
        Ok(Box::new(Staged { objects, content, part: 0, buffer: BytesMut::new(), until }))
    }

    async fn read(
        &self,
        name: &StateName,
        which: Which,
    ) -> Result<Option<(Version, ContentStream)>, StorageError> {
        let record = self.record(name).await?.0;
        let Some(kept) = record.find(which).cloned() else { return Ok(None) };
        let (objects, size) = (self.objects.clone(), kept.version.size);
        let stream = futures::stream::unfold(
            (objects, kept.content, 0),
            move |(objects, content, offset)| async move {
                if offset >= size {
                    return None;
                }
                let expected = (size - offset).min(PART as u64);
                let part = part(&objects, &content_part(&content, offset / PART as u64), expected).await;
                let next = if part.is_ok() { offset + expected } else { size };
                Some((part, (objects, content, next)))
            },
        );
        Ok(Some((kept.version, stream.boxed())))
    }

    async fn versions(&self, name: &StateName) -> Result<Vec<Version>, StorageError> {
        let record = self.record(name).await?.0;
        Ok(record.versions.into_iter().rev().map(|kept| kept.version).collect())
    }

    async fn journal(&self, name: &StateName) -> Result<Bytes, StorageError> {
        let record = self.record(name).await?.0;
        Ok(self.lines(&record.journal).await?.freeze())
    }

    async fn sweep(&self, now: Option<i64>) -> Result<(), StorageError> {
        // Both look at every record, which takes its time in a bucket.
        let Some(now) = now else { return Ok(()) };
        if let Some(age) = self.retention.age {
            let before = now.saturating_sub(age.try_into().unwrap_or(i64::MAX));
            for (name, _) in self.records().await? {
                self.change(&name, |record| {
                    let last = record.head.last_version.saturating_sub(Retention::SPARED);
                    let contents = record.forget(last, before);
                    if contents.is_empty() {
                        return Step::Nothing(());
                    }
                    Step::Changed((), Litter { contents, ..Litter::default() })
                })
                .await?;
            }
        }
        self.drop_leftovers().await
    }

    async fn import_version(
        &self,
        name: &StateName,
        version: Version,
        content: Content,
        current: bool,
    ) -> Result<(), StorageError> {
        let content = self.put_content(content).await?;
        self.change(name, |record| {
            record.put(version.clone(), content.clone(), current);
            Step::Changed((), Litter::default())
        })
        .await
    }

    async fn import_head(&self, name: &StateName, head: Head, journal: Bytes) -> Result<(), StorageError> {
        let mut parts = Vec::new();
        if !journal.is_empty() {
            let id = new_id()?;
            self.objects.put(&journal_part(&id), journal).await.map_err(failed)?;
            parts.push(id);
        }
        self.change(name, |record| {
            record.head = head.clone();
            record.journal = parts.clone();
            Step::Changed((), Litter::default())
        })
        .await
    }
}

/// A part that is shorter than it should be was not written whole.
async fn part(objects: &Objects, path: &str, expected: u64) -> Result<Bytes, StorageError> {
    match objects.get(path).await.map_err(failed)? {
        Some(found) if found.bytes.len() as u64 == expected => Ok(found.bytes),
        Some(found) => {
            let length = found.bytes.len();
            Err(StorageError::damaged(format!(
                "`{path}` has {length} bytes, not {expected}: it was not written whole"
            )))
        }
        None => Err(StorageError::damaged(format!("`{path}` is missing"))),
    }
}

struct Staged {
    objects: Objects,
    content: String,
    part: u64,
    buffer: BytesMut,
    /// Later its parts could be taken for leftovers.
    until: Instant,
}

impl Staged {
    fn in_time(&self) -> Result<(), StorageError> {
        match Instant::now() > self.until {
            true => Err(Failure::new("the state took too long to arrive").into()),
            false => Ok(()),
        }
    }

    async fn flush(&mut self) -> Result<(), StorageError> {
        self.in_time()?;
        let bytes = self.buffer.split().freeze();
        self.objects.put(&content_part(&self.content, self.part), bytes).await.map_err(failed)?;
        self.part += 1;
        Ok(())
    }
}

#[async_trait]
impl Staging for Staged {
    async fn push(&mut self, piece: Bytes) -> Result<(), StorageError> {
        self.buffer.extend_from_slice(&piece);
        // The pieces of a content fill a part exactly.
        if self.buffer.len() >= PART { self.flush().await } else { Ok(()) }
    }

    async fn finish(&mut self) -> Result<String, StorageError> {
        if !self.buffer.is_empty() {
            self.flush().await?;
        }
        self.in_time()?;
        Ok(self.content.clone())
    }
}
