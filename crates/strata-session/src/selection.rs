//! What a command is about: stacks, and parts of stacks by addresses and patterns.

use std::collections::BTreeSet;

use strata_diagnostics::nearest;
use strata_resource::Address;

use crate::error::SessionError;

/// An address, or a pattern of addresses: `*` stands for any text, `?` for one letter. The environment is left out, or is that of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    text: String,
    /// It is one address, whatever letters it has.
    exact: bool,
}

impl Pattern {
    /// What an argument means, where it is no stack: `web/vm/db`, `web/vm/*`, `*/vm/db`. `below`: it begins with the name of one.
    pub(crate) fn parse(argument: &str, below: bool) -> Option<Self> {
        let is_pattern = below || argument.contains(['*', '?']) || argument.parse::<Address>().is_ok();
        is_pattern.then(|| Self { text: argument.to_owned(), exact: false })
    }

    /// One address, and nothing else.
    pub(crate) fn exactly(address: &str) -> Self {
        Self { text: address.to_owned(), exact: true }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn matches(&self, address: &Address) -> bool {
        let bare = format!("{}/{}/{}", address.stack(), address.kind(), address.name());
        [bare, address.to_string()].iter().any(|name| match self.exact {
            true => *name == self.text,
            false => fits(self.text.as_bytes(), name.as_bytes()),
        })
    }

    /// Whether an object of a stack can match.
    pub(crate) fn can_match_in(&self, stack: &str) -> bool {
        let own = self.text.split_once(':').map_or(self.text.as_str(), |(_, rest)| rest);
        // The address of an object of the stack begins with its name and a `/`, and any text can follow.
        let name = format!("{stack}/");
        begins(own.as_bytes(), name.as_bytes())
    }

    /// The error where nothing matches.
    pub(crate) fn unmatched<'a>(&self, known: impl Iterator<Item = &'a Address>) -> SessionError {
        let names: BTreeSet<String> = known.map(ToString::to_string).collect();
        let error =
            SessionError::failed(format!("nothing is called `{}`, in the source or in a state", self.text));
        match nearest(&self.text, names.iter().map(String::as_str)) {
            Some(meant) => error.hint(format!("did you mean `{meant}`?")),
            None => error.hint("`strata state list` and `strata graph` show the addresses"),
        }
    }
}

/// Whether a whole text fits a pattern.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    // Where the last `*` stands, and how much of the text it has taken.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(b'?') => (p, t) = (p + 1, t + 1),
            Some(letter) if *letter == text[t] => (p, t) = (p + 1, t + 1),
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, t) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|letter| *letter == b'*')
}

/// Whether some text that begins like this fits a pattern.
fn begins(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.first(), text.first()) {
        (_, None) | (Some(b'*'), _) => true,
        (Some(b'?'), Some(_)) => begins(&pattern[1..], &text[1..]),
        (Some(letter), Some(other)) => letter == other && begins(&pattern[1..], &text[1..]),
        (None, Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let cases = [
            ("web/vm/*", "web/vm/db", true),
            ("web/*", "web/vm/db", true),
            ("*/vm/db", "web/vm/db", true),
            ("web/vm/d?", "web/vm/db", true),
            ("web/vm/db", "web/vm/db-1", false),
            ("web/vm/*-1", "web/vm/db-1", true),
            ("web/vm/*-1", "web/vm/db-1-2", false),
            ("web/vm/*b*", "web/vm/abc", true),
            ("*", "web/vm/db", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(fits(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_says_which_stacks_it_can_mean() {
        for (pattern, stack, expected) in [
            ("web/vm/*", "web", true),
            ("web/vm/*", "web2", false),
            ("w*", "web", true),
            ("*/vm/db", "data", true),
            ("on/web/vm/x", "on/web", true),
            ("we?/vm/x", "web", true),
            ("test:web/vm/db", "web", true),
        ] {
            assert_eq!(
                Pattern { text: pattern.to_owned(), exact: false }.can_match_in(stack),
                expected,
                "{pattern} {stack}"
            );
        }
    }
}
