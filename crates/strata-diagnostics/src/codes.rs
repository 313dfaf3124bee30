//! What the codes of messages mean: the page docs/codes.md, section by section.

const PAGE: &str = include_str!("../../../docs/codes.md");

/// A section of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodePage {
    /// The code, as it stands in brackets in a message: `unknown-key`.
    pub code: &'static str,
    /// What it means, and the way out, as Markdown, with whole files that cause it.
    pub text: &'static str,
}

impl CodePage {
    /// The page of a code.
    pub fn of(code: &str) -> Option<Self> {
        Self::all().find(|page| page.code == code)
    }

    /// Every page, by the names of the codes.
    pub fn all() -> impl Iterator<Item = Self> {
        PAGE.split("\n## ").skip(1).filter_map(|section| {
            let (code, text) = section.split_once('\n')?;
            Some(Self { code: code.trim(), text: text.trim() })
        })
    }

    /// What it means in one sentence.
    pub fn summary(&self) -> &'static str {
        let paragraph = self.text.split("\n\n").next().unwrap_or_default();
        let ends =
            |(at, _): &(usize, &str)| paragraph[at + 1..].chars().next().is_none_or(char::is_whitespace);
        let end = paragraph.match_indices(['.', ':']).find(ends).map_or(paragraph.len(), |(at, _)| at);
        paragraph[..end].lines().next().unwrap_or_default()
    }

    /// The files that cause it: their paths and what is in them.
    pub fn examples(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.text.split("```").skip(1).step_by(2).filter_map(|block| {
            let (head, content) = block.split_once('\n')?;
            Some((head.split_once(' ')?.1, content))
        })
    }

    /// The same text for a terminal: the path of a file stands above it, and its lines are set in.
    pub fn plain(&self) -> String {
        let mut lines = Vec::new();
        let mut in_file = false;
        for line in self.text.lines() {
            match line.strip_prefix("```") {
                Some(_) if in_file => in_file = false,
                Some(head) => {
                    in_file = true;
                    lines.push(format!("{}:", head.split_once(' ').map_or(head, |(_, path)| path)));
                }
                None if in_file => lines.push(format!("    {line}").trim_end().to_owned()),
                None => lines.push(line.to_owned()),
            }
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_in_order_and_say_something() {
        let pages: Vec<CodePage> = CodePage::all().collect();
        assert!(pages.len() > 80, "{}", pages.len());
        for pair in pages.windows(2) {
            assert!(pair[0].code < pair[1].code, "`{}` stands after `{}`", pair[1].code, pair[0].code);
        }
        for page in pages {
            assert!(page.summary().len() > 10, "{page:?}");
            assert!(page.text.lines().next().is_some_and(|line| !line.starts_with("```")), "{page:?}");
            assert!(page.text.lines().all(|line| line.chars().count() <= 200), "{}", page.code);
        }
    }

    #[test]
    fn a_page_has_its_files_and_is_readable_without_markdown() {
        let page = CodePage::of("unknown-key").unwrap();
        let (path, content) = page.examples().next().unwrap();
        assert_eq!(path, "stacks/web/stack.yaml");
        assert!(content.contains("memmory"));
        assert!(page.plain().contains("stacks/web/stack.yaml:\n    proxmox:"), "{}", page.plain());
        assert_eq!(CodePage::of("no-such-code"), None);
    }
}
