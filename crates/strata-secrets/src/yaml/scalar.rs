//! Reading a scalar in each of its styles.

use std::ops::Range;

use super::cursor::{Cursor, is_blank, is_blank_or_end, is_break, is_break_or_end};

/// A scalar that was read: its text, and where it stands.
pub(super) struct ReadScalar {
    pub(super) text: String,
    /// Of a block, only its head (`|-`).
    pub(super) span: Range<usize>,
    /// The lines of a block, each with the line break before it.
    pub(super) block: Option<Range<usize>>,
    /// A comment in the head of a block.
    pub(super) remark: Option<Range<usize>>,
    /// Whether a line break was passed behind a plain scalar, so that a key may follow.
    pub(super) ends_line: bool,
}

/// What is wrong with a scalar.
pub(super) type Problem = &'static str;

/// Blanks and line breaks between two parts of a scalar on one or more lines.
#[derive(Default)]
struct Gap {
    blanks: String,
    first_break: String,
    more_breaks: String,
    broken: bool,
}

impl Gap {
    /// Takes what lies ahead. Within the indentation of a plain scalar there must be no tabs.
    fn take(&mut self, cursor: &mut Cursor<'_>, indent: Option<usize>) -> Result<(), Problem> {
        loop {
            if is_blank(cursor.peek()) {
                let in_indent = self.broken && indent.is_some_and(|indent| cursor.column < indent);
                if in_indent && cursor.peek() == Some('\t') {
                    return Err("a tab where only blanks may indent");
                }
                let blank = cursor.advance();
                if !self.broken {
                    self.blanks.extend(blank);
                }
            } else if is_break(cursor.peek()) {
                if self.broken {
                    cursor.take_break(&mut self.more_breaks);
                } else {
                    self.blanks.clear();
                    cursor.take_break(&mut self.first_break);
                    self.broken = true;
                }
            } else {
                return Ok(());
            }
        }
    }

    /// What the gap means: its blanks, or its line breaks folded.
    fn fold(&mut self, text: &mut String) {
        if !self.broken {
            text.push_str(&self.blanks);
        } else if self.first_break == "\n" {
            text.push_str(if self.more_breaks.is_empty() { " " } else { &self.more_breaks });
        } else {
            text.push_str(&self.first_break);
            text.push_str(&self.more_breaks);
        }
        *self = Gap::default();
    }
}

/// A scalar without quotes. It ends where its indentation ends, or at an indicator.
pub(super) fn plain(cursor: &mut Cursor<'_>, indent: usize, in_flow: bool) -> Result<ReadScalar, Problem> {
    let start = cursor.at;
    let (mut text, mut end) = (String::new(), start);
    let mut gap = Gap::default();
    loop {
        if cursor.at_marker() || cursor.peek() == Some('#') {
            break;
        }
        while let Some(character) = cursor.peek().filter(|_| !is_blank_or_end(cursor.peek())) {
            let colon = character == ':' && is_blank_or_end(cursor.second());
            if colon || (in_flow && ",?[]{}".contains(character)) {
                break;
            }
            gap.fold(&mut text);
            text.push(character);
            cursor.advance();
            end = cursor.at;
        }
        if !(is_blank(cursor.peek()) || is_break(cursor.peek())) {
            break;
        }
        gap.take(cursor, Some(indent))?;
        if !in_flow && cursor.column < indent {
            break;
        }
    }
    Ok(ReadScalar { text, span: start..end, block: None, remark: None, ends_line: gap.broken })
}

/// A scalar in single or double quotes.
pub(super) fn quoted(cursor: &mut Cursor<'_>, quote: char) -> Result<ReadScalar, Problem> {
    let start = cursor.at;
    cursor.advance();
    let mut text = String::new();
    loop {
        if cursor.at_marker() {
            return Err("a marker of a document inside of quotes");
        }
        let mut gap = Gap::default();
        while let Some(character) = cursor.peek().filter(|_| !is_blank_or_end(cursor.peek())) {
            match character {
                '\'' if quote == '\'' && cursor.second() == Some('\'') => {
                    text.push('\'');
                    cursor.advance();
                    cursor.advance();
                }
                _ if character == quote => {
                    cursor.advance();
                    let span = start..cursor.at;
                    return Ok(ReadScalar { text, span, block: None, remark: None, ends_line: false });
                }
                '\\' if quote == '"' && is_break(cursor.second()) => {
                    cursor.advance();
                    cursor.take_break(&mut String::new());
                    // The line break is gone; only those that follow it count.
                    gap.broken = true;
                    break;
                }
                '\\' if quote == '"' => escape(cursor, &mut text)?,
                other => {
                    text.push(other);
                    cursor.advance();
                }
            }
        }
        if cursor.peek().is_none() {
            return Err("an open quote");
        }
        gap.take(cursor, None)?;
        if gap.broken && gap.first_break.is_empty() {
            text.push_str(&gap.more_breaks);
        } else {
            gap.fold(&mut text);
        }
    }
}

fn escape(cursor: &mut Cursor<'_>, text: &mut String) -> Result<(), Problem> {
    cursor.advance();
    let escaped = cursor.advance().ok_or("an open quote")?;
    let length = match escaped {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => {
            text.push(match escaped {
                '0' => '\0',
                'a' => '\x07',
                'b' => '\x08',
                't' | '\t' => '\t',
                'n' => '\n',
                'v' => '\x0b',
                'f' => '\x0c',
                'r' => '\r',
                'e' => '\x1b',
                ' ' | '"' | '\'' | '\\' => escaped,
                'N' => '\u{85}',
                '_' => '\u{a0}',
                'L' => '\u{2028}',
                'P' => '\u{2029}',
                _ => return Err("an unknown escape"),
            });
            return Ok(());
        }
    };
    let digits: String = cursor.rest().chars().take(length).collect();
    let good = digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = u32::from_str_radix(&digits, 16).ok().filter(|_| good).and_then(char::from_u32);
    text.push(code.ok_or("an unknown escape")?);
    for _ in 0..length {
        cursor.advance();
    }
    Ok(())
}

/// Lines below a `|` or `>`. The indentation of what surrounds it is -1 at the root.
pub(super) fn block(cursor: &mut Cursor<'_>, outer: isize) -> Result<ReadScalar, Problem> {
    let start = cursor.at;
    let literal = cursor.advance() == Some('|');
    let (mut chomp, mut hint) = (None, None);
    while let Some(character) = cursor.peek().filter(|c| matches!(c, '+' | '-' | '1'..='9')) {
        match character.to_digit(10) {
            Some(digit) if hint.is_none() => hint = Some(digit as usize),
            None if chomp.is_none() => chomp = Some(character),
            _ => return Err("a doubled hint behind `|` or `>`"),
        }
        cursor.advance();
    }
    let span = start..cursor.at;
    let blanks = cursor.at;
    cursor.skip_blanks();
    let mut remark = None;
    if cursor.peek() == Some('#') && cursor.at > blanks {
        let from = cursor.at;
        while !is_break_or_end(cursor.peek()) {
            cursor.advance();
        }
        remark = Some(from..cursor.at);
    }
    if !is_break_or_end(cursor.peek()) {
        return Err("something stands behind `|` or `>`");
    }
    let block_start = cursor.at;
    cursor.take_break(&mut String::new());

    let inner = usize::try_from(outer + 1).unwrap_or(0);
    let mut indent = hint.map(|hint| usize::try_from(outer.max(0)).unwrap_or(0) + hint);
    let (mut text, mut line_break, mut breaks) = (String::new(), String::new(), String::new());
    let mut end = empty_lines(cursor, &mut indent, inner, &mut breaks)?.unwrap_or(block_start);
    let indent = indent.unwrap_or(1);
    let mut content_end = block_start;
    let mut was_indented = false;
    while cursor.column == indent && cursor.peek().is_some() {
        let is_indented = is_blank(cursor.peek());
        if !literal && !was_indented && !is_indented && line_break == "\n" {
            if breaks.is_empty() {
                text.push(' ');
            }
        } else {
            text.push_str(&line_break);
        }
        line_break.clear();
        text.push_str(&breaks);
        breaks.clear();
        was_indented = is_indented;
        while let Some(character) = cursor.peek().filter(|_| !is_break_or_end(cursor.peek())) {
            text.push(character);
            cursor.advance();
        }
        content_end = cursor.at;
        end = cursor.at;
        cursor.take_break(&mut line_break);
        end = empty_lines(cursor, &mut Some(indent), inner, &mut breaks)?.unwrap_or(end);
    }
    if chomp != Some('-') {
        text.push_str(&line_break);
    }
    if chomp == Some('+') {
        text.push_str(&breaks);
        content_end = end.max(content_end);
    }
    Ok(ReadScalar { text, span, block: Some(block_start..content_end), remark, ends_line: true })
}

/// Passes empty lines and the indentation of the line after them. Returns where the last empty line ends.
fn empty_lines(
    cursor: &mut Cursor<'_>,
    indent: &mut Option<usize>,
    least: usize,
    breaks: &mut String,
) -> Result<Option<usize>, Problem> {
    let mut widest = 0;
    let mut end = None;
    loop {
        while cursor.peek() == Some(' ') && indent.is_none_or(|indent| cursor.column < indent) {
            cursor.advance();
        }
        widest = widest.max(cursor.column);
        if cursor.peek() == Some('\t') && indent.is_none_or(|indent| cursor.column < indent) {
            return Err("a tab where only blanks may indent");
        }
        if !is_break(cursor.peek()) {
            break;
        }
        end = Some(cursor.at);
        cursor.take_break(breaks);
    }
    indent.get_or_insert(widest.max(least).max(1));
    Ok(end)
}
