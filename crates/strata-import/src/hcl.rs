//! Files of HCL: attributes and blocks, each with the file it stands in.

use std::rc::Rc;

use hcl_edit::Span as _;
use hcl_edit::expr::Expression;
use hcl_edit::structure::{Body, Structure};

use super::parse::{Lines, Problem};
use super::tree::SourceLine;

/// The file that an expression stands in.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) file: Rc<str>,
    lines: Lines,
}

impl Source {
    pub(super) fn of(file: &str, text: &str) -> Self {
        Self { file: file.into(), lines: Lines::of(text) }
    }

    /// The place of an expression; the other one if it has none of its own.
    pub(super) fn place(&self, expression: &Expression, otherwise: &SourceLine) -> SourceLine {
        match expression.span() {
            Some(span) => SourceLine { file: self.file.clone(), line: self.lines.line(span.start) },
            None => otherwise.clone(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) value: Expression,
    pub(super) place: SourceLine,
    pub(super) source: Source,
}

#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) kind: String,
    pub(super) labels: Vec<String>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) blocks: Vec<Block>,
    pub(super) place: SourceLine,
}

impl Block {
    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// The text of an attribute that is nothing but text.
    pub(super) fn literal(&self, name: &str) -> Option<&str> {
        self.attribute(name)?.value.as_str()
    }

    pub(super) fn label(&self, index: usize) -> &str {
        self.labels.get(index).map(String::as_str).unwrap_or_default()
    }
}

/// What stands behind a key that is given again in the same object.
const AGAIN: &str = "__again__";
/// Keys that may be given again in one file.
const MAX_AGAIN: usize = 200;

/// The key as it was written, and whether the object had it before.
pub(super) fn key_of(key: &str) -> (&str, bool) {
    match key.split_once(AGAIN) {
        Some((own, _)) => (own, true),
        None => (key, false),
    }
}

/// A file: its attributes, and its blocks.
pub(super) fn parse(file: &str, text: &str) -> Result<(Vec<Attribute>, Vec<Block>), Problem> {
    let mut text = std::borrow::Cow::Borrowed(text);
    for number in 0..=MAX_AGAIN {
        let source = Source::of(file, &text);
        let error = match hcl_edit::parser::parse_body(&text) {
            Ok(body) => {
                let start = SourceLine { file: source.file.clone(), line: 1 };
                return Ok(of_body(&body, &source, &start));
            }
            Err(error) => error,
        };
        let (line, column) = (error.location().line(), error.location().column());
        // OpenTofu lets the later one win, where this parser gives up: the later key gets another name.
        let renamed = is_key_again(&error).then(|| rename(&text, line, column, number));
        match renamed.flatten().filter(|_| number < MAX_AGAIN) {
            Some(other) => text = other.into(),
            None => {
                let place = SourceLine { file: source.file, line };
                return Err((place, error.message().to_owned()));
            }
        }
    }
    Err((SourceLine::new(file, 1), "too many keys are given twice".to_owned()))
}

/// Whether the parser stopped at a key that its object has already. It has no kinds of errors, only words, which a test holds.
fn is_key_again(error: &hcl_edit::parser::Error) -> bool {
    error.message().contains("redefined object key")
}

/// Gives the key that stands last before a place another name. Lines stay lines.
fn rename(text: &str, line: usize, column: usize, number: usize) -> Option<String> {
    let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let own = text[start..].split_inclusive('\n').next()?;
    let indent = own.len() - own.trim_start().len();
    // The key begins the line, or stands where the parser gave up.
    let at = if column.saturating_sub(1) > indent {
        own.char_indices().nth(column - 1).map_or(indent, |(at, _)| at)
    } else {
        indent
    };
    let key = |from: usize| -> Option<usize> {
        let rest = own.get(from..)?;
        let end = match rest.strip_prefix('"') {
            Some(inner) => inner.find('"')? + 1,
            None => {
                rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != '-')?
            }
        };
        (end > 0).then_some(start + from + end)
    };
    let end = key(at).or_else(|| key(indent))?;
    Some(format!("{}{AGAIN}{number}{}", &text[..end], &text[end..]))
}

fn of_body(body: &Body, source: &Source, above: &SourceLine) -> (Vec<Attribute>, Vec<Block>) {
    let (mut attributes, mut blocks) = (Vec::new(), Vec::new());
    let place = |span: Option<std::ops::Range<usize>>| match span {
        Some(span) => SourceLine { file: source.file.clone(), line: source.lines.line(span.start) },
        None => above.clone(),
    };
    for structure in body.iter() {
        match structure {
            Structure::Attribute(attribute) => attributes.push(Attribute {
                name: attribute.key.to_string(),
                value: attribute.value.clone(),
                place: place(attribute.span()),
                source: source.clone(),
            }),
            Structure::Block(block) => {
                let place = place(block.span());
                let (inner, nested) = of_body(&block.body, source, &place);
                let labels = block.labels.iter().map(|label| label.as_str().to_owned()).collect();
                blocks.push(Block {
                    kind: block.ident.to_string(),
                    labels,
                    attributes: inner,
                    blocks: nested,
                    place,
                });
            }
        }
    }
    (attributes, blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_attributes_have_their_lines() {
        let (attributes, blocks) =
            parse("a.tf", "a = 1\r\nlocals {\r\n  b = {\r\n    c = 2\r\n  }\r\n}\r\n").unwrap();
        assert_eq!((attributes[0].name.as_str(), attributes[0].place.line), ("a", 1));
        assert_eq!((blocks[0].kind.as_str(), blocks[0].place.line), ("locals", 2));
        assert_eq!(blocks[0].attribute("b").unwrap().place.line, 3);
        assert_eq!(parse("b.tf", "a = 1\nb = = 2\n").unwrap_err().0.line, 2);
    }

    #[test]
    fn a_key_that_is_given_twice_does_not_cost_the_file() {
        let text = "a = {\n  x = 1\n  \"y\" = 2\n  x = 3\n  \"y\" = 4\n  x = 5\n}\nb = 6\n";
        let (attributes, _) = parse("a.tfvars", text).unwrap();
        assert_eq!(attributes.len(), 2);
        assert_eq!(attributes[1].place.line, 8);
        let again = attributes[0]
            .value
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| key_of(&key_text(key)).1)
            .count();
        assert_eq!(again, 3);
        assert_eq!(key_of("x__again__0"), ("x", true));
    }

    fn key_text(key: &hcl_edit::expr::ObjectKey) -> String {
        match key.as_ident() {
            Some(ident) => ident.to_string(),
            None => key.as_expr().and_then(Expression::as_str).unwrap_or_default().to_owned(),
        }
    }
}
