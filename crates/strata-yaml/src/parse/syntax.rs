//! What the parser could not read, said for the person who wrote it.

use strata_diagnostics::{Diagnostic, FileId, Span};

use super::MAX_DEPTH;
use super::tree::too_deep;

/// The parser's complaint at a place, with the cause where the text shows it; `bracket` is the innermost open one.
pub(super) fn explain(text: &str, at: Span, info: &str, bracket: Option<Span>) -> Diagnostic {
    let (file, at) = (at.file, at.start as usize);
    if info.contains("recursion limit") {
        return too_deep(MAX_DEPTH).at(one_character(text, file, at));
    }
    if let Some(span) = tab_near(text, file, at) {
        return Diagnostic::error("syntax", "a tab is used as indentation; YAML takes spaces only")
            .at(span)
            .hint("replace each tab with spaces");
    }
    let (message, hint) = reword(text, at, info);
    let diagnostic = Diagnostic::error("syntax", message).maybe_hint(hint);
    let unclosed = ["',' or '}'", "',' or ']'", "flow construct"].iter().any(|part| info.contains(part));
    match bracket.filter(|_| unclosed) {
        Some(open) => {
            diagnostic.at_with(open, "never closed").also(one_character(text, file, at), "found instead")
        }
        None => diagnostic.at(one_character(text, file, at)),
    }
}

fn reword(text: &str, at: usize, info: &str) -> (String, Option<&'static str>) {
    let indentation = "check that the lines of one mapping begin in the same column";
    let (message, hint) = match info {
        info if info.contains("mapping values are not allowed") => (
            "a `:` cannot stand here",
            Some("quote a text that contains `: `; or the line above or this one is indented wrongly"),
        ),
        info if info.contains("did not find expected key")
            || info.contains("did not find expected '-' indicator") =>
        {
            ("this line does not fit the lines before it", Some(indentation))
        }
        info if info.contains("block sequence entries are not allowed") => {
            ("a list item `- ` cannot begin here", Some("put the first item on a line of its own"))
        }
        info if info.contains("unknown anchor") => (
            "no anchor with this name was set before",
            Some("an anchor is set with `&name` and used with `*name`"),
        ),
        info if info.contains("',' or '}'") => ("a mapping that begins with `{` has no `}`", None),
        info if info.contains("',' or ']'") => ("a list that begins with `[` has no `]`", None),
        info if info.contains("flow construct") => ("a `{` or `[` is not closed before the next line", None),
        info if info.contains("illegal placement of ':'") => {
            ("a `:` cannot stand here", Some("a `{` or `[` before it may lack its `}` or `]`"))
        }
        info if info.contains("quoted scalar") && !info.contains("escape") => {
            ("a quoted text has no closing quote, or its next line is not indented", None)
        }
        info if info.contains("unknown escape") => {
            ("a backslash begins an unknown escape", Some("write `\\\\`, or use single quotes"))
        }
        info if info.contains("misplaced bracket") => ("this bracket closes nothing", None),
        info if info.contains("unexpected character") => {
            let found = text[at..].chars().next().unwrap_or(' ');
            return (format!("a text cannot begin with `{found}`"), Some("put it in quotes"));
        }
        info => return (info.to_owned(), None),
    };
    (message.to_owned(), hint)
}

/// A tab in the indentation of the line at `at`, or of the next: the parser stops on either.
fn tab_near(text: &str, file: FileId, at: usize) -> Option<Span> {
    let begin = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let mut start = begin;
    for line in text[begin..].split_inclusive('\n').take(2) {
        let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some(tab) = line[..indentation].find('\t') {
            return Some(Span::new(file, start + tab, start + tab + 1));
        }
        start += line.len();
    }
    None
}

fn one_character(text: &str, file: FileId, at: usize) -> Span {
    let length = text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    Span::new(file, at, at + length)
}
