//! Which styles can hold a text so that every reader sees the same, and those styles.

/// Which styles can hold a text.
#[derive(Debug, Clone, Copy)]
pub struct Fits {
    /// Without quotes, outside of brackets.
    pub plain: bool,
    /// Without quotes, in brackets too.
    pub flow: bool,
    pub single_quotes: bool,
    /// As lines below; a first line that begins with a space needs a hint of its indentation.
    pub block: bool,
}

impl Fits {
    /// What the characters of a text allow. Whether it would be a number or a word of YAML is another question.
    pub fn of(text: &str) -> Self {
        let dashes = text.starts_with("---") || text.starts_with("...");
        let mut indicator = dashes || text.is_empty();
        let mut flow_indicator = indicator;
        let mut special = false;
        let mut previous = None;
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            let ends = characters.peek().is_none_or(|next| is_blank(*next));
            match (previous, c) {
                (
                    None,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                    | '`',
                ) => indicator = true,
                (_, ':') | (None, '?') => {
                    flow_indicator = true;
                    indicator |= ends;
                }
                (None, '-') if ends => indicator = true,
                (Some(_), ',' | '?' | '[' | ']' | '{' | '}') => flow_indicator = true,
                (Some(before), '#') if is_blank(before) => indicator = true,
                _ => {}
            }
            // Other line breaks than this one are line breaks to some libraries and not to others.
            special |= !matches!(c, '\n' | '\t') && (!is_printable(c) || is_break(c));
            previous = Some(c);
        }
        let edges = text.starts_with([' ', '\n']) || text.ends_with([' ', '\n']);
        let one_line = !special && !text.contains(['\n', '\t']);
        Self {
            plain: one_line && !edges && !indicator,
            flow: one_line && !edges && !indicator && !flow_indicator,
            single_quotes: one_line,
            block: !special && !text.is_empty() && !text.ends_with(' ') && !text.contains(" \n"),
        }
    }
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t' || is_break(c)
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What can stand unescaped. Characters beyond the first plane cannot, for those libraries.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// How a block of lines says what becomes of the line breaks at its end: behind the `|`.
pub fn block_header(text: &str) -> &'static str {
    match text.strip_suffix('\n') {
        None => "-",
        Some(rest) if rest.is_empty() || rest.ends_with('\n') => "+",
        Some(_) => "",
    }
}

/// Appends a text in single quotes. The text may be a secret: no copy of it is made.
pub fn single_quoted(text: &str, out: &mut String) {
    out.push('\'');
    for c in text.chars() {
        out.push(c);
        if c == '\'' {
            out.push(c);
        }
    }
    out.push('\'');
}

/// Appends a text in double quotes, escaped.
pub fn double_quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\u{1b}' => out.push_str("\\e"),
            '\u{85}' => out.push_str("\\N"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            c if is_printable(c) => out.push(c),
            c if (c as u32) <= 0xff => out.push_str(&format!("\\x{:02X}", c as u32)),
            c if (c as u32) <= 0xffff => out.push_str(&format!("\\u{:04X}", c as u32)),
            c => out.push_str(&format!("\\U{:08X}", c as u32)),
        }
    }
    out.push('"');
}

/// YAML 1.1 takes `1:30` for a number in base 60: digits, then parts of one or two digits, the last perhaps with a fraction.
pub fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some((first, rest)) = unsigned.split_once(':') else { return false };
    let (rest, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let sixty = |part: &str| match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => (b'0'..=b'5').contains(ten) && one.is_ascii_digit(),
        _ => false,
    };
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && digits(fraction)
        && rest.split(':').all(sixty)
}
