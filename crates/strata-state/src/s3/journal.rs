//! The journal in pieces: the last one is written again with each append, on condition that nobody else did, until it is large.

use bytes::{Bytes, BytesMut};

use strata_storage::s3::Objects;

use crate::StoreError;

/// A piece that is larger than this is not added to.
const LARGE: usize = 256 << 10;

pub(super) struct Journal {
    key: String,
    pieces: Vec<Piece>,
}

struct Piece {
    bytes: Bytes,
    tag: String,
}

fn piece_at(key: &str, index: usize) -> String {
    format!("{key}/journal/{:08}", index + 1)
}

/// Pieces are numbered without a gap and never deleted; cleared ones are empty.
pub(super) async fn read(objects: &Objects, key: &str) -> Result<Journal, StoreError> {
    let mut pieces = Vec::new();
    while let Some(found) = objects.get(&piece_at(key, pieces.len())).await? {
        pieces.push(Piece { bytes: found.bytes, tag: found.tag });
    }
    Ok(Journal { key: key.to_owned(), pieces })
}

impl Journal {
    pub(super) fn text(&self) -> Vec<u8> {
        self.pieces.iter().flat_map(|piece| piece.bytes.iter().copied()).collect()
    }

    /// False if somebody else wrote to it.
    pub(super) async fn append(&mut self, objects: &Objects, lines: &[u8]) -> Result<bool, StoreError> {
        let last = self.pieces.iter().rposition(|piece| !piece.bytes.is_empty());
        let index = match last {
            Some(last) if self.pieces[last].bytes.len() >= LARGE => last + 1,
            Some(last) => last,
            None => 0,
        };
        let mut bytes = BytesMut::from(self.pieces.get(index).map_or(&[][..], |piece| &piece.bytes));
        bytes.extend_from_slice(lines);
        self.write(objects, index, bytes.freeze()).await
    }

    /// Empties it. False if somebody else wrote to it.
    pub(super) async fn clear(&mut self, objects: &Objects) -> Result<bool, StoreError> {
        for index in 0..self.pieces.len() {
            if !self.pieces[index].bytes.is_empty() && !self.write(objects, index, Bytes::new()).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn write(&mut self, objects: &Objects, index: usize, bytes: Bytes) -> Result<bool, StoreError> {
        let path = piece_at(&self.key, index);
        let written = match self.pieces.get(index) {
            Some(piece) => objects.replace(&path, bytes.clone(), &piece.tag).await?,
            None => objects.create(&path, bytes.clone()).await?,
        };
        let Some(tag) = written else { return Ok(false) };
        let piece = Piece { bytes, tag };
        match self.pieces.get_mut(index) {
            Some(former) => *former = piece,
            None => self.pieces.push(piece),
        }
        Ok(true)
    }
}
