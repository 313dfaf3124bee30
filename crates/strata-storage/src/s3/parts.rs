//! Contents as the objects that they are made of: one after the other, in and out.

use std::time::Instant;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use super::failed;
use super::layout::{PART, content_part};
use super::objects::Objects;
use crate::{Failure, Staging, StorageError};

/// A part that is shorter than it should be was not written whole.
pub(super) async fn part(objects: &Objects, path: &str, expected: u64) -> Result<Bytes, StorageError> {
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

/// A content on its way in, part by part.
pub(super) struct Staged {
    pub(super) objects: Objects,
    pub(super) content: String,
    pub(super) part: u64,
    pub(super) buffer: BytesMut,
    /// Later its parts could be taken for leftovers.
    pub(super) until: Instant,
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
