//! A small tree of HCL, written exactly as `tofu fmt` would leave it.
//!
//! Nothing here knows what the blocks mean. The one rule of that formatter that needs care: in a run of lines that each hold a whole
//! attribute, the equals signs stand below each other; a blank line, a block or a value of several lines ends the run.

use std::fmt::Write as _;

/// What can stand to the right of an equals sign.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Text(String),
    Int(i64),
    Bool(bool),
    Null,
    /// Anything that is already HCL: a reference, an operation, a template.
    Raw(String),
    List(Vec<Expr>),
    /// Written on several lines, one for each entry.
    Object(Vec<(String, Expr)>),
    /// Written on one line.
    Inline(Vec<(String, Expr)>),
    Call(&'static str, Vec<Expr>),
}

/// A line, or a run of lines, of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    Attribute(String, Expr),
    Block(Block),
    /// Without the `#`.
    Comment(String),
    Blank,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    pub kind: String,
    pub labels: Vec<String>,
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Body {
    pub items: Vec<Item>,
}

impl Expr {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn raw(text: impl Into<String>) -> Self {
        Self::Raw(text.into())
    }

    pub fn texts<T: ToString>(items: impl IntoIterator<Item = T>) -> Self {
        Self::List(items.into_iter().map(|item| Self::Text(item.to_string())).collect())
    }

    fn is_multiline(&self) -> bool {
        match self {
            Self::Object(entries) => !entries.is_empty(),
            Self::List(items) => items.iter().any(Self::is_multiline),
            Self::Call(_, arguments) => arguments.iter().any(Self::is_multiline),
            Self::Raw(text) => text.contains('\n'),
            _ => false,
        }
    }

    fn write(&self, out: &mut String, depth: usize) {
        match self {
            Self::Text(text) => out.push_str(&quote(text)),
            Self::Int(number) => {
                let _ = write!(out, "{number}");
            }
            Self::Bool(value) => {
                let _ = write!(out, "{value}");
            }
            Self::Null => out.push_str("null"),
            Self::Raw(text) => out.push_str(text),
            Self::List(items) => write_list(items, out, depth),
            Self::Object(entries) => write_object(entries, out, depth),
            Self::Inline(entries) if entries.is_empty() => out.push_str("{}"),
            Self::Inline(entries) => {
                out.push_str("{ ");
                for (index, (key, value)) in entries.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ", " });
                    let _ = write!(out, "{} = ", key_text(key));
                    value.write(out, depth);
                }
                out.push_str(" }");
            }
            Self::Call(name, arguments) => {
                let _ = write!(out, "{name}(");
                for (index, argument) in arguments.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ", " });
                    argument.write(out, depth);
                }
                out.push(')');
            }
        }
    }
}

impl From<&str> for Expr {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<bool> for Expr {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Expr {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl Body {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn attribute(&mut self, name: &str, value: impl Into<Expr>) -> &mut Self {
        self.items.push(Item::Attribute(name.to_owned(), value.into()));
        self
    }

    /// A block with a blank line before it, unless it is the first thing here.
    pub fn block(&mut self, kind: &str, labels: &[&str], fill: impl FnOnce(&mut Body)) -> &mut Self {
        if !self.items.is_empty() && !matches!(self.items.last(), Some(Item::Blank | Item::Comment(_))) {
            self.blank();
        }
        let mut body = Body::new();
        fill(&mut body);
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        self.items.push(Item::Block(Block { kind: kind.to_owned(), labels, body }));
        self
    }

    pub fn comment(&mut self, text: &str) -> &mut Self {
        self.items.extend(text.lines().map(|line| Item::Comment(line.to_owned())));
        self
    }

    pub fn blank(&mut self) -> &mut Self {
        self.items.push(Item::Blank);
        self
    }

    /// The text of a file.
    pub fn render(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out
    }

    fn write(&self, out: &mut String, depth: usize) {
        let lines: Vec<Line<'_>> = self
            .items
            .iter()
            .map(|item| match item {
                Item::Attribute(name, value) => Line::Entry(name.clone(), value),
                other => Line::Other(other),
            })
            .collect();
        write_lines(&lines, out, depth);
    }
}

enum Line<'a> {
    Entry(String, &'a Expr),
    Other(&'a Item),
}

/// Writes entries with aligned equals signs, and all else as it is.
fn write_lines(lines: &[Line<'_>], out: &mut String, depth: usize) {
    let is_short = |line: &Line<'_>| matches!(line, Line::Entry(_, value) if !value.is_multiline());
    let mut at = 0;
    while at < lines.len() {
        let run = lines[at..].iter().take_while(|line| is_short(line)).count();
        let width = lines[at..at + run].iter().map(name_width).max().unwrap_or(0);
        for line in &lines[at..at + run.max(1)] {
            write_line(line, width, out, depth);
        }
        at += run.max(1);
    }
}

fn name_width(line: &Line<'_>) -> usize {
    match line {
        Line::Entry(name, _) => name.chars().count(),
        Line::Other(_) => 0,
    }
}

fn write_line(line: &Line<'_>, width: usize, out: &mut String, depth: usize) {
    match line {
        Line::Entry(name, value) => {
            let width = if value.is_multiline() { 0 } else { width };
            let _ = write!(out, "{}{name:width$} = ", indent(depth));
            value.write(out, depth);
            out.push('\n');
        }
        Line::Other(Item::Blank) => out.push('\n'),
        Line::Other(Item::Comment(text)) => {
            let _ = writeln!(out, "{}", format!("{}# {text}", indent(depth)).trim_end());
        }
        Line::Other(Item::Block(block)) => {
            let _ = write!(out, "{}{}", indent(depth), block.kind);
            for label in &block.labels {
                let _ = write!(out, " {}", quote(label));
            }
            if block.body.items.is_empty() {
                out.push_str(" {}\n");
            } else {
                out.push_str(" {\n");
                block.body.write(out, depth + 1);
                let _ = writeln!(out, "{}}}", indent(depth));
            }
        }
        Line::Other(Item::Attribute(..)) => unreachable!("attributes are entries"),
    }
}

fn write_list(items: &[Expr], out: &mut String, depth: usize) {
    if items.iter().any(Expr::is_multiline) {
        out.push_str("[\n");
        for item in items {
            out.push_str(&indent(depth + 1));
            item.write(out, depth + 1);
            out.push_str(",\n");
        }
        let _ = write!(out, "{}]", indent(depth));
        return;
    }
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        out.push_str(if index == 0 { "" } else { ", " });
        item.write(out, depth);
    }
    out.push(']');
}

fn write_object(entries: &[(String, Expr)], out: &mut String, depth: usize) {
    if entries.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push_str("{\n");
    let lines: Vec<Line<'_>> = entries.iter().map(|(key, value)| Line::Entry(key_text(key), value)).collect();
    write_lines(&lines, out, depth + 1);
    let _ = write!(out, "{}}}", indent(depth));
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth)
}

/// A key of an object, in quotes where it is no identifier.
fn key_text(key: &str) -> String {
    let mut letters = key.chars();
    let first = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if first && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-') {
        key.to_owned()
    } else {
        quote(key)
    }
}

/// A text in quotes; what HCL would take for a template is escaped.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '$' | '%' if letters.peek() == Some(&'{') => {
                out.push(letter);
                out.push(letter);
            }
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_signs_stand_below_each_other_in_a_run() {
        let mut body = Body::new();
        body.block("resource", &["a", "b"], |body| {
            body.attribute("id", 1)
                .attribute("longer_name", "x")
                .attribute("tags", Expr::Object(vec![("a".into(), Expr::Int(1)), ("b c".into(), Expr::Null)]))
                .attribute("z", Expr::texts(["p", "q"]))
                .block("inner", &[], |_| {});
        });
        assert_eq!(
            body.render(),
            "resource \"a\" \"b\" {\n  id          = 1\n  longer_name = \"x\"\n  tags = {\n    a     = 1\n    \"b c\" = null\n  }\n  z = [\"p\", \"q\"]\n\n  inner {}\n}\n"
        );
    }

    #[test]
    fn what_looks_like_a_template_is_escaped() {
        assert_eq!(quote("a ${b} %{c} $d \"e\" \\ \n"), r#""a $${b} %%{c} $d \"e\" \\ \n""#);
    }

    #[test]
    fn lists_of_objects_take_lines() {
        let list = Expr::List(vec![Expr::Object(vec![("a".into(), Expr::Int(1))]), Expr::Object(vec![])]);
        let mut body = Body::new();
        body.attribute("x", list).attribute("e", Expr::List(vec![]));
        assert_eq!(body.render(), "x = [\n  {\n    a = 1\n  },\n  {},\n]\ne = []\n");
    }
}
