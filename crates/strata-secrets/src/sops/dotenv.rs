//! Files of `NAME=value` lines as a format of SOPS.

use std::ops::Range;

use super::SopsError;
use super::flat;
use super::format::{File, Replacement, Replacements, Writing};
use super::metadata::Meta;
use super::tree::{Comment, Document, Item, Leaf, Node};
use crate::value::Value;

/// What the names of the metadata start with.
const PREFIX: &str = "sops_";

pub(crate) struct DotenvFile {
    text: String,
    documents: Vec<Document>,
    /// Where each value stands, or the text of each comment.
    slots: Vec<Range<usize>>,
    metadata: Vec<(String, String)>,
    /// The lines of the metadata, each with its line break.
    metadata_lines: Vec<Range<usize>>,
}

impl DotenvFile {
    pub(crate) fn parse(text: &str) -> Result<Self, SopsError> {
        let mut file = DotenvFile {
            text: text.to_owned(),
            documents: Vec::new(),
            slots: Vec::new(),
            metadata: Vec::new(),
            metadata_lines: Vec::new(),
        };
        let mut items = Vec::new();
        let mut start = 0;
        for (number, whole) in text.split_inclusive('\n').enumerate() {
            let line = whole.strip_suffix('\n').unwrap_or(whole);
            let end = start + whole.len();
            if let Some(comment) = line.strip_prefix('#') {
                let slot = file.slot(start + 1..start + line.len());
                items.push(Item::Comment(Comment { text: comment.to_owned(), slot, neighbours: Vec::new() }));
            } else if !line.is_empty() {
                let Some((key, value)) = line.split_once('=') else {
                    return Err(SopsError::Syntax {
                        line: number + 1,
                        reason: "expected `NAME=value`".to_owned(),
                    });
                };
                let value = value.replace("\\n", "\n");
                if let Some(name) = key.strip_prefix(PREFIX) {
                    file.metadata.push((name.to_owned(), value));
                    file.metadata_lines.push(start..end);
                } else {
                    let slot = file.slot(start + key.len() + 1..start + line.len());
                    let node = Node::Leaf(Leaf { value: Value::text(value), slot });
                    items.push(Item::Entry { key: key.to_owned(), node });
                }
            }
            start = end;
        }
        file.documents.push(Document { items });
        Ok(file)
    }

    fn slot(&mut self, span: Range<usize>) -> usize {
        self.slots.push(span);
        self.slots.len() - 1
    }
}

impl File for DotenvFile {
    fn documents(&self) -> &[Document] {
        &self.documents
    }

    fn metadata(&self) -> Result<Option<Meta>, SopsError> {
        if self.metadata.is_empty() { Ok(None) } else { flat::unflatten(&self.metadata).map(Some) }
    }

    fn render(
        &self,
        replacements: &Replacements,
        metadata: Option<&Meta>,
        _: Writing,
    ) -> Result<Vec<u8>, SopsError> {
        let mut edits: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
        for (slot, replacement) in replacements {
            let text = match replacement {
                Replacement::Token(text) | Replacement::Comment(text) => text.clone().into_bytes(),
                Replacement::Value(value) => escape_lines(&value.to_plain_text()),
            };
            edits.push((self.slots[*slot].clone(), text));
        }
        edits.extend(self.metadata_lines.iter().map(|line| (line.clone(), Vec::new())));
        edits.sort_by_key(|(range, _)| range.start);
        let mut result = Vec::with_capacity(self.text.len());
        let mut done = 0;
        for (range, text) in edits {
            result.extend_from_slice(&self.text.as_bytes()[done..range.start]);
            result.extend_from_slice(&text);
            done = range.end;
        }
        result.extend_from_slice(&self.text.as_bytes()[done..]);
        if let Some(meta) = metadata {
            if result.last().is_some_and(|byte| *byte != b'\n') {
                result.push(b'\n');
            }
            for (name, value) in flat::flatten(meta) {
                result
                    .extend_from_slice(format!("{PREFIX}{name}={}\n", value.replace('\n', "\\n")).as_bytes());
            }
        }
        Ok(result)
    }
}

fn escape_lines(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'\n' => escaped.extend_from_slice(b"\\n"),
            other => escaped.push(*other),
        }
    }
    escaped
}
