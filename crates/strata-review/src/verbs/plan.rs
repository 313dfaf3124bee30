//! `strata review plan`.

use std::path::PathBuf;

use strata_events::Event;
use strata_forge::Outcome;
use strata_session::{ErrorKind, SessionError};

use super::{Desk, Ended, place, tell};
use crate::base::Base;
use crate::git::Git;
use crate::outline::Outline;
use crate::range::{Range, short};
use crate::sealed::SealedPlan;
use crate::{announce, changed, comment, forge, guard, planning, report, rules};

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
    /// Where the sealed plan is written; in a folder it is named by its digest
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
    /// Writes to the request of the checked-out commit at its forge: a comment, and a status with the digest
    #[arg(long, requires = "output")]
    forge: bool,
    /// The request, where the pipeline does not say it
    #[arg(long, value_name = "NUMBER", requires = "forge")]
    request: Option<u64>,
    /// Exit code 2 if there are changes
    #[arg(long)]
    detailed_exitcode: bool,
}

pub(super) async fn run(args: &Args, desk: &Desk<'_>) -> Result<Ended, SessionError> {
    let git = desk.git()?;
    let base = desk.base(&git, &args.base)?;
    if !args.forge {
        return plan(args, desk, &git, &base, None).await;
    }
    let head = git.commit("HEAD")?;
    let told = forge::Desk::of_head(&base, &desk.surroundings, args.request, &head).await?;
    if told.request.is_fork {
        return of_fork(args, desk, &git, &told).await;
    }
    told.status("plan", &head, Outcome::Pending, "planning").await?;
    let ended = plan(args, desk, &git, &base, Some(&told)).await;
    if let Err(error) = &ended
        && !error.is_shown
    {
        // What it failed with is what the caller is to see, whatever becomes of the comment.
        let status = told.status("plan", &head, Outcome::Failure, "not planned, see the comment").await;
        // With findings there is a comment that says more.
        let comment = match error.kind {
            ErrorKind::Refused => Ok(()),
            _ => told.comment(&announce::of_failure(told.repository(), error)).await,
        };
        for failed in [status, comment].into_iter().filter_map(Result::err) {
            desk.terminal.note(&format!("warning: nothing was written to the request: {}", failed.message));
        }
    }
    ended
}

/// What a request from a fork can change. No key, no secret and no target is needed to say it.
async fn of_fork(args: &Args, desk: &Desk<'_>, git: &Git, told: &forge::Desk) -> Result<Ended, SessionError> {
    let (error, text) = match Range::read(git, &args.base, "HEAD", &desk.surroundings.variables) {
        Ok(range) => {
            tell(&range, desk.terminal);
            (None, format!("{}{}", changed::render(&range.changed), range.line()))
        }
        Err(error) => (Some(error.to_string()), error.to_string()),
    };
    desk.terminal.line(&text);
    desk.terminal
        .note(&format!("warning: request {} comes from a fork: it is not planned", told.request.number));
    told.comment(&announce::of_fork(told.repository(), &text)).await?;
    let head = &told.request.head;
    told.status("plan", head, Outcome::Failure, "not planned: it comes from a fork").await?;
    match error {
        None => Ok(Ended::Done),
        Some(error) => Err(SessionError::failed(error)),
    }
}

async fn plan(
    args: &Args,
    desk: &Desk<'_>,
    git: &Git,
    base: &Base,
    told: Option<&forge::Desk>,
) -> Result<Ended, SessionError> {
    // Whoever cannot seal learns it before anything is planned.
    let key = args.output.as_ref().map(|_| desk.key(args.key.as_deref())).transpose()?;
    if let Some(key) = &key {
        can_seal(base, &key.public().to_string())?;
    }
    let range = Range::read(git, &args.base, "HEAD", &desk.surroundings.variables)?;
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
    let errors = planned.findings.iter().filter(|finding| finding.is_error()).count();
    if blocked {
        if let Some(told) = told {
            told.comment(&markdown).await?;
        }
        desk.terminal.event(None, &Event::Review { digest: None, commit: &range.head, summary, file: None });
        return Err(SessionError::new(
            ErrorKind::Refused,
            format!("nothing to approve: {errors} in the way"),
        )
        .hint("the findings above say what; no sealed plan was written"));
    }
    let digest = Some(outline.digest.as_str());
    let file = args.output.as_ref().map(|path| place(path, &outline.digest));
    if let (Some(path), Some(key)) = (&file, &key) {
        let sealed = SealedPlan::seal(&planned.reviewed, &markdown, &base.recipients, key)
            .map_err(|error| SessionError::failed(error.to_string()))?;
        desk.write(path, &sealed.bytes())?;
    }
    if let Some(told) = told {
        // The digest last: what can be approved is there, and can be read.
        told.comment(&markdown).await?;
        let outcome = if errors == 0 { Outcome::Success } else { Outcome::Failure };
        let verdict = announce::description(&outline.digest, &outline.effects.verdict());
        told.status("plan", &range.head, outcome, &verdict).await?;
    }
    desk.terminal.event(None, &Event::Review { digest, commit: &range.head, summary, file: file.as_deref() });
    let changes = planned.has_changes();
    Ok(if changes && args.detailed_exitcode { Ended::Changes } else { Ended::Done })
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
