//! Files of OpenTofu variables: `name = value` with literal values, as `*.tfvars` has them.
//!
//! Only literals are read. A reference or a function call is not allowed in such a file anyway.

use strata_secret::SecretString;
use zeroize::Zeroizing;

const DEEPEST: usize = 64;

/// What can go wrong while reading variables.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TfvarsError {
    pub line: usize,
    pub reason: String,
}

/// Every scalar with the names that lead to it; items of lists have numbers. Null is left out.
pub fn values(text: &str) -> Result<Vec<(Vec<String>, SecretString)>, TfvarsError> {
    let mut reader = Reader { text, at: 0, depth: 0, found: Vec::new() };
    loop {
        reader.skip(true);
        if reader.at >= text.len() {
            return Ok(reader.found);
        }
        let name = reader.name()?;
        reader.skip(false);
        reader.expect('=')?;
        reader.value(&mut vec![name])?;
        reader.skip(false);
        if !reader.rest().is_empty() && !reader.rest().starts_with(['\n', '\r']) {
            return Err(reader.error("expected the end of the line"));
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    found: Vec<(Vec<String>, SecretString)>,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Passes blanks and comments; line breaks only if asked.
    fn skip(&mut self, lines: bool) {
        loop {
            let rest = self.rest();
            let blank = if lines { rest.trim_start() } else { rest.trim_start_matches([' ', '\t', '\r']) };
            self.at += rest.len() - blank.len();
            if blank.starts_with('#') || blank.starts_with("//") {
                self.at += blank.find('\n').unwrap_or(blank.len());
            } else if blank.starts_with("/*") {
                self.at += blank.find("*/").map_or(blank.len(), |end| end + 2);
            } else {
                return;
            }
        }
    }

    fn expect(&mut self, character: char) -> Result<(), TfvarsError> {
        if !self.rest().starts_with(character) {
            return Err(self.error(&format!("expected `{character}`")));
        }
        self.at += character.len_utf8();
        Ok(())
    }

    /// A bare name or a quoted one.
    fn name(&mut self) -> Result<String, TfvarsError> {
        if self.rest().starts_with('"') {
            return self.string().map(|name| name.to_string());
        }
        let name: String =
            self.rest().chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')).collect();
        if name.is_empty() {
            return Err(self.error("expected a name"));
        }
        self.at += name.len();
        Ok(name)
    }

    fn value(&mut self, path: &mut Vec<String>) -> Result<(), TfvarsError> {
        self.skip(false);
        let rest = self.rest();
        match rest.chars().next() {
            Some('"') => {
                let value = self.string()?;
                self.found.push((path.clone(), SecretString::from(value)));
            }
            Some('<') if rest.starts_with("<<") => {
                let value = self.heredoc()?;
                self.found.push((path.clone(), SecretString::from(value)));
            }
            Some('[') => self.list(path)?,
            Some('{') => self.object(path)?,
            _ => {
                let word: String = rest
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_'))
                    .collect();
                let number = word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
                if !(number && word.parse::<f64>().is_ok()
                    || ["true", "false", "null"].contains(&word.as_str()))
                {
                    return Err(self.error("expected a literal value"));
                }
                self.at += word.len();
                if word != "null" {
                    self.found.push((path.clone(), SecretString::new(word)));
                }
            }
        }
        Ok(())
    }

    fn deeper(&mut self) -> Result<(), TfvarsError> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEEPEST {
            Err(self.error(&format!("nested more than {DEEPEST} levels deep")))
        } else {
            Ok(())
        }
    }

    fn list(&mut self, path: &mut Vec<String>) -> Result<(), TfvarsError> {
        self.deeper()?;
        let mut index = 0;
        loop {
            self.skip(true);
            if self.rest().starts_with(']') {
                break;
            }
            path.push(index.to_string());
            self.value(path)?;
            path.pop();
            index += 1;
            self.skip(true);
            if self.rest().starts_with(',') {
                self.at += 1;
            } else if !self.rest().starts_with(']') {
                return Err(self.error("expected `,` or `]`"));
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self, path: &mut Vec<String>) -> Result<(), TfvarsError> {
        self.deeper()?;
        loop {
            self.skip(true);
            if self.rest().starts_with('}') {
                break;
            }
            let name = self.name()?;
            self.skip(false);
            if !self.rest().starts_with(['=', ':']) {
                return Err(self.error("expected `=`"));
            }
            self.at += 1;
            path.push(name);
            self.value(path)?;
            path.pop();
            self.skip(false);
            let rest = self.rest();
            if rest.starts_with(',') {
                self.at += 1;
            } else if !rest.starts_with(['}', '\n', '\r']) {
                return Err(self.error("expected `,`, `}` or a new line"));
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    fn string(&mut self) -> Result<Zeroizing<String>, TfvarsError> {
        self.at += 1;
        let mut string = Zeroizing::new(String::new());
        loop {
            let rest = self.rest();
            let Some(character) = rest.chars().next() else { return Err(self.error("an open string")) };
            if let Some(length) = doubled_mark(rest) {
                string.push_str(&rest[1..length]);
                self.at += length;
                continue;
            }
            if rest.starts_with("${") || rest.starts_with("%{") {
                return Err(self.error("expected a literal value, not a template"));
            }
            self.at += character.len_utf8();
            match character {
                '"' => return Ok(string),
                '\n' => return Err(self.error("an open string")),
                '\\' => string.push(self.escape()?),
                other => string.push(other),
            }
        }
    }

    fn escape(&mut self) -> Result<char, TfvarsError> {
        let unknown = |reader: &Self| reader.error("an unknown escape in a string");
        let escaped = self.rest().chars().next().ok_or_else(|| unknown(self))?;
        self.at += escaped.len_utf8();
        let length = match escaped {
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            '"' | '\\' => return Ok(escaped),
            'u' => 4,
            'U' => 8,
            _ => return Err(unknown(self)),
        };
        let digits = self.rest().get(..length).ok_or_else(|| unknown(self))?;
        let code =
            u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).ok_or_else(|| unknown(self))?;
        self.at += length;
        Ok(code)
    }

    fn heredoc(&mut self) -> Result<Zeroizing<String>, TfvarsError> {
        let start = self.rest();
        let (indented, head) = match start.strip_prefix("<<-") {
            Some(head) => (true, head),
            None => (false, &start[2..]),
        };
        let line_end = head.find('\n').ok_or_else(|| self.error("an open text"))?;
        let mark = head[..line_end].trim();
        if mark.is_empty() {
            return Err(self.error("expected a word after `<<`"));
        }
        let body = &head[line_end + 1..];
        let mut lines: Vec<&str> = Vec::new();
        let mut length = 0;
        for line in body.split_inclusive('\n') {
            if line.trim() == mark {
                self.at += start.len() - body.len() + length + line.trim_end_matches(['\r', '\n']).len();
                return self.heredoc_text(&lines, indented);
            }
            length += line.len();
            lines.push(line);
        }
        Err(self.error("an open text"))
    }

    fn heredoc_text(&self, lines: &[&str], indented: bool) -> Result<Zeroizing<String>, TfvarsError> {
        let blanks = |line: &&str| line.len() - line.trim_start_matches([' ', '\t']).len();
        let filled = lines.iter().filter(|line| !line.trim().is_empty());
        let common = if indented { filled.map(blanks).min().unwrap_or(0) } else { 0 };
        let mut text = Zeroizing::new(String::new());
        for line in lines {
            let mut rest = line.get(common.min(blanks(line))..).unwrap_or_default();
            while let Some(character) = rest.chars().next() {
                if let Some(length) = doubled_mark(rest) {
                    text.push_str(&rest[1..length]);
                    rest = &rest[length..];
                } else if rest.starts_with("${") || rest.starts_with("%{") {
                    return Err(self.error("expected a literal value, not a template"));
                } else {
                    text.push(character);
                    rest = &rest[character.len_utf8()..];
                }
            }
        }
        Ok(text)
    }

    fn error(&self, reason: &str) -> TfvarsError {
        let line = self.text.as_bytes()[..self.at.min(self.text.len())]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        TfvarsError { line: line + 1, reason: reason.to_owned() }
    }
}

/// `$${` and `%%{` stand for `${` and `%{`.
fn doubled_mark(text: &str) -> Option<usize> {
    (text.starts_with("$${") || text.starts_with("%%{")).then_some(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let values = values(text).unwrap_or_else(|error| panic!("{error}"));
        values.into_iter().map(|(path, value)| format!("{}={}", path.join("."), value.expose())).collect()
    }

    #[test]
    fn literals_of_every_kind_are_read() {
        let text = r#"
# a comment
password = "a \"b\" \u00fc $${x}" // another
number = -1.5e3
flag = true
nothing = null /* gone */
token_auth = {
  id     = "root@pam!x"
  "odd key" : "y", secret = "z"
}
keys = [
  "one", # first
  { name = "two" },
]
text = <<-EOT
    line 1
      line 2
  EOT
"#;
        assert_eq!(
            read(text),
            [
                "password=a \"b\" ü ${x}",
                "number=-1.5e3",
                "flag=true",
                "token_auth.id=root@pam!x",
                "token_auth.odd key=y",
                "token_auth.secret=z",
                "keys.0=one",
                "keys.1.name=two",
                "text=line 1\n  line 2\n",
            ]
        );
    }

    #[test]
    fn what_is_no_literal_is_refused_with_its_line_and_not_quoted() {
        for text in [
            "a = var.hunter2",
            "a = \"${hunter2}\"",
            "a = hunter2(1)",
            "a = \"hunter2",
            "a",
            "a = 1 b = 2",
            "a = <<EOT\nhunter2",
            "block { a = 1 }",
            "a = [1",
        ] {
            let error = values(text).err().unwrap_or_else(|| panic!("{text}")).to_string();
            assert!(error.starts_with("line ") && !error.contains("hunter2"), "{error}");
        }
        assert!(values(&format!("a = {}", "[".repeat(10_000))).is_err());
    }
}
