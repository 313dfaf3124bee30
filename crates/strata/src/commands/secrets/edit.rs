//! `strata secrets edit`.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use strata_diagnostics::{LARGEST_DOCUMENT, read_file};
use strata_events::Event;
use strata_secret::SecretBytes;
use strata_secrets::{Access, MemoryFile, MemoryFileError, Opened, OsRandom, check_syntax};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::encrypt::How;
use super::{Keys, failed, read, replace, sealed, unopened};
use crate::command_error::{CommandError, ErrorKind};
use crate::commands::CommandResult;
use crate::context::Context;
use crate::prompt;

/// Opens an encrypted file in your editor and encrypts what you saved
///
/// The plain file is in memory only (XDG_RUNTIME_DIR or /dev/shm) and is removed in every case. If the editor fails, or what it
/// leaves cannot be read, the encrypted file stays as it was. A file that is not there is made.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A file of `sops` or `ansible-vault`, or YAML with `!vault` values
    file: PathBuf,
    #[command(flatten)]
    how: How,
}

pub(super) async fn run(keys: &Keys<'_>, args: &Args) -> CommandResult {
    let path = keys.path(&args.file);
    let subject = Subject::open(keys, args, path)?;
    let mut signals = Signals::listen()?;
    let file = in_memory(keys.context, &args.file, &subject.plain)?;
    let sealed = loop {
        run_editor(keys.context, file.path(), &mut signals).await?;
        match subject.seal(keys, args, &file.read().map_err(unkept)?) {
            Ok(sealed) => break sealed,
            Err(reason) => {
                let question = format!("what the editor left cannot be used: {reason}; edit again?");
                if !prompt::confirm(&question) {
                    let message = format!("what the editor left cannot be used: {reason}");
                    return Err(
                        CommandError::failed(message).hint(format!("`{}` is as it was", args.file.display()))
                    );
                }
            }
        }
    };
    drop(file);
    let printer = keys.context.printer;
    printer.event(&Event::Edited { file: &subject.path, changed: sealed.is_some() });
    match sealed {
        Some(sealed) => {
            subject.check_untouched()?;
            replace(&subject.path, &sealed)?;
            printer.line(format!("encrypted `{}`", args.file.display()));
        }
        None => printer.line("nothing changed"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The file that is edited.
struct Subject {
    path: PathBuf,
    /// As it was found; `None` if it is to be made.
    before: Option<(Vec<u8>, Opened)>,
    plain: SecretBytes,
    access: Access,
}

impl Subject {
    fn open(keys: &Keys<'_>, args: &Args, path: PathBuf) -> Result<Self, CommandError> {
        let access = keys.access(&path);
        if !path.exists() {
            if !path.parent().is_some_and(Path::is_dir) {
                return Err(failed(&path, "there is no such folder"));
            }
            args.how.prepare(keys, &path)?;
            return Ok(Self { path, before: None, plain: SecretBytes::new(Vec::new()), access });
        }
        let content = read(&path)?;
        let opened = sealed(&path, &content)?.open(&access).map_err(|error| unopened(&path, error))?;
        let plain = opened.plaintext().map_err(|error| failed(&path, error))?;
        Ok(Self { path, before: Some((content, opened)), plain, access })
    }

    /// The new encrypted file; `None` if nothing changed.
    fn seal(&self, keys: &Keys<'_>, args: &Args, plain: &SecretBytes) -> Result<Option<Vec<u8>>, String> {
        match &self.before {
            Some((_, opened)) => {
                opened.edit(&self.path, plain, &self.access, jiff::Timestamp::now(), &mut OsRandom)
            }
            None if plain.is_empty() => Ok(None),
            None => {
                if args.how.is_vault() {
                    check_syntax(&self.path, plain)?;
                }
                args.how.encrypt(keys, &self.path, plain).map(Some).map_err(|error| error.message)
            }
        }
    }

    /// An edit can take an hour; what somebody else wrote meanwhile must not be lost.
    fn check_untouched(&self) -> Result<(), CommandError> {
        let now = read_file(&self.path, LARGEST_DOCUMENT).ok();
        if now.as_ref() == self.before.as_ref().map(|(content, _)| content) {
            return Ok(());
        }
        let message = format!("`{}` was changed by somebody else during the edit", self.path.display());
        Err(CommandError::refused(message).hint("nothing was written; edit again"))
    }
}

/// What is edited. Another process of ours removes it when this one ends, however it ends.
fn in_memory(context: &Context, name: &Path, plain: &SecretBytes) -> Result<MemoryFile, CommandError> {
    let own = std::env::current_exe().map_err(|error| unkept(MemoryFileError::Make(error)))?;
    let mut watcher = std::process::Command::new(own);
    watcher.args(["secrets", "sweep"]);
    let runtime = context.environment.get("XDG_RUNTIME_DIR").map(String::as_str);
    MemoryFile::create(runtime, name, plain, watcher).map_err(unkept)
}

fn unkept(error: MemoryFileError) -> CommandError {
    let own = CommandError::failed(error.to_string());
    match error {
        MemoryFileError::NoPlace => {
            own.hint("set XDG_RUNTIME_DIR to a folder on a tmpfs, or mount one at /dev/shm")
        }
        _ => own,
    }
}

async fn run_editor(context: &Context, file: &Path, signals: &mut Signals) -> Result<(), CommandError> {
    let set = |name: &str| context.environment.get(name).filter(|value| !value.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).map_or("vi", String::as_str);
    let cannot = |error| CommandError::failed(format!("cannot run the editor `{editor}`: {error}"));
    // By the shell, as every program does it: the variable may have arguments and quotes.
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("exec {editor} \"$@\""), "editor"]).arg(file);
    let mut child = command.kill_on_drop(true).spawn().map_err(cannot)?;
    let status = tokio::select! {
        status = child.wait() => status.map_err(cannot)?,
        () = signals.any() => {
            stop(&mut child).await;
            return Err(CommandError::new(ErrorKind::Interrupted, "interrupted: nothing was changed"));
        }
    };
    outcome(editor, status)
}

fn outcome(editor: &str, status: ExitStatus) -> Result<(), CommandError> {
    if status.success() {
        return Ok(());
    }
    Err(CommandError::failed(format!("the editor `{editor}` ended with {status}"))
        .hint("nothing was changed"))
}

/// Lets the editor put the terminal in order, if it does so soon.
async fn stop(child: &mut Child) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    if tokio::time::timeout(Duration::from_secs(2), child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

/// What ends a command. Listening to them keeps them from ending it before the plain file is gone.
struct Signals([Signal; 4]);

impl Signals {
    fn listen() -> Result<Self, CommandError> {
        let listen = |kind| {
            signal(kind).map_err(|error| CommandError::failed(format!("cannot listen to signals: {error}")))
        };
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
            listen(SignalKind::quit())?,
        ]))
    }

    async fn any(&mut self) {
        let [interrupt, terminate, hangup, quit] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            _ = quit.recv() => {}
        }
    }
}
