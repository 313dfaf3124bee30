//! One stack, and the ways in which OpenTofu is called for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use strata_diagnostics::{LARGEST_FILE, read_text_file};
use strata_engine::StopSignal;
use strata_source::{EffectiveStack, Model};
use strata_tofu::{Diagnosis, Family};

use super::environment::{self, Variables};
use super::process::{Ended, follow};
use super::program::Program;
use super::var_files::{self, Pipes, VarFile};
use crate::error::{ErrorKind, SessionError};
use crate::observer::SessionEvent;
use crate::workspace::{KnownOutputs, OWN_FOLDER, Workspace};

pub struct TofuSession<'w> {
    workspace: &'w Workspace,
    stack: String,
    key: String,
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
pub enum Inputs<'k> {
    /// All that the stack takes, of these and of the states.
    All(&'k KnownOutputs),
    /// As far as they are known: what only looks needs none.
    Known,
}

impl<'w> TofuSession<'w> {
    pub async fn open(
        workspace: &'w Workspace,
        stack: &EffectiveStack,
        inputs: Inputs<'_>,
    ) -> Result<Self, SessionError> {
        let (program, key) = (workspace.program()?, crate::workspace::key(stack));
        let folder = workspace.root().join(folder_of(stack)?);
        if !has_code(&folder) {
            return Err(SessionError::failed(format!(
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
            key,
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

    pub fn workspace(&self) -> &'w Workspace {
        self.workspace
    }

    /// The name of the stack.
    /// The key of the state that Strata keeps of the stack.
    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn stack(&self) -> &str {
        &self.stack
    }

    pub fn saved_plan(&self) -> &Path {
        &self.saved_plan
    }

    pub fn forget_plan(&self) {
        let _ = std::fs::remove_file(&self.saved_plan);
        let _ = std::fs::remove_file(&self.destroying_plan);
        let _ = std::fs::remove_file(self.code_file());
    }

    /// Refuses a saved plan of other code than there is now: nobody has seen what that would do.
    pub fn check_saved(&self) -> Result<(), SessionError> {
        let kept = read_text_file(&self.code_file(), LARGEST_FILE).unwrap_or_default();
        if kept == self.code_digest() {
            return Ok(());
        }
        let message = format!("the code of `{}` has changed since its plan was saved", self.stack);
        Err(SessionError::refused(message).hint(format!("plan again: `strata tofu plan {}`", self.stack)))
    }

    pub fn keep_code(&self, digest: &str) -> Result<(), SessionError> {
        let path = self.code_file();
        strata_secrets::replace(&path, digest.as_bytes())
            .map_err(|error| SessionError::failed(format!("cannot write `{}`: {error}", path.display())))
    }

    /// What the saved plan was made of.
    fn code_file(&self) -> PathBuf {
        self.saved_plan.with_extension("code")
    }

    pub fn code_digest(&self) -> String {
        let folder = self.folder.strip_prefix(self.workspace.root()).unwrap_or(&self.folder);
        self.workspace.code_digest(&folder.to_string_lossy())
    }

    pub fn plan_for(&self, destroy: bool) -> &Path {
        if destroy { &self.destroying_plan } else { &self.saved_plan }
    }

    /// Says before anything is applied that OpenTofu would write secrets into a plain file.
    pub fn warn_of_plain_state(&self) {
        if self.leaves_secrets_in_a_file {
            let folder = self.folder.strip_prefix(self.workspace.root()).unwrap_or(&self.folder).to_owned();
            let (stack, encrypts) = (self.stack.as_str(), self.program.is_tofu);
            self.workspace.surroundings().observer.session_event(SessionEvent::PlainState {
                stack,
                folder,
                encrypts,
            });
        }
    }

    /// Where the code is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Fetches providers and modules, and connects to the state.
    pub async fn init(&self) -> Result<(), SessionError> {
        // Nobody is asked whether a state should move: that is a person's decision, and not for now.
        let command = self.command(&["init", "-input=false", "-no-color"], false);
        let mut said = Vec::new();
        let ended = follow(command, None, || {}, |line| said.push(line.to_owned())).await;
        let ended = ended.map_err(|error| self.lost(&error))?;
        if ended.status.success() {
            return Ok(());
        }
        said.extend(ended.noted.lines().map(str::to_owned));
        let mut error = SessionError::failed(format!("OpenTofu cannot prepare `{}`", self.stack))
            .hint(format!("`strata tofu init {}` does it alone", self.stack));
        error.details = said.iter().map(|line| self.workspace.redactor().redact(line).into_owned()).collect();
        Err(error)
    }

    /// A workspace of OpenTofu for each environment but the default one.
    pub async fn select_workspace(&self) -> Result<(), SessionError> {
        let Some(name) = self.tofu_workspace.as_deref().filter(|name| *name != "default") else {
            return Ok(());
        };
        let command = self.command(&["workspace", "select", "-or-create=true", name], false);
        let ended = follow(command, None, || {}, |_| {}).await.map_err(|error| self.lost(&error))?;
        self.judge(&ended, &[])
    }

    /// What a command says on its standard output, which only looks.
    pub async fn output(&self, arguments: &[&str]) -> Result<std::process::Output, SessionError> {
        let mut command = tokio::process::Command::from(self.command(arguments, true));
        command.stdin(Stdio::null()).output().await.map_err(|error| self.lost(&error))
    }

    /// Runs a command to its end and gives each line that it says.
    pub async fn run(
        &self,
        arguments: &[&str],
        with_var_files: bool,
        stop: Option<&StopSignal>,
        heard: impl FnMut(&str),
    ) -> Result<Ended, SessionError> {
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

    /// A command of OpenTofu in the folder of the stack, with its variables.
    pub fn command(&self, arguments: &[&str], in_workspace: bool) -> Command {
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

    /// How it ended, with what helps.
    pub fn judge(&self, ended: &Ended, found: &[Diagnosis]) -> Result<(), SessionError> {
        if ended.status.success() {
            return Ok(());
        }
        let (stack, errors) = (&self.stack, || found.iter().filter(|found| found.is_error));
        let mut error = if ended.interrupted {
            SessionError::new(ErrorKind::Interrupted, format!("OpenTofu was interrupted at `{stack}`"))
                .hint("what it made is in its state: plan again to go on")
        } else if let Some(lock) = errors().find(|found| found.is_locked()) {
            let holder = lock.lock_holder().unwrap_or_else(|| "somebody else".to_owned());
            let message = format!("OpenTofu's state of `{stack}` is locked by {holder}");
            let id = lock.lock_id().unwrap_or("ID");
            let unlock = format!("strata tofu force-unlock {stack} -- {id}");
            SessionError::new(ErrorKind::Locked, message)
                .hint(format!("wait for it; if that run is gone for good, `{unlock}` takes the lock away"))
        } else if errors().any(Diagnosis::is_stale) {
            SessionError::refused(format!("the plan of `{stack}` is stale: OpenTofu's state moved on"))
                .hint("plan again")
        } else if errors().next().is_some() && errors().all(Diagnosis::is_protected) {
            SessionError::refused(format!("`prevent_destroy` protects something of `{stack}`"))
                .hint("take it out of the code, apply that, then plan again")
        } else {
            SessionError::failed(format!("`{}` failed at `{stack}`", self.program.path.display()))
        };
        if errors().any(Diagnosis::needs_init) {
            error = error.hint(format!("`strata tofu init {stack}` prepares the folder"));
        }
        if !ended.noted.is_empty() {
            error = error.detail(self.workspace.redactor().redact(&ended.noted).into_owned());
        }
        Err(error)
    }

    pub fn lost(&self, error: &std::io::Error) -> SessionError {
        SessionError::failed(format!("cannot run `{}`: {error}", self.program.path.display()))
    }
}

fn folder_of(stack: &EffectiveStack) -> Result<String, SessionError> {
    match (Family::of(stack), &stack.model) {
        (Some(family), _) => Ok(family.folder(stack)),
        (None, Model::Tofu(_)) => Ok(stack.folder.clone()),
        _ => Err(SessionError::failed(format!("the stack `{}` has no OpenTofu project", stack.name))),
    }
}

fn has_code(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let code = [".tf", ".tofu", ".tf.json", ".tofu.json"];
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .any(|name| code.iter().any(|ending| name.ends_with(ending)))
}
