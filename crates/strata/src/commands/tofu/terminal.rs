//! OpenTofu at a terminal: its own words for most commands, Strata's for plans and applies.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value as Json;
use strata_engine::StopSignal;
use strata_events::Event;
use strata_secret::Redactor;
use strata_session::tofu::{Ended, TofuSession};
use strata_tofu::Diagnosis;

use crate::command_error::{CommandError, ErrorKind};
use crate::commands::{CommandResult, stop_on_interrupt};
use crate::printer::Printer;
use crate::views::driven::diagnosis;
use crate::views::tofu::View;

/// A stack's OpenTofu, and who sees what it says.
pub(super) struct Terminal<'w> {
    pub(super) session: TofuSession<'w>,
    pub(super) printer: Printer,
}

/// What a plan came to.
pub(super) struct Shown {
    pub(super) changes: u64,
}

impl Terminal<'_> {
    fn redactor(&self) -> &Redactor {
        self.session.workspace().redactor()
    }

    /// A command whose own words are shown as they are.
    pub(super) async fn plain(
        &self,
        verb: &str,
        fixed: &[&str],
        more: &[&str],
        needs_state: bool,
    ) -> CommandResult {
        if needs_state {
            self.session.select_workspace().await?;
        }
        let mut arguments = vec![verb];
        arguments.extend(fixed);
        if self.printer.is_plain() {
            arguments.push("-no-color");
        }
        arguments.extend(more);
        let mut command = self.session.command(&arguments, needs_state);
        command.stdout(Stdio::inherit());
        self.wait(command).await?;
        Ok(ExitCode::SUCCESS)
    }

    /// Any command of OpenTofu at all, as it is.
    pub(super) async fn any(&self, arguments: &[&str]) -> CommandResult {
        self.session.select_workspace().await?;
        let mut command = self.session.command(arguments, true);
        command.stdout(Stdio::inherit());
        self.wait(command).await?;
        Ok(ExitCode::SUCCESS)
    }

    /// The addresses in the state, or the outputs: one object a line.
    pub(super) async fn told(&self, verb: &[&str], more: &[&str]) -> CommandResult {
        self.session.select_workspace().await?;
        let arguments: Vec<&str> = verb.iter().chain(more).copied().collect();
        let output = self.session.output(&arguments).await?;
        let noted = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        self.session.judge(&Ended { status: output.status, interrupted: false, noted }, &[])?;
        let (printer, key) = (self.printer, self.session.key());
        match strata_tofu::asked_for(&output.stdout) {
            Ok(outputs) => printer.event_of(key, &Event::TofuOutputs { outputs }),
            Err(_) => {
                for address in String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.is_empty())
                {
                    printer.event_of(key, &Event::TofuAddress { address });
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Whether the files are formatted.
    pub(super) async fn check_format(&self, more: &[&str]) -> CommandResult {
        let outcome = self.plain("fmt", &["-check", "-diff"], more, false).await;
        outcome.map_err(|error| match error.kind {
            ErrorKind::Failed => CommandError::failed(format!(
                "the files of `{}` are not formatted, or no HCL",
                self.session.stack()
            ))
            .hint(format!(
                "`strata tofu fmt {}` formats them; what is rendered is formatted",
                self.session.stack()
            )),
            _ => error,
        })
    }

    /// Makes and saves a plan, and shows it.
    pub(super) async fn plan(&self, destroy: bool, more: &[&str]) -> Result<Shown, CommandError> {
        self.session.select_workspace().await?;
        self.session.forget_plan();
        if let Some(folder) = self.session.saved_plan().parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
                CommandError::failed(format!("cannot make `{}`: {error}", folder.display()))
            })?;
        }
        let path = self.session.plan_for(destroy);
        let code = self.session.code_digest();
        let out = format!("-out={}", path.display());
        let mut arguments = vec!["plan", "-input=false", "-json", &out];
        if destroy {
            arguments.push("-destroy");
        }
        arguments.extend(more);
        let mut view = View::new(self.printer, self.session.key(), self.redactor());
        let outcome = self.stream(&arguments, true, None, &mut view).await;
        let outcome = match outcome {
            Ok(()) if !destroy => self.session.keep_code(&code),
            outcome => outcome,
        };
        if outcome.is_err() {
            // What is there now is only a part of it.
            self.session.forget_plan();
        }
        if outcome.is_ok() && is_open(path) {
            self.printer.note(format!(
                "warning: Terraform cannot encrypt: `{}` holds values in the clear, for your eyes only, until it is applied",
                path.display()
            ));
        }
        outcome.map(|()| Shown { changes: view.changes() })
    }

    /// Applies the plan that was shown.
    pub(super) async fn apply_saved(&self, destroy: bool) -> CommandResult {
        let plan = self.session.plan_for(destroy).display().to_string();
        let stop = stop_on_interrupt();
        let mut view = View::of_apply(self.printer, self.session.key(), self.redactor());
        let arguments = ["apply", "-input=false", "-json", plan.as_str()];
        let outcome = self.stream(&arguments, false, Some(&stop), &mut view).await;
        // What was begun cannot be applied again, however it ended.
        self.session.forget_plan();
        outcome.map(|()| ExitCode::SUCCESS)
    }

    pub(super) async fn validate(&self, more: &[&str]) -> CommandResult {
        let mut arguments = vec!["validate", "-json"];
        arguments.extend(more);
        let output = self.session.output(&arguments).await?;
        let said: Json = strata_tofu::asked_for(&output.stdout).unwrap_or(Json::Null);
        let printer = self.printer;
        let all: Vec<&Json> = said["diagnostics"].as_array().into_iter().flatten().collect();
        let found: Vec<Diagnosis> = all.iter().map(|one| Diagnosis::of(one)).collect();
        for (json, one) in all.iter().zip(&found) {
            if let Ok(clean) = serde_json::from_str::<Json>(&self.redactor().redact(&json.to_string())) {
                printer.event_of(self.session.key(), &Event::TofuDiagnostic { diagnostic: clean });
            }
            printer.note(self.redactor().redact(&diagnosis(one)));
        }
        if said["valid"].as_bool() != Some(true) {
            let mut error = CommandError::failed("OpenTofu does not accept the project");
            if said.is_null() {
                error = error.detail(String::from_utf8_lossy(&output.stderr).trim().to_owned());
            }
            if found.iter().any(Diagnosis::needs_init) {
                error =
                    error.hint(format!("`strata tofu init {}` prepares the folder", self.session.stack()));
            }
            return Err(error);
        }
        printer.line("valid: OpenTofu accepts the project");
        Ok(ExitCode::SUCCESS)
    }

    async fn stream(
        &self,
        arguments: &[&str],
        with_var_files: bool,
        stop: Option<&StopSignal>,
        view: &mut View,
    ) -> Result<(), CommandError> {
        let ended = self.session.run(arguments, with_var_files, stop, |line| view.line(line)).await?;
        view.end();
        self.session.judge(&ended, view.found())
    }

    /// Waits. An interrupt from the terminal goes to the child too, which saves its state and ends.
    async fn wait(&self, command: Command) -> Result<(), CommandError> {
        let mut child =
            tokio::process::Command::from(command).spawn().map_err(|error| self.session.lost(&error))?;
        let mut interrupted = false;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status.map_err(|error| self.session.lost(&error))?,
                Ok(()) = tokio::signal::ctrl_c() => interrupted = true,
            }
        };
        self.session.judge(&Ended { status, interrupted, noted: String::new() }, &[])
    }
}

/// Whether a saved plan is not encrypted; then nobody else may read it.
fn is_open(plan: &Path) -> bool {
    let is_zip = std::fs::File::open(plan).and_then(|mut file| {
        let mut start = [0; 2];
        std::io::Read::read_exact(&mut file, &mut start)?;
        Ok(start == *b"PK")
    });
    let is_open = is_zip.unwrap_or(false);
    if is_open {
        let _ = std::fs::set_permissions(plan, std::os::unix::fs::PermissionsExt::from_mode(0o600));
    }
    is_open
}
