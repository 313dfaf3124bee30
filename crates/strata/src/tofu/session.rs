//! One stack, and the ways in which OpenTofu is called for it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value as Json, json};
use strata_engine::StopSignal;
use strata_source::{EffectiveStack, Model};
use strata_tofu::{Diagnosis, Family};

use super::environment::{self, Variables};
use super::process::{Ended, follow};
use super::program::Program;
use super::var_files::{self, Pipes, VarFile};
use crate::command_error::{CommandError, ErrorKind};
use crate::commands::CommandResult;
use crate::views::tofu::{View, diagnosis};
use crate::workspace::{KnownOutputs, OWN_FOLDER, Workspace};

pub(crate) struct Session<'w> {
    pub(super) workspace: &'w Workspace<'w>,
    stack: String,
    program: &'w Program,
    folder: PathBuf,
    variables: Variables,
    var_files: Vec<VarFile>,
    /// Where plans are kept. One that destroys is another: an apply must not find it.
    saved_plan: PathBuf,
    destroying_plan: PathBuf,
    /// The workspace of OpenTofu that an environment is, where the backend has such.
    tofu_workspace: Option<String>,
    /// Its state is a file in the clear, and secrets go into it.
    leaves_secrets_in_a_file: bool,
}

/// What a run needs of the outputs of other stacks.
pub(crate) enum Inputs<'k> {
    /// All that the stack takes, of these and of the states.
    All(&'k KnownOutputs),
    /// As far as they are known: what only looks needs none.
    Known,
}

/// What a plan came to.
pub(crate) struct Shown {
    pub(crate) changes: u64,
}

impl<'w> Session<'w> {
    pub(crate) async fn open(
        workspace: &'w Workspace<'w>,
        stack: &EffectiveStack,
        inputs: Inputs<'_>,
    ) -> Result<Self, CommandError> {
        let program = workspace.program()?;
        let folder = workspace.root().join(folder_of(stack)?);
        if !has_code(&folder) {
            return Err(CommandError::failed(format!(
                "there is no OpenTofu project in `{}`",
                folder.display()
            ))
            .hint("`strata sync` renders it"));
        }
        let (variables, leaves_secrets_in_a_file) =
            environment::variables(workspace, stack, &folder, program.is_tofu, inputs).await?;
        let environments: Vec<&str> = workspace.repository().environments();
        let own = if stack.is_default_environment { "" } else { stack.environment.as_str() };
        let others: Vec<&str> = environments.into_iter().filter(|name| *name != stack.environment).collect();
        let mut var_files = var_files::find(workspace, &folder, own, &others)?;
        if !stack.is_default_environment {
            // The environment has all data of its own.
            var_files.retain(|file| !matches!(file, VarFile::Plain(name) if name == "vms.tfvars"));
        }
        let plans = workspace.root().join(OWN_FOLDER).join("tofu");
        let own = format!("{}-{}", stack.environment, stack.name.replace('/', "-"));
        let saved_plan = plans.join(format!("{own}.tfplan"));
        let destroying_plan = plans.join(format!("{own}.destroy.tfplan"));
        let has_addresses = variables.contains_key("TF_HTTP_ADDRESS");
        let tofu_workspace = match (stack.is_default_environment, has_addresses) {
            (false, false) => Some(stack.environment.clone()),
            // Another environment may have been chosen in this folder before.
            (true, false) if folder.join(".terraform/environment").exists() => Some("default".to_owned()),
            _ => None,
        };
        let stack = stack.name.clone();
        Ok(Self {
            workspace,
            stack,
            program,
            folder,
            variables,
            var_files,
            saved_plan,
            destroying_plan,
            tofu_workspace,
            leaves_secrets_in_a_file,
        })
    }

    pub(crate) fn saved_plan(&self) -> &Path {
        &self.saved_plan
    }

    pub(crate) fn forget_plan(&self) {
        let _ = std::fs::remove_file(&self.saved_plan);
        let _ = std::fs::remove_file(&self.destroying_plan);
        let _ = std::fs::remove_file(self.code_file());
    }

    /// Refuses a saved plan of other code than there is now: nobody has seen what that would do.
    pub(crate) fn check_saved(&self) -> Result<(), CommandError> {
        let kept = std::fs::read_to_string(self.code_file()).unwrap_or_default();
        if kept == self.code_digest() {
            return Ok(());
        }
        let message = format!("the code of `{}` has changed since its plan was saved", self.stack);
        Err(CommandError::refused(message).hint(format!("plan again: `strata tofu plan {}`", self.stack)))
    }

    fn keep_code(&self, digest: &str) -> Result<(), CommandError> {
        let path = self.code_file();
        crate::replace_file::replace(&path, digest.as_bytes())
            .map_err(|error| CommandError::failed(format!("cannot write `{}`: {error}", path.display())))
    }

    /// What the saved plan was made of.
    fn code_file(&self) -> PathBuf {
        self.saved_plan.with_extension("code")
    }

    fn code_digest(&self) -> String {
        let folder = self.folder.strip_prefix(self.workspace.root()).unwrap_or(&self.folder);
        self.workspace.code_digest(&folder.to_string_lossy())
    }

    fn plan_for(&self, destroy: bool) -> &Path {
        if destroy { &self.destroying_plan } else { &self.saved_plan }
    }

    /// Says before anything is applied that OpenTofu would write secrets into a plain file.
    pub(super) fn warn_of_plain_state(&self) {
        if self.leaves_secrets_in_a_file {
            let hint = if self.program.is_tofu {
                "encrypt it with `state.encryption` in strata.yaml, or give the stack a backend"
            } else {
                "give the stack a backend that encrypts, or use OpenTofu with `state.encryption` in strata.yaml"
            };
            self.workspace.context.printer.note(format!(
                "warning: `{}` is given secrets, and its state is a plain file in `{}` that will hold them\nhint: {hint}",
                self.stack,
                self.folder.strip_prefix(self.workspace.root()).unwrap_or(&self.folder).display()
            ));
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A command whose own words are shown as they are.
    pub(crate) async fn plain(
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
        if self.workspace.context.printer.is_plain() {
            arguments.push("-no-color");
        }
        arguments.extend(more);
        let mut command = self.command(&arguments, needs_state);
        command.stdout(Stdio::inherit());
        self.wait(command).await?;
        Ok(ExitCode::SUCCESS)
    }

    /// Any command of OpenTofu at all, as it is.
    pub(crate) async fn any(&self, arguments: &[&str]) -> CommandResult {
        self.select_workspace().await?;
        let mut command = self.command(arguments, true);
        command.stdout(Stdio::inherit());
        self.wait(command).await?;
        Ok(ExitCode::SUCCESS)
    }

    /// The addresses in the state, or the outputs: one object a line.
    pub(crate) async fn told(&self, verb: &[&str], more: &[&str]) -> CommandResult {
        self.select_workspace().await?;
        let arguments: Vec<&str> = verb.iter().chain(more).copied().collect();
        let output = self.output(&arguments).await?;
        let noted = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        self.judge(&Ended { status: output.status, interrupted: false, noted }, &[])?;
        let printer = self.workspace.context.printer;
        match strata_tofu::asked_for(&output.stdout) {
            Ok(outputs) => printer.event(&outputs),
            Err(_) => {
                for address in String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.is_empty())
                {
                    printer.event(&json!({"address": address}));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Whether the files are formatted.
    pub(crate) async fn check_format(&self, more: &[&str]) -> CommandResult {
        let outcome = self.plain("fmt", &["-check", "-diff"], more, false).await;
        outcome.map_err(|error| match error.kind {
            ErrorKind::Failed => {
                CommandError::failed(format!("the files of `{}` are not formatted, or no HCL", self.stack))
                    .hint(format!(
                        "`strata tofu fmt {}` formats them; what is rendered is formatted",
                        self.stack
                    ))
            }
            _ => error,
        })
    }

    /// Makes and saves a plan, and shows it.
    pub(crate) async fn plan(&self, destroy: bool, more: &[&str]) -> Result<Shown, CommandError> {
        self.select_workspace().await?;
        self.forget_plan();
        if let Some(folder) = self.saved_plan.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
                CommandError::failed(format!("cannot make `{}`: {error}", folder.display()))
            })?;
        }
        let path = self.plan_for(destroy);
        let code = self.code_digest();
        let out = format!("-out={}", path.display());
        let mut arguments = vec!["plan", "-input=false", "-json", &out];
        if destroy {
            arguments.push("-destroy");
        }
        arguments.extend(more);
        let mut view = View::new(self.workspace.context.printer, self.workspace.redactor());
        let outcome = self.stream(&arguments, true, None, &mut view).await;
        let outcome = match outcome {
            Ok(()) if !destroy => self.keep_code(&code),
            outcome => outcome,
        };
        if outcome.is_err() {
            // What is there now is only a part of it.
            self.forget_plan();
        }
        if outcome.is_ok() && is_open(path) {
            self.workspace.context.printer.note(format!(
                "warning: Terraform cannot encrypt: `{}` holds values in the clear, for your eyes only, until it is applied",
                path.display()
            ));
        }
        outcome.map(|()| Shown { changes: view.changes() })
    }

    /// Applies the plan that was shown.
    pub(crate) async fn apply_saved(&self, destroy: bool) -> CommandResult {
        let plan = self.plan_for(destroy).display().to_string();
        let stop = crate::commands::stop_on_interrupt();
        let mut view = View::of_apply(self.workspace.context.printer, self.workspace.redactor());
        let arguments = ["apply", "-input=false", "-json", plan.as_str()];
        let outcome = self.stream(&arguments, false, Some(&stop), &mut view).await;
        // What was begun cannot be applied again, however it ended.
        self.forget_plan();
        outcome.map(|()| ExitCode::SUCCESS)
    }

    pub(crate) async fn validate(&self, more: &[&str]) -> CommandResult {
        let mut arguments = vec!["validate", "-json"];
        arguments.extend(more);
        let output = self.output(&arguments).await?;
        let said: Json = strata_tofu::asked_for(&output.stdout).unwrap_or(Json::Null);
        let printer = self.workspace.context.printer;
        let all: Vec<&Json> = said["diagnostics"].as_array().into_iter().flatten().collect();
        let found: Vec<Diagnosis> = all.iter().map(|one| Diagnosis::of(one)).collect();
        for (json, one) in all.iter().zip(&found) {
            if let Ok(clean) =
                serde_json::from_str::<Json>(&self.workspace.redactor().redact(&json.to_string()))
            {
                printer.event(&json!({"event": "diagnostic", "diagnostic": clean}));
            }
            printer.note(self.workspace.redactor().redact(&diagnosis(one)));
        }
        if said["valid"].as_bool() != Some(true) {
            let mut error = CommandError::failed("OpenTofu does not accept the project");
            if said.is_null() {
                error = error.detail(String::from_utf8_lossy(&output.stderr).trim().to_owned());
            }
            if found.iter().any(Diagnosis::needs_init) {
                error = error.hint(format!("`strata tofu init {}` prepares the folder", self.stack));
            }
            return Err(error);
        }
        printer.line("valid: OpenTofu accepts the project");
        Ok(ExitCode::SUCCESS)
    }

    /// Fetches providers and modules, and connects to the state.
    pub(super) async fn init(&self) -> Result<(), CommandError> {
        // Nobody is asked whether a state should move: that is a person's decision, and not for now.
        let command = self.command(&["init", "-input=false", "-no-color"], false);
        let mut said = Vec::new();
        let ended = follow(command, None, || {}, |line| said.push(line.to_owned())).await;
        let ended = ended.map_err(|error| self.lost(&error))?;
        if ended.status.success() {
            return Ok(());
        }
        said.extend(ended.noted.lines().map(str::to_owned));
        let mut error = CommandError::failed(format!("OpenTofu cannot prepare `{}`", self.stack))
            .hint(format!("`strata tofu init {}` does it alone", self.stack));
        error.details = said.iter().map(|line| self.workspace.redactor().redact(line).into_owned()).collect();
        Err(error)
    }

    /// A workspace of OpenTofu for each environment but the default one.
    pub(super) async fn select_workspace(&self) -> Result<(), CommandError> {
        let Some(name) = self.tofu_workspace.as_deref().filter(|name| *name != "default") else {
            return Ok(());
        };
        let mut command = self.command(&["workspace", "select", "-or-create=true", name], false);
        command.stdout(Stdio::null());
        self.wait(command).await
    }

    /// What a command says on its standard output, which only looks.
    pub(super) async fn output(&self, arguments: &[&str]) -> Result<std::process::Output, CommandError> {
        let mut command = tokio::process::Command::from(self.command(arguments, true));
        command.stdin(Stdio::null()).output().await.map_err(|error| self.lost(&error))
    }

    async fn stream(
        &self,
        arguments: &[&str],
        with_var_files: bool,
        stop: Option<&StopSignal>,
        view: &mut View,
    ) -> Result<(), CommandError> {
        let ended = self.run(arguments, with_var_files, stop, |line| view.line(line)).await?;
        view.end();
        self.judge(&ended, view.found())
    }

    /// Runs a command to its end and gives each line that it says.
    pub(super) async fn run(
        &self,
        arguments: &[&str],
        with_var_files: bool,
        stop: Option<&StopSignal>,
        heard: impl FnMut(&str),
    ) -> Result<Ended, CommandError> {
        let mut pipes = Pipes::default();
        let files: &[VarFile] = if with_var_files { &self.var_files } else { &[] };
        let mut given = Vec::new();
        for file in files {
            given.push(pipes.argument(file)?);
        }
        // Right after the verb: an option of the user may have its value in the next argument, and what it says last counts.
        let (verb, rest) = arguments.split_at(arguments.len().min(1));
        let given = given.iter().map(String::as_str);
        let all: Vec<&str> = verb.iter().copied().chain(given).chain(rest.iter().copied()).collect();
        let command = self.command(&all, true);
        follow(command, stop, || pipes.release(), heard).await.map_err(|error| self.lost(&error))
    }

    fn command(&self, arguments: &[&str], in_workspace: bool) -> Command {
        let mut command = Command::new(&self.program.path);
        command.current_dir(&self.folder).args(arguments);
        for (name, value) in &self.variables {
            command.env(name, value.expose());
        }
        match self.tofu_workspace.as_deref().filter(|_| in_workspace) {
            Some(name) => command.env("TF_WORKSPACE", name),
            None => command.env_remove("TF_WORKSPACE"),
        };
        command
    }

    /// Waits. An interrupt from the terminal goes to the child too, which saves its state and ends.
    async fn wait(&self, command: Command) -> Result<(), CommandError> {
        let mut child = tokio::process::Command::from(command).spawn().map_err(|error| self.lost(&error))?;
        let mut interrupted = false;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status.map_err(|error| self.lost(&error))?,
                Ok(()) = tokio::signal::ctrl_c() => interrupted = true,
            }
        };
        self.judge(&Ended { status, interrupted, noted: String::new() }, &[])
    }

    /// How it ended, with what helps.
    pub(super) fn judge(&self, ended: &Ended, found: &[Diagnosis]) -> Result<(), CommandError> {
        if ended.status.success() {
            return Ok(());
        }
        let (stack, errors) = (&self.stack, || found.iter().filter(|found| found.is_error));
        let mut error = if ended.interrupted {
            CommandError::new(ErrorKind::Interrupted, format!("OpenTofu was interrupted at `{stack}`"))
                .hint("what it made is in its state: plan again to go on")
        } else if let Some(lock) = errors().find(|found| found.is_locked()) {
            let holder = lock.lock_holder().unwrap_or_else(|| "somebody else".to_owned());
            let message = format!("OpenTofu's state of `{stack}` is locked by {holder}");
            let id = lock.lock_id().unwrap_or("ID");
            let unlock = format!("strata tofu force-unlock {stack} -- {id}");
            CommandError::new(ErrorKind::Locked, message)
                .hint(format!("wait for it; if that run is gone for good, `{unlock}` takes the lock away"))
        } else if errors().any(Diagnosis::is_stale) {
            CommandError::refused(format!("the plan of `{stack}` is stale: OpenTofu's state moved on"))
                .hint("plan again")
        } else if errors().next().is_some() && errors().all(Diagnosis::is_protected) {
            CommandError::refused(format!("`prevent_destroy` protects something of `{stack}`"))
                .hint("take it out of the code, apply that, then plan again")
        } else {
            CommandError::failed(format!("`{}` failed at `{stack}`", self.program.path.display()))
        };
        if errors().any(Diagnosis::needs_init) {
            error = error.hint(format!("`strata tofu init {stack}` prepares the folder"));
        }
        if !ended.noted.is_empty() {
            error = error.detail(self.workspace.redactor().redact(&ended.noted).into_owned());
        }
        Err(error)
    }

    pub(super) fn lost(&self, error: &std::io::Error) -> CommandError {
        CommandError::failed(format!("cannot run `{}`: {error}", self.program.path.display()))
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

fn folder_of(stack: &EffectiveStack) -> Result<String, CommandError> {
    match (Family::of(stack), &stack.model) {
        (Some(family), _) => Ok(family.folder(stack)),
        (None, Model::Tofu(_)) => Ok(stack.folder.clone()),
        _ => Err(CommandError::failed(format!("the stack `{}` has no OpenTofu project", stack.name))),
    }
}

fn has_code(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let code = [".tf", ".tofu", ".tf.json", ".tofu.json"];
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .any(|name| code.iter().any(|ending| name.ends_with(ending)))
}
