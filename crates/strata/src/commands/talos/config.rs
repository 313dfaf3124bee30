//! `strata talos config`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use strata_secret::SecretString;
use strata_secrets::OsRandom;
use strata_talos::{Contract, GenConfigArgs, PatchSource, gen_config};

use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;

/// Makes controlplane.yaml, worker.yaml and talosconfig, as `talosctl gen config` does
///
/// Needs no repository. The files hold secrets and are readable only by you.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The secrets bundle, as `talosctl gen secrets` or talhelper make it
    #[arg(long, value_name = "FILE")]
    secrets: PathBuf,
    /// The version of Talos that the files are for, such as `v1.13`
    #[arg(long, value_name = "VERSION")]
    contract: String,
    /// The cluster's name
    #[arg(long)]
    name: String,
    /// The address of the Kubernetes API
    #[arg(long, value_name = "URL")]
    endpoint: String,
    /// Where the files go
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,
    /// Other names and addresses of the Kubernetes API
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    additional_sans: Vec<String>,
    /// The disk that Talos installs itself on
    #[arg(long, value_name = "DISK")]
    install_disk: Option<String>,
    /// The image that it installs
    #[arg(long, value_name = "IMAGE")]
    install_image: Option<String>,
    /// `HOST=URL`; can be given several times
    #[arg(long, value_name = "MIRROR", value_delimiter = ',')]
    registry_mirror: Vec<String>,
    /// The domain of services
    #[arg(long, value_name = "DOMAIN")]
    dns_domain: Option<String>,
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", value_name = "BOOL")]
    with_kubespan: bool,
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", value_name = "BOOL")]
    with_cluster_discovery: bool,
    /// A patch for every machine: `@FILE`, or the text itself
    #[arg(long, value_name = "PATCH")]
    config_patch: Vec<String>,
    /// A patch for control planes
    #[arg(long, value_name = "PATCH")]
    config_patch_control_plane: Vec<String>,
    /// A patch for workers
    #[arg(long, value_name = "PATCH")]
    config_patch_worker: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let contract: Contract = args
        .contract
        .parse()
        .map_err(|error| CommandError::failed(format!("`{}`: {error}", args.contract)))?;
    let mut wanted = GenConfigArgs::new(read(&args.secrets)?, contract, &args.name, &args.endpoint);
    wanted.kubernetes_version.clone_from(&args.kubernetes_version);
    wanted.additional_sans.clone_from(&args.additional_sans);
    wanted.install_disk.clone_from(&args.install_disk);
    wanted.install_image.clone_from(&args.install_image);
    wanted.registry_mirrors.clone_from(&args.registry_mirror);
    wanted.dns_domain.clone_from(&args.dns_domain);
    wanted.with_kubespan = args.with_kubespan;
    wanted.with_cluster_discovery = args.with_cluster_discovery;
    wanted.config_patches = patches(&args.config_patch)?;
    wanted.config_patches_control_plane = patches(&args.config_patch_control_plane)?;
    wanted.config_patches_worker = patches(&args.config_patch_worker)?;
    let made = gen_config(&wanted, jiff::Timestamp::now(), &mut OsRandom)
        .map_err(|error| CommandError::failed(error.to_string()))?;
    for warning in &made.warnings {
        context.printer.note(format!("warning: {warning}"));
    }
    for file in &made.files {
        let path = args.out.join(file.name);
        write(&path, &file.content)?;
        context.printer.line(format!("made `{}`", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<SecretString, CommandError> {
    fs::read_to_string(path)
        .map(SecretString::new)
        .map_err(|error| CommandError::failed(format!("cannot read `{}`: {error}", path.display())))
}

fn patches(given: &[String]) -> Result<Vec<PatchSource>, CommandError> {
    let patch = |text: &String| match text.strip_prefix('@') {
        Some(path) => Ok(PatchSource { origin: path.to_owned(), text: read(Path::new(path))? }),
        None => {
            Ok(PatchSource { origin: "--config-patch".to_owned(), text: SecretString::new(text.clone()) })
        }
    };
    given.iter().map(patch).collect()
}

/// Only the user may read what holds the keys of a cluster.
fn write(path: &Path, content: &SecretString) -> Result<(), CommandError> {
    let failed =
        |error: std::io::Error| CommandError::failed(format!("cannot write `{}`: {error}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let temporary = path.with_extension("new");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(failed)?;
    file.write_all(content.expose().as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}
