//! `strata apply`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use strata_diagnostics::{LARGEST_DOCUMENT, read_file};
use strata_engine::PlanFile;

use super::CommandResult;
use super::execute::{Consent, Job, execute};
use crate::command_error::CommandError;
use crate::context::Context;
use crate::workspace::Workspace;

/// Makes it so: plans, asks, and changes what differs
///
/// What an interrupted run left open is finished first. Given a file from `strata plan -o`, runs exactly that plan or nothing.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, `layer:NAME`, addresses such as `web/vm/db` or patterns such as `web/vm/*`; or one plan
    /// file; everything without one
    #[arg(value_name = "STACK|ADDRESS|FILE")]
    stacks: Vec<String>,
    /// Does not ask
    #[arg(short, long)]
    yes: bool,
    /// How many operations run at once
    #[arg(long, value_name = "N")]
    parallelism: Option<usize>,
    /// Lets `--yes` destroy what stacks made that are not in the source any more
    #[arg(long)]
    allow_removed_stacks: bool,
    /// Begins another etcd, with nothing in it, where the one of a cluster is lost: all its data are gone
    #[arg(long)]
    new_cluster: bool,
    /// Replaces the object of this address although nothing about it asks for that; once for each
    #[arg(long, value_name = "ADDRESS")]
    replace: Vec<String>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, &args.stacks).await?;
    let job = Job {
        consent: Consent::of(args.yes),
        parallelism: args.parallelism,
        new_cluster: args.new_cluster,
        replace: args.replace.clone(),
        allow_removed: args.allow_removed_stacks,
        ..Job::default()
    };
    match plan_file(&args.stacks) {
        Some(path) => {
            let file = read(&path)?;
            if !args.replace.is_empty() {
                return Err(CommandError::usage("a saved plan says what it replaces")
                    .hint("`strata plan --replace ADDRESS -o FILE` makes one"));
            }
            let stacks = file.names();
            if file.environment != workspace.environment() {
                return Err(CommandError::refused("the plan was made for another environment").hint(
                    format!("it was made with `-e {}`", file.environment.as_deref().unwrap_or("(none)")),
                ));
            }
            execute(
                &workspace,
                &stacks,
                Job { destroy: file.destroy, replace: file.replace.clone(), saved: Some(&file), ..job },
            )
            .await
        }
        None if is_meant_as_plan(&args.stacks)
            && workspace.names(&args.stacks).is_err()
            && !workspace.is_part(&args.stacks[0]) =>
        {
            let file = &args.stacks[0];
            Err(CommandError::failed(format!("there is no plan file `{file}`, and no stack of that name"))
                .hint(format!("`strata plan -o {file}` makes one")))
        }
        None => execute(&workspace, &args.stacks, job).await,
    }
    .map(|()| ExitCode::SUCCESS)
}

/// A single argument with an ending.
fn is_meant_as_plan(arguments: &[String]) -> bool {
    matches!(arguments, [argument] if Path::new(argument).extension().is_some())
}

/// A single argument that is a file with JSON in it is a plan.
fn plan_file(arguments: &[String]) -> Option<PathBuf> {
    let [argument] = arguments else { return None };
    let path = Path::new(argument);
    path.is_file().then(|| path.to_owned())
}

pub(super) fn read(path: &Path) -> Result<PlanFile, CommandError> {
    let bytes = read_file(path, LARGEST_DOCUMENT)
        .map_err(|error| CommandError::failed(format!("cannot read `{}`: {error}", path.display())))?;
    PlanFile::parse(&bytes)
        .map_err(|reason| CommandError::refused(format!("`{}` cannot be applied: {reason}", path.display())))
}
