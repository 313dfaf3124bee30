//! A place in YAML text, with its line and column.

/// Walks over the text one character at a time.
#[derive(Clone)]
pub(super) struct Cursor<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    /// From zero.
    pub(super) line: usize,
    /// In characters, from zero.
    pub(super) column: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { text, at, line: 0, column: 0 }
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The character after the next, which has one byte.
    pub(super) fn second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    /// Moves over a character that is no line break.
    pub(super) fn advance(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        self.column += 1;
        Some(character)
    }

    /// Moves over a line break and adds it to the text in its simplest form.
    pub(super) fn take_break(&mut self, into: &mut String) {
        let rest = self.rest();
        let Some(character) = rest.chars().next() else { return };
        self.at += if rest.starts_with("\r\n") { 2 } else { character.len_utf8() };
        self.line += 1;
        self.column = 0;
        into.push(if matches!(character, '\u{2028}' | '\u{2029}') { character } else { '\n' });
    }

    pub(super) fn skip_blanks(&mut self) {
        while is_blank(self.peek()) {
            self.advance();
        }
    }

    /// Whether a marker of a document stands here: `---` or `...`, alone.
    pub(super) fn at_marker(&self) -> bool {
        self.column == 0
            && (self.rest().starts_with("---") || self.rest().starts_with("..."))
            && is_blank_or_end(self.rest()[3..].chars().next())
    }
}

pub(super) fn is_blank(character: Option<char>) -> bool {
    matches!(character, Some(' ' | '\t'))
}

pub(super) fn is_break(character: Option<char>) -> bool {
    matches!(character, Some('\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}'))
}

pub(super) fn is_break_or_end(character: Option<char>) -> bool {
    character.is_none() || is_break(character)
}

pub(super) fn is_blank_or_end(character: Option<char>) -> bool {
    is_blank(character) || is_break_or_end(character)
}
