//! The texts that spans point into, and the way from a byte to a line and a column.

use std::sync::Arc;

use crate::{FileId, Span};

/// One text, under the path that people know it by.
#[derive(Debug, Clone)]
pub struct SourceFile {
    path: String,
    text: Arc<str>,
    /// Byte offset of the first character of each line.
    lines: Vec<u32>,
}

/// A span in the numbers that editors use: lines and columns from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The path of the file, as it was added.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// The line of the first character behind it.
    pub end_line: usize,
    /// The column of the first character behind it.
    pub end_column: usize,
}

/// All texts of one run.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// A map without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a text over under the path to show for it, usually relative to the repository.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<Arc<str>>) -> FileId {
        let text: Arc<str> = text.into();
        let mut lines = vec![0];
        lines
            .extend(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1));
        self.files.push(SourceFile { path: path.into(), text, lines });
        FileId(self.files.len() as u32 - 1)
    }

    /// The file of an id that this map gave out.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// The path of a file.
    pub fn path(&self, id: FileId) -> &str {
        &self.file(id).path
    }

    /// All files, in the order in which they were added.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().map(|(index, file)| (FileId(index as u32), file))
    }

    /// The text under a span; empty where the span does not fit its file.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.range()).unwrap_or_default()
    }

    /// Where a span is, for people.
    pub fn location(&self, span: Span) -> Location {
        let file = self.file(span.file);
        let (line, column) = file.line_column(span.start as usize);
        let (end_line, end_column) = file.line_column(span.end as usize);
        Location { file: file.path.clone(), line, column, end_line, end_column }
    }
}

impl SourceFile {
    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn shared_text(&self) -> Arc<str> {
        self.text.clone()
    }

    /// Line and column, both from 1; a byte past the end counts as the end.
    pub fn line_column(&self, byte: usize) -> (usize, usize) {
        let byte = self.floor_char(byte.min(self.text.len()));
        let line = self.lines.partition_point(|start| *start as usize <= byte).max(1);
        let start = self.lines[line - 1] as usize;
        (line, self.text[start..byte].chars().count() + 1)
    }

    /// The bytes of a line (from 1) without its line break.
    pub(crate) fn line_range(&self, line: usize) -> std::ops::Range<usize> {
        let start = self.lines.get(line - 1).map_or(self.text.len(), |start| *start as usize);
        let end = self.lines.get(line).map_or(self.text.len(), |next| *next as usize);
        let text = self.text[start..end].trim_end_matches(['\n', '\r']);
        start..start + text.len()
    }

    pub(crate) fn floor_char(&self, mut byte: usize) -> usize {
        while !self.text.is_char_boundary(byte) {
            byte -= 1;
        }
        byte
    }
}

impl SourceMap {
    /// The whole text of a file, shared.
    pub fn text_of(&self, id: FileId) -> Arc<str> {
        self.file(id).shared_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let mut map = SourceMap::new();
        let file = map.add("a.yaml", "é: 1\r\nname: x\n");
        let at = |start, end| {
            let place = map.location(Span::new(file, start, end));
            (place.line, place.column, place.end_line, place.end_column)
        };
        assert_eq!(at(0, 2), (1, 1, 1, 2));
        assert_eq!(at(7, 11), (2, 1, 2, 5));
        assert_eq!(at(15, 15), (3, 1, 3, 1));
        assert_eq!(at(900, 901), (3, 1, 3, 1));
        assert_eq!(map.file(file).line_range(1), 0..5);
    }
}
