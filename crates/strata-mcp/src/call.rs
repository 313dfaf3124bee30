//! Running a command line, and what a client is told of its end.

use async_trait::async_trait;
use serde_json::{Value, json};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The exit code; none if something else ended it.
    pub code: Option<i32>,
    /// What it said: the result, then remarks and errors.
    pub text: String,
}

/// Runs a command line. A run that is dropped is ended.
#[async_trait]
pub trait Runner: Send + Sync {
    /// The words after the name of the program.
    async fn run(&self, line: Vec<String>) -> Ended;
}

/// More than an agent can read at once; the rest is left out, and said to be.
const LONGEST: usize = 400_000;

/// Exit code 2 says that there are changes or drift, which is a result.
const CHANGES: i32 = 2;

impl Ended {
    /// The result of a call.
    pub(crate) fn result(&self) -> Value {
        let failed = !matches!(self.code, Some(0 | CHANGES));
        let mut text = shortened(&self.text);
        if failed {
            let code = self.code.map_or("no exit code".to_owned(), |code| format!("exit code {code}"));
            text = format!("{text}\n({code})");
        }
        json!({"content": [{"type": "text", "text": text}], "isError": failed})
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let mut end = LONGEST;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind('\n').unwrap_or(end);
    let left = text[end..].lines().count().saturating_sub(1);
    format!("{}\n({left} more lines are left out: ask about fewer stacks)", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_at_a_line_and_said_to_be() {
        let line = "ä".repeat(49) + "\n";
        let text = line.repeat(10_000);
        let cut = shortened(&text);
        assert!(cut.len() < LONGEST + 100);
        assert!(
            cut.ends_with("more lines are left out: ask about fewer stacks)"),
            "{}",
            &cut[cut.len() - 90..]
        );
        let kept = cut.lines().count() - 1;
        let left: usize = cut.rsplit_once('(').unwrap().1.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(kept + left, 10_000);
        assert_eq!(shortened("short\n"), "short\n");
    }

    #[test]
    fn changes_are_a_result_and_refusals_are_not() {
        let ended = |code| Ended { code, text: "said".to_owned() }.result();
        for (code, failed) in
            [(Some(0), false), (Some(2), false), (Some(1), true), (Some(3), true), (None, true)]
        {
            assert_eq!(ended(code)["isError"], failed, "{code:?}");
        }
        assert_eq!(ended(Some(3))["content"][0]["text"], "said\n(exit code 3)");
    }
}
