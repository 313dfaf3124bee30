//! A text as tokens with their places: the values that the parser sees, and the signs and comments between them, which it throws away.

use std::collections::VecDeque;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use crate::Left;

/// What the parser says, without what the tree has no use for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    Document {
        explicit: bool,
    },
    EndDocument,
    Alias,
    /// The number of properties before it: an anchor, a tag.
    Scalar {
        text: String,
        style: ScalarStyle,
        properties: usize,
    },
    Sequence {
        properties: usize,
    },
    Mapping {
        properties: usize,
    },
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A scalar or an alias.
    Value,
    /// `&anchor` or `!tag`.
    Property,
    Dash,
    Colon,
    Comma,
    Open,
    Close,
    /// `---`
    Begin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) sign: Sign,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Nothing stands before it in its line.
    pub(crate) alone: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Tokens {
    pub(crate) said: VecDeque<Said>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
}

pub(crate) fn read(text: &str) -> Result<Tokens, Left> {
    let bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let byte = |index: usize| bytes.get(index).copied().unwrap_or(text.len());
    let mut reader = Reader { text, at: 0, found: Tokens::default() };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| Left::Syntax {
            line: error.marker().line().max(1),
            message: error.info().to_owned(),
        })?;
        reader.take(event, byte(span.start.index()), span)?;
    }
    reader.gap(text.len(), None)?;
    Ok(reader.found)
}

struct Reader<'t> {
    text: &'t str,
    /// Everything before it has its tokens.
    at: usize,
    found: Tokens,
}

impl Reader<'_> {
    fn take(&mut self, event: Event<'_>, start: usize, _: Span) -> Result<(), Left> {
        let properties = |anchor: usize, has_tag: bool| usize::from(anchor != 0) + usize::from(has_tag);
        let said = match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd => return Ok(()),
            Event::DocumentStart(explicit) => Said::Document { explicit },
            Event::DocumentEnd => Said::EndDocument,
            Event::Alias(_) => {
                self.gap(start, None)?;
                let rest = &self.text[start..];
                let ends = |letter: char| letter.is_whitespace() || ",]}".contains(letter);
                self.value(start, start + rest.find(ends).unwrap_or(rest.len()));
                Said::Alias
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, start)?;
                let properties = properties(anchor, tag.is_some());
                Said::Scalar { text: text.into_owned(), style, properties }
            }
            Event::SequenceStart(anchor, tag) => {
                Said::Sequence { properties: properties(anchor, tag.is_some()) }
            }
            Event::MappingStart(anchor, tag) => {
                Said::Mapping { properties: properties(anchor, tag.is_some()) }
            }
            Event::SequenceEnd | Event::MappingEnd => Said::End,
        };
        self.found.said.push_back(said);
        Ok(())
    }

    fn value(&mut self, start: usize, end: usize) {
        self.found.tokens.push(Token { sign: Sign::Value, start, end });
        self.at = end;
    }

    fn scalar(&mut self, value: &str, style: ScalarStyle, start: usize) -> Result<(), Left> {
        match style {
            // Nothing is written there.
            ScalarStyle::Plain if value.is_empty() => {}
            ScalarStyle::Plain => {
                let start = self.lead(start)?;
                let end = self.plain_end(start, value);
                self.value(start, end);
            }
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                let start = self.lead(start)?;
                let end = quote_end(&self.text[start..]).unwrap_or(self.text.len() - start);
                self.value(start, start + end);
            }
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let header = self.gap(self.text.len(), Some(['|', '>']))?;
                let line = line_end(self.text, header);
                let remark = self.text[header..line].find(" #").map(|at| header + at + 1);
                let end = block_end(self.text, header, value).ok_or_else(|| self.unusual(header))?;
                self.value(header, end);
                if let Some(start) = remark {
                    self.found.comments.push(Comment { start, end: line, alone: false });
                }
            }
        }
        Ok(())
    }

    fn unusual(&self, at: usize) -> Left {
        Left::Unusual { line: line_of(self.text, at), what: "a block of text with an indentation of its own" }
    }

    /// The value is the text with its line breaks folded: as many letters that are no white space.
    fn plain_end(&self, start: usize, value: &str) -> usize {
        let mut left = value.chars().filter(|letter| !letter.is_whitespace()).count();
        for (at, letter) in self.text[start..].char_indices() {
            if !letter.is_whitespace() {
                left -= 1;
                if left == 0 {
                    return start + at + letter.len_utf8();
                }
            }
        }
        self.text.len()
    }

    /// The signs up to a place, or up to one of two letters.
    fn gap(&mut self, until: usize, letters: Option<[char; 2]>) -> Result<usize, Left> {
        while self.at < until {
            let Some(first) = self.text[self.at..].chars().next() else { break };
            if letters.is_some_and(|letters| letters.contains(&first)) {
                break;
            }
            self.step(first)?;
        }
        Ok(self.at)
    }

    /// The same, and then properties: the parser's place of a value is theirs.
    fn lead(&mut self, start: usize) -> Result<usize, Left> {
        self.gap(start, None)?;
        while let Some(first) = self.text[self.at..].chars().next() {
            if !(first.is_whitespace() || "&!#".contains(first)) {
                break;
            }
            self.step(first)?;
        }
        Ok(self.at)
    }

    /// One sign, comment or space.
    fn step(&mut self, first: char) -> Result<(), Left> {
        let rest = &self.text[self.at..];
        let line = rest.find('\n').unwrap_or(rest.len());
        let word = rest.find(|c: char| c.is_whitespace() || ",]}[{".contains(c)).unwrap_or(rest.len());
        let begins_line = self.at == 0 || self.text[..self.at].ends_with('\n');
        let (sign, length) = match first {
            letter if letter.is_whitespace() => {
                self.at += letter.len_utf8();
                return Ok(());
            }
            '#' => {
                let (start, end) = (self.at, self.at + rest[..line].trim_end().len());
                self.found.comments.push(Comment { start, end, alone: is_first(self.text, start) });
                self.at = end;
                return Ok(());
            }
            '-' if begins_line && rest.starts_with("---") => (Sign::Begin, 3),
            '-' => (Sign::Dash, 1),
            ':' => (Sign::Colon, 1),
            ',' => (Sign::Comma, 1),
            '[' | '{' => (Sign::Open, 1),
            ']' | '}' => (Sign::Close, 1),
            '!' if rest.starts_with("!<") => (Sign::Property, rest.find('>').map_or(word, |at| at + 1)),
            '&' | '!' => (Sign::Property, word),
            '?' => return Err(self.refuse("a key with `?`")),
            '%' => return Err(self.refuse("a directive")),
            '.' => return Err(self.refuse("the end of a document")),
            _ => return Err(self.refuse("what is no sign of YAML")),
        };
        self.found.tokens.push(Token { sign, start: self.at, end: self.at + length });
        self.at += length;
        Ok(())
    }

    fn refuse(&self, what: &'static str) -> Left {
        Left::Unusual { line: line_of(self.text, self.at), what }
    }
}

pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

pub(crate) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

pub(crate) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline)
}

/// Nothing but spaces before it in its line.
pub(crate) fn is_first(text: &str, at: usize) -> bool {
    text[line_start(text, at)..at].trim().is_empty()
}

/// In characters.
pub(crate) fn column(text: &str, at: usize) -> usize {
    text[line_start(text, at)..at].chars().count()
}

fn quote_end(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' && quote == '"' {
            letters.next();
        } else if letter == quote {
            if quote == '"' || letters.peek().is_none_or(|(_, next)| *next != quote) {
                return Some(at + 1);
            }
            letters.next();
        }
    }
    None
}

/// How far the lines of a block are indented: the spaces of its first line that are not part of its text. `None` where it has no text.
pub(crate) fn block_base(text: &str, header: usize, value: &str) -> Option<usize> {
    let spaces = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let lines = text.get(line_end(text, header) + 1..)?;
    let first = lines.lines().find(|line| !line.trim_matches(' ').is_empty())?;
    let of_value = value.lines().find(|line| !line.trim_matches(' ').is_empty())?;
    spaces(first).checked_sub(spaces(of_value))
}

/// Where the lines of a block end, without the blank ones behind it unless they are kept.
fn block_end(text: &str, header: usize, value: &str) -> Option<usize> {
    let head = line_end(text, header);
    let signs = text[header..head].split(' ').next().unwrap_or_default();
    if value.trim_matches('\n').is_empty() {
        // `+` would count the blank lines below it.
        return (!signs.contains('+')).then_some(header + signs.len());
    }
    let base = block_base(text, header, value).filter(|base| *base > 0)?;
    let (mut at, mut end) = (head + 1, head);
    for line in text[at..].split_inclusive('\n') {
        let content = line.trim_end_matches('\n');
        let indent = content.len() - content.trim_start_matches(' ').len();
        let blank = indent == content.len() && indent <= base;
        if indent < base && !blank {
            break;
        }
        at += line.len();
        if !blank || signs.contains('+') {
            end = at - (line.len() - content.len());
        }
    }
    Some(end)
}
