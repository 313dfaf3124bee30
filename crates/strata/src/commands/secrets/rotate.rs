//! `strata secrets rotate`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;
use strata_events::Event;
use strata_secrets::sops::{ForeignKeys, OpenFile};
use strata_secrets::vault::{self, VaultPassword};
use strata_secrets::{Access, Opened, OsRandom, Sealed, creation, inline_id};

use super::{Keys, failed, read, replace, sealed, unopened, unruled};
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::workspace::Workspace;

/// Gives encrypted files new keys; what they say stays the same
///
/// A file of `sops` gets a new data key, for the recipients that `.sops.yaml` names now. A vault gets a new password. Nothing is
/// written before every file is ready. Whoever could read a secret may have kept it: change the secrets themselves too.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Encrypted files; without one all that `strata.yaml` lists, and the secrets of every cluster
    files: Vec<PathBuf>,
    /// Changes only the recipients of `sops` files; their data key stays
    #[arg(long)]
    recipients_only: bool,
    /// Takes keys of PGP and cloud services out, which cannot be given a new data key here
    #[arg(long, conflicts_with = "recipients_only")]
    drop_foreign_keys: bool,
    /// The new password of vaults: a file, a program that prints it, or `prompt`
    #[arg(long, value_name = "[ID@]FILE")]
    new_vault_password_file: Option<String>,
    /// Renews the key of the digests in state and plans too: every secret then counts as changed once
    #[arg(long)]
    digest_key: bool,
}

pub(super) async fn run(keys: &Keys<'_>, args: &Args) -> CommandResult {
    let files = if args.files.is_empty() {
        let workspace = Workspace::load(keys.context)?;
        let sources = strata_session::secrets::sources(&workspace.repository().settings);
        let mut files: Vec<PathBuf> =
            sources.iter().map(|source| workspace.root().join(source.path())).collect();
        files.extend(workspace.clusters().bundle_files());
        files.sort();
        files.dedup();
        files
    } else {
        args.files.iter().map(|file| keys.path(file)).collect::<Vec<_>>()
    };
    // A rotation that was killed may have left copies beside the files that it had not come to.
    for file in &files {
        strata_secrets::sweep_leftovers(file);
    }
    let digests = args.digest_key.then(|| Workspace::load(keys.context)).transpose()?;
    let mut ready = Vec::new();
    for path in files {
        if let Some(bytes) = rotate(keys, args, &path)? {
            ready.push((path, bytes));
        }
    }
    let printer = keys.context.printer;
    for (path, bytes) in ready {
        replace(&path, &bytes)?;
        printer.event(&Event::Rotated { file: &path });
        printer.line(format!("rotated `{}`", path.display()));
    }
    if let Some(workspace) = digests {
        let path = workspace.renew_digest_key().await?;
        printer.event(&Event::Rotated { file: &path });
        printer.line("renewed the key of the digests: every secret counts as changed once");
    }
    Ok(ExitCode::SUCCESS)
}

/// The file with new keys; `None` if it stays as it is.
fn rotate(keys: &Keys<'_>, args: &Args, path: &Path) -> Result<Option<Vec<u8>>, CommandError> {
    let content = read(path)?;
    let sealed = sealed(path, &content)?;
    if !matches!(sealed, Sealed::Sops(_)) && args.new_vault_password_file.is_none() {
        if args.files.is_empty() {
            let message = format!("`{}` stays as it is: a vault needs a new password", path.display());
            keys.context.printer.note(format!("{message} (`--new-vault-password-file`)"));
            return Ok(None);
        }
        return Err(
            failed(path, "a vault needs a new password").hint("give `--new-vault-password-file FILE`")
        );
    }
    let access = keys.access(path);
    match sealed.open(&access).map_err(|error| unopened(path, error))? {
        Opened::Sops(open) => rotate_sops(keys, args, path, &open, &access),
        Opened::Vault(open) => {
            let new = new_password(keys, args, path, open.id())?;
            let sealed = vault::encrypt(open.plaintext(), &new, &mut OsRandom);
            sealed.map(|text| Some(text.into_bytes())).map_err(|error| failed(path, error))
        }
        Opened::Inline { text, .. } => {
            let id = inline_id(&text).map_err(|reason| failed(path, reason))?;
            let new = new_password(keys, args, path, id)?;
            let sealed = vault::rekey_values(&text, access.passwords(), &new, &mut OsRandom);
            sealed.map(|text| Some(text.into_bytes())).map_err(|error| failed(path, error))
        }
    }
}

fn rotate_sops(
    keys: &Keys<'_>,
    args: &Args,
    path: &Path,
    open: &OpenFile,
    access: &Access,
) -> Result<Option<Vec<u8>>, CommandError> {
    let say = |error| failed(path, error);
    let mut settings = open.source().settings();
    if let Some(rule) = creation::rule(path).map_err(|error| unruled(path, error))? {
        // Foreign keys of the rule are those of the file, which the library keeps or refuses itself.
        let wanted = if args.drop_foreign_keys || open.source().foreign_keys() > 0 {
            rule.settings
        } else {
            rule.usable().map_err(say)?.clone()
        };
        (settings.groups, settings.threshold) = (wanted.groups, wanted.threshold);
    }
    let own = access.identities().recipients();
    let included = settings.groups.iter().flatten().any(|recipient| own.contains(recipient));
    if !included && !own.is_empty() {
        let message =
            format!("`{}` will be for others: none of your age keys opens it any more", path.display());
        keys.context.printer.note(message);
    }
    if args.recipients_only {
        return open.update_keys(&settings.groups, settings.threshold, &mut OsRandom).map_err(say);
    }
    let foreign = if args.drop_foreign_keys { ForeignKeys::Drop } else { ForeignKeys::Keep };
    let recipients = Some((settings.groups.as_slice(), settings.threshold));
    open.rotate(recipients, foreign, Timestamp::now(), &mut OsRandom).map(Some).map_err(say)
}

/// The new password, with the id that was given or the one that the vault has.
fn new_password(
    keys: &Keys<'_>,
    args: &Args,
    path: &Path,
    old_id: Option<&str>,
) -> Result<VaultPassword, CommandError> {
    let text = args.new_vault_password_file.as_deref().unwrap_or("prompt");
    let (id, passwords) = keys.password_at(text);
    let password = passwords.for_encryption(None).map_err(|error| failed(path, error))?;
    VaultPassword::new(id.as_deref().or(old_id), password.password).map_err(|error| failed(path, error))
}
