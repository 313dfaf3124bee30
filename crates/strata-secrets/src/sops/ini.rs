//! INI as a format of SOPS: sections of `key = value` lines.

use std::ops::Range;

use self::read::{Note, Reader};
use super::SopsError;
use super::flat;
use super::format::{File, Replacement, Replacements, Writing};
use super::metadata::Meta;
use super::tree::{Comment, Document, Item, Leaf, Node, Slot};
use crate::value::Value;

mod read;

/// The section of the metadata.
const SOPS: &str = "sops";

/// Where a value or comment stands.
enum IniItem {
    Value(Range<usize>),
    Comment(Note),
}

pub(crate) struct IniFile {
    text: String,
    documents: Vec<Document>,
    slots: Vec<IniItem>,
    metadata: Option<Vec<(String, String)>>,
    /// The section of the metadata, with its heading.
    metadata_span: Range<usize>,
}

impl IniFile {
    pub(crate) fn parse(text: &str) -> Result<Self, SopsError> {
        let mut file = IniFile {
            text: text.to_owned(),
            documents: Vec::new(),
            slots: Vec::new(),
            metadata: None,
            metadata_span: text.len()..text.len(),
        };
        let read = Reader::new(text).read()?;
        let mut items = Vec::new();
        for section in read.sections {
            if section.name == SOPS {
                if file.metadata.is_some() {
                    return Err(SopsError::Metadata {
                        field: SOPS.to_owned(),
                        reason: "there twice".to_owned(),
                    });
                }
                let unescape = |value: &str| value.replace("\\n", "\n");
                let entries = section.entries.iter().map(|entry| (entry.key.clone(), unescape(&entry.value)));
                file.metadata = Some(entries.collect());
                file.metadata_span = section.span;
                // A comment at the end of the file stands above the metadata once that is added.
                items.extend(section.note.map(|note| file.comment(note)));
                continue;
            }
            let mut inner: Vec<Item> = section.note.map(|note| file.comment(note)).into_iter().collect();
            for entry in section.entries {
                let slot = file.slot(IniItem::Value(entry.span));
                let node = Node::Leaf(Leaf { value: Value::text(entry.value), slot });
                inner.push(Item::Entry { key: entry.key, node });
                // SOPS has the comment of a key behind it.
                inner.extend(entry.note.map(|note| file.comment(note)));
            }
            items.push(Item::Entry { key: section.name, node: Node::Mapping(inner) });
        }
        items.extend(read.last_note.map(|note| file.comment(note)));
        file.documents.push(Document { items });
        Ok(file)
    }

    fn comment(&mut self, note: Note) -> Item {
        let text = note.text.clone();
        let slot = self.slot(IniItem::Comment(note));
        Item::Comment(Comment { text, slot, neighbours: Vec::new() })
    }

    fn slot(&mut self, place: IniItem) -> Slot {
        self.slots.push(place);
        self.slots.len() - 1
    }
}

impl File for IniFile {
    fn documents(&self) -> &[Document] {
        &self.documents
    }

    fn metadata(&self) -> Result<Option<Meta>, SopsError> {
        self.metadata.as_ref().map(|flat| flat::unflatten(flat)).transpose()
    }

    fn render(
        &self,
        replacements: &Replacements,
        metadata: Option<&Meta>,
        _: Writing,
    ) -> Result<Vec<u8>, SopsError> {
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        for (slot, replacement) in replacements {
            match (&self.slots[*slot], replacement) {
                (IniItem::Value(span), Replacement::Token(token)) => {
                    edits.push((span.clone(), token.clone()))
                }
                (IniItem::Value(span), Replacement::Value(value)) => {
                    let text =
                        String::from_utf8(value.to_plain_text().to_vec()).map_err(|_| SopsError::NotText)?;
                    edits.push((span.clone(), write_value(&text)));
                }
                (IniItem::Comment(note), Replacement::Comment(text)) => {
                    let line = write_comment(text, note.mark);
                    let end = if note.is_new_line { "\n" } else { "" };
                    edits.push((note.span.clone(), format!("{line}{end}")));
                    edits.extend(note.rest.iter().map(|range| (range.clone(), String::new())));
                }
                _ => {}
            }
        }
        edits.push((self.metadata_span.clone(), String::new()));
        edits.sort_by_key(|(range, _)| range.start);
        let mut result = String::with_capacity(self.text.len());
        let mut done = 0;
        for (range, text) in edits {
            result.push_str(&self.text[done..range.start.max(done)]);
            result.push_str(&text);
            done = range.end.max(done);
        }
        result.push_str(&self.text[done..]);
        match metadata {
            Some(meta) => add_metadata(&mut result, meta),
            // The empty line above the metadata came with it.
            None if self.metadata.is_some() && result.ends_with("\n\n") => drop(result.pop()),
            None => {}
        }
        Ok(result.into_bytes())
    }
}

fn add_metadata(text: &mut String, meta: &Meta) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
    let flat = flat::flatten(meta);
    let width = flat.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    text.push_str(&format!("[{SOPS}]\n"));
    for (name, value) in flat {
        text.push_str(&format!("{name:width$} = {}\n", write_value(&value.replace('\n', "\\n"))));
    }
}

/// Quotes a value where it would be read as something else.
fn write_value(value: &str) -> String {
    let quotes = ['"', '\'']
        .iter()
        .any(|quote| value.len() > 1 && value.starts_with(*quote) && value.ends_with(*quote));
    if value.contains(['\n', '`']) {
        format!("\"\"\"{value}\"\"\"")
    } else if value.contains(['#', ';']) || quotes || value.starts_with("\"\"\"") || value.ends_with('\\') {
        format!("`{value}`")
    } else if value.trim().len() != value.len() {
        format!("\"{value}\"")
    } else {
        value.to_owned()
    }
}

/// The first line has lost its byte order mark; the others still have theirs.
fn write_comment(text: &str, mark: char) -> String {
    let line = |(index, line): (usize, &str)| {
        if index > 0 && line.starts_with(['#', ';']) { line.to_owned() } else { format!("{mark} {line}") }
    };
    text.split('\n').enumerate().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_meta(text: &str, meta: Option<&Meta>) -> String {
        let file = IniFile::parse(text).unwrap_or_else(|error| panic!("{error}"));
        String::from_utf8(file.render(&Replacements::new(), meta, Writing::Usual).expect("rendered"))
            .expect("UTF-8")
    }

    #[test]
    fn metadata_comes_and_goes() {
        let meta = Meta::Mapping(vec![
            ("mac".to_owned(), Meta::text("x\ny")),
            ("version".to_owned(), Meta::text("3.13")),
        ]);
        for plain in ["a = 1\n", "; note\n[s]\nb=2\n", "[s]\nx = `a;b`\n\n[t]\n"] {
            let encrypted = with_meta(plain, Some(&meta));
            assert!(encrypted.ends_with("\n[sops]\nmac     = x\\ny\nversion = 3.13\n"), "{encrypted}");
            assert_eq!(
                IniFile::parse(&encrypted).expect("INI").metadata().expect("whole"),
                Some(meta.clone())
            );
            assert_eq!(with_meta(&encrypted, None), plain);
            assert_eq!(with_meta(&encrypted, Some(&meta)), encrypted);
        }
    }

    #[test]
    fn every_value_is_read_as_it_was_written() {
        for value in [
            "plain",
            "a;b",
            " spaces ",
            "\"quoted\"",
            "'q'",
            "two\nlines",
            "tick`s",
            "ends\\",
            "",
            "\"\"\"x",
            "a=b:c",
        ] {
            let text = format!("[s]\nk = {}\nlast = 1\n", write_value(value));
            let file = IniFile::parse(&text).unwrap_or_else(|error| panic!("{value:?}: {error}"));
            let named = crate::sops::lookup::values(file.documents(), &Replacements::new());
            assert_eq!(named[0].value.as_str(), Some(value), "{text}");
            assert_eq!(named[1].value.as_str(), Some("1"), "{text}");
        }
    }
}
