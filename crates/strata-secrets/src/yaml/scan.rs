//! YAML text as events with exact places, and the comments between them.

use std::collections::HashMap;
use std::ops::Range;

use super::token::tokens;
use super::{YamlError, parse};

#[derive(Debug)]
pub(crate) enum Event {
    /// Where the document's marker stands, or its first content.
    DocumentStart {
        at: usize,
    },
    DocumentEnd,
    Start {
        list: bool,
        /// Where its bracket or brace stands, if it has one.
        flow: Option<usize>,
        anchor: usize,
    },
    /// Where a flow collection was closed.
    End {
        at: usize,
    },
    Scalar(Scalar),
    Alias {
        anchor: usize,
        span: Range<usize>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Style {
    Plain,
    Quoted,
    Block,
}

#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    pub(crate) style: Style,
    pub(crate) tag: Option<TagAt>,
    pub(crate) anchor: usize,
    /// The scalar without its tag and anchor; of a block, only its head (`|-`).
    pub(crate) span: Range<usize>,
    /// The lines of a block, each with the line break before it.
    pub(crate) block: Option<Range<usize>>,
}

#[derive(Debug, Clone)]
pub(crate) struct TagAt {
    /// `str` for `!!str`, `!vault` for `!vault`.
    pub(crate) name: String,
    /// Where it stands, with the blanks after it.
    pub(crate) span: Range<usize>,
}

impl TagAt {
    /// Whether it is one of YAML's own, which decides the type of the scalar.
    pub(crate) fn is_own(&self) -> bool {
        !self.name.starts_with('!')
    }
}

pub(crate) struct Scanned {
    pub(crate) events: Vec<Event>,
    /// Each comment, from its `#` to the end of its line.
    pub(crate) remarks: Vec<Range<usize>>,
    /// The dash of each item of a list, by the item's first event.
    pub(crate) dashes: HashMap<usize, usize>,
}

pub(crate) fn scan(text: &str) -> Result<Scanned, YamlError> {
    let tokens = tokens(text)?;
    let (events, dashes) = parse::parse(text, &tokens.tokens)?;
    Ok(Scanned { events, remarks: tokens.remarks, dashes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalars(text: &str) -> Vec<String> {
        let scanned = scan(text).unwrap_or_else(|error| panic!("{error}"));
        let place = |event: Event| match event {
            Event::Scalar(scalar) => {
                let block = scalar.block.map(|block| &text[block]).unwrap_or_default();
                Some(format!("{}{block}", &text[scalar.span]))
            }
            Event::Alias { span, .. } => Some(text[span].to_owned()),
            _ => None,
        };
        scanned.events.into_iter().filter_map(place).collect()
    }

    fn remarks(text: &str) -> Vec<String> {
        let scanned = scan(text).unwrap_or_else(|error| panic!("{error}"));
        scanned.remarks.into_iter().map(|remark| text[remark].to_owned()).collect()
    }

    #[test]
    fn every_scalar_is_found_where_it_stands() {
        let text = "a: plain   # c\n\"b c\": 'single\n  it''s'   # d\nl: !!str |-  # e\n  one\n\n  # two\n# f\nf: >+\n  x\n\nm: multi\n  line\nflow: &x {k: v, j: [1, \"q\\\"\"] } # g\nal: *x\nt: !!str 5\n";
        assert_eq!(
            scalars(text),
            [
                "a",
                "plain",
                "\"b c\"",
                "'single\n  it''s'",
                "l",
                "|-\n  one\n\n  # two",
                "f",
                ">+\n  x\n",
                "m",
                "multi\n  line",
                "flow",
                "k",
                "v",
                "j",
                "1",
                "\"q\\\"\"",
                "al",
                "*x",
                "t",
                "5",
            ]
        );
        assert_eq!(remarks(text), ["# c", "# d", "# e", "# f", "# g"]);
    }

    #[test]
    fn comments_are_found_around_documents_and_lists() {
        let text =
            "# 0\n---\n# 1\na: # 2\n  - x # 3\n  # 4\n  - # 5\n    b: 1\n# 6\n...\n# 7\n---\nc: ü # 8\n#9";
        assert_eq!(remarks(text), ["# 0", "# 1", "# 2", "# 3", "# 4", "# 5", "# 6", "# 7", "# 8", "#9"]);
    }

    #[test]
    fn a_number_sign_in_a_scalar_is_no_comment() {
        assert_eq!(remarks("a: b#c\nd: \"# x\"\ne: '# y'\nf: |\n  # z\ng: x:#y\n"), Vec::<String>::new());
    }

    #[test]
    fn errors_have_a_line_and_quote_nothing() {
        let error = scan("a: 1\nb: \"hunter2\nc: 2\n").err().expect("an open quote").to_string();
        assert!(!error.contains("hunter2"), "{error}");
        assert!(matches!(scan(&"[".repeat(1000)), Err(YamlError::TooDeep { .. } | YamlError::Syntax { .. })));
    }

    #[test]
    fn tags_of_yaml_are_known_in_every_spelling() {
        for text in
            ["a: !!str 5", "a: !<tag:yaml.org,2002:str> 5", "%TAG !y! tag:yaml.org,2002:\n---\na: !y!str 5"]
        {
            let scanned = scan(text).unwrap_or_else(|error| panic!("{error}"));
            let tag = scanned.events.iter().find_map(|event| match event {
                Event::Scalar(Scalar { tag: Some(tag), .. }) => Some(tag.name.as_str()),
                _ => None,
            });
            assert_eq!(tag, Some("str"), "{text}");
        }
    }

    #[test]
    fn what_sops_writes_for_an_empty_mapping_with_a_comment_is_read() {
        assert_eq!(remarks("a:\n    b: {\n        #c\n}\n"), ["#c"]);
    }

    #[test]
    fn broken_yaml_is_refused() {
        for text in [
            "a: b: c\n",
            "a: 'x\n",
            "a: [1\n",
            "a: }\n",
            "a:\n  - b\n c: d\n",
            "a: *x\n",
            "a: @x\n",
            "\ta: b\n",
            "a: |x\n  y\n",
            "%FOO\n---\na: b\n",
            "a: \"\\q\"\n",
            "a\nb: c\n",
            "a: \u{1}\n",
            "- a\nb: c\n",
            "a: !x!y z\n",
        ] {
            assert!(scan(text).is_err(), "{text:?}");
        }
    }
}
