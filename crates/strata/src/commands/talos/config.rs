//! `strata talos config`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use strata_diagnostics::{LARGEST_FILE, read_text_file};
use strata_secret::SecretString;
use strata_secrets::OsRandom;
use strata_talos::{Contract, GenConfigArgs, PatchSource, gen_config};

use super::write;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Makes machine configurations and a talosconfig
///
/// Of a cluster of the repository, one file for each node, as an apply sends it. Without STACK, and without a repository,
/// controlplane.yaml, worker.yaml and talosconfig from a secrets bundle, as `talosctl gen config` makes them. The files hold secrets and are
/// readable only by you.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A cluster of the repository
    #[arg(value_name = "STACK")]
    stack: Option<String>,
    /// The secrets bundle, as `talosctl gen secrets` or talhelper make it
    #[arg(long, value_name = "FILE", required_unless_present = "stack", conflicts_with = "stack")]
    secrets: Option<PathBuf>,
    /// The version of Talos that the files are for, such as `v1.13`
    #[arg(long, value_name = "VERSION", required_unless_present = "stack", conflicts_with = "stack")]
    contract: Option<String>,
    /// The cluster's name
    #[arg(long, required_unless_present = "stack", conflicts_with = "stack")]
    name: Option<String>,
    /// The address of the Kubernetes API
    #[arg(long, value_name = "URL", required_unless_present = "stack", conflicts_with = "stack")]
    endpoint: Option<String>,
    /// Where the files go
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// The version of Kubernetes; without it, the one that the newest known Talos starts with
    #[arg(long, value_name = "VERSION", conflicts_with = "stack")]
    kubernetes_version: Option<String>,
    /// Other names and addresses of the Kubernetes API
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "stack")]
    additional_sans: Vec<String>,
    /// The disk that Talos installs itself on
    #[arg(long, value_name = "DISK", conflicts_with = "stack")]
    install_disk: Option<String>,
    /// The image that it installs
    #[arg(long, value_name = "IMAGE", conflicts_with = "stack")]
    install_image: Option<String>,
    /// `HOST=URL`; can be given several times
    #[arg(long, value_name = "MIRROR", value_delimiter = ',', conflicts_with = "stack")]
    registry_mirror: Vec<String>,
    /// The domain of services
    #[arg(long, value_name = "DOMAIN", conflicts_with = "stack")]
    dns_domain: Option<String>,
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", value_name = "BOOL", conflicts_with = "stack")]
    with_kubespan: bool,
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", value_name = "BOOL", conflicts_with = "stack")]
    with_cluster_discovery: bool,
    /// A patch for every machine: `@FILE`, or the text itself
    #[arg(long, value_name = "PATCH", conflicts_with = "stack")]
    config_patch: Vec<String>,
    /// A patch for control planes
    #[arg(long, value_name = "PATCH", conflicts_with = "stack")]
    config_patch_control_plane: Vec<String>,
    /// A patch for workers
    #[arg(long, value_name = "PATCH", conflicts_with = "stack")]
    config_patch_worker: Vec<String>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    match &args.stack {
        Some(stack) => of_stack(context, stack, &args.out).await,
        None => of_flags(context, args),
    }
}

/// The configurations of the nodes of a cluster, and the way to them.
async fn of_stack(context: &Context, stack: &str, out: &Path) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let drawn = workspace.clusters().drawn(stack).await?;
    let endpoints: Vec<String> =
        drawn.plan.nodes.iter().filter(|node| node.control_plane).map(|node| node.address.clone()).collect();
    let talosconfig = drawn
        .bundle
        .talosconfig(&drawn.plan.name, &endpoints, jiff::Timestamp::now(), &mut OsRandom)
        .map_err(|error| CommandError::failed(format!("cannot make the talosconfig: {error}")))?;
    let configs = drawn.plan.configs.iter().map(|(name, config)| (format!("{name}.yaml"), config.to_yaml()));
    for (name, content) in configs.chain([("talosconfig".to_owned(), talosconfig.to_yaml())]) {
        put(context, &out.join(name), &content)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn put(context: &Context, path: &Path, content: &SecretString) -> Result<(), CommandError> {
    write(path, content)?;
    context.printer.event(&strata_events::Event::Made { file: path });
    context.printer.line(format!("made `{}`", path.display()));
    Ok(())
}

fn of_flags(context: &Context, args: &Args) -> CommandResult {
    let given = |flag: &Option<String>| flag.clone().unwrap_or_default();
    let contract: Contract = given(&args.contract)
        .parse()
        .map_err(|error| CommandError::failed(format!("`{}`: {error}", given(&args.contract))))?;
    let secrets = read(args.secrets.as_deref().unwrap_or(Path::new("")))?;
    let mut wanted = GenConfigArgs::new(secrets, contract, given(&args.name), given(&args.endpoint));
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
        put(context, &args.out.join(file.name), &file.content)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<SecretString, CommandError> {
    read_text_file(path, LARGEST_FILE)
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
