//! Texts of others, made harmless: what a terminal, a browser or a forge would act upon is shown and not done.
//!
//! Names, descriptions and notes of a plan are written by whoever opens a request, or by whoever touched a live object. In a comment they stand in
//! fenced code and nowhere else: there Markdown, HTML, mentions and commands of a forge mean nothing.

use std::fmt::Write as _;

use anstream::adapter::strip_str;

/// The text without colours, with everything invisible made visible. Line breaks stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in strip_str(text).to_string().chars() {
        match character {
            '\n' => shown.push('\n'),
            '\t' => shown.push(' '),
            hidden if is_hidden(hidden) => {
                let _ = write!(shown, "<U+{:04X}>", u32::from(hidden));
            }
            other => shown.push(other),
        }
    }
    shown
}

/// The same on one line.
pub fn line(text: &str) -> String {
    visible(text).replace('\n', " ")
}

/// What is not seen, or turns around or hides what is: controls, marks of direction, joiners, spaces without width, tags, variation selectors,
/// characters of private use.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
            | '\u{f0000}'..='\u{10ffff}')
}

/// A block of code. Three backticks within it would end it, also for a forge that looks for commands without a parser of Markdown: they become
/// other signs.
pub fn fenced(text: &str) -> String {
    let mut block = String::from("```text\n");
    for line in visible(text).trim_end().lines() {
        // No line begins with what a forge reads as a command or as the end of the block.
        let indent = if line.starts_with("  ") { "" } else { "  " };
        let _ = writeln!(block, "{indent}{}", line.replace("```", "'''"));
    }
    block.push_str("```\n");
    block
}

/// A name within HTML.
pub fn html(text: &str) -> String {
    let mut escaped = String::new();
    for character in line(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '@' => escaped.push_str("&commat;"),
            '#' => escaped.push_str("&num;"),
            '!' => escaped.push_str("&excl;"),
            '`' => escaped.push_str("&grave;"),
            '*' => escaped.push_str("&ast;"),
            '_' => escaped.push_str("&lowbar;"),
            '[' => escaped.push_str("&lsqb;"),
            ']' => escaped.push_str("&rsqb;"),
            '\\' => escaped.push_str("&bsol;"),
            ':' => escaped.push_str("&colon;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_shown() {
        // The bell goes with the sequences of a terminal.
        assert_eq!(
            visible("\u{1b}[31mred\u{1b}[0m\u{202e}txt\u{200b}\r\nnext\u{7}"),
            "red<U+202E>txt<U+200B><U+000D>\nnext"
        );
        assert_eq!(visible("Grüße → 40 GiB 漢字"), "Grüße → 40 GiB 漢字");
    }

    #[test]
    fn no_text_ends_its_block() {
        let block = fenced("a\n```\n/close\n@everyone\n````js\n~~~\n</details>");
        assert_eq!(block, "```text\n  a\n  '''\n  /close\n  @everyone\n  '''`js\n  ~~~\n  </details>\n```\n");
        assert_eq!(block.matches("```").count(), 2);
    }

    #[test]
    fn no_name_is_markup() {
        let escaped = html("<img src=x onerror=alert(1)> @ann #12 !7 `x` *b* [l](http://e) :tada:\n> q");
        assert!(!escaped.contains(['<', '>', '@', '#', '!', '`', '*', '[', '\n']), "{escaped}");
    }
}
