//! One stack, and OpenTofu at work on it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use serde_json::{Value as Json, json};
use strata_source::{EffectiveStack, Model};
use strata_tofu::Family;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::environment::{self, Variables};
use super::program::Program;
use super::var_files::{self, Pipes, VarFile};
use crate::command_error::{CommandError, ErrorKind};
use crate::commands::CommandResult;
use crate::views::tofu::View;
use crate::workspace::{OWN_FOLDER, Workspace};

pub(super) struct Session<'w> {
    workspace: &'w Workspace<'w>,
    program: Program,
    folder: PathBuf,
    variables: Variables,
    var_files: Vec<VarFile>,
    saved_plan: PathBuf,
    /// The workspace of OpenTofu that an environment is, where the backend has such.
    tofu_workspace: Option<String>,
}

/// What a plan came to.
pub(super) struct Shown {
    pub(super) changes: u64,
}

impl<'w> Session<'w> {
    pub(super) fn open(workspace: &'w Workspace<'w>, stack: Option<&str>) -> Result<Self, CommandError> {
        let stack = workspace.tofu_stack(stack)?;
        let program = Program::find(workspace.context)?;
        let folder = workspace.root().join(folder_of(stack)?);
        if !has_code(&folder) {
            return Err(CommandError::failed(format!(
                "there is no OpenTofu project in `{}`",
                folder.display()
            ))
            .hint("`strata sync` renders it"));
        }
        let variables = environment::variables(workspace, stack, &folder, program.is_tofu)?;
        let environments: Vec<&str> = workspace.repository().environments();
        let own = if stack.is_default_environment { "" } else { stack.environment.as_str() };
        let others: Vec<&str> = environments.into_iter().filter(|name| *name != stack.environment).collect();
        let mut var_files = var_files::find(workspace, &folder, own, &others)?;
        if !stack.is_default_environment {
            // The environment has all data of its own.
            var_files.retain(|file| !matches!(file, VarFile::Plain(name) if name == "vms.tfvars"));
        }
        let plans = workspace.root().join(OWN_FOLDER).join("tofu");
        let saved_plan = plans.join(format!("{}-{}.tfplan", stack.environment, stack.name));
        let has_addresses = variables.contains_key("TF_HTTP_ADDRESS");
        let tofu_workspace =
            (!stack.is_default_environment && !has_addresses).then(|| stack.environment.clone());
        Ok(Self { workspace, program, folder, variables, var_files, saved_plan, tofu_workspace })
    }

    pub(super) fn saved_plan(&self) -> &Path {
        &self.saved_plan
    }

    pub(super) fn forget_plan(&self) {
        let _ = std::fs::remove_file(&self.saved_plan);
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
            self.select_workspace().await?;
        }
        let mut arguments = vec![verb];
        arguments.extend(fixed);
        arguments.extend(more);
        let mut child = self.spawn(&arguments, &[], Stdio::inherit())?;
        self.finish(&mut child, false).await?;
        Ok(ExitCode::SUCCESS)
    }

    /// Makes and saves a plan, and shows it.
    pub(super) async fn plan(&self, destroy: bool, more: &[&str]) -> Result<Shown, CommandError> {
        self.select_workspace().await?;
        self.forget_plan();
        if let Some(folder) = self.saved_plan.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
                CommandError::failed(format!("cannot make `{}`: {error}", folder.display()))
            })?;
        }
        let out = format!("-out={}", self.saved_plan.display());
        let mut arguments = vec!["plan", "-input=false", "-json", &out];
        if destroy {
            arguments.push("-destroy");
        }
        arguments.extend(more);
        let view = match self.stream(&arguments, true).await {
            Ok(view) => view,
            Err(error) => {
                // What is there now is only a part of it.
                self.forget_plan();
                return Err(error);
            }
        };
        Ok(Shown { changes: view.changes() })
    }

    pub(super) async fn apply_saved(&self) -> CommandResult {
        let plan = self.saved_plan.display().to_string();
        let outcome = self.stream(&["apply", "-input=false", "-json", &plan], false).await;
        // What was begun cannot be applied again, however it ended.
        self.forget_plan();
        outcome.map(|_| ExitCode::SUCCESS)
    }

    pub(super) async fn validate(&self, more: &[&str]) -> CommandResult {
        let mut arguments = vec!["validate", "-json"];
        arguments.extend(more);
        let child = self.spawn(&arguments, &[], Stdio::piped())?;
        let output = child.wait_with_output().await.map_err(|error| self.lost(&error))?;
        let said: Json = serde_json::from_slice(&output.stdout).unwrap_or(Json::Null);
        let mut view = View::new(self.workspace.context.printer);
        for diagnostic in said["diagnostics"].as_array().into_iter().flatten() {
            view.event(&json!({"type": "diagnostic", "diagnostic": diagnostic}));
        }
        if said["valid"].as_bool() != Some(true) {
            return Err(CommandError::failed("OpenTofu does not accept the project")
                .hint("`strata tofu init` fetches providers, if they are missing"));
        }
        self.workspace.context.printer.line("valid: OpenTofu accepts the project");
        Ok(ExitCode::SUCCESS)
    }

    /// A workspace of OpenTofu for each environment but the default one.
    async fn select_workspace(&self) -> Result<(), CommandError> {
        let Some(name) = &self.tofu_workspace else { return Ok(()) };
        let arguments = ["workspace", "select", "-or-create=true", name.as_str()];
        let mut child = self.spawn(&arguments, &[], Stdio::null())?;
        self.finish(&mut child, false).await
    }

    async fn stream(&self, arguments: &[&str], with_var_files: bool) -> Result<View, CommandError> {
        let files: &[VarFile] = if with_var_files { &self.var_files } else { &[] };
        let mut child = self.spawn(arguments, files, Stdio::piped())?;
        let printer = self.workspace.context.printer;
        let mut view = if with_var_files { View::new(printer) } else { View::of_apply(printer) };
        if let Some(out) = child.stdout.take() {
            let mut lines = BufReader::new(out).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                match serde_json::from_str::<Json>(&line) {
                    Ok(event) => view.event(&event),
                    // Some errors come before it speaks JSON.
                    Err(_) => self.workspace.context.printer.note(line),
                }
            }
        }
        view.end();
        self.finish(&mut child, view.is_locked()).await?;
        Ok(view)
    }

    fn spawn(&self, arguments: &[&str], files: &[VarFile], out: Stdio) -> Result<Child, CommandError> {
        let mut pipes = Pipes::default();
        let mut command = Command::new(&self.program.path);
        command.current_dir(&self.folder).stdout(out);
        let (last, first) =
            arguments.split_last().map_or((None, arguments), |(last, first)| (Some(*last), first));
        command.args(first);
        for file in files {
            command.arg(pipes.argument(file)?);
        }
        command.args(last);
        for (name, value) in &self.variables {
            command.env(name, value.expose());
        }
        let child = command.spawn().map_err(|error| self.lost(&error))?;
        pipes.release();
        Ok(child)
    }

    /// Waits. An interrupt from the terminal goes to the child too, which saves its state and ends.
    async fn finish(&self, child: &mut Child, locked: bool) -> Result<(), CommandError> {
        let mut interrupted = false;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status.map_err(|error| self.lost(&error))?,
                Ok(()) = tokio::signal::ctrl_c() => interrupted = true,
            }
        };
        if status.success() {
            return Ok(());
        }
        let kind = match (interrupted, locked) {
            (true, _) => ErrorKind::Interrupted,
            (_, true) => ErrorKind::Locked,
            _ => ErrorKind::Failed,
        };
        Err(CommandError::new(kind, format!("`{}` failed", self.program.path.display())))
    }

    fn lost(&self, error: &std::io::Error) -> CommandError {
        CommandError::failed(format!("cannot run `{}`: {error}", self.program.path.display()))
    }
}

fn folder_of(stack: &EffectiveStack) -> Result<String, CommandError> {
    match (Family::of(stack), &stack.model) {
        (Some(family), _) => Ok(family.folder(stack)),
        (None, Model::Tofu) => Ok(stack.folder.clone()),
        _ => Err(CommandError::failed(format!("the stack `{}` has no OpenTofu project", stack.name))),
    }
}

fn has_code(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).any(|name| name.ends_with(".tf"))
}
