//! YAML text as events with exact places, and the comments between them.
//!
//! What a document means is decided by the parser library. Its places are rough, and it knows no comments, so both
//! are found here, in the gaps between scalars, where only a handful of characters can stand.

use std::ops::Range;

use saphyr_parser::{Event as Parsed, Parser, ScalarStyle, Span, Tag};

use super::YamlError;

/// Deeper nesting is refused.
const DEEPEST: usize = 128;

#[derive(Debug)]
pub(crate) enum Event {
    DocumentStart,
    DocumentEnd,
    Start {
        list: bool,
        flow: bool,
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

#[derive(Debug, Clone)]
pub(crate) struct Remark {
    /// From the `#` to the end of the line.
    pub(crate) span: Range<usize>,
    /// It stands before this event.
    pub(crate) before: usize,
}

pub(crate) struct Scanned {
    pub(crate) events: Vec<Event>,
    pub(crate) remarks: Vec<Remark>,
}

pub(crate) fn scan(text: &str) -> Result<Scanned, YamlError> {
    let offsets: Vec<usize> = text.char_indices().map(|(offset, _)| offset).chain([text.len()]).collect();
    let mut scanner = Scanner {
        text,
        offsets,
        cursor: 0,
        events: Vec::new(),
        remarks: Vec::new(),
        depth: 0,
        passed_tag: None,
    };
    for parsed in Parser::new_from_str(text) {
        let (event, span) = parsed.map_err(|error| YamlError::Syntax {
            line: error.marker().line(),
            // The message may quote the text, and the text may be a secret.
            reason: without_quotes(error.info()),
        })?;
        scanner.event(event, span)?;
    }
    scanner.gap_to(text.len())?;
    Ok(Scanned { events: scanner.events, remarks: scanner.remarks })
}

/// Cuts what stands in quotes.
fn without_quotes(message: &str) -> String {
    message.split(['\'', '"', '`']).step_by(2).collect::<Vec<_>>().join("…")
}

struct Scanner<'t> {
    text: &'t str,
    /// The byte offset of each character.
    offsets: Vec<usize>,
    /// Everything before this is accounted for.
    cursor: usize,
    events: Vec<Event>,
    remarks: Vec<Remark>,
    depth: usize,
    /// The last tag that a gap had.
    passed_tag: Option<Range<usize>>,
}

impl Scanner<'_> {
    fn event(&mut self, event: Parsed<'_>, span: Span) -> Result<(), YamlError> {
        let start = self.offset(span.start.index());
        let end = self.offset(span.end.index());
        let event = match event {
            Parsed::Nothing | Parsed::StreamStart | Parsed::StreamEnd => return Ok(()),
            Parsed::DocumentStart(explicit) => {
                if explicit {
                    self.gap_to(start)?;
                }
                Event::DocumentStart
            }
            Parsed::DocumentEnd => {
                if self.text[start..].starts_with("...") {
                    self.gap_to(start)?;
                }
                Event::DocumentEnd
            }
            Parsed::SequenceStart(anchor, _) => {
                self.deeper()?;
                Event::Start { list: true, flow: self.text[start..end].ends_with('['), anchor }
            }
            Parsed::MappingStart(anchor, _) => {
                self.deeper()?;
                Event::Start { list: false, flow: self.text[start..end].ends_with('{'), anchor }
            }
            Parsed::SequenceEnd | Parsed::MappingEnd => {
                self.depth -= 1;
                let flow = self.text[start..].starts_with([']', '}']);
                if flow {
                    self.gap_to(start)?;
                }
                Event::End { at: start }
            }
            Parsed::Alias(anchor) => {
                self.gap_to(start)?;
                let end = start + self.text[start..end].trim_end().len();
                self.cursor = end;
                Event::Alias { anchor, span: start..end }
            }
            Parsed::Scalar(text, style, anchor, tag) => {
                Event::Scalar(self.scalar(text.into_owned(), style, anchor, tag.as_deref(), start..end)?)
            }
        };
        self.events.push(event);
        Ok(())
    }

    fn deeper(&mut self) -> Result<(), YamlError> {
        self.depth += 1;
        if self.depth > DEEPEST { Err(YamlError::TooDeep { deepest: DEEPEST }) } else { Ok(()) }
    }

    fn offset(&self, index: usize) -> usize {
        self.offsets.get(index).copied().unwrap_or(self.text.len())
    }

    fn scalar(
        &mut self,
        text: String,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        rough: Range<usize>,
    ) -> Result<Scalar, YamlError> {
        let tag_name = tag.and_then(tag_name);
        if text.is_empty() && style == ScalarStyle::Plain && tag.is_none() && anchor == 0 {
            // A value that is not there. It takes no room, and comments around it belong to what follows.
            return Ok(Scalar {
                text,
                style: Style::Plain,
                tag: None,
                anchor,
                span: rough.start..rough.start,
                block: None,
            });
        }
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        self.passed_tag = None;
        if is_block {
            self.gap(None)?;
        } else {
            self.gap_to(rough.start)?;
        }
        let tag_span = self.properties(is_block)?;
        let start = self.cursor;
        let (span, block) = match style {
            ScalarStyle::Plain if text.is_empty() => (start..start, None),
            ScalarStyle::Plain => {
                (start..start + self.text[start..rough.end.max(start)].trim_end().len(), None)
            }
            ScalarStyle::SingleQuoted => (start..self.single_quoted_end(start)?, None),
            ScalarStyle::DoubleQuoted => (start..self.double_quoted_end(start)?, None),
            ScalarStyle::Literal | ScalarStyle::Folded => self.block(start, rough.end)?,
        };
        self.cursor = block.as_ref().map_or(span.end, |block| block.end);
        let style = match style {
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
            ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
        };
        Ok(Scalar {
            text,
            style,
            tag: tag_name.zip(tag_span).map(|(name, span)| TagAt { name, span }),
            anchor,
            span,
            block,
        })
    }

    /// Passes the tag and the anchor before a scalar, and returns where the tag is.
    fn properties(&mut self, is_block: bool) -> Result<Option<Range<usize>>, YamlError> {
        let mut tag = None;
        if is_block {
            // The gap before a block passed them already. A tag is the block's own if only blanks and an anchor follow.
            return Ok(self.passed_tag.take().filter(|tag| {
                let between = &self.text[tag.end..self.cursor];
                !between.contains('\n')
                    && between.split(' ').all(|word| word.is_empty() || word.starts_with('&'))
            }));
        }
        loop {
            let rest = &self.text[self.cursor..];
            if !rest.starts_with(['!', '&']) {
                return Ok(tag);
            }
            let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let start = self.cursor;
            self.cursor += word;
            let blank =
                self.text[self.cursor..].len() - self.text[self.cursor..].trim_start_matches(' ').len();
            if rest.starts_with('!') {
                tag = Some(start..start + word + blank);
            }
            self.gap_over_blanks()?;
        }
    }

    /// Passes blanks, line breaks and comments.
    fn gap_over_blanks(&mut self) -> Result<(), YamlError> {
        let mut end = self.cursor;
        loop {
            let rest = &self.text[end..];
            let blank = rest.len() - rest.trim_start().len();
            end += blank;
            if blank > 0 && self.text[end..].starts_with('#') {
                end += line_length(&self.text[end..]);
            } else {
                return self.gap_to(end);
            }
        }
    }

    fn gap_to(&mut self, end: usize) -> Result<(), YamlError> {
        self.gap(Some(end))
    }

    /// Passes everything up to `end`, or up to the head of a block, and notes the comments.
    fn gap(&mut self, end: Option<usize>) -> Result<(), YamlError> {
        let bytes = self.text.as_bytes();
        while self.cursor < end.unwrap_or(bytes.len()) {
            let at = self.cursor;
            let at_line_start = at == 0 || bytes[at - 1] == b'\n' || bytes[at - 1] == b'\r';
            match bytes[at] {
                b'|' | b'>' if end.is_none() => return Ok(()),
                b' ' | b'\t' | b'\n' | b'\r' | b'-' | b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' => {
                    self.cursor += 1
                }
                b'#' if at_line_start || bytes[at - 1] == b' ' || bytes[at - 1] == b'\t' => {
                    let length = line_length(&self.text[at..]);
                    self.remarks.push(Remark { span: at..at + length, before: self.events.len() });
                    self.cursor += length;
                }
                b'!' | b'&' => {
                    let rest = &self.text[at..];
                    self.cursor += rest.find(char::is_whitespace).unwrap_or(rest.len());
                    if bytes[at] == b'!' {
                        self.passed_tag = Some(at..self.cursor);
                    }
                }
                b'%' if at_line_start => self.cursor += line_length(&self.text[at..]),
                b'.' if self.text[at..].starts_with("...") => self.cursor += 3,
                0xef if self.text[at..].starts_with('\u{feff}') => self.cursor += '\u{feff}'.len_utf8(),
                _ => return Err(self.unsupported(at)),
            }
        }
        match end {
            // Past the end means that the parser saw a scalar where we saw something else.
            Some(end) if self.cursor > end => Err(self.unsupported(end)),
            None if self.cursor >= bytes.len() => Err(self.unsupported(self.cursor)),
            _ => Ok(()),
        }
    }

    fn single_quoted_end(&self, start: usize) -> Result<usize, YamlError> {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        while at < bytes.len() {
            if bytes[at] == b'\'' {
                if bytes.get(at + 1) != Some(&b'\'') {
                    return self.quoted(start, at, b'\'');
                }
                at += 1;
            }
            at += 1;
        }
        Err(self.unsupported(start))
    }

    fn double_quoted_end(&self, start: usize) -> Result<usize, YamlError> {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        while at < bytes.len() {
            match bytes[at] {
                b'"' => return self.quoted(start, at, b'"'),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        Err(self.unsupported(start))
    }

    fn quoted(&self, start: usize, end: usize, quote: u8) -> Result<usize, YamlError> {
        if self.text.as_bytes()[start] == quote { Ok(end + 1) } else { Err(self.unsupported(start)) }
    }

    /// The head of a block and its lines.
    fn block(
        &mut self,
        start: usize,
        rough_end: usize,
    ) -> Result<(Range<usize>, Option<Range<usize>>), YamlError> {
        let rest = &self.text[start + 1..];
        let hints = rest.bytes().take_while(|byte| byte.is_ascii_digit() || b"+-".contains(byte)).count();
        let head = start..start + 1 + hints;
        let keeps = self.text[head.clone()].contains('+');
        self.cursor = head.end;
        let line_end = head.end + line_length(&self.text[head.end..]);
        self.gap_to(line_end)?;
        let body = &self.text[line_end..rough_end.max(line_end)];
        let kept = if keeps { body.strip_suffix('\n').unwrap_or(body) } else { body.trim_end() };
        let kept = kept.strip_suffix('\r').unwrap_or(kept);
        Ok((head, Some(line_end..line_end + kept.len())))
    }

    fn unsupported(&self, at: usize) -> YamlError {
        let at = at.min(self.text.len());
        YamlError::Layout {
            line: self.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1,
        }
    }
}

fn line_length(text: &str) -> usize {
    text.find(['\n', '\r']).unwrap_or(text.len())
}

/// The name of a tag in short; `None` for a lone `!`, which says nothing here.
fn tag_name(tag: &Tag) -> Option<String> {
    const PREFIX: &str = "tag:yaml.org,2002:";
    if tag.is_yaml_core_schema() {
        return Some(tag.suffix.clone());
    }
    let whole = format!("{}{}", tag.handle, tag.suffix);
    match whole.strip_prefix(PREFIX) {
        Some(own) => Some(own.to_owned()),
        None if whole == "!" => None,
        None => Some(format!("!{}", whole.trim_start_matches('!'))),
    }
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
        scanned.remarks.into_iter().map(|remark| text[remark.span].to_owned()).collect()
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
}
