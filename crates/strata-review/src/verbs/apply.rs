//! `strata review apply`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use strata_engine::PlanFile;
use strata_forge::Outcome;
use strata_session::{Planned, SessionError, Workspace};

use super::{Desk, Ended, place, read, refused};
use crate::audit::{Audit, Line};
use crate::base::Base;
use crate::changed::SourceVersion;
use crate::finding::Finding;
use crate::planning::{plan_again, valid_workspace};
use crate::range::short;
use crate::reviewed::Reviewed;
use crate::sealed::SealedPlan;
use crate::{announce, difference, forge, guard, remainder};

mod merged;

use merged::{Approved, approved, holds};

/// Applies a plan that was reviewed: exactly it, or nothing
///
/// Checks that a runner of the base signed it, that its digest is the one that was approved, that the files here are those that were reviewed, and
/// that guardrails of the base allow it. Then plans again: if anything moved, shows how the plan would differ from the approved one, and
/// changes nothing. An apply that was interrupted is finished by the same command, as far as it was approved.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The sealed plan, or a folder with sealed plans that are named by their digests
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The commit that the base was at before the merge: its `review:` counts
    #[arg(long, value_name = "REF")]
    base: String,
    /// The digest that was approved
    #[arg(long, value_name = "DIGEST", conflicts_with = "forge")]
    approve: Option<String>,
    /// Finds the merged request of the checked-out commit at its forge, applies the plan that was approved there, and reports to the request
    #[arg(long)]
    forge: bool,
    /// The merged request, where the forge cannot find it by its commit
    #[arg(long, value_name = "NUMBER", requires = "forge")]
    request: Option<u64>,
    /// Bypasses guardrails, freezes and approvals, where `review.breakGlass` allows it; the reason goes into the audit log
    #[arg(long, value_name = "REASON")]
    break_glass: Option<String>,
}

/// One run of approved plans.
pub struct Run<'r> {
    pub environment: Option<&'r str>,
    pub file: &'r PlanFile,
    /// Exactly the file; otherwise what is left of it.
    pub exact: bool,
    /// Sees what is planned, and refuses what was not approved.
    pub guard: &'r (dyn Fn(&[Planned<'_>]) -> Result<(), SessionError> + Send + Sync),
}

/// Why it was not applied, and where a plan differs, how.
struct Refusal {
    error: SessionError,
    difference: String,
}

impl<E: Into<SessionError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self { error: error.into(), difference: String::new() }
    }
}

pub(super) async fn run(args: &Args, desk: &Desk<'_>) -> Result<Ended, SessionError> {
    let git = desk.git()?;
    let base = desk.base(&git, &args.base)?;
    let merged = git.commit("HEAD")?;
    if !args.forge {
        let approved =
            Approved { digest: args.approve.clone(), commit: None, by: BTreeSet::new(), others: Vec::new() };
        let applied = apply(args, desk, &base, &merged, &approved).await;
        return applied.map(|()| Ended::Done).map_err(|refusal| refusal.error);
    }
    let told = forge::Desk::of_merge(&base, &desk.surroundings, args.request, &merged).await?;
    holds(&git, &told, &merged)?;
    told.status("apply", &merged, Outcome::Pending, "applying").await?;
    let approved = approved(&told).await;
    let digest = approved.as_ref().ok().and_then(|approved| approved.digest.clone());
    let applied = match &approved {
        Ok(approved) => apply(args, desk, &base, &merged, approved).await,
        Err(error) => Err(error.clone().into()),
    };
    let (outcome, description) = match &applied {
        Ok(()) => (Outcome::Success, "applied as it was approved"),
        Err(_) => (Outcome::Failure, "not applied, see the comment at the request"),
    };
    let difference = applied.as_ref().err().map_or("", |refusal| refusal.difference.as_str());
    let said = announce::of_apply(
        told.repository(),
        digest.as_deref(),
        applied.as_ref().err().map(|refusal| &refusal.error),
        difference,
    );
    // What was done is done, whether or not it can be reported.
    let comment = told.comment_apply(&said).await;
    let status = told.status("apply", &merged, outcome, description).await;
    for failed in [comment, status].into_iter().filter_map(Result::err) {
        desk.terminal.note(&format!("warning: nothing was written to the request: {}", failed.message));
    }
    applied.map(|()| Ended::Done).map_err(|refusal| refusal.error)
}

async fn apply(
    args: &Args,
    desk: &Desk<'_>,
    base: &Base,
    merged: &str,
    approved: &Approved,
) -> Result<(), Refusal> {
    let workspace = valid_workspace(&desk.surroundings)?;
    let file =
        approved.digest.as_deref().map_or_else(|| args.file.clone(), |digest| place(&args.file, digest));
    let sealed = SealedPlan::parse(&read(&file)?).map_err(|error| refused(&file, &error))?;
    sealed.check(&base.runners()).map_err(|error| refused(&file, &error))?;
    is_approved(&file, approved, &sealed)?;
    let reviewed = sealed
        .open(workspace.access().identities(), env!("CARGO_PKG_VERSION"))
        .map_err(|error| refused(&file, &error))?;
    if let Some(commit) = approved.commit.as_ref().filter(|commit| **commit != reviewed.commit) {
        let error = format!("the plan is of {}, and {} was approved", short(&reviewed.commit), short(commit));
        return Err(SessionError::refused(error).into());
    }
    same_source(&workspace, &reviewed)?;
    let apply = Apply { args, desk, base, merged, reviewed: &reviewed, digest: &sealed.digest, approved };
    let bypassed = apply.guarded()?;
    let audit = Audit::of(workspace.root());
    let is_begun = audit.is_begun(&sealed.digest);
    if !is_begun {
        apply.same_plan().await?;
    }
    let log = |event: &str| apply.log(&audit, event, &bypassed);
    if !bypassed.is_empty() {
        log("break-glass")?;
    }
    log("begun")?;
    audit.begin(&sealed.digest).map_err(cannot_log)?;
    let applied = apply.run(is_begun).await;
    log(if applied.is_ok() { "applied" } else { "failed" })?;
    applied.map_err(|error| {
        error.hint("the same `strata review apply` goes on with what is left of it, once nothing else stands in the way")
    })?;
    audit.end(&sealed.digest).map_err(cannot_log)?;
    Ok(())
}

fn cannot_log(error: std::io::Error) -> SessionError {
    SessionError::failed(format!("cannot write the audit log: {error}"))
        .hint("nothing is applied that is not written down")
}

/// The file is the plan that was approved.
fn is_approved(file: &Path, approved: &Approved, sealed: &SealedPlan) -> Result<(), SessionError> {
    match &approved.digest {
        Some(digest) if *digest == sealed.digest => Ok(()),
        Some(digest) => {
            Err(SessionError::refused(format!("`{}` is not the plan that was approved", file.display()))
                .detail(format!("approved: {digest}"))
                .detail(format!("this one: {}", sealed.digest))
                .hint("`strata review show` says what this one does"))
        }
        None => Err(SessionError::refused("nobody approved this plan")
            .detail(format!("its digest: {}", sealed.digest))
            .hint("`--approve DIGEST` says which plan was approved, `--forge` looks it up at the forge")),
    }
}

/// What is on the disk is what was reviewed, for every stack of the plan: whichever way it was merged.
fn same_source(workspace: &Workspace, reviewed: &Reviewed) -> Result<(), SessionError> {
    if workspace.repository_id()? != reviewed.repository {
        return Err(SessionError::refused("the plan was made for another repository"));
    }
    let disk = SourceVersion::read(workspace.world()).map_err(SessionError::failed)?;
    let moved: Vec<String> = reviewed
        .stacks
        .iter()
        .filter(|stack| disk.digest(&stack.key()) != stack.source)
        .map(|stack| format!("`{}`", stack.key().state_key()))
        .collect();
    if moved.is_empty() {
        return Ok(());
    }
    let mut error = SessionError::refused("the source here is not the one that was reviewed");
    error.details = moved;
    let commit = short(&reviewed.commit);
    Err(error.hint(format!("{commit} was reviewed: plan what was merged, and have it reviewed again")))
}

struct Apply<'a> {
    args: &'a Args,
    desk: &'a Desk<'a>,
    base: &'a Base,
    merged: &'a str,
    reviewed: &'a Reviewed,
    digest: &'a str,
    approved: &'a Approved,
}

impl Apply<'_> {
    /// What guardrails say against it. With a reason, where the base allows that, they are bypassed: then what they said is returned.
    fn guarded(&self) -> Result<Vec<String>, SessionError> {
        let review = self.base.review.as_ref();
        let now = Timestamp::from_second(self.desk.surroundings.clock.now()).unwrap_or_default();
        let mut found = guard::findings(review, self.reviewed);
        found.extend(guard::frozen(review, now));
        found.extend(guard::missing(&guard::required(review, self.reviewed), &self.approved.by));
        for warning in found.iter().filter(|finding| !finding.is_error()) {
            self.desk.terminal.note(&format!("warning: {}: {}", warning.rule, warning.message));
        }
        let errors: Vec<String> =
            found.iter().filter(|finding| finding.is_error()).map(Finding::line).collect();
        let errors: Vec<String> = errors.iter().map(|line| line.trim().to_owned()).collect();
        if errors.is_empty() {
            return Ok(errors);
        }
        let may_bypass = review.is_some_and(|review| review.break_glass);
        match self.args.break_glass.as_deref().map(str::trim) {
            Some(reason) if may_bypass && !reason.is_empty() => {
                self.desk.terminal.note(&format!("warning: guardrails are bypassed: {reason}"));
                Ok(errors)
            }
            given => {
                let mut error = SessionError::refused("guardrails of the base do not allow this plan");
                error.details = errors;
                error.details.extend(self.approved.others.iter().cloned());
                Err(match given {
                    Some("") => error.hint("`--break-glass` needs a reason"),
                    Some(_) => error.hint("`review.breakGlass` of the base does not allow to bypass them"),
                    None if may_bypass => {
                        error.hint("`--break-glass REASON` bypasses them, and is written down")
                    }
                    None => error.hint(
                        "change the plan, or the guardrails on the base branch, by a review of their own",
                    ),
                })
            }
        }
    }

    /// Plans again. What would be done now must be what was approved.
    async fn same_plan(&self) -> Result<(), Refusal> {
        let now = plan_again(&self.desk.surroundings, self.reviewed).await?;
        let moved = difference::moved(self.reviewed, &now.reviewed);
        if moved.is_empty() {
            return Ok(());
        }
        let text = now.scrubbed(difference::render(self.reviewed, &now.reviewed));
        if !text.is_empty() {
            self.desk.terminal.line(text.trim_end());
        }
        let mut error = SessionError::refused("the approved plan is stale, nothing was changed");
        error.details = moved;
        let error = error.hint("`strata review plan` makes a new one to approve");
        Err(Refusal { error, difference: text })
    }

    async fn run(&self, resumes: bool) -> Result<(), SessionError> {
        for file in &self.reviewed.plans {
            let guard = |planned: &[Planned<'_>]| match resumes {
                true => remainder::check(file, planned),
                false => Ok(()),
            };
            let environment = file.environment.as_deref();
            self.desk.runner.apply(&Run { environment, file, exact: !resumes, guard: &guard }).await?;
        }
        Ok(())
    }

    fn log(&self, audit: &Audit, event: &str, bypassed: &[String]) -> Result<(), SessionError> {
        let time = Timestamp::from_second(self.desk.surroundings.clock.now()).unwrap_or_default().to_string();
        let approved_by: Vec<String> = self.approved.by.iter().cloned().collect();
        let line = Line {
            time,
            event,
            digest: self.digest,
            commit: &self.reviewed.commit,
            merged: self.merged,
            who: &self.desk.surroundings.process.who,
            approved_by: &approved_by,
            reason: self.args.break_glass.as_deref().filter(|_| !bypassed.is_empty()),
            bypassed,
        };
        audit.write(&line).map_err(cannot_log)
    }
}
