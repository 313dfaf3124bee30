//! `{env}` in a text: the name of the environment.
//!
//! A word in braces is a placeholder, the same in two braces is itself in one. All other braces are text: notes may hold JSON, and `${HOME}`
//! belongs to somebody else's language.

use strata_diagnostics::{Diagnostic, Span, nearest};

/// What `{env}` stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EnvName<'a> {
    /// The file is read for itself: any name will do.
    Any,
    /// The stack is in no environment that has a name.
    Nameless,
    Named(&'a str),
}

const WORD: &str = "env";

/// The text with its placeholders filled in; `None` where there is nothing to do.
pub(crate) fn fill(
    text: &str,
    span: Span,
    name: EnvName<'_>,
    others: &[&str],
) -> Result<Option<String>, Box<Diagnostic>> {
    if !text.contains('{') {
        return Ok(None);
    }
    let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        if before.ends_with(['$', '%']) {
            filled.push('{');
            rest = &from[1..];
        } else if let Some((word, after)) = braced(from, "{{", "}}") {
            filled.push('{');
            filled.push_str(word);
            filled.push('}');
            rest = after;
        } else if let Some((word, after)) = braced(from, "{", "}") {
            match word {
                WORD => filled.push_str(value(name, span)?),
                other if others.contains(&other) => filled.push_str(&from[..from.len() - after.len()]),
                other => return Err(unknown(other, others, span)),
            }
            rest = after;
        } else {
            filled.push('{');
            rest = &from[1..];
        }
    }
    filled.push_str(rest);
    Ok((filled != text).then_some(filled))
}

fn value(name: EnvName<'_>, span: Span) -> Result<&str, Box<Diagnostic>> {
    match name {
        EnvName::Any => Ok(WORD),
        EnvName::Named(name) => Ok(name),
        EnvName::Nameless => {
            let message = "`{env}` has no value: the stack names no environment";
            let problem = Diagnostic::error("no-environment", message).at(span);
            Err(Box::new(problem.hint("name the one it is in without `-e`: `metadata: {environment: dev}`")))
        }
    }
}

/// A word between braces, and what follows.
fn braced<'t>(text: &'t str, open: &str, close: &str) -> Option<(&'t str, &'t str)> {
    let (word, after) = text.strip_prefix(open)?.split_once(close)?;
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_word = word.starts_with(|first: char| first.is_ascii_alphabetic()) && word.bytes().all(letter);
    is_word.then_some((word, after))
}

fn unknown(word: &str, others: &[&str], span: Span) -> Box<Diagnostic> {
    let known: Vec<&str> = std::iter::once(WORD).chain(others.iter().copied()).collect();
    let problem = Diagnostic::error("unknown-placeholder", format!("nothing stands for `{{{word}}}` here"));
    let braces: Vec<String> = known.iter().map(|word| format!("`{{{word}}}`")).collect();
    let meant = match nearest(word, known.iter().copied()) {
        Some(meant) => {
            format!("did you mean `{{{meant}}}`? Braces that are text are written twice: `{{{{{word}}}}}`")
        }
        None => format!(
            "known here: {}; braces that are text are written twice: `{{{{{word}}}}}`",
            braces.join(", ")
        ),
    };
    Box::new(problem.at(span).hint(meant))
}

#[cfg(test)]
mod tests {
    use strata_diagnostics::SourceMap;

    use super::*;

    fn filled(text: &str, name: EnvName<'_>, others: &[&str]) -> Result<String, String> {
        let span = Span::start_of(SourceMap::new().add("x", ""));
        let filled = fill(text, span, name, others).map_err(|problem| problem.message.clone())?;
        Ok(filled.unwrap_or_else(|| text.to_owned()))
    }

    #[test]
    fn words_in_braces_are_filled_in_and_all_else_stays() {
        let dev = EnvName::Named("dev");
        assert_eq!(filled("web-{env}", dev, &[]).unwrap(), "web-dev");
        assert_eq!(filled("{env}{env}", dev, &[]).unwrap(), "devdev");
        assert_eq!(filled("{{env}} is {env}", dev, &[]).unwrap(), "{env} is dev");
        for text in ["{\"a\": 1}", "{}", "{ env }", "a{", "}{", "{{a b}}", "{1}", "${HOME}", "%{if}"] {
            assert_eq!(filled(text, dev, &[]).unwrap(), text);
        }
        assert_eq!(filled("{env}-{role}-{n}", dev, &["role", "n"]).unwrap(), "dev-{role}-{n}");
        assert!(filled("{envv}", dev, &[]).unwrap_err().contains("`{envv}`"));
        assert!(filled("{env}", EnvName::Nameless, &[]).unwrap_err().contains("no value"));
        assert_eq!(filled("plain", EnvName::Nameless, &[]).unwrap(), "plain");
    }
}
