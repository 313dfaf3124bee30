//! YAML text as tokens: the scanner that YAML 1.1 libraries have in common, `sops`' among them.
//!
//! A newer reading of the standard would refuse some of the files that `sops` writes, such as those with a closing
//! brace in the first column.

use std::ops::Range;

use super::YamlError;
use super::cursor::{Cursor, is_blank_or_end, is_break, is_break_or_end};
use super::scalar::{self, ReadScalar};
use super::scan::Style;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Directive,
    BlockListStart,
    BlockMapStart,
    BlockEnd,
    FlowListStart,
    FlowListEnd,
    FlowMapStart,
    FlowMapEnd,
    /// The dash of a list.
    Entry,
    Comma,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag(String),
    Scalar {
        text: String,
        style: Style,
        block: Option<Range<usize>>,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
}

/// A scalar or bracket that turns out to be a key if a colon follows it on its line.
#[derive(Clone)]
struct MaybeKey {
    required: bool,
    token: usize,
    at: usize,
    line: usize,
    column: usize,
}

/// A key without a question mark has at most this many bytes before its colon.
const LONGEST_KEY: usize = 1024;

pub(super) struct Tokens {
    pub(super) tokens: Vec<Token>,
    pub(super) remarks: Vec<Range<usize>>,
}

pub(super) fn tokens(text: &str) -> Result<Tokens, YamlError> {
    let mut scanner = Scanner {
        cursor: Cursor::new(text),
        tokens: Vec::new(),
        remarks: Vec::new(),
        indent: -1,
        indents: Vec::new(),
        key_allowed: true,
        maybe_keys: vec![None],
    };
    check_characters(text)?;
    while scanner.next()? {}
    Ok(Tokens { tokens: scanner.tokens, remarks: scanner.remarks })
}

/// Control characters are not YAML.
fn check_characters(text: &str) -> Result<(), YamlError> {
    let allowed = |character: char| matches!(character, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    match text.char_indices().find(|(_, character)| !allowed(*character)) {
        Some((at, _)) => {
            Err(YamlError::Syntax { line: super::line_of(text, at), reason: "a control character".into() })
        }
        None => Ok(()),
    }
}

struct Scanner<'t> {
    cursor: Cursor<'t>,
    tokens: Vec<Token>,
    remarks: Vec<Range<usize>>,
    /// The column of the innermost block; -1 at the root.
    indent: isize,
    indents: Vec<isize>,
    /// Whether a key may start here.
    key_allowed: bool,
    /// One for the block context, and one for each open bracket.
    maybe_keys: Vec<Option<MaybeKey>>,
}

impl Scanner<'_> {
    fn in_flow(&self) -> bool {
        self.maybe_keys.len() > 1
    }

    fn error(&self, reason: &str) -> YamlError {
        YamlError::Syntax { line: self.cursor.line + 1, reason: reason.to_owned() }
    }

    fn push(&mut self, kind: Kind, start: usize) {
        self.tokens.push(Token { kind, span: start..self.cursor.at });
    }

    /// Reads one token; `false` at the end.
    fn next(&mut self) -> Result<bool, YamlError> {
        self.skip_to_token();
        self.close_blocks(self.column());
        let start = self.cursor.at;
        let Some(character) = self.cursor.peek() else {
            self.close_blocks(-1);
            self.drop_key()?;
            self.push(Kind::StreamEnd, start);
            return Ok(false);
        };
        if self.cursor.column == 0 && character == '%' && !self.in_flow() {
            self.directive()?;
        } else if self.cursor.at_marker() {
            self.marker(character)?;
        } else {
            self.token(character)?;
        }
        Ok(true)
    }

    fn column(&self) -> isize {
        isize::try_from(self.cursor.column).unwrap_or(isize::MAX)
    }

    fn token(&mut self, character: char) -> Result<(), YamlError> {
        let blank_follows = is_blank_or_end(self.cursor.second());
        match character {
            '[' => self.open(Kind::FlowListStart),
            '{' => self.open(Kind::FlowMapStart),
            ']' => self.close(Kind::FlowListEnd),
            '}' => self.close(Kind::FlowMapEnd),
            ',' => self.comma(),
            '-' if blank_follows => self.entry(),
            '?' if self.in_flow() || blank_follows => self.key(),
            ':' if self.in_flow() || blank_follows => self.value(),
            '*' | '&' => self.anchor(character),
            '!' => self.tag(),
            '|' | '>' if !self.in_flow() => self.block(),
            '\'' | '"' => self.quoted(character),
            '-' => self.plain(),
            '?' | ':' if !self.in_flow() => self.plain(),
            '?' | ':' | '|' | '>' | '#' | '%' | '@' | '`' | '\t' => {
                Err(self.error("a character that nothing can start with"))
            }
            _ => self.plain(),
        }
    }

    /// Passes blanks, line breaks and comments.
    fn skip_to_token(&mut self) {
        loop {
            let tabs = self.in_flow() || !self.key_allowed;
            while self.cursor.peek() == Some(' ') || (tabs && self.cursor.peek() == Some('\t')) {
                self.cursor.advance();
            }
            if self.cursor.peek() == Some('#') && self.comment_may_start() {
                let start = self.cursor.at;
                while !is_break_or_end(self.cursor.peek()) {
                    self.cursor.advance();
                }
                self.remarks.push(start..self.cursor.at);
            }
            if !is_break(self.cursor.peek()) {
                return;
            }
            self.cursor.take_break(&mut String::new());
            if !self.in_flow() {
                self.key_allowed = true;
            }
        }
    }

    /// Behind a bracket or comma a comment may follow at once.
    fn comment_may_start(&self) -> bool {
        let before = self.cursor.text[..self.cursor.at].chars().next_back();
        before.is_none_or(|before| before.is_whitespace() || before == '\u{feff}' || ",[]{}".contains(before))
    }

    /// Ends the blocks that are further in than this column.
    fn close_blocks(&mut self, column: isize) {
        if self.in_flow() {
            return;
        }
        while self.indent > column {
            self.push(Kind::BlockEnd, self.cursor.at);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    /// Starts a block if this column is further in than the last.
    fn open_block(&mut self, column: usize, kind: Kind, token: usize, at: usize) {
        let column = isize::try_from(column).unwrap_or(isize::MAX);
        if !self.in_flow() && self.indent < column {
            self.indents.push(self.indent);
            self.indent = column;
            self.tokens.insert(token, Token { kind, span: at..at });
        }
    }

    /// Notes that a key may start here.
    fn save_key(&mut self) -> Result<(), YamlError> {
        if self.key_allowed {
            let required = !self.in_flow() && self.indent == self.column();
            self.drop_key()?;
            let Cursor { at, line, column, .. } = self.cursor;
            let key = MaybeKey { required, token: self.tokens.len(), at, line, column };
            *self.maybe_key() = Some(key);
        }
        Ok(())
    }

    fn maybe_key(&mut self) -> &mut Option<MaybeKey> {
        self.maybe_keys.last_mut().expect("the block context has one")
    }

    fn drop_key(&mut self) -> Result<(), YamlError> {
        match self.maybe_key().take() {
            Some(MaybeKey { required: true, line, .. }) => {
                Err(YamlError::Syntax { line: line + 1, reason: "expected a `:` behind a key".to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn directive(&mut self) -> Result<(), YamlError> {
        self.close_blocks(-1);
        self.drop_key()?;
        self.key_allowed = false;
        let start = self.cursor.at;
        while !is_break_or_end(self.cursor.peek()) {
            self.cursor.advance();
        }
        self.push(Kind::Directive, start);
        Ok(())
    }

    fn marker(&mut self, character: char) -> Result<(), YamlError> {
        if self.in_flow() {
            return Err(self.error("a marker of a document inside of brackets"));
        }
        self.close_blocks(-1);
        self.drop_key()?;
        self.key_allowed = false;
        let start = self.cursor.at;
        for _ in 0..3 {
            self.cursor.advance();
        }
        self.push(if character == '-' { Kind::DocumentStart } else { Kind::DocumentEnd }, start);
        Ok(())
    }

    fn single(&mut self, kind: Kind) -> Result<(), YamlError> {
        let start = self.cursor.at;
        self.cursor.advance();
        self.push(kind, start);
        Ok(())
    }

    fn open(&mut self, kind: Kind) -> Result<(), YamlError> {
        self.save_key()?;
        self.maybe_keys.push(None);
        self.key_allowed = true;
        self.single(kind)
    }

    fn close(&mut self, kind: Kind) -> Result<(), YamlError> {
        self.drop_key()?;
        if self.in_flow() {
            self.maybe_keys.pop();
        }
        self.key_allowed = false;
        self.single(kind)
    }

    fn comma(&mut self) -> Result<(), YamlError> {
        self.drop_key()?;
        self.key_allowed = true;
        self.single(Kind::Comma)
    }

    fn entry(&mut self) -> Result<(), YamlError> {
        if !self.in_flow() {
            if !self.key_allowed {
                return Err(self.error("an item of a list cannot start here"));
            }
            self.open_block(self.cursor.column, Kind::BlockListStart, self.tokens.len(), self.cursor.at);
        }
        self.drop_key()?;
        self.key_allowed = true;
        self.single(Kind::Entry)
    }

    fn key(&mut self) -> Result<(), YamlError> {
        if !self.in_flow() {
            if !self.key_allowed {
                return Err(self.error("a key cannot start here"));
            }
            self.open_block(self.cursor.column, Kind::BlockMapStart, self.tokens.len(), self.cursor.at);
        }
        self.drop_key()?;
        self.key_allowed = !self.in_flow();
        self.single(Kind::Key)
    }

    fn value(&mut self) -> Result<(), YamlError> {
        match self.maybe_key().take() {
            Some(key) if key.line == self.cursor.line && key.at + LONGEST_KEY >= self.cursor.at => {
                self.tokens.insert(key.token, Token { kind: Kind::Key, span: key.at..key.at });
                self.open_block(key.column, Kind::BlockMapStart, key.token, key.at);
                self.key_allowed = false;
            }
            Some(MaybeKey { required: true, line, .. }) => {
                return Err(YamlError::Syntax {
                    line: line + 1,
                    reason: "expected a `:` behind a key".to_owned(),
                });
            }
            _ => {
                if !self.in_flow() {
                    if !self.key_allowed {
                        return Err(self.error("a value cannot start here"));
                    }
                    self.open_block(
                        self.cursor.column,
                        Kind::BlockMapStart,
                        self.tokens.len(),
                        self.cursor.at,
                    );
                }
                self.key_allowed = !self.in_flow();
            }
        }
        self.single(Kind::Value)
    }

    fn anchor(&mut self, mark: char) -> Result<(), YamlError> {
        self.save_key()?;
        self.key_allowed = false;
        let start = self.cursor.at;
        self.cursor.advance();
        let mut name = String::new();
        while let Some(character) =
            self.cursor.peek().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        {
            name.push(character);
            self.cursor.advance();
        }
        let ended =
            is_blank_or_end(self.cursor.peek()) || self.cursor.peek().is_some_and(|c| "?:,]}%@`".contains(c));
        if name.is_empty() || !ended {
            return Err(self.error("expected a name of letters and digits behind `&` or `*`"));
        }
        self.push(if mark == '&' { Kind::Anchor(name) } else { Kind::Alias(name) }, start);
        Ok(())
    }

    fn tag(&mut self) -> Result<(), YamlError> {
        self.save_key()?;
        self.key_allowed = false;
        let start = self.cursor.at;
        while !is_blank_or_end(self.cursor.peek()) {
            if self.cursor.peek().is_some_and(|c| !c.is_ascii_graphic() || "{}\"\\^`|".contains(c)) {
                return Err(self.error("a character that a tag cannot have"));
            }
            self.cursor.advance();
        }
        let name = self.cursor.text[start..self.cursor.at].to_owned();
        self.push(Kind::Tag(name), start);
        Ok(())
    }

    fn block(&mut self) -> Result<(), YamlError> {
        self.drop_key()?;
        self.key_allowed = true;
        let read = scalar::block(&mut self.cursor, self.indent).map_err(|reason| self.error(reason))?;
        self.scalar(read, Style::Block);
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), YamlError> {
        self.save_key()?;
        self.key_allowed = false;
        let read = scalar::quoted(&mut self.cursor, quote).map_err(|reason| self.error(reason))?;
        self.scalar(read, Style::Quoted);
        Ok(())
    }

    fn plain(&mut self) -> Result<(), YamlError> {
        self.save_key()?;
        self.key_allowed = false;
        let indent = usize::try_from(self.indent + 1).unwrap_or(0);
        let in_flow = self.in_flow();
        let read = scalar::plain(&mut self.cursor, indent, in_flow).map_err(|reason| self.error(reason))?;
        if read.ends_line {
            self.key_allowed = true;
        }
        self.scalar(read, Style::Plain);
        Ok(())
    }

    fn scalar(&mut self, read: ReadScalar, style: Style) {
        self.remarks.extend(read.remark);
        let kind = Kind::Scalar { text: read.text, style, block: read.block };
        self.tokens.push(Token { kind, span: read.span });
    }
}
