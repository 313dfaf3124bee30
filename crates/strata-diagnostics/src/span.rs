//! Where something stands: a file and a range of bytes in it.

/// A file of a [`SourceMap`](crate::SourceMap).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(crate) u32);

/// A range of bytes in one file.
///
/// Twelve bytes and `Copy`, because every node of every tree carries one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file that it is in.
    pub file: FileId,
    /// Its first byte.
    pub start: u32,
    /// The first byte behind it.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` up to `end`.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        let end = u32::try_from(end).unwrap_or(u32::MAX);
        Self { file, start, end: end.max(start) }
    }

    /// The empty span at the very beginning of a file, for what a file lacks as a whole.
    pub fn start_of(file: FileId) -> Self {
        Self { file, start: 0, end: 0 }
    }

    /// The smallest span that covers both; `self` where they are in different files.
    #[must_use]
    pub fn to(self, other: Span) -> Self {
        if self.file != other.file {
            return self;
        }
        Self { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether no text is in it.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Its bytes.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}
