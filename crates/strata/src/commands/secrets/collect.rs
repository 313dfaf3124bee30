//! `strata secrets collect`.

mod family_rule;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;
use strata_events::Event;
use strata_secret::SecretString;
use strata_secrets::sops::{self, Format, SopsFile, plain_yaml};
use strata_secrets::{Access, OsRandom, Tracking, tracking};
use strata_source::cluster::flat::{FlatSecrets, SECRETS_FILE, flat_secrets};

use super::{Keys, failed, read, replace};
use crate::command_error::{CommandError, ErrorKind};
use crate::commands::CommandResult;
use crate::workspace::find_root;

/// Encrypts the infrastructure's secrets of a flat `cluster.yaml`
///
/// For repositories of the cluster-template family, whose `cluster.yaml` git ignores: the credentials in it become
/// `infrastructure/secrets.sops.yaml` beside it, those of Proxmox only where Proxmox is enabled. Only what changed is encrypted again;
/// what `cluster.yaml` no longer says stays, and references and the API token are found there. The rule of the family is added to
/// `.sops.yaml`, a key is made if you have none. Change a value in `cluster.yaml` and run it again to replace a secret; `strata secrets
/// rotate` replaces the keys.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The flat `cluster.yaml`; the one at the root of the repository without one
    file: Option<PathBuf>,
}

pub(super) fn run(keys: &Keys<'_>, args: &Args) -> CommandResult {
    let start = keys.path(Path::new(""));
    let root = find_root(&start).unwrap_or(start);
    let cluster = args.file.as_ref().map_or_else(|| root.join("cluster.yaml"), |file| keys.path(file));
    let found = find(keys, &cluster)?;
    guard(keys, &cluster, &found)?;
    let path = cluster.with_file_name("").join(SECRETS_FILE);
    let shown = path.strip_prefix(&root).unwrap_or(&path);
    let content = match path.exists() {
        true => Some(read(&path)?),
        false => None,
    };
    let sealed = match &content {
        Some(content) => update(keys, &path, content, &found)?,
        None if found.values.is_empty() => None,
        None => Some(create(keys, &path, &found)?),
    };
    let names: Vec<&str> = found.values.iter().map(|(name, _)| *name).collect();
    let printer = keys.context.printer;
    let changed = sealed.is_some();
    printer.event(&Event::Collected { file: shown, changed, names: names.clone() });
    match sealed {
        Some(sealed) => {
            replace(&path, &sealed)?;
            printer.line(format!("encrypted `{}`: {}", shown.display(), names.join(", ")));
        }
        None => printer.line("nothing changed"),
    }
    if path.exists() {
        family_rule::list_in_settings(keys, &root, shown)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn find(keys: &Keys<'_>, cluster: &Path) -> Result<FlatSecrets, CommandError> {
    let text = String::from_utf8(read(cluster)?).map_err(|_| failed(cluster, "not text in UTF-8"))?;
    let text = zeroize::Zeroizing::new(text);
    match flat_secrets(&cluster.display().to_string(), &text) {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(failed(cluster, "not a flat `cluster.yaml` of the cluster-template family")
            .hint("`strata secrets encrypt` encrypts other files")),
        Err((_, found)) => {
            // Without the lines: one of them may hold a secret.
            let messages = found.iter().map(|found| found.message.as_str()).collect::<Vec<_>>();
            keys.context.printer.note(format!("error: `{}`: {}", cluster.display(), messages.join("; ")));
            Err(CommandError::already_shown(ErrorKind::Failed))
        }
    }
}

/// Secrets that git has are no secrets.
fn guard(keys: &Keys<'_>, cluster: &Path, found: &FlatSecrets) -> Result<(), CommandError> {
    if found.values.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = found.values.iter().map(|(name, _)| *name).collect();
    let shown = cluster.display();
    match tracking(cluster) {
        Tracking::Tracked => {
            let message =
                format!("git tracks `{shown}`, which has secrets in the clear: `{}`", names.join("`, `"));
            Err(CommandError::refused(message)
                .hint("`git rm --cached cluster.yaml` and a line `cluster.yaml` in .gitignore keep it out of git")
                .hint("whoever has the history knows these secrets: change them where they are used"))
        }
        Tracking::Untracked => {
            keys.context.printer.note(format!(
                "warning: git does not ignore `{shown}`, which has secrets in the clear: add it to .gitignore"
            ));
            Ok(())
        }
        Tracking::Ignored | Tracking::NoGit => Ok(()),
    }
}

fn create(keys: &Keys<'_>, path: &Path, found: &FlatSecrets) -> Result<Vec<u8>, CommandError> {
    let settings = family_rule::settings(keys, path)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    }
    let values: Vec<(&str, SecretString)> =
        found.values.iter().map(|(name, value)| (*name, SecretString::from(value.as_str()))).collect();
    let lines: Vec<(&str, &SecretString)> = values.iter().map(|(name, value)| (*name, value)).collect();
    sops::encrypt(&plain_yaml(&lines), Format::Yaml, &settings, Timestamp::now(), &mut OsRandom)
        .map_err(|error| failed(path, error))
}

/// The file with what `cluster.yaml` says now; `None` if it says the same.
fn update(
    keys: &Keys<'_>,
    path: &Path,
    content: &[u8],
    found: &FlatSecrets,
) -> Result<Option<Vec<u8>>, CommandError> {
    let say = |error: sops::SopsError| failed(path, error);
    let access = keys.access(path);
    let open = SopsFile::parse(content, Format::Yaml).and_then(|file| file.open(access.identities()));
    let open = open.map_err(say)?;
    let wanted = |name: &str, value: &str| open.get(&[name]).is_some_and(|known| known.expose() == value);
    let changed: Vec<(&str, &str)> = found
        .values
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .filter(|(name, value)| !wanted(name, value))
        .collect();
    let gone: Vec<&str> =
        found.unwanted.iter().copied().filter(|name| open.get(&[*name]).is_some()).collect();
    if changed.is_empty() && gone.is_empty() {
        return Ok(None);
    }
    let plain = open.plaintext().map_err(say)?;
    let merged =
        strata_secrets::merge(&plain, &changed, &gone).ok_or_else(|| failed(path, "not text in UTF-8"))?;
    let sealed = open.edit(&merged, Timestamp::now(), &mut OsRandom).map_err(say)?;
    let sealed = sealed.ok_or_else(|| cannot_merge(path))?;
    if !says(&sealed, &access, found) {
        return Err(cannot_merge(path));
    }
    Ok(Some(sealed))
}

/// Whether the encrypted file has what is wanted, and no more of it.
fn says(sealed: &[u8], access: &Access, found: &FlatSecrets) -> bool {
    let open = SopsFile::parse(sealed, Format::Yaml).and_then(|file| file.open(access.identities()));
    open.is_ok_and(|open| {
        let same = |name: &str, value: &str| open.get(&[name]).is_some_and(|known| known.expose() == value);
        found.values.iter().all(|(name, value)| same(name, value))
            && found.unwanted.iter().all(|name| open.get(&[*name]).is_none())
    })
}

fn cannot_merge(path: &Path) -> CommandError {
    failed(path, "its layout does not let single values be replaced")
        .hint("`strata secrets edit` changes it; or move it away and collect again")
}
