//! The states there are, their versions, and going back to one.

use bytes::BytesMut;
use futures::StreamExt as _;
use http::StatusCode;
use serde_json::{Value, json};

use super::answer::{self, Answer, Problem};
use super::call::Call;
use crate::access::Action;
use crate::diff::Inventory;
use crate::receive::{Received, Receiving};
use crate::scan::{Outline, Scanner};
use strata_storage::{ContentStream, Replaces, StateName, Version, Which};

pub(crate) fn rfc3339(unix: i64) -> String {
    jiff::Timestamp::from_second(unix).map(|time| time.to_string()).unwrap_or_default()
}

impl Call<'_> {
    pub(super) async fn list(&mut self) -> Result<Answer, Problem> {
        let prefix = self.query("prefix").unwrap_or_default();
        let heads = self.shared.service.storage.heads().await?;
        let shown = heads
            .iter()
            .filter(|(name, _)| name.is_within(prefix) && self.user.may(Action::Read, name))
            .filter_map(|(name, head)| {
                let current = head.current.as_ref();
                if current.is_none() && head.lock.is_none() {
                    return None;
                }
                Some(json!({
                    "name": name.as_str(),
                    "serial": current.and_then(|current| current.serial),
                    "lineage": current.and_then(|current| current.lineage.clone()),
                    "size": current.map(|current| current.size),
                    "written": current.map(|current| rfc3339(current.written)),
                    "lock": head.lock.as_ref().map(|lock| self.describe(name, lock)),
                }))
            })
            .collect();
        Ok(answer::json(&Value::Array(shown)))
    }

    pub(super) async fn versions(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Read, name)?;
        if let Some(version) = self.number("version")? {
            return self.content(name, Which::Version(version)).await;
        }
        if let Some(serial) = self.number("serial")? {
            return self.content(name, Which::Serial(serial)).await;
        }
        let storage = &self.shared.service.storage;
        let current = storage.head(name).await?.current.map(|current| current.version);
        let versions = storage.versions(name).await?;
        let shown = versions.iter().map(|version| describe(version, current)).collect();
        Ok(answer::json(&Value::Array(shown)))
    }

    pub(super) async fn diff(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Read, name)?;
        let (from, to) = (self.number("from")?, self.number("to")?);
        let from = from.ok_or_else(|| Problem::bad("`from` is the version to compare with"))?;
        let busy = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server stops");
        let _one_at_a_time = self.shared.comparing.acquire().await.map_err(busy)?;
        let (older, from) = self.inventory(name, Which::Version(from)).await?;
        let (newer, to) = self.inventory(name, to.map_or(Which::Current, Which::Version)).await?;
        let diff = older.compare(&newer);
        Ok(answer::json(&json!({
            "from": from, "to": to, "added": diff.added, "removed": diff.removed, "changed": diff.changed,
        })))
    }

    async fn inventory(&self, name: &StateName, which: Which) -> Result<(Inventory, u64), Problem> {
        let (version, mut stream) = self.open(name, which).await?;
        let mut state = BytesMut::with_capacity(usize::try_from(version.size).unwrap_or_default());
        while let Some(piece) = stream.next().await {
            state.extend_from_slice(&piece?);
        }
        let read = tokio::task::spawn_blocking(move || Inventory::read(&state)).await;
        match read {
            Ok(Ok(inventory)) => Ok((inventory, version.version)),
            Ok(Err(error)) => Err(Problem::new(StatusCode::CONFLICT, error.to_string())),
            Err(error) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
        }
    }

    async fn open(&self, name: &StateName, which: Which) -> Result<(Version, ContentStream), Problem> {
        let found = self.shared.service.storage.read(name, which).await?;
        found.ok_or_else(|| {
            Problem::new(StatusCode::NOT_FOUND, format!("there is no such version of `{name}`"))
        })
    }

    /// Writes a version again, with a serial that is newer than that of the current one.
    pub(super) async fn restore(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Write, name)?;
        let number =
            self.number("version")?.ok_or_else(|| Problem::bad("`version` is the one to go back to"))?;
        let (version, stream) = self.open(name, Which::Version(number)).await?;
        let outline = outline(stream).await?;
        if !outline.plain {
            let error = "this version is encrypted: its serial cannot be changed here";
            return Err(Problem::new(StatusCode::CONFLICT, error)
                .hint("download it, and write it with the program that has the key"));
        }
        let current = self.shared.service.storage.head(name).await?.current;
        let replaces = current.as_ref().map(|current| current.serial.unwrap_or(0));
        let newest = replaces.unwrap_or(0).max(version.serial.unwrap_or(0));
        let (_, stream) = self.open(name, Which::Version(number)).await?;
        let received = self.renumbered(name, stream, &outline, newest + 1).await?;
        let lock = self.lock_header();
        let written = self.store(name, received, lock, Replaces::Serial(replaces.unwrap_or(0))).await?;
        Ok(answer::json(&json!({"version": written.version, "serial": written.serial})))
    }

    /// A version that is older than what will be the current one, from a store that a state moves away from.
    pub(super) async fn add_version(&mut self, name: &StateName) -> Result<Answer, Problem> {
        self.require(Action::Write, name)?;
        let lock = self.lock_header().ok_or_else(|| Problem::bad("`Strata-Lock` names the lock"))?;
        let received = self.receive(name).await?;
        let added = self.store(name, received, Some(lock), Replaces::Nothing).await?;
        Ok(answer::json(&json!({"version": added.version, "serial": added.serial})))
    }

    async fn renumbered(
        &self,
        name: &StateName,
        mut stream: ContentStream,
        outline: &Outline,
        serial: u64,
    ) -> Result<Received, Problem> {
        let Some(at) = &outline.serial_at else {
            return Err(Problem::new(StatusCode::CONFLICT, "this version has no serial"));
        };
        let mut receiving = Receiving::new(&*self.shared.service.storage, name, u64::MAX);
        let mut offset = 0;
        while let Some(piece) = stream.next().await {
            let piece = piece?;
            let end = offset + piece.len() as u64;
            let within =
                |place: u64| usize::try_from(place.clamp(offset, end) - offset).unwrap_or(usize::MAX);
            receiving.push(&piece[..within(at.start)]).await?;
            if (offset..end).contains(&at.start) {
                receiving.push(serial.to_string().as_bytes()).await?;
            }
            receiving.push(&piece[within(at.end)..]).await?;
            offset = end;
        }
        Ok(receiving.finish().await?)
    }
}

fn describe(version: &Version, current: Option<u64>) -> Value {
    json!({
        "version": version.version,
        "serial": version.serial,
        "lineage": version.lineage,
        "size": version.size,
        "md5": version.md5,
        "written": rfc3339(version.written),
        "by": version.by,
        "forced": version.forced,
        "current": Some(version.version) == current,
    })
}

async fn outline(mut stream: ContentStream) -> Result<Outline, Problem> {
    let mut scanner = Scanner::default();
    while let Some(piece) = stream.next().await {
        scanner.push(&piece?);
    }
    scanner.finish().map_err(|error| Problem::new(StatusCode::CONFLICT, error.to_string()))
}
