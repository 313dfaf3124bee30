//! States in a bucket. One object for each state says everything but the contents, and is only ever replaced if nobody else did: that is
//! the one step in which a command is decided and done. Several servers may share a bucket, and so may runs without a server.

mod connector;
mod former;
mod layout;
mod leftovers;
mod objects;
mod parts;
mod probe;
mod record;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use tokio::sync::OnceCell;

use crate::head::{Head, Version};
use crate::name::StateName;
use crate::rules::{Command, Content, Decision, Effect, Outcome, Refusal, decide};
use crate::{ContentStream, Failure, FailureKind, Retention, Staging, Storage, StorageError, Which};
use former::FormerLock;
use layout::{content_part, journal_part, part_size, parts};
use leftovers::Leftovers;
use parts::{Staged, part};
use record::{Kept, Record};

pub use layout::Layout;
pub use objects::{AwsCredentials, BucketOptions, Listed, Objects, StoredObject};

/// How often a command is tried while others change the same state.
const ATTEMPTS: u32 = 40;
/// A journal of more parts than this is put together.
const MAX_PARTS: usize = 32;
/// Objects that are read at the same time.
const AT_ONCE: usize = 16;
/// The server tells times in whole seconds, of its answer and of the object.
const COARSENESS: Duration = Duration::from_secs(2);
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
    layout: Layout,
    place: String,
    retention: Retention,
    leftovers: Arc<Leftovers>,
    /// Whether the conditions of a write are respected was found out.
    probed: OnceCell<()>,
}

/// A state's record as it was seen.
struct Seen {
    record: Record,
    /// None if there is no object yet.
    tag: Option<String>,
    /// How long ago it was written.
    age: Option<Duration>,
    /// It was put together from objects of the former layout.
    is_former: bool,
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

/// What a step leaves behind that nothing names any more.
#[derive(Default)]
struct Litter {
    contents: Vec<Kept>,
    journals: Vec<String>,
}

impl S3Storage {
    /// Connects at the first question, and asks at the first command whether the server respects the conditions of a write.
    pub fn new(options: &BucketOptions, layout: Layout, retention: Retention) -> Result<Self, StorageError> {
        Ok(Self {
            objects: Objects::new(options)?,
            layout,
            place: format!("s3://{}/{}", options.bucket, options.prefix),
            retention,
            leftovers: Arc::new(Leftovers::after(LEFT_OVER_AFTER)),
            probed: OnceCell::new(),
        })
    }

    /// As a server has it. Fails if the conditions of a write are not respected.
    pub async fn open(options: &BucketOptions, retention: Retention) -> Result<Self, StorageError> {
        let storage = Self::new(options, Layout::Server, retention)?;
        storage.probe().await?;
        Ok(storage)
    }

    /// For what is kept beside the states.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    async fn probe(&self) -> Result<(), StorageError> {
        self.probed.get_or_try_init(|| probe::respects_conditions(&self.objects)).await.map_err(failed)?;
        Ok(())
    }

    /// What nothing has named for this long goes with a sweep, and no upload may take longer than half of it.
    #[must_use]
    pub fn with_leftovers_after(self, after: Duration) -> Self {
        Self { leftovers: Arc::new(Leftovers::after(after)), ..self }
    }

    async fn see(&self, name: &StateName) -> Result<Seen, StorageError> {
        let path = self.layout.record(name);
        let found = self.objects.get(&path).await.map_err(failed)?;
        let former = match (&found, self.layout) {
            (None, Layout::Server) => return Ok(Seen::of(Record::new(name), found)),
            (None, Layout::Folders) => None,
            (Some(there), _) => match (Record::read(&path, &there.bytes), FormerLock::parse(&there.bytes)) {
                (Err(_), Some(lock)) if self.layout == Layout::Folders => Some(lock),
                (record, _) => return Ok(Seen::of(record?, found)),
            },
        };
        let record = former::read(&self.objects, name, former).await?;
        Ok(Seen { is_former: true, ..Seen::of(record, found) })
    }

    async fn record(&self, name: &StateName) -> Result<Record, StorageError> {
        Ok(self.see(name).await?.record)
    }

    /// Replaces the record if it is still the one that was seen.
    async fn swap(&self, name: &StateName, seen: &Seen) -> Result<bool, StorageError> {
        let path = self.layout.record(name);
        let bytes = seen.record.to_bytes()?;
        let swapped = match &seen.tag {
            Some(tag) => self.objects.replace(&path, bytes, tag).await,
            None => self.objects.create(&path, bytes).await,
        };
        let swapped = swapped.map_err(failed)?.is_some();
        if swapped && seen.is_former {
            // Whoever knows the former layout only cannot lock the state any more, also without this.
            let _ = former::leave_word(&self.objects, name, &seen.record).await;
        }
        Ok(swapped)
    }

    /// Changes the record until nobody was faster.
    async fn change<T>(
        &self,
        name: &StateName,
        mut change: impl FnMut(&mut Record) -> Step<T>,
    ) -> Result<T, StorageError> {
        for attempt in 0..ATTEMPTS {
            let mut seen = self.see(name).await?;
            let (value, litter) = match change(&mut seen.record) {
                Step::Nothing(value) => return Ok(value),
                Step::Changed(value, litter) => (value, litter),
            };
            if self.swap(name, &seen).await? {
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
        for part in 0..parts(content, size) {
            let _ = self.objects.delete(&content_part(content, part)).await;
        }
    }

    /// All records; fails if one of them cannot be read.
    async fn records(&self) -> Result<Vec<(StateName, Record)>, StorageError> {
        let listed = self.objects.list(self.layout.records()).await.map_err(failed)?;
        if self.layout == Layout::Folders {
            let names =
                listed.iter().filter_map(|object| StateName::of_key(Layout::state_of(&object.path)?).ok());
            let names: BTreeSet<StateName> = names.collect();
            let read = futures::stream::iter(names)
                .map(async |name| self.record(&name).await.map(|record| Some((name, record))));
            return all(read.buffer_unordered(AT_ONCE)).await;
        }
        let read = futures::stream::iter(listed).map(async |object| {
            let found = self.objects.get(&object.path).await.map_err(failed)?;
            found.map(|found| Record::named(&object.path, &found.bytes)).transpose()
        });
        all(read.buffer_unordered(AT_ONCE)).await
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
                for part in 0..parts(&kept.content, kept.version.size) {
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

    async fn put_content(
        &self,
        name: &StateName,
        serial: Option<u64>,
        content: Content,
    ) -> Result<String, StorageError> {
        let mut rest = match content {
            Content::Staged(id) => return Ok(id),
            Content::Inline(bytes) => bytes,
        };
        let content = self.layout.content(name, serial, new_id()?);
        let size = rest.len() as u64;
        for part in 0..parts(&content, size) {
            let length = rest.len().min(usize::try_from(part_size(&content, size)).unwrap_or(usize::MAX));
            let now = rest.split_to(length);
            self.objects.put(&content_part(&content, part), now).await.map_err(failed)?;
        }
        Ok(content)
    }

    async fn put_lines(&self, name: &StateName, lines: Bytes) -> Result<String, StorageError> {
        let journal = self.layout.journal(name, new_id()?);
        self.objects.put(&journal_part(&journal), lines).await.map_err(failed)?;
        Ok(journal)
    }

    async fn lines(&self, parts: &[String]) -> Result<BytesMut, StorageError> {
        let read = futures::stream::iter(parts.to_vec()).map(async |part: String| {
            let found = self.objects.get(&journal_part(&part)).await.map_err(failed)?;
            found.ok_or_else(|| StorageError::damaged("a part of a journal is missing"))
        });
        let mut read = read.buffered(AT_ONCE);
        let mut lines = BytesMut::new();
        while let Some(found) = read.next().await {
            lines.extend_from_slice(&found?.bytes);
        }
        Ok(lines)
    }

    /// Puts the parts of a long journal together, if they are still the first ones then.
    async fn compact(&self, name: &StateName) -> Result<(), StorageError> {
        let parts = self.record(name).await?.journal;
        if parts.len() <= MAX_PARTS {
            return Ok(());
        }
        let all = self.lines(&parts).await?.freeze();
        let id = self.put_lines(name, all).await?;
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

impl Seen {
    fn of(record: Record, found: Option<StoredObject>) -> Self {
        let (tag, age) = found.map_or((None, None), |found| (Some(found.tag), found.age));
        Self { record, tag, age, is_former: false }
    }
}

/// Everything that a stream has; fails with the first that fails.
async fn all<T>(
    mut stream: impl futures::Stream<Item = Result<Option<T>, StorageError>> + Unpin,
) -> Result<Vec<T>, StorageError> {
    let mut found = Vec::new();
    while let Some(item) = stream.next().await {
        found.extend(item?);
    }
    Ok(found)
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
        Ok(self.record(name).await?.head)
    }

    async fn look(&self, name: &StateName) -> Result<(Head, Option<Duration>), StorageError> {
        let seen = self.see(name).await?;
        Ok((seen.record.head, seen.age.map(|age| age.saturating_sub(COARSENESS))))
    }

    async fn execute(
        &self,
        name: &StateName,
        command: Command,
    ) -> Result<Result<Outcome, Refusal>, StorageError> {
        self.probe().await?;
        // What the record will name is there before it does. A first look spares the work where the answer is no anyway.
        let content = match &command {
            Command::Write(write) => {
                let inline = matches!(write.content, Content::Inline(_));
                let first = self.record(name).await?;
                match decide(&first.head, &command) {
                    Ok(Decision { effect: Some(_), .. }) => {
                        Some(self.put_content(name, write.serial, write.content.clone()).await?)
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
            Command::AppendJournal { lines, .. } => Some(self.put_lines(name, lines.clone()).await?),
            _ => None,
        };
        let count = self.retention.count.max(1);
        let (outcome, parts) = self
            .change(name, |record| {
                if let Some(done) = record.is_done(content.as_deref(), journal.as_deref()) {
                    return Step::Nothing((Ok(done), record.journal.len()));
                }
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
        let record = self.record(name).await?;
        let Some(kept) = record.find(which).cloned() else { return Ok(None) };
        let (objects, size) = (self.objects.clone(), kept.version.size);
        let stream = futures::stream::unfold(
            (objects, kept.content, 0),
            move |(objects, content, offset)| async move {
                if offset >= size {
                    return None;
                }
                let whole = part_size(&content, size);
                let expected = (size - offset).min(whole);
                let part = part(&objects, &content_part(&content, offset / whole), expected).await;
                let next = if part.is_ok() { offset + expected } else { size };
                Some((part, (objects, content, next)))
            },
        );
        Ok(Some((kept.version, stream.boxed())))
    }

    async fn versions(&self, name: &StateName) -> Result<Vec<Version>, StorageError> {
        let record = self.record(name).await?;
        Ok(record.versions.into_iter().rev().map(|kept| kept.version).collect())
    }

    async fn journal(&self, name: &StateName) -> Result<Bytes, StorageError> {
        let record = self.record(name).await?;
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
        let content = self.put_content(name, version.serial, content).await?;
        self.change(name, |record| {
            record.put(version.clone(), content.clone(), current);
            Step::Changed((), Litter::default())
        })
        .await
    }

    async fn import_head(&self, name: &StateName, head: Head, journal: Bytes) -> Result<(), StorageError> {
        let mut parts = Vec::new();
        if !journal.is_empty() {
            parts.push(self.put_lines(name, journal).await?);
        }
        self.change(name, |record| {
            record.head = head.clone();
            record.journal = parts.clone();
            Step::Changed((), Litter::default())
        })
        .await
    }
}
