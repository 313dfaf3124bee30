//! JSON as a format of SOPS: values are exchanged in place, everything else stays as it was written.

use std::ops::Range;

use self::read::{Read, Reader};
use super::SopsError;
use super::format::{File, Replacement, Replacements, Writing};
use super::metadata::Meta;
use super::tree::{Document, Item, Leaf, Node};
use crate::value::Value;

mod read;
mod write;

pub(super) use write::quoted;

/// The key of the metadata.
const SOPS: &str = "sops";

pub(crate) struct JsonFile {
    text: String,
    documents: Vec<Document>,
    /// Where each value stands.
    slots: Vec<Range<usize>>,
    metadata: Option<(Meta, Range<usize>)>,
    /// The closing brace of the file.
    closed: usize,
    /// What stands before each key of the outermost object, if they are on lines of their own.
    indent: Option<String>,
}

impl JsonFile {
    pub(crate) fn parse(text: &str) -> Result<Self, SopsError> {
        let mut reader = Reader::new(text);
        let (members, closed) = reader.whole_object()?;
        let mut file = JsonFile {
            text: text.to_owned(),
            documents: Vec::new(),
            slots: Vec::new(),
            metadata: None,
            indent: members.first().and_then(|member| indent_before(text, member.at)),
            closed,
        };
        let mut items = Vec::new();
        for member in members {
            if member.key == SOPS {
                file.metadata = Some((meta(&member.value), member.at..member.span.end));
            } else {
                let node = file.node(member.value, member.span);
                items.push(Item::Entry { key: member.key, node });
            }
        }
        file.documents.push(Document { items });
        Ok(file)
    }

    fn node(&mut self, read: Read, span: Range<usize>) -> Node {
        match read {
            Read::Scalar(value) => {
                self.slots.push(span);
                Node::Leaf(Leaf { value, slot: self.slots.len() - 1 })
            }
            Read::Array(elements) => {
                let entry = |(value, span)| Item::Entry { key: String::new(), node: self.node(value, span) };
                Node::List(elements.into_iter().map(entry).collect())
            }
            Read::Object(members) => {
                let entry = |member: read::Member| Item::Entry {
                    node: self.node(member.value, member.span),
                    key: member.key,
                };
                Node::Mapping(members.into_iter().map(entry).collect())
            }
        }
    }

    /// The range to cut so that the metadata and the comma beside it are gone.
    fn metadata_with_comma(&self, span: &Range<usize>) -> Range<usize> {
        let before = self.text[..span.start].trim_end();
        if before.ends_with(',') {
            return before.len() - 1..span.end;
        }
        let after = self.text[span.end..].trim_start();
        let end = if after.starts_with(',') { self.text.len() - after.len() + 1 } else { span.end };
        span.start..end
    }
}

/// The blanks between the line break and a key.
fn indent_before(text: &str, at: usize) -> Option<String> {
    let line = text[..at].rfind('\n')? + 1;
    text[line..at].trim().is_empty().then(|| text[line..at].to_owned())
}

fn meta(read: &Read) -> Meta {
    match read {
        Read::Object(members) => {
            Meta::Mapping(members.iter().map(|member| (member.key.clone(), meta(&member.value))).collect())
        }
        Read::Array(elements) => Meta::List(elements.iter().map(|(value, _)| meta(value)).collect()),
        Read::Scalar(Value::Int(number)) => Meta::Number(*number),
        Read::Scalar(Value::Bool(value)) => Meta::Bool(*value),
        Read::Scalar(Value::Null) => Meta::Null,
        Read::Scalar(other) => Meta::Scalar(String::from_utf8_lossy(&other.to_bytes()).into_owned()),
    }
}

impl File for JsonFile {
    fn documents(&self) -> &[Document] {
        &self.documents
    }

    fn metadata(&self) -> Result<Option<Meta>, SopsError> {
        Ok(self.metadata.as_ref().map(|(meta, _)| meta.clone()))
    }

    fn render(
        &self,
        replacements: &Replacements,
        metadata: Option<&Meta>,
        _: Writing,
    ) -> Result<Vec<u8>, SopsError> {
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        for (slot, replacement) in replacements {
            let text = match replacement {
                Replacement::Token(token) => quoted(token),
                Replacement::Value(value) => write::value(value),
                // Only YAML has comments in lists; a converted file may bring one along, and JSON has no place for it.
                Replacement::Comment(_) => return Err(SopsError::CommentInJson),
            };
            edits.push((self.slots[*slot].clone(), text));
        }
        let mut kept = self.text[..self.closed].trim_end().len();
        if let Some((_, span)) = &self.metadata {
            let cut = self.metadata_with_comma(span);
            if cut.end >= kept {
                kept = cut.start;
            }
            edits.push((cut, String::new()));
        }
        if let Some(meta) = metadata {
            let only = self.documents[0].items.is_empty();
            let comma = if only { "" } else { "," };
            let member = match &self.indent {
                Some(indent) => {
                    format!("{comma}\n{indent}\"sops\": {}", write::meta_lines(meta, indent, indent))
                }
                None if only => format!("\"sops\": {}", write::meta_line(meta)),
                None => format!(", \"sops\": {}", write::meta_line(meta)),
            };
            edits.push((kept..kept, member));
        }
        edits.sort_by_key(|(range, _)| range.start);
        let mut result = String::with_capacity(self.text.len());
        let mut done = 0;
        for (range, text) in edits {
            result.push_str(&self.text[done..range.start.max(done)]);
            result.push_str(&text);
            done = range.end.max(done);
        }
        result.push_str(&self.text[done..]);
        Ok(result.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_meta(text: &str, meta: Option<&Meta>) -> String {
        let file = JsonFile::parse(text).unwrap_or_else(|error| panic!("{error}"));
        String::from_utf8(file.render(&Replacements::new(), meta, Writing::Usual).expect("no comments"))
            .expect("UTF-8")
    }

    #[test]
    fn metadata_comes_and_goes_in_the_style_of_the_file() {
        let meta = Meta::Mapping(vec![("mac".to_owned(), Meta::text("x"))]);
        for plain in ["{}", "{\"a\": 1}", "{\n\t\"a\": 1,\n\t\"b\": [ ]\n}\n", "{\n  \"a\": {\"b\":2}}\n"] {
            let encrypted = with_meta(plain, Some(&meta));
            assert!(
                JsonFile::parse(&encrypted).expect("JSON").metadata().expect("a mapping")
                    == Some(meta.clone())
            );
            assert_eq!(with_meta(&encrypted, Some(&meta)), encrypted);
            assert_eq!(with_meta(&encrypted, None).replace(' ', ""), plain.replace(' ', ""), "{encrypted}");
        }
        assert_eq!(
            with_meta("{\n\t\"a\": 1\n}\n", Some(&meta)),
            "{\n\t\"a\": 1,\n\t\"sops\": {\n\t\t\"mac\": \"x\"\n\t}\n}\n"
        );
        assert_eq!(with_meta("{\"sops\": {\"mac\": \"x\"}, \"a\": 1}", None), "{ \"a\": 1}");
    }
}
