//! `strata import`.

mod state;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use strata_diagnostics::{LARGEST_FILE, read_text_file};
use strata_events::Event;
use strata_import::{Imported, Note, STANDS_IN};
use strata_secrets::vault;
use strata_source::world::Disk;

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::{Context, random_hex};
use crate::style::{self, paint};

/// Makes a repository from one that was written for Terraform, OpenTofu, talhelper or topf
///
/// Takes layered Terraform, the cluster-template family (cluster.yaml or cluster.toml), stacks with Ansible Vault, one cluster.yaml for each
/// cluster, environments with terraform.tfvars, other roots with the bpg/proxmox or Telmate/proxmox provider, talconfig.yaml and topf.yaml,
/// wherever they lie.
///
/// Says what was not carried over, with file and line; with `--json`, as data. What is made is valid. Vaulted files are opened with
/// `--vault-password-file`; secrets end up encrypted, never in the clear. Nothing that is there is overwritten. The new repository is made in
/// the current folder, or where `-C` says.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder to read
    #[arg(value_name = "DIR", required_unless_present = "state")]
    folder: Option<PathBuf>,
    /// Takes over what OpenTofu built: its state, or `-` for what `tofu state pull` prints
    ///
    /// In a repository, the machines of the state are matched with those of the source by their VMIDs and recorded; elsewhere a repository is
    /// written from the state first. Secrets go to encrypted files only. Nothing on a hypervisor is changed.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// With --state: only this stack; without a repository, the name of the new one
    #[arg(long, value_name = "NAME", requires = "state")]
    stack: Option<String>,
    /// With --state and without a repository: the address of Proxmox; otherwise PROXMOX_VE_ENDPOINT
    #[arg(long, value_name = "URL", requires = "state")]
    endpoint: Option<String>,
    /// Writes nothing; says what would be written
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    if let Some(folder) = &args.folder {
        from_folder(context, args, folder)?;
    }
    match &args.state {
        Some(path) => state::run(context, args, path).await,
        None => Ok(ExitCode::SUCCESS),
    }
}

fn from_folder(context: &Context, args: &Args, folder: &Path) -> Result<(), CommandError> {
    let from = context.elsewhere(folder);
    if !from.is_dir() {
        return Err(CommandError::failed(format!("there is no folder `{}`", folder.display())));
    }
    let into = std::path::absolute(context.start()).unwrap_or_else(|_| context.start());
    if into.join("strata.yaml").exists() {
        return Err(CommandError::refused(format!("`{}` is a repository already", into.display()))
            .hint("name an empty folder with `-C`"));
    }
    let disk = Disk::new(&from, context.environment.clone());
    let access = context.access(&from);
    let open = |_: &str, content: &[u8]| {
        let opened = vault::open(content, access.passwords()).map_err(|error| error.to_string())?;
        Ok(opened.plaintext().expose().to_vec())
    };
    let imported = strata_import::import(&disk, &random_hex(5), Some(&open));
    if imported.found.is_empty() {
        report(context, &imported.notes);
        return Err(CommandError::failed(format!("nothing in `{}` is known to Strata", folder.display()))
            .hint("see `strata import --help` for what can be read"));
    }
    if !args.dry_run {
        write(&into, &from, &imported)?;
    }
    for path in imported.files.keys() {
        context.printer.event(&Event::file(path, None));
        context.printer.line(format!("{} {path}", paint(style::CREATE, "+")));
    }
    report(context, &imported.notes);
    let what = imported.found.join(", ");
    let (files, notes) = (imported.files.len(), imported.notes.len());
    context.printer.event(&Event::Imported { found: &imported.found, files, notes });
    context.printer.line(format!(
        "{} {what}: {} files, {} notes",
        paint(style::CREATE, "imported:"),
        imported.files.len(),
        imported.notes.len()
    ));
    if imported.files.values().any(|text| text.contains(STANDS_IN)) {
        context.printer.line(format!("next: replace what {STANDS_IN}: `grep -rn '{STANDS_IN}'` finds it"));
    }
    if args.state.is_none() {
        context.printer.line(
            "next: `strata validate`, then `strata import --state terraform.tfstate` for what OpenTofu has built",
        );
    }
    Ok(())
}

fn report(context: &Context, notes: &[Note]) {
    for note in notes {
        let place = note.place.as_ref().map(|place| format!("{}:{}", place.file, place.line));
        context.printer.event(&Event::Note {
            message: &note.message,
            address: None,
            file: note.place.as_ref().map(|place| &*place.file),
            line: note.place.as_ref().map(|place| place.line),
        });
        let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
        context.printer.note(format!("{} {place}{}", paint(style::WARNING, "note:"), note.message));
    }
}

fn write(into: &Path, from: &Path, imported: &Imported) -> Result<(), CommandError> {
    let same = std::fs::canonicalize(into).ok() == std::fs::canonicalize(from).ok();
    for (path, text) in &imported.files {
        let place = into.join(path);
        let there = read_text_file(&place, LARGEST_FILE).ok();
        if there.as_deref() == Some(text) {
            continue;
        }
        // In its own folder a cluster.yaml of the old kind is what the new one was made from.
        if there.is_some() {
            let error = CommandError::refused(format!("`{path}` is there already, and would be another"));
            return Err(if same {
                error.hint("import into another folder: `strata -C NEW import DIR`")
            } else {
                error
            });
        }
    }
    let failed = |path: &Path, error: std::io::Error| {
        CommandError::failed(format!("cannot write `{}`: {error}", path.display()))
    };
    for (path, text) in &imported.files {
        let place = into.join(path);
        if let Some(folder) = place.parent() {
            std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        }
        strata_secrets::replace(&place, text.as_bytes()).map_err(|error| failed(&place, error))?;
    }
    if imported.secrets.is_empty() {
        return Ok(());
    }
    let (key, recipient) = strata_secrets::generate_identity();
    let mut plain = String::new();
    for (name, value) in &imported.secrets {
        plain.push_str(&format!("{name}: {}\n", serde_json::Value::from(value.as_str())));
    }
    let sealed = strata_session::secrets::encrypt_yaml(
        &plain,
        &recipient,
        jiff::Timestamp::now(),
        &mut strata_secrets::OsRandom,
    )?;
    let place = into.join("age.key");
    strata_secrets::replace_private(&place, key.expose().as_bytes())
        .map_err(|error| failed(&place, error))?;
    let place = into.join(&imported.secrets_file);
    strata_secrets::replace(&place, sealed.as_bytes()).map_err(|error| failed(&place, error))?;
    let rules = into.join(".sops.yaml");
    if !rules.exists() {
        let text = format!("creation_rules:\n  - path_regex: \\.sops\\.ya?ml$\n    age: {recipient}\n");
        strata_secrets::replace(&rules, text.as_bytes()).map_err(|error| failed(&rules, error))?;
    }
    let ignored = into.join(".gitignore");
    let mut text = read_text_file(&ignored, LARGEST_FILE).unwrap_or_default();
    if !text.lines().any(|line| line.trim_start_matches('/') == strata_session::secrets::OWN_KEY) {
        text.push_str("/age.key\n/.strata/\n");
        strata_secrets::replace(&ignored, text.as_bytes()).map_err(|error| failed(&ignored, error))?;
    }
    Ok(())
}
