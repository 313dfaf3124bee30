//! Proof that two texts say the same: the parser's events, what every reader makes of each scalar, and the comments.

use saphyr_parser::{Event, Parser, ScalarStyle};
use strata_yaml::go;
use strata_yaml::{Scalar, ScalarKind};

use crate::{Left, token};

pub(crate) fn same(before: &str, after: &str) -> Result<(), Left> {
    let equal = said(before) == said(after) && comments(before)? == comments(after)?;
    if equal { Ok(()) } else { Err(Left::Meaning) }
}

/// Everything but layout; `None` for what cannot be parsed.
fn said(text: &str) -> Option<Vec<String>> {
    Parser::new_from_str(text).map(|event| event.ok().map(|(event, _)| of(&event))).collect()
}

fn of(event: &Event<'_>) -> String {
    match event {
        Event::Scalar(text, style, anchor, tag) => {
            let means = *style == ScalarStyle::Plain && is_more_than_text(text);
            format!("{text:?} {means} {anchor} {tag:?}")
        }
        other => format!("{other:?}"),
    }
}

/// Some reader takes it for something else than text, when it has no quotes.
fn is_more_than_text(text: &str) -> bool {
    Scalar::plain(text).kind() != ScalarKind::Text
        || go::is_null(text)
        || go::boolean(text).is_some()
        || go::old_boolean(text).is_some()
        || go::special_float(text).is_some()
        || go::number(text).is_some()
        || go::is_base_60(text)
        || matches!(text, "<<" | "=")
        || is_date(text)
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 8 && bytes[..4].iter().all(u8::is_ascii_digit) && bytes[4] == b'-'
}

fn comments(text: &str) -> Result<Vec<&str>, Left> {
    let tokens = token::read(text)?;
    Ok(tokens.comments.iter().map(|comment| text[comment.start..comment.end].trim_end()).collect())
}
