//! Templates of Go, as far as patches of Talos use them: values, conditions, loops and a few functions.

use super::eval::{each, word};
use super::tree::{Content, SourceLine, Tree};

enum Part {
    Text(String),
    /// What stands between the braces, and its line.
    Action(String, usize),
}

/// The text with everything filled in; or what is not understood, with its line.
pub(super) fn fill(text: &str, data: &Tree) -> Result<String, (usize, String)> {
    let parts = split(text)?;
    let mut filler = Filler { parts: &parts, at: 0, out: String::new(), variables: Vec::new(), root: data };
    filler.run(data, true)?;
    Ok(filler.out)
}

fn split(text: &str) -> Result<Vec<Part>, (usize, String)> {
    let (mut parts, mut rest, mut line) = (Vec::new(), text, 1);
    while let Some(start) = rest.find("{{") {
        let (before, action) = rest.split_at(start);
        line += before.matches('\n').count();
        let Some(end) = action.find("}}") else {
            return Err((line, "`{{` is not closed".to_owned()));
        };
        let inner = &action[2..end];
        let own = line;
        line += inner.matches('\n').count();
        // `-` beside the braces takes the white space there away.
        let before = if inner.starts_with('-') { before.trim_end() } else { before };
        parts.push(Part::Text(before.to_owned()));
        let inner_text = inner.strip_prefix('-').unwrap_or(inner);
        let cut = inner_text.ends_with('-');
        let inner_text = inner_text.strip_suffix('-').unwrap_or(inner_text);
        parts.push(Part::Action(inner_text.trim().to_owned(), own));
        rest = &action[end + 2..];
        if cut {
            let trimmed = rest.trim_start();
            line += rest[..rest.len() - trimmed.len()].matches('\n').count();
            rest = trimmed;
        }
    }
    parts.push(Part::Text(rest.to_owned()));
    Ok(parts)
}

struct Filler<'t> {
    parts: &'t [Part],
    at: usize,
    out: String,
    variables: Vec<(String, Tree)>,
    root: &'t Tree,
}

impl Filler<'_> {
    /// Runs up to the `end` or `else` of this block, which is returned.
    fn run(&mut self, dot: &Tree, print: bool) -> Result<Option<(String, usize)>, (usize, String)> {
        while let Some(part) = self.parts.get(self.at) {
            self.at += 1;
            match part {
                Part::Text(text) if print => self.out.push_str(text),
                Part::Text(_) => {}
                Part::Action(action, line) => {
                    let (word, rest) = action.split_once(char::is_whitespace).unwrap_or((action, ""));
                    match word {
                        _ if action.starts_with("/*") => {}
                        "end" | "else" => return Ok(Some((action.clone(), *line))),
                        "if" => self.choose(rest, *line, dot, print)?,
                        "range" => self.repeat(rest, *line, dot, print)?,
                        "with" => self.with(rest, *line, dot, print)?,
                        _ if !print => {}
                        _ => self.print(action, *line, dot)?,
                    }
                }
            }
        }
        Ok(None)
    }

    fn print(&mut self, action: &str, line: usize, dot: &Tree) -> Result<(), (usize, String)> {
        if let Some((name, expression)) = action.split_once(":=").or_else(|| action.split_once('='))
            && name.trim().starts_with('$')
        {
            let value = self.pipeline(expression.trim(), line, dot)?;
            self.variables.push((name.trim().to_owned(), value));
            return Ok(());
        }
        let value = self.pipeline(action, line, dot)?;
        let text = word(&value).ok_or_else(|| (line, format!("`{action}` is no text")))?;
        value.take_all();
        self.out.push_str(&text);
        Ok(())
    }

    fn choose(
        &mut self,
        condition: &str,
        line: usize,
        dot: &Tree,
        print: bool,
    ) -> Result<(), (usize, String)> {
        let mut done = false;
        let mut yes = print && truth(&self.pipeline_if(print, condition, line, dot)?);
        loop {
            done |= yes;
            match self.run(dot, yes)? {
                Some((action, line)) if action.starts_with("else if ") => {
                    let condition = action.trim_start_matches("else if ").to_owned();
                    yes =
                        print && !done && truth(&self.pipeline_if(print && !done, &condition, line, dot)?);
                }
                Some((action, _)) if action == "else" => yes = print && !done,
                Some(_) => return Ok(()),
                None => return Err((line, "`if` has no `end`".to_owned())),
            }
        }
    }

    fn repeat(&mut self, over: &str, line: usize, dot: &Tree, print: bool) -> Result<(), (usize, String)> {
        let (names, over) = match over.split_once(":=") {
            Some((names, over)) => {
                (names.split(',').map(|name| name.trim().to_owned()).collect(), over.trim())
            }
            None => (Vec::new(), over),
        };
        let items = self.pipeline_if(print, over, line, dot)?;
        let items = each(&items).unwrap_or_default();
        let (start, known) = (self.at, self.variables.len());
        for (key, value) in &items {
            self.at = start;
            match names.as_slice() {
                [one] => self.variables.push((one.clone(), value.clone())),
                [one, other, ..] => {
                    self.variables.push((one.clone(), key.clone()));
                    self.variables.push((other.clone(), value.clone()));
                }
                [] => {}
            }
            let end = self.run(value, print)?;
            self.variables.truncate(known);
            if end.is_some_and(|(action, _)| action != "end") {
                // What stands for an empty list.
                self.run(dot, false)?;
            }
        }
        if items.is_empty() {
            self.at = start;
            if self.run(dot, false)?.is_some_and(|(action, _)| action == "else") {
                self.run(dot, print)?;
            }
        }
        Ok(())
    }

    fn with(&mut self, value: &str, line: usize, dot: &Tree, print: bool) -> Result<(), (usize, String)> {
        let value = self.pipeline_if(print, value, line, dot)?;
        let yes = truth(&value);
        if self.run(if yes { &value } else { dot }, print && yes)?.is_some_and(|(action, _)| action == "else")
        {
            self.run(dot, print && !yes)?;
        }
        Ok(())
    }

    /// Nothing is looked at in a part that is not printed.
    fn pipeline_if(&self, print: bool, text: &str, line: usize, dot: &Tree) -> Result<Tree, (usize, String)> {
        if print { self.pipeline(text, line, dot) } else { Ok(nothing(dot)) }
    }

    fn pipeline(&self, text: &str, line: usize, dot: &Tree) -> Result<Tree, (usize, String)> {
        let mut value: Option<Tree> = None;
        for stage in pieces(text, '|') {
            let mut words = pieces(&stage, ' ').into_iter().filter(|word| !word.is_empty());
            let first = words.next().unwrap_or_default();
            let mut arguments = Vec::new();
            for word in words {
                arguments.push(self.operand(&word, line, dot)?);
            }
            let is_function = first.chars().next().is_some_and(char::is_alphabetic)
                && !matches!(first.as_str(), "true" | "false" | "nil");
            value = Some(if is_function {
                arguments.extend(value);
                call(&first, &arguments, &dot.place)
                    .ok_or_else(|| (line, format!("`{first}` is not understood here")))?
            } else {
                self.operand(&first, line, dot)?
            });
        }
        value.ok_or_else(|| (line, "`{{ }}` is empty".to_owned()))
    }

    fn operand(&self, text: &str, line: usize, dot: &Tree) -> Result<Tree, (usize, String)> {
        let literal = |content: Content| Ok(Tree::new(dot.place.clone(), content));
        if let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
            return self.pipeline(inner, line, dot);
        }
        for quote in ['"', '`'] {
            if let Some(inner) = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)) {
                return literal(Content::Text(inner.replace("\\n", "\n").replace("\\\"", "\"")));
            }
        }
        if let Ok(number) = text.parse::<f64>() {
            return literal(Content::Number(number));
        }
        if let Ok(value) = text.parse::<bool>() {
            return literal(Content::Bool(value));
        }
        let (start, path) = if let Some(rest) = text.strip_prefix('$') {
            let (name, path) = rest.split_once('.').unwrap_or((rest, ""));
            if name.is_empty() {
                (self.root.clone(), path)
            } else {
                let wanted = format!("${name}");
                let found = self.variables.iter().rev().find(|(known, _)| *known == wanted);
                (
                    found
                        .map(|(_, tree)| tree.clone())
                        .ok_or_else(|| (line, format!("`{wanted}` is not known")))?,
                    path,
                )
            }
        } else if let Some(path) = text.strip_prefix('.') {
            (dot.clone(), path)
        } else {
            return Err((line, format!("`{text}` is not understood here")));
        };
        let mut tree = start;
        for key in path.split('.').filter(|key| !key.is_empty()) {
            // What is not there is nothing, as in Go.
            tree = tree.get(key).cloned().unwrap_or_else(|| nothing(dot));
        }
        Ok(tree)
    }
}

fn nothing(dot: &Tree) -> Tree {
    Tree::new(dot.place.clone(), Content::Null)
}

fn truth(tree: &Tree) -> bool {
    let yes = match &tree.content {
        Content::Null | Content::Unknown(_) => false,
        Content::Bool(value) => *value,
        Content::Number(number) => *number != 0.0,
        Content::Text(text) => !text.is_empty(),
        Content::List(items) => !items.is_empty(),
        Content::Map(entries) => !entries.is_empty(),
    };
    // A scalar that decided something was of use.
    if super::is_scalar(&tree.content) {
        tree.take_all();
    }
    yes
}

fn call(name: &str, arguments: &[Tree], place: &SourceLine) -> Option<Tree> {
    let first = arguments.first()?;
    let text = |tree: &Tree| word(tree);
    let made = |content: Content| {
        let parts: Vec<&Tree> = arguments.iter().collect();
        Some(Tree::made_of(place.clone(), content, &parts))
    };
    match name {
        "eq" => made(Content::Bool(arguments.get(1..)?.iter().any(|other| text(other) == text(first)))),
        "ne" => made(Content::Bool(text(first) != text(arguments.get(1)?))),
        "not" => made(Content::Bool(!truth(first))),
        "and" => Some(arguments.iter().find(|tree| !truth(tree)).unwrap_or(arguments.last()?).clone()),
        "or" => Some(arguments.iter().find(|tree| truth(tree)).unwrap_or(arguments.last()?).clone()),
        "quote" => made(Content::Text(format!("{:?}", text(first)?))),
        "squote" => made(Content::Text(format!("'{}'", text(first)?))),
        "toString" | "print" => made(Content::Text(text(first)?)),
        "lower" => made(Content::Text(text(first)?.to_lowercase())),
        "upper" => made(Content::Text(text(first)?.to_uppercase())),
        "trim" => made(Content::Text(text(first)?.trim().to_owned())),
        "default" => Some(arguments.get(1).filter(|tree| truth(tree)).unwrap_or(first).clone()),
        "index" => {
            let key = arguments.get(1)?;
            match &first.content {
                Content::List(items) => items.get(usize::try_from(key.as_int()?).ok()?).cloned(),
                _ => first.get(&text(key)?).cloned(),
            }
        }
        "printf" => {
            let pattern = text(first)?;
            let mut words = arguments.get(1..)?.iter();
            let mut out = String::new();
            let mut letters = pattern.chars();
            while let Some(letter) = letters.next() {
                match (letter, letter == '%') {
                    (_, true) => match letters.next()? {
                        's' | 'd' | 'v' => out.push_str(&text(words.next()?)?),
                        '%' => out.push('%'),
                        _ => return None,
                    },
                    (letter, false) => out.push(letter),
                }
            }
            made(Content::Text(out))
        }
        "replace" => {
            let (old, new, source) = (text(first)?, text(arguments.get(1)?)?, text(arguments.get(2)?)?);
            made(Content::Text(source.replace(&old, &new)))
        }
        "splitList" => {
            let source = arguments.get(1)?;
            let whole = text(source)?;
            let part = |part: &str| Tree::made_of(place.clone(), Content::Text(part.to_owned()), &[source]);
            Some(Tree::list_of(place.clone(), whole.split(text(first)?.as_str()).map(part).collect()))
        }
        "first" => first.items().first().cloned(),
        "last" => first.items().last().cloned(),
        "join" => {
            let words: Option<Vec<String>> = arguments.get(1)?.items().iter().map(text).collect();
            made(Content::Text(words?.join(&text(first)?)))
        }
        "len" => made(Content::Number(first.items().len() as f64)),
        "toYaml" | "toJson" => made(Content::Text(written(first, name == "toJson"))),
        "indent" | "nindent" => {
            let spaces = " ".repeat(usize::try_from(first.as_int_in(0..=64)?).ok()?);
            let source = text(arguments.get(1)?)?;
            let lines: Vec<String> = source.lines().map(|line| format!("{spaces}{line}")).collect();
            let start = if name == "nindent" { "\n" } else { "" };
            made(Content::Text(format!("{start}{}", lines.join("\n"))))
        }
        _ => None,
    }
}

fn written(tree: &Tree, json: bool) -> String {
    let value = super::talos::as_json(tree);
    if json { value.to_string() } else { strata_yaml::plain::write(&value).trim_end().to_owned() }
}

/// The parts between separators that stand outside of quotes and parentheses.
fn pieces(text: &str, separator: char) -> Vec<String> {
    let (mut found, mut current, mut depth, mut quote) = (Vec::new(), String::new(), 0_i32, None);
    for letter in text.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '"' || letter == '`' => quote = Some(letter),
            None if letter == '(' => depth += 1,
            None if letter == ')' => depth -= 1,
            None if letter == separator && depth == 0 => {
                found.push(std::mem::take(&mut current).trim().to_owned());
                continue;
            }
            None => {}
        }
        current.push(letter);
    }
    found.push(current.trim().to_owned());
    found
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn filled(text: &str) -> Result<String, (usize, String)> {
        let data = "Node: {Host: a, IP: 192.0.2.7, Role: control-plane, Data: {links: [x, y], mtu: 9000}}\nData: {none: []}\n";
        fill(text, &parse::yaml("topf.yaml", data).0.unwrap())
    }

    #[test]
    fn values_conditions_and_loops() {
        assert_eq!(filled("name: {{ .Node.Host }}\n").unwrap(), "name: a\n");
        assert_eq!(
            filled("l:\n{{- range .Node.Data.links }}\n  - {{ . }}\n{{- end }}\n").unwrap(),
            "l:\n  - x\n  - y\n"
        );
        let choice = "{{- if eq .Node.Role \"worker\" }}w{{ else if .Data.none }}n{{ else }}c{{ end }}";
        assert_eq!(filled(choice).unwrap(), "c");
        assert_eq!(filled("{{- if .Data.none }}\na: {{ .Data.none.x | what }}\n{{- end }}").unwrap(), "");
        let octet = "{{ $last := last (splitList \".\" .Node.IP) }}10.0.0.{{ $last }}";
        assert_eq!(filled(octet).unwrap(), "10.0.0.7");
        assert_eq!(filled("m: {{ .Node.Data.mtu | quote }}{{/* no */}}").unwrap(), "m: \"9000\"");
    }

    #[test]
    fn what_is_not_understood_is_told_with_its_line() {
        assert_eq!(filled("a\n{{ env \"HOME\" }}\n").unwrap_err().0, 2);
        assert!(filled("a {{ .x").is_err());
    }
}
