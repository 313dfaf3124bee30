//! `strata review drift`.

use strata_events::Event;
use strata_session::SessionError;

use super::{Desk, Ended};
use crate::changed::SourceVersion;
use crate::outline::Outline;
use crate::range::Range;
use crate::{announce, forge, planning, report};

/// Plans every stack as it is checked out, and says what is not as the source says
///
/// For a run of every night on the base branch. With `--issue` one issue at the forge says the same: it is opened when there is something to say, edited
/// while that changes, and closed when there is nothing. Changes nothing else.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keeps one issue at the forge
    #[arg(long)]
    issue: bool,
    /// Exit code 2 if anything differs
    #[arg(long)]
    detailed_exitcode: bool,
}

pub(super) async fn run(args: &Args, desk: &Desk<'_>) -> Result<Ended, SessionError> {
    let git = desk.git()?;
    let base = desk.base(&git, "HEAD")?;
    // Whoever cannot open an issue learns it before anything is planned.
    let forge = if args.issue { Some(forge::reach(&base, &desk.surroundings)?.0) } else { None };
    let files = git.files(&base.commit, desk.surroundings.variables.clone())?;
    let source = SourceVersion::read(&files).map_err(SessionError::failed)?;
    let changed = source.everything("every stack is looked at");
    let head = base.commit.clone();
    let range = Range { merge_base: None, head, source, changed, unknown: None, remark: None };
    let planned = planning::plan(&desk.surroundings, &range, None).await?;
    let outline = Outline::of(&planned.reviewed, &planned.findings);
    let differs = planned.has_changes() || !planned.findings.is_empty();
    desk.terminal.line(&planned.scrubbed(report::body(&outline)));
    let summary = outline.effects.summary;
    desk.terminal.event(None, &Event::Review { digest: None, commit: &range.head, summary, file: None });
    if let Some(forge) = forge {
        let (title, text) = announce::of_drift(&base.repository, &outline);
        let (title, text) = (planned.scrubbed(title), planned.scrubbed(text));
        let content = differs.then_some((title.as_str(), text.as_str()));
        let marker = announce::drift_marker(&base.repository);
        let done = strata_forge::upsert_issue(forge.as_ref(), &marker, content).await;
        done.map_err(crate::error::of_forge)?;
    }
    Ok(if differs && args.detailed_exitcode { Ended::Changes } else { Ended::Done })
}
