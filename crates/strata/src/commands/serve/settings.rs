//! What the server is told: the configuration file, and the command line above it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use strata_diagnostics::{LARGEST_FILE, read_text_file};
use strata_net::TlsTrust;
use strata_secret::SecretString;
use strata_server::storage::Storage;
use strata_server::storage::embedded::CommitStats;
use strata_server::storage::postgres::{DEFAULT_SCHEMA, DatabaseOptions, PostgresStorage};
use strata_server::storage::s3::{BucketOptions, S3Storage};
use strata_server::{Config, PostgresSettings, S3Settings, TlsFiles, read_config};

use super::{ServerArgs, open_embedded};
use crate::command_error::{CommandError, ErrorKind};
use crate::context::Context;
use crate::workspace;

const DEFAULT_DATA: &str = "strata-serve";
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8420);

/// How long a database may take for one step.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Settings {
    pub(super) config: Config,
    /// Where the files that the configuration names are found from.
    folder: PathBuf,
    pub(super) data: PathBuf,
}

/// A storage, and what it counts.
pub(super) struct Opened {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) commits: Option<Arc<CommitStats>>,
}

impl Settings {
    pub(super) fn read(context: &Context, args: &ServerArgs) -> Result<Self, CommandError> {
        let start = context.start();
        let (config, folder) = match &args.config {
            Some(path) => {
                let path = start.join(path);
                let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
                (load(context, &path)?, folder)
            }
            // Everything has a default.
            None => (load_text(context, "none", "x-none: true\n".to_owned())?, start.clone()),
        };
        let data = match (&args.data, &config.data) {
            (Some(data), _) => start.join(data),
            (None, Some(data)) => folder.join(data),
            (None, None) => start.join(DEFAULT_DATA),
        };
        Ok(Self { config, folder, data })
    }

    pub(super) fn listen(&self, args: &ServerArgs) -> Result<SocketAddr, CommandError> {
        match (args.listen, &self.config.listen) {
            (Some(listen), _) => Ok(listen),
            (None, Some(text)) => text.parse().map_err(|_| {
                CommandError::failed(format!("`listen: {text}` is no address with a port"))
                    .hint("such as `127.0.0.1:8420` or `[::]:8420`")
            }),
            (None, None) => Ok(DEFAULT_LISTEN),
        }
    }

    pub(super) fn tls(&self, args: &ServerArgs) -> Option<TlsFiles> {
        match (&args.tls_certificate, &args.tls_key) {
            (Some(certificate), Some(key)) => {
                Some(TlsFiles { certificate: certificate.clone(), key: key.clone() })
            }
            _ => self.config.tls_files(&self.folder),
        }
    }

    pub(super) async fn open_storage(&self, context: &Context) -> Result<Opened, CommandError> {
        let Some(kept) = &self.config.storage else {
            let storage = open_embedded(self)?;
            let commits = Some(storage.stats());
            return Ok(Opened { storage: Arc::new(storage), commits });
        };
        let retention = self.config.retention();
        let opened: Result<Arc<dyn Storage>, _> = match (&kept.postgres, &kept.s3) {
            (Some(postgres), _) => {
                let options = self.postgres(context, postgres)?;
                PostgresStorage::open(&options, retention).await.map(|storage| Arc::new(storage) as _)
            }
            (None, Some(s3)) => {
                S3Storage::open(&bucket(context, s3), retention).await.map(|storage| Arc::new(storage) as _)
            }
            (None, None) => return Err(CommandError::failed("`storage` names neither `s3` nor `postgres`")),
        };
        let storage = opened.map_err(|error| CommandError::failed(error.to_string()))?;
        Ok(Opened { storage, commits: None })
    }

    fn postgres(
        &self,
        context: &Context,
        settings: &PostgresSettings,
    ) -> Result<DatabaseOptions, CommandError> {
        let password = match &settings.password_file {
            Some(name) => {
                let path = self.folder.join(name);
                let text = read_text_file(&path, LARGEST_FILE).map_err(|error| {
                    CommandError::failed(format!("cannot read `{}`: {error}", path.display()))
                })?;
                Some(SecretString::from(text.trim_end_matches(['\r', '\n'])))
            }
            None => context.environment.get("PGPASSWORD").map(|text| SecretString::from(text.as_str())),
        };
        Ok(DatabaseOptions {
            connection: settings.connection.clone(),
            password,
            schema: settings.schema.clone().unwrap_or_else(|| DEFAULT_SCHEMA.to_owned()),
            tls: TlsTrust::System,
            folder: self.folder.clone(),
            timeout: DATABASE_TIMEOUT,
            application: "strata serve",
        })
    }
}

/// Credentials come from the variables `AWS_…`.
fn bucket(context: &Context, settings: &S3Settings) -> BucketOptions {
    let mut options = BucketOptions::new(&settings.bucket);
    options.prefix = settings.prefix.clone().unwrap_or_default();
    options.region = settings.region.clone();
    options.endpoint = settings.endpoint.clone();
    options.environment = context
        .environment
        .iter()
        .filter(|(name, _)| name.starts_with("AWS_"))
        .map(|(name, value)| (name.clone(), SecretString::from(value.as_str())))
        .collect();
    options
}

fn load(context: &Context, path: &Path) -> Result<Config, CommandError> {
    let text = read_text_file(path, LARGEST_FILE)
        .map_err(|error| CommandError::failed(format!("cannot read `{}`: {error}", path.display())))?;
    load_text(context, &path.display().to_string(), text)
}

fn load_text(context: &Context, path: &str, text: String) -> Result<Config, CommandError> {
    read_config(path, text).map_err(|(sources, diagnostics)| {
        workspace::show(context.printer, &diagnostics.iter().collect::<Vec<_>>(), &sources);
        CommandError::already_shown(ErrorKind::Failed)
    })
}
