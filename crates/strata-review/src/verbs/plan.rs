//! `strata review plan`.

use std::path::PathBuf;

use strata_events::Event;
use strata_session::{ErrorKind, SessionError};

use super::{Desk, Ended, tell};
use crate::base::Base;
use crate::outline::Outline;
use crate::planning::PlannedReview;
use crate::range::{Range, short};
use crate::sealed::SealedPlan;
use crate::{comment, guard, planning, report, rules};

/// Plans what a change changes, for a reviewer
///
/// Plans every stack that the commits between the base and the checked-out commit can change, in each of its environments. `-o` seals the plans:
/// encrypted for the recipients of the repository, signed by this runner, bound to commit, source, states and live objects. What is approved is the
/// digest that the last line names; `strata review apply` runs exactly that. Settings of `review:` count as the base has them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The commit, branch or tag that the change is made upon
    #[arg(long, value_name = "REF")]
    base: String,
    /// Where the sealed plan is written
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Where the comment is written, as Markdown
    #[arg(long, value_name = "FILE")]
    comment: Option<PathBuf>,
    /// Where GitLab's Terraform report is written
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Where the document is written that rules are asked about, as JSON; it is not encrypted
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
    /// The key that the plan is signed with: a file, `env:NAME` or `secret:NAME`; otherwise the variable STRATA_REVIEW_KEY
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Exit code 2 if there are changes
    #[arg(long)]
    detailed_exitcode: bool,
}

pub(super) async fn run(args: &Args, desk: &Desk<'_>) -> Result<Ended, SessionError> {
    let git = desk.git()?;
    let base = desk.base(&git, &args.base)?;
    // Whoever cannot seal learns it before anything is planned.
    let key = args.output.as_ref().map(|_| desk.key(args.key.as_deref())).transpose()?;
    if let Some(key) = &key {
        can_seal(&base, &key.public().to_string())?;
    }
    let range = Range::read(&git, &args.base, "HEAD", &desk.surroundings.variables)?;
    tell(&range, desk.terminal);
    let paths = range.merge_base.as_ref().map(|base| git.changed_paths(base, &range.head)).transpose()?;
    let mut planned = planning::plan(&desk.surroundings, &range, paths).await?;
    let blocked = planned.is_blocked();
    planned.findings.extend(guard::findings(base.review.as_ref(), &planned.reviewed));
    let outline = Outline::of(&planned.reviewed, &planned.findings).within(&planned.capacity);
    let (text, markdown) =
        (planned.scrubbed(report::plain(&outline)), planned.scrubbed(comment::render(&outline)));
    desk.terminal.line(&text);
    if let Some(path) = &args.comment {
        desk.write(path, markdown.as_bytes())?;
    }
    if let Some(path) = &args.report {
        desk.write(path, format!("{}\n", report::gitlab(&outline)).as_bytes())?;
    }
    if let Some(path) = &args.document {
        let document = planned.scrubbed(format!("{:#}\n", rules::document(&planned.reviewed)));
        desk.write(path, document.as_bytes())?;
    }
    let summary = outline.effects.summary;
    if blocked {
        desk.terminal.event(None, &Event::Review { digest: None, commit: &range.head, summary, file: None });
        let errors = planned.findings.iter().filter(|finding| finding.is_error()).count();
        return Err(SessionError::new(
            ErrorKind::Refused,
            format!("nothing to approve: {errors} in the way"),
        )
        .hint("the findings above say what; no sealed plan was written"));
    }
    let (digest, file) = (Some(outline.digest.as_str()), args.output.as_deref());
    if let (Some(path), Some(key)) = (&args.output, &key) {
        let sealed = SealedPlan::seal(&planned.reviewed, &markdown, &base.recipients, key)
            .map_err(|error| SessionError::failed(error.to_string()))?;
        desk.write(path, &sealed.bytes())?;
    }
    desk.terminal.event(None, &Event::Review { digest, commit: &range.head, summary, file });
    let changes = has_changes(&planned);
    Ok(if changes && args.detailed_exitcode { Ended::Changes } else { Ended::Done })
}

fn has_changes(planned: &PlannedReview) -> bool {
    let waiting = planned.reviewed.plans.iter().any(|file| !file.waiting.is_empty());
    waiting || planned.reviewed.summary().changes() > 0
}

/// A plan that nobody could open, or that no apply would take, is not made.
fn can_seal(base: &Base, own: &str) -> Result<(), SessionError> {
    if base.recipients.is_empty() {
        return Err(SessionError::failed("nobody could read the sealed plan: there is no age recipient").hint(
            "`review.recipients` of `strata.yaml` on the base branch names some; otherwise those of `state.encryption` and of the files of secrets count",
        ));
    }
    if !base.runners().iter().any(|runner| runner.to_string() == own) {
        let commit = short(&base.commit);
        return Err(SessionError::refused(format!(
            "`review.runners` of {commit} does not have the key of this runner"
        ))
        .hint(format!("on the base branch: `review: {{runners: {{ci: {own}}}}}`")));
    }
    Ok(())
}
