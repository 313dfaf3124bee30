//! `strata talos upgrade`.

use std::path::PathBuf;
use std::process::ExitCode;

use strata_cluster::ClusterHealth;
use strata_diagnostics::Span;
use strata_events::{Asked as AskedVersions, Event, NodeVersions};
use strata_talos::{
    CompatibilityError, Contract, Version, check_kubernetes_upgrade, check_pair, check_talos_upgrade,
};

use crate::command_error::{CommandError, ErrorKind};
use crate::commands::CommandResult;
use crate::commands::execute::{Consent, Job, execute};
use crate::context::Context;
use crate::printer::Printer;
use crate::workspace::Workspace;

/// Writes other versions into the source and applies them, one node after the other
///
/// Without a version, shows what is asked for and what runs. Talos and Kubernetes go up one minor version at a time, in versions
/// that fit to each other. The file keeps its comments; if nothing is applied, it stays as it was.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The cluster
    #[arg(value_name = "STACK")]
    stack: String,
    /// The version of Talos, such as `v1.14.0`
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// The version of Kubernetes, such as `v1.37.0`
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<String>,
    /// Does not ask
    #[arg(short, long)]
    yes: bool,
}

/// A version as the source asks for it.
struct Asked {
    version: Version,
    /// Where it is written; nowhere if it is what Talos brings along.
    written: Option<(String, Span)>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let talos = asked_talos(&workspace, &args.stack)?;
    let kubernetes = asked_kubernetes(&workspace, &args.stack).await?;
    let cluster = workspace.clusters().connect(&args.stack).await?;
    let health = strata_cluster::health(&cluster).await;
    if args.to.is_none() && args.kubernetes.is_none() {
        let key = workspace.state_key(&args.stack)?;
        show(context.printer, &key, &talos, &kubernetes, &health);
        return Ok(ExitCode::SUCCESS);
    }
    let to = args.to.as_deref().map(parse).transpose()?;
    let to_kubernetes = args.kubernetes.as_deref().map(parse).transpose()?;
    check(&talos, &kubernetes, &health, to.as_ref(), to_kubernetes.as_ref())?;
    let mut edits = Vec::new();
    edits.extend(to.map(|version| edit(&workspace, &talos, "cluster.talos.version", &version)).transpose()?);
    let key = "cluster.kubernetes.version";
    edits.extend(to_kubernetes.map(|version| edit(&workspace, &kubernetes, key, &version)).transpose()?);
    let files = edited(&workspace, edits);
    drop((cluster, workspace));
    apply(context, args, files).await
}

fn parse(text: &str) -> Result<Version, CommandError> {
    text.parse().map_err(|error: CompatibilityError| CommandError::failed(error.to_string()))
}

fn asked_talos(workspace: &Workspace<'_>, stack: &str) -> Result<Asked, CommandError> {
    let (_, written) = workspace.clusters().written_cluster(stack)?;
    let version = &written.cluster.talos.version;
    Ok(Asked { version: parse(version)?, written: Some((version.value.clone(), version.span)) })
}

async fn asked_kubernetes(workspace: &Workspace<'_>, stack: &str) -> Result<Asked, CommandError> {
    let (_, written) = workspace.clusters().written_cluster(stack)?;
    let own = written.cluster.kubernetes.as_ref().and_then(|kubernetes| kubernetes.version.as_ref());
    let drawn = workspace.clusters().drawn(stack).await?;
    let version = parse(drawn.kubernetes().unwrap_or_default())?;
    Ok(Asked { version, written: own.map(|own| (own.value.clone(), own.span)) })
}

/// What the slowest of them runs; what is asked for, where nobody answers.
fn oldest<'v>(versions: impl Iterator<Item = &'v Option<String>>, asked: &Version) -> Version {
    versions.flatten().filter_map(|version| version.parse().ok()).min().unwrap_or_else(|| asked.clone())
}

fn running(health: &ClusterHealth, talos: &Version, kubernetes: &Version) -> (Version, Version) {
    let runs = oldest(health.nodes.iter().map(|node| &node.version), talos);
    let kubelets = health.nodes.iter().map(|node| &node.kubelet);
    (runs, oldest(kubelets.chain([&health.kubernetes]), kubernetes))
}

fn check(
    talos: &Asked,
    kubernetes: &Asked,
    health: &ClusterHealth,
    to: Option<&Version>,
    to_kubernetes: Option<&Version>,
) -> Result<(), CommandError> {
    let (runs, runs_kubernetes) = running(health, &talos.version, &kubernetes.version);
    let talos = to.unwrap_or(&talos.version);
    if let Some(to) = to {
        check_talos_upgrade(&runs, to).map_err(unfit)?;
        // Kubernetes stays what it is until every node has the new Talos.
        check_pair(to, &runs_kubernetes).map_err(unfit)?;
    }
    let wanted = match (to_kubernetes, &kubernetes.written) {
        (Some(version), _) => version.clone(),
        (None, Some(_)) => kubernetes.version.clone(),
        // Nobody wrote one: the new Talos brings its own.
        (None, None) => match talos.to_string().parse::<Contract>() {
            Ok(contract) => parse(&contract.default_kubernetes())?,
            Err(_) => kubernetes.version.clone(),
        },
    };
    check_kubernetes_upgrade(&runs_kubernetes, &wanted, talos).map_err(unfit)
}

fn unfit(error: CompatibilityError) -> CommandError {
    CommandError::refused(error.to_string())
        .hint("choose versions that fit to each other, one minor version after the other")
}

/// One place of a file, and what is to stand there.
struct Edit {
    span: Span,
    text: String,
}

fn edit(workspace: &Workspace<'_>, asked: &Asked, key: &str, to: &Version) -> Result<Edit, CommandError> {
    let by_hand = |why: &str| {
        CommandError::refused(format!("`{key}` cannot be changed from here: {why}"))
            .hint(format!("write `{to}` there yourself, then `strata apply`"))
    };
    let Some((value, span)) = &asked.written else {
        return Err(by_hand("the source does not say it"));
    };
    let there = workspace.repository().sources.text(*span);
    // Quotes stay, and so does a version without its `v`.
    if !there.contains(value.as_str()) {
        return Err(by_hand("it comes from somewhere else"));
    }
    let to = to.to_string();
    let new = if value.starts_with('v') { to.as_str() } else { to.trim_start_matches('v') };
    Ok(Edit { span: *span, text: there.replacen(value.as_str(), new, 1) })
}

/// A file before and after.
struct Edited {
    path: PathBuf,
    name: String,
    before: String,
    after: String,
}

fn edited(workspace: &Workspace<'_>, mut edits: Vec<Edit>) -> Vec<Edited> {
    // From the end to the start, so that what comes before stays where it was.
    edits.sort_by_key(|edit| std::cmp::Reverse((edit.span.file, edit.span.start)));
    let mut files: Vec<Edited> = Vec::new();
    for edit in edits {
        let source = workspace.repository().sources.file(edit.span.file);
        let found = files.iter().position(|file| file.name == source.path());
        let index = found.unwrap_or_else(|| {
            files.push(Edited {
                path: workspace.root().join(source.path()),
                name: source.path().to_owned(),
                before: source.text().to_owned(),
                after: source.text().to_owned(),
            });
            files.len() - 1
        });
        files[index].after.replace_range(edit.span.range(), &edit.text);
    }
    files.retain(|file| file.before != file.after);
    files
}

async fn apply(context: &Context, args: &Args, files: Vec<Edited>) -> CommandResult {
    let write = |file: &Edited, text: &str| {
        strata_secrets::replace(&file.path, text.as_bytes())
            .map_err(|error| CommandError::failed(format!("cannot write `{}`: {error}", file.name)))
    };
    for file in &files {
        write(file, &file.after)?;
        context.printer.note(format!("changed the version in `{}`", file.name));
    }
    let outcome = applied(context, args).await;
    let Err(error) = outcome else { return Ok(ExitCode::SUCCESS) };
    // A guard or a lock: nothing was done, so nothing is asked for either.
    if matches!(error.kind, ErrorKind::Refused | ErrorKind::Locked) {
        for file in &files {
            write(file, &file.before)?;
            context.printer.note(format!("`{}` is as it was before", file.name));
        }
        return Err(error);
    }
    if !files.is_empty() {
        context.printer.note(format!(
            "the source asks for the new version now: `strata apply {}` goes on from here",
            args.stack
        ));
    }
    Err(error)
}

async fn applied(context: &Context, args: &Args) -> Result<(), CommandError> {
    let workspace = Workspace::load(context)?;
    let job = Job { consent: Consent::of(args.yes), ..Job::default() };
    execute(&workspace, std::slice::from_ref(&args.stack), job).await
}

fn show(printer: Printer, key: &str, talos: &Asked, kubernetes: &Asked, health: &ClusterHealth) {
    let nodes = health.nodes.iter().map(|node| NodeVersions {
        name: &node.name,
        talos: node.version.as_deref(),
        kubelet: node.kubelet.as_deref(),
    });
    let asked =
        AskedVersions { talos: talos.version.to_string(), kubernetes: kubernetes.version.to_string() };
    let running = health.kubernetes.as_deref();
    printer.event_of(key, &Event::Versions { asked, kubernetes: running, nodes: nodes.collect() });
    printer.line(format!("asked for: Talos {}, Kubernetes {}", talos.version, kubernetes.version));
    let width = health.nodes.iter().map(|node| node.name.chars().count()).max().unwrap_or(0);
    for node in &health.nodes {
        let or = |version: &Option<String>| version.clone().unwrap_or_else(|| "unknown".to_owned());
        printer.line(format!(
            "  {:width$}  Talos {}, kubelet {}",
            node.name,
            or(&node.version),
            or(&node.kubelet)
        ));
    }
    printer.line(format!("  API server: Kubernetes {}", health.kubernetes.as_deref().unwrap_or("unknown")));
}
