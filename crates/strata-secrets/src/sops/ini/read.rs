//! INI text as sections with places, as the INI library of `sops` reads it.

use std::collections::HashSet;
use std::ops::Range;

use crate::sops::SopsError;
use crate::yaml::line_of;

pub(super) struct Read {
    pub(super) sections: Vec<Section>,
    /// A comment that nothing follows.
    pub(super) last_note: Option<Note>,
}

pub(super) struct Section {
    pub(super) name: String,
    pub(super) note: Option<Note>,
    pub(super) entries: Vec<Entry>,
    pub(super) span: Range<usize>,
}

pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) span: Range<usize>,
    pub(super) note: Option<Note>,
}

/// All comments above a key or section and behind it: to SOPS they are one.
pub(super) struct Note {
    /// Without the mark of its first line.
    pub(super) text: String,
    pub(super) mark: char,
    /// Where the comment is written again: its first line without the line break, or the place for a new line.
    pub(super) span: Range<usize>,
    pub(super) is_new_line: bool,
    /// Its other lines, each with its line break, and what stands behind the value.
    pub(super) rest: Vec<Range<usize>>,
}

pub(super) struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// Comments since the last key or section.
    pending: Vec<Range<usize>>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, pending: Vec::new() }
    }

    pub(super) fn read(mut self) -> Result<Read, SopsError> {
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        let mut sections =
            vec![Section { name: "DEFAULT".to_owned(), note: None, entries: Vec::new(), span: 0..0 }];
        let mut keys = HashSet::new();
        while self.at < self.text.len() {
            let start = self.at;
            let line = self.line();
            let trimmed = line.trim_start();
            let first = start + line.len() - trimmed.len();
            match trimmed.chars().next() {
                None => {}
                Some('#' | ';') => self.pending.push(first..start + line.trim_end().len()),
                Some('[') => {
                    let closed = trimmed.rfind(']').ok_or_else(|| self.error(start, "an open section"))?;
                    let name = &trimmed[1..closed];
                    if name.is_empty() {
                        return Err(self.error(start, "a section without a name"));
                    }
                    let begin = self.pending.first().map_or(start, |note| line_start(self.text, note.start));
                    let behind = &trimmed[closed + 1..];
                    let inline = behind.find(['#', ';']).map(|at| {
                        let from = first + closed + 1 + at;
                        from..from + behind[at..].trim_end().len()
                    });
                    let note = self.note(start, inline);
                    if let Some(last) = sections.last_mut() {
                        last.span.end = begin;
                    }
                    keys.clear();
                    // The heading of the metadata takes its lines, but not a comment above it.
                    sections.push(Section {
                        name: name.to_owned(),
                        note,
                        entries: Vec::new(),
                        span: start..self.text.len(),
                    });
                }
                Some(_) => {
                    let entry = self.entry(start, first, trimmed)?;
                    if !keys.insert(entry.key.clone()) {
                        return Err(SopsError::DuplicateKey {
                            line: line_of(self.text, start),
                            key: entry.key,
                        });
                    }
                    let last = sections.last_mut().expect("there is always the default section");
                    last.entries.push(entry);
                }
            }
        }
        let last_note = self.note(self.text.len(), None);
        if let (Some(note), Some(last)) = (&last_note, sections.last_mut()) {
            last.span.end = line_start(self.text, note.span.start);
        }
        Ok(Read { sections, last_note })
    }

    /// The next line, without its line break.
    fn line(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let length = rest.find('\n').unwrap_or(rest.len());
        self.at += rest.len().min(length + 1);
        &rest[..length]
    }

    fn entry(&mut self, start: usize, first: usize, line: &str) -> Result<Entry, SopsError> {
        let (key, value_at) = self.key(first, line)?;
        if key == "-" || key.is_empty() {
            return Err(self.error(start, "a key needs a name"));
        }
        let rest = &line[value_at..];
        let value = rest.trim_start();
        let value_start = first + line.len() - value.len();
        let quote = if value.len() > 3 && value.starts_with("\"\"\"") {
            Some("\"\"\"")
        } else {
            value.starts_with('`').then_some("`")
        };
        let (value, span, inline) = match quote {
            Some(quote) => self.quoted(value_start, value, quote)?,
            None if value.trim_end().ends_with('\\') => self.continued(value_start, value),
            None => plain(value_start, value),
        };
        let note = self.note(start, inline);
        Ok(Entry { key, value, span, note })
    }

    fn key(&self, first: usize, line: &str) -> Result<(String, usize), SopsError> {
        let missing = || self.error(first, "expected `key = value`");
        let quote = if line.len() > 6 && line.starts_with("\"\"\"") {
            "\"\"\""
        } else if line.starts_with('"') {
            "\""
        } else if line.starts_with('`') {
            "`"
        } else {
            let end = line.find(['=', ':']).ok_or_else(missing)?;
            return Ok((line[..end].trim().to_owned(), end + 1));
        };
        let inner = &line[quote.len()..];
        let closed = inner.find(quote).ok_or_else(missing)?;
        let after = quote.len() + closed + quote.len();
        let end = line[after..].find(['=', ':']).ok_or_else(missing)?;
        Ok((inner[..closed].trim().to_owned(), after + end + 1))
    }

    /// A value in quotes, over as many lines as it takes.
    fn quoted(&mut self, start: usize, value: &str, quote: &str) -> Result<Quoted, SopsError> {
        let inner = start + quote.len();
        if let Some(closed) = value[quote.len()..].rfind(quote) {
            let end = inner + closed;
            return Ok((self.text[inner..end].to_owned(), start..end + quote.len(), None));
        }
        while self.at < self.text.len() {
            let line_at = self.at;
            let line = self.line();
            if let Some(closed) = line.rfind(quote) {
                let end = line_at + closed;
                let after = &line[closed + quote.len()..];
                let inline = after.find(['#', ';']).map(|at| {
                    let from = end + quote.len() + at;
                    from..from + after[at..].trim_end().len()
                });
                return Ok((self.text[inner..end].to_owned(), start..end + quote.len(), inline));
            }
        }
        Err(self.error(start, "an open quote"))
    }

    /// A value whose lines end with a backslash.
    fn continued(&mut self, start: usize, value: &str) -> Quoted {
        let mut joined = value.trim_end().trim_end_matches('\\').to_owned();
        // Only one backslash goes; others were part of the value.
        let cut = value.trim_end().len() - joined.len();
        joined.extend(std::iter::repeat_n('\\', cut.saturating_sub(1)));
        let mut end = start + value.trim_end().len();
        while self.at < self.text.len() {
            let line_at = self.at;
            let line = self.line();
            let next = line.trim();
            if next.is_empty() {
                break;
            }
            end = line_at + line.trim_end().len();
            match next.strip_suffix('\\') {
                Some(more) => joined.push_str(more),
                None => {
                    joined.push_str(next);
                    break;
                }
            }
        }
        (joined, start..end, None)
    }

    /// Takes the pending comments for the line that starts here.
    fn note(&mut self, line: usize, inline: Option<Range<usize>>) -> Option<Note> {
        let own = std::mem::take(&mut self.pending);
        let parts: Vec<&str> = own.iter().chain(&inline).map(|range| &self.text[range.clone()]).collect();
        let whole = parts.join("\n");
        let mark = whole.chars().next()?;
        let text = whole.trim_start_matches([mark, ' ']).to_owned();
        let whole_line = |range: &Range<usize>| {
            let end =
                self.text[range.end..].find('\n').map_or(self.text.len(), |newline| range.end + newline + 1);
            line_start(self.text, range.start)..end
        };
        let mut rest: Vec<Range<usize>> = own.iter().skip(1).map(whole_line).collect();
        rest.extend(inline);
        let is_new_line = own.is_empty();
        let span = own.into_iter().next().unwrap_or(line..line);
        Some(Note { text, mark, span, is_new_line, rest })
    }

    fn error(&self, at: usize, reason: &str) -> SopsError {
        SopsError::Syntax { line: line_of(self.text, at), reason: reason.to_owned() }
    }
}

/// The value, where it stands with its quotes, and a comment behind it.
type Quoted = (String, Range<usize>, Option<Range<usize>>);

/// A value on one line: up to a comment, and without quotes around it.
fn plain(start: usize, value: &str) -> Quoted {
    let comment = value.find(['#', ';']);
    let inline = comment.map(|at| start + at..start + value.trim_end().len());
    let bare = value[..comment.unwrap_or(value.len())].trim_end();
    let span = start..start + bare.len();
    let surrounded = ['"', '\''].iter().any(|quote| {
        bare.len() >= 2 && bare.starts_with(*quote) && bare[1..].find(*quote) == Some(bare.len() - 2)
    });
    let inner = if surrounded { &bare[1..bare.len() - 1] } else { bare };
    (inner.to_owned(), span, inline)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let read = Reader::new(text).read().unwrap_or_else(|error| panic!("{error}"));
        let mut lines = Vec::new();
        for section in read.sections {
            let note = |note: Option<Note>| note.map(|note| format!(" ({})", note.text)).unwrap_or_default();
            lines.push(format!("[{}]{}", section.name, note(section.note)));
            for entry in section.entries {
                lines.push(format!("{}={}{}", entry.key, entry.value, note(entry.note)));
            }
        }
        lines.extend(read.last_note.map(|note| note.text));
        lines
    }

    #[test]
    fn sections_keys_and_comments_are_read_as_the_library_does() {
        let text = "top: 1\n; a section\n# of two lines\n[s] ; behind\nkey = value ; inline\n\"odd=key\" = 'quoted'\n\
                    multi = \"\"\"one\ntwo\"\"\"\nlong = a \\\n  b\nempty =\n# end\n";
        assert_eq!(
            read(text),
            [
                "[DEFAULT]",
                "top=1",
                "[s] (a section\n# of two lines\n; behind)",
                "key=value (inline)",
                "odd=key=quoted",
                "multi=one\ntwo",
                "long=a b",
                "empty=",
                "end",
            ]
        );
    }

    #[test]
    fn broken_lines_are_refused() {
        for text in ["[open\n", "[]\n", "no value\n", "= x\n", "a = 1\na = 2\n", "a = `open\n", "- = x\n"] {
            assert!(Reader::new(text).read().is_err(), "{text}");
        }
    }
}
