//! The tree of a text, with the places of its signs: what the layout is made from.

use std::collections::VecDeque;

use saphyr_parser::ScalarStyle;

use crate::Left;
use crate::token::{Said, Sign, Token, Tokens, line_of};

/// One document of a stream.
#[derive(Debug)]
pub(crate) struct Document {
    /// Where its `---` is, if it has one.
    pub(crate) begin: Option<Token>,
    pub(crate) root: Option<Node>,
}

#[derive(Debug)]
pub(crate) struct Node {
    /// Anchor and tag as they are written.
    pub(crate) properties: Vec<Token>,
    pub(crate) kind: Kind,
    /// From its properties to its last sign.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

#[derive(Debug)]
pub(crate) enum Kind {
    /// Nothing is written.
    Empty,
    Alias(Token),
    Scalar(Scalar),
    Sequence {
        brackets: Option<Brackets>,
        items: Vec<Item>,
    },
    Mapping {
        brackets: Option<Brackets>,
        entries: Vec<(Node, Node)>,
    },
}

#[derive(Debug)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    pub(crate) style: ScalarStyle,
    pub(crate) at: Token,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Brackets {
    /// Behind the first; where an entry has none of its own, its start.
    pub(crate) open: usize,
    /// Before the last.
    pub(crate) close: usize,
}

#[derive(Debug)]
pub(crate) struct Item {
    /// Where its `-` is; in brackets, where it begins.
    pub(crate) start: usize,
    /// Behind the `-`.
    pub(crate) after: usize,
    pub(crate) node: Node,
}

impl Node {
    /// The first byte of what is not a property.
    pub(crate) fn content(&self) -> usize {
        match &self.kind {
            Kind::Alias(at) | Kind::Scalar(Scalar { at, .. }) => at.start,
            _ => self.start,
        }
    }
}

pub(crate) fn read(text: &str, tokens: &Tokens) -> Result<Vec<Document>, Left> {
    let mut reader = Reader { text, said: tokens.said.clone(), tokens: &tokens.tokens, at: 0 };
    let mut documents = Vec::new();
    while let Some(said) = reader.said.pop_front() {
        let Said::Document { explicit } = said else { continue };
        let begin = reader.next(Sign::Begin);
        if explicit != begin.is_some() {
            return Err(reader.unusual("the beginning of a document"));
        }
        let root = reader.node(false)?;
        let root = Some(root).filter(|root| !matches!(root.kind, Kind::Empty) || !root.properties.is_empty());
        documents.push(Document { begin, root });
        reader.said.pop_front();
    }
    if reader.at < reader.tokens.len() {
        return Err(reader.unusual("a sign at an unexpected place"));
    }
    Ok(documents)
}

struct Reader<'t> {
    text: &'t str,
    said: VecDeque<Said>,
    tokens: &'t [Token],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self, sign: Sign) -> Option<Token> {
        let token = self.peek().filter(|token| token.sign == sign)?;
        self.at += 1;
        Some(token)
    }

    fn expect(&mut self, sign: Sign) -> Result<Token, Left> {
        self.next(sign).ok_or_else(|| self.unusual("a sign at an unexpected place"))
    }

    fn unusual(&self, what: &'static str) -> Left {
        let at = self.peek().map_or(self.text.len(), |token| token.start);
        Left::Unusual { line: line_of(self.text, at), what }
    }

    /// The end of what was read last.
    fn last(&self) -> usize {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.end)
    }

    fn node(&mut self, in_flow: bool) -> Result<Node, Left> {
        let said = self.said.pop_front().ok_or_else(|| self.unusual("the end of the text"))?;
        let count = match &said {
            Said::Scalar { properties, .. }
            | Said::Sequence { properties }
            | Said::Mapping { properties } => *properties,
            _ => 0,
        };
        let properties = (0..count).map(|_| self.expect(Sign::Property)).collect::<Result<Vec<_>, _>>()?;
        let before = properties.first().map(|token| token.start);
        let first = self.peek().map_or(self.text.len(), |token| token.start);
        let kind = match said {
            Said::Alias => Kind::Alias(self.expect(Sign::Value)?),
            Said::Scalar { text, style: ScalarStyle::Plain, .. } if text.is_empty() => Kind::Empty,
            Said::Scalar { text, style, .. } => {
                Kind::Scalar(Scalar { text, style, at: self.expect(Sign::Value)? })
            }
            Said::Sequence { .. } => self.sequence()?,
            Said::Mapping { .. } => self.mapping(in_flow)?,
            Said::Document { .. } | Said::EndDocument | Said::End => {
                return Err(self.unusual("a document without a value"));
            }
        };
        let start = match kind {
            Kind::Empty => before.unwrap_or(self.last()),
            _ => before.unwrap_or(first),
        };
        Ok(Node { properties, kind, start, end: self.last() })
    }

    /// True once the list or mapping that is read ends.
    fn ends(&mut self) -> bool {
        let ends = matches!(self.said.front(), Some(Said::End) | None);
        if ends {
            self.said.pop_front();
        }
        ends
    }

    fn sequence(&mut self) -> Result<Kind, Left> {
        let open = self.next(Sign::Open);
        let mut items = Vec::new();
        while !self.ends() {
            let item = match open {
                Some(_) => {
                    let node = self.node(true)?;
                    self.next(Sign::Comma);
                    Item { start: node.start, after: node.start, node }
                }
                None => {
                    let dash = self.expect(Sign::Dash)?;
                    Item { start: dash.start, after: dash.end, node: self.node(false)? }
                }
            };
            items.push(item);
        }
        Ok(Kind::Sequence { brackets: self.brackets(open)?, items })
    }

    fn brackets(&mut self, open: Option<Token>) -> Result<Option<Brackets>, Left> {
        let Some(open) = open else { return Ok(None) };
        Ok(Some(Brackets { open: open.end, close: self.expect(Sign::Close)?.start }))
    }

    fn mapping(&mut self, in_flow: bool) -> Result<Kind, Left> {
        let open = self.next(Sign::Open);
        let start = self.peek().map_or(self.text.len(), |token| token.start);
        let mut entries = Vec::new();
        while !self.ends() {
            let key = self.node(in_flow || open.is_some())?;
            let is_text = match &key.kind {
                Kind::Scalar(scalar) => !self.text[scalar.at.start..scalar.at.end].contains('\n'),
                Kind::Alias(_) => true,
                _ => false,
            };
            if !is_text {
                return Err(self.unusual("a key that is no text in one line"));
            }
            let flow = in_flow || open.is_some();
            match self.next(Sign::Colon) {
                None if !flow => return Err(self.unusual("a key without `:`")),
                _ => {}
            }
            let value = self.node(flow)?;
            if open.is_some() {
                self.next(Sign::Comma);
            }
            entries.push((key, value));
        }
        let brackets = match open {
            Some(_) => self.brackets(open)?,
            // `[a: 1]`: one entry in a list with brackets, which needs none of its own.
            None if in_flow => Some(Brackets { open: start, close: self.last() }),
            None => None,
        };
        Ok(Kind::Mapping { brackets, entries })
    }
}
