//! One comment, one issue, kept up to date: found by its marker and by its author.

use crate::{Forge, ForgeError};

/// What it came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upserted {
    /// There was none yet.
    Added,
    /// It said something else.
    Edited,
    /// It said that already.
    Unchanged,
}

/// Makes our comment with this marker say this. The text begins with the marker.
///
/// A comment of somebody else is left alone, whatever is in it. Of several of our own the oldest is the one.
pub async fn upsert_comment(
    forge: &dyn Forge,
    number: u64,
    marker: &str,
    text: &str,
) -> Result<Upserted, ForgeError> {
    let me = forge.me().await?;
    let mut is_lost = None;
    loop {
        let comments = forge.comments(number).await?;
        let own = comments.into_iter().find(|comment| is_ours(&me, &comment.author, marker, &comment.text));
        match own {
            Some(own) if same(&own.text, text) => return Ok(Upserted::Unchanged),
            Some(own) => {
                forge.edit_comment(number, own.id, text).await?;
                return Ok(Upserted::Edited);
            }
            None => {}
        }
        // It was looked for again after an answer was lost, and is not there.
        if let Some(error) = is_lost {
            return Err(error);
        }
        match forge.add_comment(number, text).await {
            Ok(()) => return Ok(Upserted::Added),
            Err(error) if error.may_have_arrived => is_lost = Some(error),
            Err(error) => return Err(error),
        }
    }
}

/// Keeps one issue: opened, edited while there is something to say, closed when there is nothing.
pub async fn upsert_issue(
    forge: &dyn Forge,
    marker: &str,
    content: Option<(&str, &str)>,
) -> Result<Option<Upserted>, ForgeError> {
    let me = forge.me().await?;
    let issues = forge.own_issues().await?;
    let mut own = issues.into_iter().filter(|issue| is_ours(&me, &issue.author, marker, &issue.text));
    let Some((title, text)) = content else {
        let mut closed = None;
        for issue in own {
            forge.close_issue(issue.number).await?;
            closed = Some(Upserted::Edited);
        }
        return Ok(closed);
    };
    match own.next() {
        Some(issue) if issue.title == title && same(&issue.text, text) => Ok(Some(Upserted::Unchanged)),
        Some(issue) => forge.edit_issue(issue.number, title, text).await.map(|()| Some(Upserted::Edited)),
        None => forge.open_issue(title, text).await.map(|()| Some(Upserted::Added)),
    }
}

fn is_ours(me: &str, author: &str, marker: &str, text: &str) -> bool {
    author == me && text.lines().next().map(str::trim) == Some(marker)
}

/// Forges change the ends of lines.
fn same(one: &str, other: &str) -> bool {
    let lines = |text: &str| text.trim().lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    lines(one) == lines(other)
}
