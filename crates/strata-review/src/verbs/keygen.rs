//! `strata review keygen`.

use std::path::PathBuf;

use strata_events::Event;
use strata_session::SessionError;

use super::{Desk, Ended};
use crate::signing::RunnerKey;

/// Makes the key that a runner signs its plans with
///
/// The file is for the runner alone. The public key goes into `review.runners` of `strata.yaml`, on the base branch.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the private key is written; a file that is there is not overwritten
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(args: &Args, desk: &Desk<'_>) -> Result<Ended, SessionError> {
    let name = args.file.display();
    if args.file.exists() {
        return Err(SessionError::refused(format!("`{name}` is there already"))
            .hint("whatever was signed with its key could not be applied any more: name another file"));
    }
    let random = &desk.surroundings.random;
    let (key, text) = RunnerKey::generate(&mut |buffer: &mut [u8]| random(buffer))
        .map_err(|error| SessionError::failed(error.to_string()))?;
    desk.write(&args.file, format!("{}\n", text.expose()).as_bytes())?;
    let public = key.public().to_string();
    desk.terminal.event(None, &Event::RunnerKey { file: &args.file, public: &public });
    desk.terminal.line(&format!("wrote `{name}`, for the runner alone; in `strata.yaml` on the base branch:\nreview:\n  runners:\n    ci: {public}"));
    Ok(Ended::Done)
}
