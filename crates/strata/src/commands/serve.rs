//! `strata serve`.

mod backup;
mod settings;
mod users;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;
use strata_net::{Clock, SystemClock};
use strata_server::access::{AccessFile, AccessKeeper};
use strata_server::storage::embedded::{EmbeddedOptions, EmbeddedStorage, FILE};
use strata_server::{Server, ServerError, ServerOptions};

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;
use settings::Settings;

/// Keeps states for a team: the state server
///
/// OpenTofu and Terraform use it as `backend "http"`, Strata as `state: {backend: http}`. It keeps every version of a state, gives one
/// lock at a time, and has a write on its disk before it says so. `strata serve user add NAME --admin` makes the first user.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}

#[derive(clap::Args, Clone)]
pub(super) struct ServerArgs {
    /// The configuration, a YAML file
    #[arg(long, value_name = "FILE", env = "STRATA_SERVE_CONFIG", global = true)]
    pub(super) config: Option<PathBuf>,
    /// The folder of the server's data [default: strata-serve]
    #[arg(long, value_name = "DIR", env = "STRATA_SERVE_DATA", global = true)]
    pub(super) data: Option<PathBuf>,
    /// Address and port; port 0 takes a free one [default: 127.0.0.1:8420]
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<SocketAddr>,
    /// The certificate, PEM; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(super) tls_certificate: Option<PathBuf>,
    /// The key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_key: Option<PathBuf>,
    /// A proxy in front of it has TLS: listens without it, also beyond the loopback
    #[arg(long)]
    pub(super) behind_proxy: bool,
    /// Everybody on this machine may do everything: no users, the loopback only
    #[arg(long, conflicts_with = "behind_proxy")]
    pub(super) open: bool,
}

#[derive(Subcommand)]
enum Verb {
    User(users::UserArgs),
    Token(users::TokenArgs),
    /// Hashes a password for the configuration file; it is asked for, or read from standard input
    Hash,
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let settings = Settings::read(context, &args.server)?;
    match &args.verb {
        None => serve(context, &args.server, settings).await,
        Some(Verb::User(args)) => users::run_user(context, &settings, args),
        Some(Verb::Token(args)) => users::run_token(context, &settings, args),
        Some(Verb::Hash) => users::hash(context),
        Some(Verb::Backup(args)) => backup::back_up(context, &settings, args).await,
        Some(Verb::Restore(args)) => backup::restore(context, &settings, args).await,
    }
}

async fn serve(context: &Context, args: &ServerArgs, settings: Settings) -> CommandResult {
    let listen = settings.listen(args)?;
    if args.open && !listen.ip().is_loopback() {
        return Err(CommandError::refused(
            "`--open` is for the loopback: elsewhere everybody could read the states",
        ));
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let access = if args.open {
        AccessKeeper::open(Arc::clone(&clock))
    } else {
        AccessKeeper::load(
            AccessFile::path(&settings.data),
            settings.config.configured_users(),
            Arc::clone(&clock),
        )
    };
    let access = access.map_err(|error| CommandError::failed(error.to_string()))?;
    let proxies = settings.config.proxies().map_err(|error| {
        CommandError::failed(format!("`trustedProxies`: {error}")).hint("name the addresses of the proxies")
    })?;
    let behind_proxy = args.behind_proxy || settings.config.behind_proxy;
    if behind_proxy && proxies.trusted.is_empty() {
        context.printer.note(
            "every request counts as one of the proxy: wrong passwords of one user slow down all; `trustedProxies` in the \
             configuration names the proxies whose `X-Forwarded-For` is read",
        );
    }
    let opened = settings.open_storage(context).await?;
    let tls = settings.tls(args);
    let scheme = if tls.is_some() { "https" } else { "http" };
    let place = opened.storage.describe();
    let printer = context.printer;
    let options = ServerOptions {
        listen,
        tls,
        allow_plain: behind_proxy,
        storage: opened.storage,
        commits: opened.commits,
        access: access.behind(proxies),
        audit: Some(settings.data.join("audit.log")),
        max_state: u64::from(settings.config.max_state) << 20,
        open_metrics: settings.config.open_metrics,
        clock,
        notes: Arc::new(move |text| printer.note(text)),
    };
    let server = Server::start(options).await.map_err(not_started)?;
    let url = format!("{scheme}://{}", server.address());
    printer.event(&strata_events::Event::Ready { url: &url });
    printer.line(format!("listening on {url}, states in {place}"));
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| CommandError::failed(error.to_string()))?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    server.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

fn not_started(error: ServerError) -> CommandError {
    let hint = match &error {
        ServerError::Plain(_) => {
            "`--tls-certificate` and `--tls-key` give it TLS; `--behind-proxy` if a proxy in front of it has it"
        }
        ServerError::Nobody => {
            "`strata serve user add NAME --admin` makes the first user; `--open` does without"
        }
        ServerError::Listen { .. } => "`--listen` names another address",
        _ => "",
    };
    let failed = match &error {
        ServerError::Plain(_) | ServerError::Nobody => CommandError::refused(error.to_string()),
        _ => CommandError::failed(error.to_string()),
    };
    if hint.is_empty() { failed } else { failed.hint(hint) }
}

/// The file of a server that keeps its states itself.
fn open_embedded(settings: &Settings) -> Result<EmbeddedStorage, CommandError> {
    let options = EmbeddedOptions { retention: settings.config.retention(), max_bytes: None };
    EmbeddedStorage::open(&settings.data.join(FILE), &options)
        .map_err(|error| CommandError::failed(error.to_string()))
}
