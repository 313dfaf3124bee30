//! `strata secrets`.

mod check;
mod collect;
mod decrypt;
mod edit;
mod encrypt;
mod exec;
mod list;
mod rotate;
mod sweep;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use strata_diagnostics::{LARGEST_DOCUMENT, read_file};
use strata_secrets::creation::CreationError;
use strata_secrets::vault::{PasswordSource, Passwords};
use strata_secrets::{Access, Environment, NoPrompt, Prompt, Sealed, SealedError, sops};

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;
use crate::prompt::TerminalPrompt;

/// Reads, changes and guards the encrypted files
///
/// Files of `sops` are opened with the age keys that `sops` would find, or with `age.key` at the root of the repository. Passwords of
/// `ansible-vault` come from --vault-password-file, ANSIBLE_VAULT_PASSWORD_FILE, ANSIBLE_VAULT_IDENTITY_LIST, or a question.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Edit(edit::Args),
    Encrypt(encrypt::Args),
    Decrypt(decrypt::Args),
    List(list::Args),
    Rotate(rotate::Args),
    Exec(exec::Args),
    Check(check::Args),
    Collect(collect::Args),
    Sweep(sweep::Args),
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let keys = Keys { context };
    match &args.verb {
        Verb::Edit(args) => edit::run(&keys, args).await,
        Verb::Encrypt(args) => encrypt::run(&keys, args),
        Verb::Decrypt(args) => decrypt::run(&keys, args),
        Verb::List(args) => list::run(&keys, args),
        Verb::Rotate(args) => rotate::run(&keys, args).await,
        Verb::Exec(args) => exec::run(&keys, args),
        Verb::Check(args) => check::run(&keys, args),
        Verb::Collect(args) => collect::run(&keys, args),
        Verb::Sweep(args) => sweep::run(args),
    }
}

/// The keys of the user, for files in and outside a repository.
struct Keys<'a> {
    context: &'a Context,
}

impl Keys<'_> {
    /// A path from the command line.
    fn path(&self, given: &Path) -> PathBuf {
        self.context.absolute(given)
    }

    /// What opens a file, or the files of a folder.
    fn access(&self, path: &Path) -> Access {
        self.access_with(path, Arc::new(TerminalPrompt))
    }

    /// The same, as far as that needs no person.
    fn access_without_asking(&self, path: &Path) -> Access {
        self.access_with(path, Arc::new(NoPrompt))
    }

    fn access_with(&self, path: &Path, prompt: Arc<dyn Prompt>) -> Access {
        Access::new(self.environment(path), prompt, self.context.vault_passwords())
    }

    /// One more password, given as `--vault-password-file` takes it.
    fn password_at(&self, text: &str) -> (Option<String>, Passwords) {
        let here = self.here();
        let (id, source) = PasswordSource::parse(text, &here);
        (id.clone(), Passwords::new(here, Arc::new(TerminalPrompt), vec![(id, source)]))
    }

    /// What the command line names starts where the command was told to work.
    fn here(&self) -> Environment {
        self.context.here()
    }

    /// What variables name starts at the root of the repository: Strata's, or else one that only has rules for `sops`.
    fn environment(&self, path: &Path) -> Environment {
        let above = |name: &str| path.ancestors().find(|folder| folder.join(name).is_file());
        let root = above("strata.yaml").or_else(|| above(sops::CONFIG_FILE));
        let root = root.map_or_else(|| self.path(Path::new("")), Path::to_owned);
        strata_session::secrets::environment(&self.context.environment, &root)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    read_file(path, LARGEST_DOCUMENT)
        .map_err(|error| CommandError::failed(format!("cannot read `{}`: {error}", path.display())))
}

fn replace(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    strata_secrets::replace(path, bytes)
        .map_err(|error| CommandError::failed(format!("cannot write `{}`: {error}", path.display())))
}

/// Something is wrong with a file.
fn failed(path: &Path, reason: impl std::fmt::Display) -> CommandError {
    CommandError::failed(format!("`{}`: {reason}", path.display()))
}

/// An encrypted file, whatever it was encrypted with.
fn sealed(path: &Path, content: &[u8]) -> Result<Sealed, CommandError> {
    Sealed::expect(path, content).map_err(|error| unopened(path, error))
}

fn unopened(path: &Path, error: SealedError) -> CommandError {
    let plain = matches!(error, SealedError::Plain);
    let own = failed(path, error);
    if plain { own.hint("`strata secrets encrypt` encrypts it") } else { own }
}

/// Nobody can say who reads a new file.
fn unruled(path: &Path, error: CreationError) -> CommandError {
    match error {
        CreationError::Rules { .. } => CommandError::failed(error.to_string()),
        CreationError::Unusable(error) => failed(path, error),
        CreationError::NoRule => failed(path, error)
            .hint("add a creation rule, or give `--age RECIPIENT`; `--vault` encrypts with a password"),
    }
}
