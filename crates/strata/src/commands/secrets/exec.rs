//! `strata secrets exec`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use strata_secret::SecretBytes;
use strata_secrets::SecretStore;

use super::Keys;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::workspace::Workspace;

/// Runs a command with secrets in its environment
///
/// The command takes Strata's place, so its exit code and its signals are its own. Nothing is written anywhere.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A variable and the secret that it gets, as in `DB_PASSWORD=database.password`; without one, every secret becomes a variable:
    /// `database.password` is DATABASE_PASSWORD
    #[arg(long = "name", value_name = "NAME=SECRET", value_parser = parse_name)]
    names: Vec<(String, String)>,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(super) fn run(keys: &Keys<'_>, args: &Args) -> CommandResult {
    let workspace = Workspace::load(keys.context)?;
    let root = workspace.root();
    let sources = strata_session::secrets::sources(&workspace.repository().settings);
    let store = SecretStore::new(root, sources, Arc::new(keys.access(root)));
    let variables = if args.names.is_empty() { every(&store)? } else { chosen(&store, &args.names)? };
    let (program, arguments) =
        args.command.split_first().ok_or_else(|| CommandError::failed("there is no command to run"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    for (name, (secret, value)) in &variables {
        if value.expose().contains(&0) {
            return Err(CommandError::failed(format!(
                "the secret `{secret}` cannot be in a variable: it has a zero byte"
            ))
            .hint("choose others with `--name`"));
        }
        command.env(name, OsStr::from_bytes(value.expose()));
    }
    let error = command.exec();
    Err(CommandError::failed(format!("cannot run `{}`: {error}", program.display())))
}

/// Variables with the names of their secrets, and the values.
type Variables = BTreeMap<String, (String, SecretBytes)>;

fn chosen(store: &SecretStore, names: &[(String, String)]) -> Result<Variables, CommandError> {
    let mut variables = Variables::new();
    for (variable, secret) in names {
        let value = store.resolve(secret).map_err(|error| CommandError::failed(error.to_string()))?;
        if variables.insert(variable.clone(), (secret.clone(), value.into())).is_some() {
            return Err(CommandError::failed(format!("`--name {variable}=…` is given twice")));
        }
    }
    Ok(variables)
}

fn every(store: &SecretStore) -> Result<Variables, CommandError> {
    let mut variables = Variables::new();
    for (secret, value) in store.secrets().map_err(|error| CommandError::failed(error.to_string()))? {
        let variable = variable_name(&secret.name);
        match variables.get(&variable) {
            // Of a name in two files, the first counts, as everywhere.
            Some((known, _)) if *known == secret.name => {}
            Some((known, _)) => {
                let message =
                    format!("the secrets `{known}` and `{}` would both be `{variable}`", secret.name);
                return Err(CommandError::failed(message).hint("name them with `--name`"));
            }
            None => {
                variables.insert(variable, (secret.name, value));
            }
        }
    }
    Ok(variables)
}

fn variable_name(secret: &str) -> String {
    let upper = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    let name: String = secret.chars().map(upper).collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name }
}

fn parse_name(text: &str) -> Result<(String, String), String> {
    let (name, secret) = text.split_once('=').ok_or("expected `NAME=secret.path`")?;
    if name.is_empty() || name.contains('\0') || secret.is_empty() {
        return Err("expected `NAME=secret.path`".to_owned());
    }
    Ok((name.to_owned(), secret.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_variables() {
        for (secret, variable) in
            [("proxmox_api_token", "PROXMOX_API_TOKEN"), ("db.users.0-x", "DB_USERS_0_X"), ("1st", "_1ST")]
        {
            assert_eq!(variable_name(secret), variable);
        }
        assert_eq!(parse_name("A=b.c=d"), Ok(("A".to_owned(), "b.c=d".to_owned())));
        assert!(parse_name("A").is_err() && parse_name("=b").is_err() && parse_name("A=").is_err());
    }
}
