//! Comments at the end of lines: those that stood in one column stand in one column again.

/// A line of the new text.
#[derive(Debug, Default, Clone)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// The comment behind it.
    pub(crate) comment: String,
    /// The spaces that were before the comment.
    pub(crate) gap: usize,
    /// The column that the comment had.
    pub(crate) column: usize,
}

impl Line {
    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

pub(crate) fn join(lines: &[Line]) -> String {
    let mut out = String::new();
    let mut rest = lines;
    while let Some(first) = rest.first() {
        let together = |line: &&Line| !line.comment.is_empty() && line.column == first.column;
        let (group, after) = rest.split_at(rest.iter().take_while(together).count().max(1));
        let widest = group.iter().map(Line::width).max().unwrap_or(0);
        let gap = group.iter().map(|line| line.gap).min().unwrap_or(1);
        for line in group {
            out.push_str(&line.text);
            if !line.comment.is_empty() {
                out.push_str(&" ".repeat(widest + gap - line.width()));
                out.push_str(&line.comment);
            }
            out.push('\n');
        }
        rest = after;
    }
    out
}
