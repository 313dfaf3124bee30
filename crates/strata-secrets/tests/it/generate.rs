//! Random documents: every scalar type and style, comments everywhere, odd keys, nesting, several documents.

use std::fmt::Write as _;

/// Makes one document after the other from a seed.
pub(crate) struct Generator {
    state: u64,
    /// Comments are numbered, so that each can be found again.
    comments: usize,
    keys: usize,
    /// One in so many places has a comment.
    silence: usize,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, comments: 0, keys: 0, silence: 4 }
    }

    /// Half of all places have a comment.
    pub(crate) fn talkative(seed: u64) -> Self {
        Self { silence: 2, ..Self::new(seed) }
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % limit
    }

    fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }

    fn pick<'p>(&mut self, from: &[&'p str]) -> &'p str {
        from[self.below(from.len())]
    }

    /// A YAML file.
    pub(crate) fn yaml(&mut self) -> String {
        let mut text = String::new();
        if self.one_in(4) {
            text.push_str("---\n");
        }
        self.comment_lines(0, &mut text);
        let documents = if self.one_in(4) { 2 } else { 1 };
        for document in 0..documents {
            if document > 0 {
                text.push_str("---\n");
            }
            self.mapping(0, 0, &mut text);
        }
        text
    }

    fn comment(&mut self) -> String {
        self.comments += 1;
        let text = self.pick(&[
            "plain",
            "with: colon",
            "with \"quotes\"",
            "ünïcode",
            "key: value",
            "# hash",
            "- dash",
        ]);
        let lead = self.pick(&["# ", "#", "#   "]);
        format!("{lead}c{} {text}", self.comments)
    }

    fn comment_lines(&mut self, indent: usize, text: &mut String) {
        while self.one_in(self.silence) {
            let comment = self.comment();
            writeln!(text, "{}{comment}", " ".repeat(indent)).expect("memory");
            if self.one_in(4) {
                text.push('\n');
            }
        }
    }

    fn line_end(&mut self, text: &mut String) {
        if self.one_in(self.silence) {
            let comment = self.comment();
            write!(text, " {comment}").expect("memory");
        }
        text.push('\n');
        if self.one_in(6) {
            text.push('\n');
        }
    }

    fn key(&mut self) -> String {
        self.keys += 1;
        let number = self.keys;
        let forms = [
            "k",
            "key_",
            "with space ",
            "dotted.",
            "ünï",
            "\"quoted: \\\"",
            "'it''s ",
            "a:b",
            "-dash",
            "\"\\u00e9 #",
            "true",
        ];
        let form = self.pick(&forms);
        match form.chars().next() {
            Some('"') => format!("{form}{number}\""),
            Some('\'') => format!("{form}{number}'"),
            _ => format!("{form}{number}"),
        }
    }

    fn mapping(&mut self, indent: usize, depth: usize, text: &mut String) {
        for _ in 0..1 + self.below(5) {
            self.comment_lines(indent, text);
            let key = self.key();
            write!(text, "{}{key}:", " ".repeat(indent)).expect("memory");
            self.value(indent, depth, text);
        }
        self.comment_lines(indent, text);
    }

    /// What stands behind a key.
    fn value(&mut self, indent: usize, depth: usize, text: &mut String) {
        match self.below(if depth < 3 { 10 } else { 7 }) {
            0..=5 => {
                text.push(' ');
                self.scalar(indent, text);
            }
            6 => {
                text.push(' ');
                let flow = self.flow(0);
                text.push_str(&flow);
                self.line_end(text);
            }
            7 | 8 => {
                self.line_end(text);
                let step = 1 + self.below(4);
                self.mapping(indent + step, depth + 1, text);
            }
            _ => {
                self.line_end(text);
                let step = self.below(5);
                self.list(indent + step, depth + 1, text);
            }
        }
    }

    fn list(&mut self, indent: usize, depth: usize, text: &mut String) {
        for _ in 0..1 + self.below(4) {
            self.comment_lines(indent, text);
            write!(text, "{}- ", " ".repeat(indent)).expect("memory");
            if depth < 3 && self.one_in(4) {
                let key = self.key();
                write!(text, "{key}:").expect("memory");
                self.value(indent + 2, depth + 1, text);
                if self.one_in(2) {
                    self.mapping(indent + 2, depth + 1, text);
                }
            } else {
                self.scalar(indent, text);
            }
        }
    }

    fn flow(&mut self, depth: usize) -> String {
        let count = self.below(4);
        let mut parts = Vec::new();
        let list = self.one_in(2);
        for _ in 0..count {
            let scalars = [
                "x",
                "1",
                "true",
                "null",
                "\"a, b\"",
                "'c: d'",
                "2.5",
                "\"\"",
                "\"new\\nline\"",
                "word word",
            ];
            let value = if depth < 2 && self.one_in(4) {
                self.flow(depth + 1)
            } else {
                self.pick(&scalars).to_owned()
            };
            if list {
                parts.push(value);
            } else {
                self.keys += 1;
                parts.push(format!("f{}: {value}", self.keys));
            }
        }
        if list { format!("[{}]", parts.join(", ")) } else { format!("{{{}}}", parts.join(", ")) }
    }

    /// A scalar and the rest of its lines.
    fn scalar(&mut self, indent: usize, text: &mut String) {
        let plain = [
            "text",
            "two words",
            "5",
            "-17",
            "0x1F",
            "0o17",
            "017",
            "1_000",
            "3.5",
            "-2.5e-3",
            "1e3",
            "6.02e23",
            "true",
            "False",
            "yes",
            "no",
            "null",
            "~",
            "2026-01-02",
            "2026-01-02T03:04:05.5+02:00",
            "12:30",
            "a:b",
            "a#b",
            "root@pam!x=1",
            "x-y_z",
            "ünïcode ☃",
            "\"\"",
            "''",
            "'it''s'",
            "\"tab\\t nl\\n nul\\0 bell\\a\"",
            "\"\\U0001F600 \\u2028\"",
            "' leading'",
            "\"trailing \"",
            "\"5\"",
            "'true'",
            "\"# no comment\"",
            "\"a: b\"",
            "\"multi\\nline\\n\"",
            "\"\\n\\nstart\"",
            "\"  indented\\nline\"",
            "\"spaces  \\n at end\"",
            "\"many\\n\\n\\n\"",
            "9223372036854775807",
            "!!str 12",
            "!!float 3",
            "!!binary aGVsbG8=",
            "!custom tagged",
            "\"ENC[not a token]\"",
            "<<",
            "=",
            "- 1: 2",
            "|",
            "[",
            "&x anchored",
        ];
        match self.below(12) {
            0 => self.block('|', indent, text),
            1 => self.block('>', indent, text),
            _ => {
                let scalar = self.pick(&plain);
                let bad = ["- 1: 2", "|", "["].contains(&scalar);
                text.push_str(if bad { "'bad'" } else { scalar });
                self.line_end(text);
            }
        }
    }

    fn block(&mut self, style: char, indent: usize, text: &mut String) {
        let chomp = self.pick(&["", "-", "+"]);
        write!(text, "{style}{chomp}").expect("memory");
        if self.one_in(5) {
            let comment = self.comment();
            write!(text, " {comment}").expect("memory");
        }
        text.push('\n');
        let inner = " ".repeat(indent + 1 + self.below(4));
        for line in 0..1 + self.below(4) {
            let content =
                self.pick(&["line", "  deeper", "# not a comment", "key: value", "", "- item", "tab\tbed"]);
            let content =
                if line == 0 && (content.is_empty() || content.starts_with(' ')) { "first" } else { content };
            if content.is_empty() {
                text.push('\n');
            } else {
                writeln!(text, "{inner}{content}").expect("memory");
            }
        }
    }
}
