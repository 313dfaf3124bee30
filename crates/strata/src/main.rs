//! The command line: one file for each verb.

mod bug;
mod cli;
mod command_error;
mod commands;
mod context;
mod printer;
mod prompt;
mod views;
mod workspace;

pub(crate) use strata_views::style;

use std::process::ExitCode;

/// Secrets are in the memory of this process: none of it is ever written into a core dump, or shown to another process of the same user.
fn keep_memory_private() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

fn main() -> ExitCode {
    keep_memory_private();
    bug::report_panics();
    strata_providers::kinds::register();
    let mut cli = match cli::parse() {
        Ok(cli) => cli,
        Err(answer) => return cli::answer(&answer),
    };
    let printer = printer::Printer::new(
        cli.global.json,
        cli.global.verbose,
        cli.global.no_color,
        &context::SystemClock,
    );
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            printer.note(format!("error: cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let entered = cli.global.enter();
    let run = std::panic::AssertUnwindSafe(|| {
        entered?;
        runtime.block_on(commands::run(cli, printer))
    });
    // What the bug was has been told.
    let outcome = std::panic::catch_unwind(run).unwrap_or_else(|_| {
        Err(command_error::CommandError::already_shown(command_error::ErrorKind::Failed))
    });
    // A run that failed may have left a lock that it could not give back: what tells that it is dead stays.
    if outcome.is_ok() {
        strata_state::ProcessMark::forget();
    }
    // Threads that still wait for a remote must not keep the process.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            if !error.is_shown {
                printer.event(&strata_events::Event::Error { error: &error });
                printer.note(command_error::render(&error));
            }
            ExitCode::from(command_error::exit_code(error.kind))
        }
    }
}
