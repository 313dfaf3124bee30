//! Connections that only read, and contents that are being read.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{failed, schema, tables};
use crate::head::Version;
use crate::name::StateName;
use crate::{CHUNK, ContentStream, Failure, StorageError, Which};

/// Reads at the same time.
const READERS: usize = 4;

/// Contents that somebody reads piece by piece; a sweep leaves them.
#[derive(Default)]
pub(super) struct Pins(Mutex<HashMap<i64, usize>>);

impl Pins {
    pub(super) fn holds(&self, content: i64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&content)
    }

    pub(super) fn pin(self: &Arc<Self>, content: i64) -> Pin {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(content).or_default() += 1;
        Pin { pins: Arc::clone(self), content }
    }
}

pub(super) struct Pin {
    pins: Arc<Pins>,
    content: i64,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = self.pins.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = pins.get_mut(&self.content) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.content);
            }
        }
    }
}

pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    free: Semaphore,
    pins: Arc<Pins>,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Result<Self, StorageError> {
        let idle = (0..READERS).map(|_| schema::open_for_reading(path)).collect::<Result<_, _>>()?;
        Ok(Self { idle: Mutex::new(idle), free: Semaphore::new(READERS), pins: Arc::default() })
    }

    pub(super) fn pins(&self) -> Arc<Pins> {
        Arc::clone(&self.pins)
    }

    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StorageError> {
        let readers = Arc::clone(self);
        let permit = self.free.acquire().await.map_err(|_| StorageError::Busy)?;
        let worked = tokio::task::spawn_blocking(move || {
            let idle = readers.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let db = idle.expect("there is a connection for each permit");
            let result = work(&db);
            readers.idle.lock().unwrap_or_else(PoisonError::into_inner).push(db);
            result
        });
        let result = worked.await;
        drop(permit);
        result.map_err(|error| StorageError::Failed(Failure::from_error(error)))?.map_err(failed)
    }

    /// A version and its bytes. The first piece is read in the same transaction as the version; the others follow one by one. What is
    /// larger than one piece is deleted only by a sweep that comes well after it went out of use, and not while it is pinned.
    pub(super) async fn content(
        self: Arc<Self>,
        name: &StateName,
        which: Which,
    ) -> Result<Option<(Version, ContentStream)>, StorageError> {
        let name = name.clone();
        let pins = self.pins();
        let found = self
            .run(move |db| {
                let read = db.unchecked_transaction()?;
                let Some((version, content)) = tables::version(&read, &name, which)? else { return Ok(None) };
                let pin = pins.pin(content);
                let first = tables::piece(&read, content, 0)?;
                read.finish()?;
                Ok(Some((version, content, pin, first)))
            })
            .await?;
        let Some((version, content, pin, first)) = found else { return Ok(None) };
        let missing = || StorageError::damaged("a part of a state is missing");
        let Some(first) = first else {
            if version.size == 0 {
                return Ok(Some((version, futures::stream::empty().boxed())));
            }
            return Err(missing());
        };
        if first.len() as u64 == version.size {
            return Ok(Some((version, futures::stream::once(async { Ok(first) }).boxed())));
        }
        let pieces = version.size.div_ceil(CHUNK as u64).cast_signed();
        let rest = futures::stream::unfold((self, pin, 1), move |(readers, pin, part)| async move {
            if part >= pieces {
                return None;
            }
            let piece = match readers.run(move |db| tables::piece(db, content, part)).await {
                Ok(Some(piece)) => Ok(piece),
                Ok(None) => Err(missing()),
                Err(error) => Err(error),
            };
            let next = if piece.is_ok() { part + 1 } else { pieces };
            Some((piece, (readers, pin, next)))
        });
        Ok(Some((version, futures::stream::once(async { Ok(first) }).chain(rest).boxed())))
    }
}
