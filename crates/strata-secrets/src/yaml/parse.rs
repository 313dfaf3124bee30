//! Tokens as events: the grammar of YAML.

use std::collections::HashMap;

use super::scan::{Event, Scalar, Style, TagAt};
use super::token::{Kind, Token};
use super::{YamlError, line_of};

/// Deeper nesting is refused.
const DEEPEST: usize = 128;

/// The events, and the dash of each item of a list by the item's first event.
type Parsed = (Vec<Event>, HashMap<usize, usize>);

pub(super) fn parse(text: &str, tokens: &[Token]) -> Result<Parsed, YamlError> {
    let mut parser = Parser {
        text,
        tokens,
        next: 0,
        events: Vec::new(),
        dashes: HashMap::new(),
        anchors: HashMap::new(),
        last_anchor: 0,
        handles: HashMap::new(),
        depth: 0,
    };
    parser.stream()?;
    Ok((parser.events, parser.dashes))
}

struct Parser<'t> {
    text: &'t str,
    tokens: &'t [Token],
    next: usize,
    events: Vec<Event>,
    dashes: HashMap<usize, usize>,
    /// The latest anchor of each name, by number.
    anchors: HashMap<String, usize>,
    last_anchor: usize,
    /// What `%TAG` lines say.
    handles: HashMap<String, String>,
    depth: usize,
}

/// A tag and an anchor before a node.
#[derive(Default)]
struct Properties {
    tag: Option<TagAt>,
    anchor: usize,
    start: Option<usize>,
}

impl Parser<'_> {
    fn peek(&self) -> &Kind {
        // The last token is the end of the stream, and it is never passed.
        &self.tokens[self.next.min(self.tokens.len() - 1)].kind
    }

    fn at(&self) -> usize {
        self.tokens[self.next.min(self.tokens.len() - 1)].span.start
    }

    fn error(&self, reason: &str) -> YamlError {
        YamlError::Syntax { line: line_of(self.text, self.at()), reason: reason.to_owned() }
    }

    fn stream(&mut self) -> Result<(), YamlError> {
        let mut first = true;
        loop {
            let ended = std::mem::take(&mut first) | self.skip_ends();
            self.directives()?;
            if *self.peek() == Kind::StreamEnd {
                return Ok(());
            }
            self.anchors.clear();
            self.events.push(Event::DocumentStart { at: self.at() });
            if *self.peek() == Kind::DocumentStart {
                self.next += 1;
            } else if !ended {
                return Err(self.error("expected the start of a document"));
            }
            match self.peek() {
                Kind::DocumentStart | Kind::DocumentEnd | Kind::Directive | Kind::StreamEnd => self.empty(),
                _ => self.node(true, false)?,
            }
            self.events.push(Event::DocumentEnd);
        }
    }

    fn skip_ends(&mut self) -> bool {
        let before = self.next;
        while *self.peek() == Kind::DocumentEnd {
            self.next += 1;
        }
        self.next > before
    }

    fn directives(&mut self) -> Result<(), YamlError> {
        let mut any = false;
        self.handles.clear();
        while *self.peek() == Kind::Directive {
            any = true;
            let line = &self.text[self.tokens[self.next].span.clone()];
            let words: Vec<&str> =
                line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
            match words.as_slice() {
                ["%YAML", version] if version.starts_with("1.") => {}
                ["%TAG", handle, prefix] => {
                    drop(self.handles.insert((*handle).to_owned(), (*prefix).to_owned()))
                }
                _ => return Err(self.error("an unknown directive")),
            }
            self.next += 1;
        }
        if any && *self.peek() != Kind::DocumentStart {
            return Err(self.error("expected `---` behind a directive"));
        }
        Ok(())
    }

    /// A value that is not there.
    fn empty(&mut self) {
        let at = self.at();
        self.empty_at(at);
    }

    fn empty_at(&mut self, at: usize) {
        self.events.push(Event::Scalar(Scalar {
            text: String::new(),
            style: Style::Plain,
            tag: None,
            anchor: 0,
            span: at..at,
            block: None,
        }));
    }

    fn properties(&mut self) -> Result<Properties, YamlError> {
        let mut properties = Properties::default();
        loop {
            let token = &self.tokens[self.next.min(self.tokens.len() - 1)];
            match &token.kind {
                Kind::Anchor(name) if properties.anchor == 0 => {
                    self.last_anchor += 1;
                    self.anchors.insert(name.clone(), self.last_anchor);
                    properties.anchor = self.last_anchor;
                }
                Kind::Tag(tag) if properties.tag.is_none() => {
                    let rest = &self.text[token.span.end..];
                    let blanks = rest.len() - rest.trim_start_matches(' ').len();
                    let span = token.span.start..token.span.end + blanks;
                    properties.tag = self.tag_name(tag)?.map(|name| TagAt { name, span });
                }
                _ => return Ok(properties),
            }
            properties.start.get_or_insert(token.span.end);
            self.next += 1;
        }
    }

    /// The short name of a tag; `None` for a lone `!`, which says nothing here.
    fn tag_name(&self, tag: &str) -> Result<Option<String>, YamlError> {
        const OWN: &str = "tag:yaml.org,2002:";
        if tag == "!" {
            return Ok(None);
        }
        let whole = if let Some(verbatim) = tag.strip_prefix("!<").and_then(|rest| rest.strip_suffix('>')) {
            verbatim.to_owned()
        } else if let Some((handle, suffix)) = tag[1..].split_once('!') {
            let handle = format!("!{handle}!");
            match self.handles.get(&handle) {
                Some(prefix) => format!("{prefix}{suffix}"),
                None if handle == "!!" => format!("{OWN}{suffix}"),
                None => return Err(self.error("a tag with an unknown handle")),
            }
        } else {
            match self.handles.get("!") {
                Some(prefix) => format!("{prefix}{}", &tag[1..]),
                None => tag.to_owned(),
            }
        };
        Ok(Some(match whole.strip_prefix(OWN) {
            Some(own) => own.to_owned(),
            None => format!("!{}", whole.trim_start_matches('!')),
        }))
    }

    fn node(&mut self, block: bool, indentless: bool) -> Result<(), YamlError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(YamlError::TooDeep { deepest: DEEPEST });
        }
        self.node_inner(block, indentless)?;
        self.depth -= 1;
        Ok(())
    }

    fn node_inner(&mut self, block: bool, indentless: bool) -> Result<(), YamlError> {
        let token = &self.tokens[self.next.min(self.tokens.len() - 1)];
        if let Kind::Alias(name) = &token.kind {
            let anchor = *self.anchors.get(name).ok_or_else(|| self.error("an alias without its anchor"))?;
            self.events.push(Event::Alias { anchor, span: token.span.clone() });
            self.next += 1;
            return Ok(());
        }
        let properties = self.properties()?;
        let anchor = properties.anchor;
        let token = &self.tokens[self.next.min(self.tokens.len() - 1)];
        match &token.kind {
            Kind::Entry if indentless => self.list(anchor, true),
            Kind::Scalar { text, style, block } => {
                let (text, style, block) = (text.clone(), *style, block.clone());
                let (tag, span) = (properties.tag, token.span.clone());
                self.events.push(Event::Scalar(Scalar { text, style, tag, anchor, span, block }));
                self.next += 1;
                Ok(())
            }
            Kind::FlowListStart => self.flow_list(anchor),
            Kind::FlowMapStart => self.flow_map(anchor),
            Kind::BlockListStart if block => {
                self.next += 1;
                self.list(anchor, false)
            }
            Kind::BlockMapStart if block => self.block_map(anchor),
            _ => match properties.start {
                Some(end) => {
                    self.empty_at(end);
                    if let Some(Event::Scalar(scalar)) = self.events.last_mut() {
                        (scalar.tag, scalar.anchor) = (properties.tag, anchor);
                    }
                    Ok(())
                }
                None => Err(self.error("expected a value")),
            },
        }
    }

    /// The items of a list of dashes. One whose dashes stand below its key has no end of its own.
    fn list(&mut self, anchor: usize, indentless: bool) -> Result<(), YamlError> {
        self.events.push(Event::Start { list: true, flow: None, anchor });
        while *self.peek() == Kind::Entry {
            self.dashes.insert(self.events.len(), self.at());
            self.next += 1;
            match self.peek() {
                Kind::Entry | Kind::BlockEnd => self.empty(),
                Kind::Key | Kind::Value if indentless => self.empty(),
                _ => self.node(true, false)?,
            }
        }
        let at = self.at();
        if !indentless {
            self.expect(&Kind::BlockEnd, "expected a `-` of the list")?;
        }
        self.events.push(Event::End { at });
        Ok(())
    }

    fn block_map(&mut self, anchor: usize) -> Result<(), YamlError> {
        self.next += 1;
        self.events.push(Event::Start { list: false, flow: None, anchor });
        while *self.peek() == Kind::Key {
            self.next += 1;
            match self.peek() {
                Kind::Key | Kind::Value | Kind::BlockEnd => self.empty(),
                _ => self.node(true, true)?,
            }
            if *self.peek() != Kind::Value {
                self.empty();
                continue;
            }
            let colon = self.at() + 1;
            self.next += 1;
            match self.peek() {
                Kind::Key | Kind::Value | Kind::BlockEnd => self.empty_at(colon),
                _ => self.node(true, true)?,
            }
        }
        let at = self.at();
        self.expect(&Kind::BlockEnd, "expected a key")?;
        self.events.push(Event::End { at });
        Ok(())
    }

    fn flow_list(&mut self, anchor: usize) -> Result<(), YamlError> {
        self.events.push(Event::Start { list: true, flow: Some(self.at()), anchor });
        self.next += 1;
        while *self.peek() != Kind::FlowListEnd {
            if *self.peek() == Kind::Key {
                // A single pair in a list is a mapping of its own.
                self.events.push(Event::Start { list: false, flow: Some(self.at()), anchor: 0 });
                self.flow_pair()?;
                let at = self.at();
                self.events.push(Event::End { at });
            } else {
                self.node(false, false)?;
            }
            self.comma_or(&Kind::FlowListEnd, "expected `,` or `]`")?;
        }
        let at = self.at();
        self.next += 1;
        self.events.push(Event::End { at });
        Ok(())
    }

    fn flow_map(&mut self, anchor: usize) -> Result<(), YamlError> {
        self.events.push(Event::Start { list: false, flow: Some(self.at()), anchor });
        self.next += 1;
        while *self.peek() != Kind::FlowMapEnd {
            if *self.peek() == Kind::Key {
                self.flow_pair()?;
            } else {
                self.node(false, false)?;
                self.empty();
            }
            self.comma_or(&Kind::FlowMapEnd, "expected `,` or `}`")?;
        }
        let at = self.at();
        self.next += 1;
        self.events.push(Event::End { at });
        Ok(())
    }

    fn flow_pair(&mut self) -> Result<(), YamlError> {
        self.next += 1;
        let ends = |kind: &Kind| matches!(kind, Kind::Comma | Kind::FlowListEnd | Kind::FlowMapEnd);
        if *self.peek() == Kind::Value || ends(self.peek()) {
            self.empty()
        } else {
            self.node(false, false)?
        }
        if *self.peek() != Kind::Value {
            self.empty();
            return Ok(());
        }
        self.next += 1;
        if ends(self.peek()) {
            self.empty();
            return Ok(());
        }
        self.node(false, false)
    }

    fn comma_or(&mut self, end: &Kind, reason: &str) -> Result<(), YamlError> {
        match self.peek() {
            Kind::Comma => {
                self.next += 1;
                Ok(())
            }
            kind if kind == end => Ok(()),
            _ => Err(self.error(reason)),
        }
    }

    fn expect(&mut self, kind: &Kind, reason: &str) -> Result<(), YamlError> {
        if self.peek() != kind {
            return Err(self.error(reason));
        }
        self.next += 1;
        Ok(())
    }
}
