//! `strata review show`.

use std::path::PathBuf;

use strata_session::SessionError;

use super::{Desk, Ended, read, refused};
use crate::outline::Outline;
use crate::report;
use crate::sealed::SealedPlan;

/// Shows what a sealed plan does, whole
///
/// Needs an age identity of one of its recipients. With `--base` its signature is checked too.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The sealed plan
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The commit, branch or tag whose `review.runners` count
    #[arg(long, value_name = "REF")]
    base: Option<String>,
}

pub(super) fn run(args: &Args, desk: &Desk<'_>) -> Result<Ended, SessionError> {
    let sealed = SealedPlan::parse(&read(&args.file)?).map_err(|error| refused(&args.file, &error))?;
    if let Some(base) = &args.base {
        let base = desk.base(&desk.git()?, base)?;
        sealed.check(&base.runners()).map_err(|error| refused(&args.file, &error))?;
    }
    let workspace = desk.workspace()?;
    let reviewed = sealed
        .open(workspace.access().identities(), env!("CARGO_PKG_VERSION"))
        .map_err(|error| refused(&args.file, &error))?;
    desk.terminal.line(&report::plain(&Outline::of(&reviewed, &[])));
    if args.base.is_none() {
        desk.terminal.note("warning: its signature was not checked; `--base REF` names who may sign");
    }
    Ok(Ended::Done)
}
