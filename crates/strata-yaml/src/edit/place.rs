//! Places in a text: lines, columns, and the signs around values.

/// The first byte of the line.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// The first byte of the next line, or the end of the text.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// The end of the line, without its line break.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let line = &text[at..next_line(text, at)];
    at + line.trim_end_matches(['\n', '\r']).len()
}

/// How far a byte is from the beginning of its line. A byte order mark takes no column.
pub(super) fn column(text: &str, at: usize) -> usize {
    text[line_start(text, at)..at].chars().filter(|letter| *letter != '\u{feff}').count()
}

/// Only spaces, or a byte order mark, before it in its line.
pub(super) fn begins_line(text: &str, at: usize) -> bool {
    text[line_start(text, at)..at].chars().all(|letter| matches!(letter, ' ' | '\u{feff}'))
}

/// Nothing but a comment after it in its line.
pub(super) fn ends_line(text: &str, at: usize) -> bool {
    let rest = text[at..line_end(text, at)].trim_start();
    rest.is_empty() || rest.starts_with('#')
}

/// The byte behind the `:` of a key that ends here.
pub(super) fn colon_after(text: &str, key_end: usize) -> Option<usize> {
    let rest = &text[key_end..];
    let sign = rest.trim_start();
    sign.starts_with(':').then(|| key_end + (rest.len() - sign.len()) + 1)
}

/// The comment at the end of a line, with the spaces before it: what follows this byte holds no value.
pub(super) fn comment_after(text: &str, at: usize) -> &str {
    let rest = &text[at..line_end(text, at)];
    if rest.trim_start().starts_with('#') { rest.trim_end() } else { "" }
}

/// The `-` of the item that begins here, past blank lines and comments between them.
pub(super) fn dash_before(text: &str, item: usize) -> Option<usize> {
    let mut start = line_start(text, item);
    let mut line = &text[start..item];
    loop {
        let content = without_header(without_comment(line).trim_end());
        if content.ends_with('-') {
            return Some(start + content.len() - 1);
        }
        if !content.trim().is_empty() || start == 0 {
            return None;
        }
        let above = line_start(text, start - 1);
        line = &text[above..start - 1];
        start = above;
    }
}

fn without_comment(line: &str) -> &str {
    let comment = line
        .char_indices()
        .find(|(at, letter)| *letter == '#' && (*at == 0 || line[..*at].ends_with([' ', '\t'])));
    comment.map_or(line, |(at, _)| &line[..at])
}

/// Without the `|-` of a text whose lines follow.
fn without_header(line: &str) -> &str {
    let bare = line.trim_end_matches(|letter: char| letter.is_ascii_digit() || "+-".contains(letter));
    bare.strip_suffix(['|', '>']).map_or(line, str::trim_end)
}

/// Behind the comment lines that follow a line directly, as far as they are indented like this or more.
pub(super) fn past_comments(text: &str, mut at: usize, indent: usize) -> usize {
    while at < text.len() {
        let line = &text[at..line_end(text, at)];
        let content = line.trim_start_matches(' ');
        if !content.starts_with('#') || line.len() - content.len() < indent {
            break;
        }
        at = next_line(text, at);
    }
    at
}

/// The beginning of the comment lines directly above a line.
pub(super) fn above_comments(text: &str, mut start: usize) -> usize {
    while start > 0 {
        let above = line_start(text, start - 1);
        if !text[above..start].trim_start_matches(' ').starts_with('#') {
            break;
        }
        start = above;
    }
    start
}
