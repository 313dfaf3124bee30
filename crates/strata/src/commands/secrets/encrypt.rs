//! `strata secrets encrypt`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;
use strata_events::Event;
use strata_secret::SecretBytes;
use strata_secrets::sops::{self, Format};
use strata_secrets::{OsRandom, Sealed, creation, vault};

use super::{Keys, failed, read, replace, unopened, unruled};
use crate::command_error::CommandError;
use crate::commands::CommandResult;

/// Encrypts a plain file in its place
///
/// As `sops` does, for the recipients that the nearest `.sops.yaml` names; or as `ansible-vault` does, with a password.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// YAML, JSON, dotenv or INI, whose keys stay readable; anything else is encrypted as a whole
    file: PathBuf,
    #[command(flatten)]
    how: How,
    /// Only this value of a YAML file, as in `database.password`; can be given more than once
    #[arg(long, value_name = "NAME", requires = "vault")]
    value: Vec<String>,
}

/// How a file is encrypted that is not yet.
#[derive(clap::Args)]
pub(crate) struct How {
    /// For this age or SSH recipient instead of those of `.sops.yaml`; can be given more than once
    #[arg(long, value_name = "RECIPIENT", conflicts_with = "vault")]
    age: Vec<String>,
    /// With a password, as `ansible-vault` does
    #[arg(long)]
    vault: bool,
    /// The id that the vault gets
    #[arg(long, value_name = "ID", requires = "vault")]
    vault_id: Option<String>,
}

impl How {
    pub(super) fn encrypt(
        &self,
        keys: &Keys<'_>,
        path: &Path,
        plain: &SecretBytes,
    ) -> Result<Vec<u8>, CommandError> {
        if self.vault {
            let password = self.password(keys, path)?;
            let sealed = vault::encrypt(plain, &password, &mut OsRandom);
            return sealed.map(String::into_bytes).map_err(|error| failed(path, error));
        }
        let settings = creation::settings(path, &self.age).map_err(|error| unruled(path, error))?;
        sops::encrypt(plain, Format::of(path), &settings, Timestamp::now(), &mut OsRandom)
            .map_err(|error| failed(path, error))
    }

    /// Fails early where `encrypt` would fail for want of a key.
    pub(super) fn prepare(&self, keys: &Keys<'_>, path: &Path) -> Result<(), CommandError> {
        if self.vault {
            self.password(keys, path).map(|_| ())
        } else {
            creation::settings(path, &self.age).map(|_| ()).map_err(|error| unruled(path, error))
        }
    }

    pub(super) fn is_vault(&self) -> bool {
        self.vault
    }

    fn password(&self, keys: &Keys<'_>, path: &Path) -> Result<vault::VaultPassword, CommandError> {
        let access = keys.access(path);
        let password = access.passwords().for_encryption(self.vault_id.as_deref());
        let password = password.map_err(|error| failed(path, error))?;
        // The id is checked on the way.
        vault::VaultPassword::new(password.id.as_deref(), password.password)
            .map_err(|error| failed(path, error))
    }
}

pub(super) fn run(keys: &Keys<'_>, args: &Args) -> CommandResult {
    let path = keys.path(&args.file);
    let content = SecretBytes::from(read(&path)?);
    match Sealed::detect(&path, content.expose()).map_err(|error| unopened(&path, error))? {
        None => {}
        Some(Sealed::Inline(_)) if !args.value.is_empty() => {}
        Some(_) => {
            let message = format!("`{}` is encrypted already", path.display());
            return Err(CommandError::refused(message).hint("`strata secrets edit` changes it"));
        }
    }
    let sealed = if args.value.is_empty() {
        args.how.encrypt(keys, &path, &content)?
    } else {
        encrypt_values(keys, args, &path, &content)?
    };
    replace(&path, &sealed)?;
    keys.context.printer.event(&Event::Encrypted { file: &path });
    keys.context.printer.line(format!("encrypted `{}`", args.file.display()));
    Ok(ExitCode::SUCCESS)
}

fn encrypt_values(
    keys: &Keys<'_>,
    args: &Args,
    path: &Path,
    content: &SecretBytes,
) -> Result<Vec<u8>, CommandError> {
    let text = std::str::from_utf8(content.expose()).map_err(|_| failed(path, "not text in UTF-8"))?;
    let password = args.how.password(keys, path)?;
    let mut text = zeroize::Zeroizing::new(text.to_owned());
    for name in &args.value {
        let name: Vec<&str> = name.split('.').collect();
        let sealed = vault::encrypt_value(&text, &name, &password, &mut OsRandom);
        *text = sealed.map_err(|error| failed(path, error))?;
    }
    Ok(text.as_bytes().to_owned())
}
