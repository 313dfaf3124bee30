//! A state on its way in: measured, hashed and scanned as it comes, and handed to the storage in pieces once it is large.

use bytes::{Bytes, BytesMut};
use md5::{Digest, Md5};

use crate::scan::{NotAState, Outline, Scanner};
use strata_storage::{CHUNK, Content, Staging, StateName, Storage, StorageError};

pub(crate) struct Receiving<'s> {
    storage: &'s dyn Storage,
    name: &'s StateName,
    limit: u64,
    buffer: BytesMut,
    staging: Option<Box<dyn Staging>>,
    size: u64,
    md5: Md5,
    scanner: Scanner,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiveError {
    #[error("the state is larger than {0} bytes")]
    TooLarge(u64),
    #[error(transparent)]
    NotAState(#[from] NotAState),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A state that came in whole.
pub(crate) struct Received {
    pub(crate) content: Content,
    pub(crate) outline: Outline,
    pub(crate) size: u64,
    pub(crate) md5: [u8; 16],
    /// Kept until the command is done, so that the content is.
    pub(crate) staging: Option<Box<dyn Staging>>,
}

impl<'s> Receiving<'s> {
    pub(crate) fn new(storage: &'s dyn Storage, name: &'s StateName, limit: u64) -> Self {
        Self {
            storage,
            name,
            limit,
            buffer: BytesMut::new(),
            staging: None,
            size: 0,
            md5: Md5::new(),
            scanner: Scanner::default(),
        }
    }

    pub(crate) async fn push(&mut self, bytes: &[u8]) -> Result<(), ReceiveError> {
        self.size += bytes.len() as u64;
        if self.size > self.limit {
            return Err(ReceiveError::TooLarge(self.limit));
        }
        self.md5.update(bytes);
        self.scanner.push(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.buffer.len() == CHUNK {
                let piece = self.buffer.split().freeze();
                self.stage(piece).await?;
            }
            let (now, later) = rest.split_at(rest.len().min(CHUNK - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            rest = later;
        }
        Ok(())
    }

    async fn stage(&mut self, piece: Bytes) -> Result<(), StorageError> {
        let staging = match &mut self.staging {
            Some(staging) => staging,
            none => none.insert(self.storage.stage(self.name).await?),
        };
        staging.push(piece).await
    }

    pub(crate) async fn finish(mut self) -> Result<Received, ReceiveError> {
        let outline = std::mem::take(&mut self.scanner).finish()?;
        let last = self.buffer.split().freeze();
        let content = if self.staging.is_some() {
            self.stage(last).await?;
            let staging = self.staging.as_mut().expect("it was there a moment ago");
            Content::Staged(staging.finish().await?)
        } else {
            Content::Inline(last)
        };
        let md5 = self.md5.finalize().into();
        Ok(Received { content, outline, size: self.size, md5, staging: self.staging })
    }
}
