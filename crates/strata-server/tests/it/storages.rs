//! The storage that the larger tests run on: the embedded one, or what `STRATA_TEST_STORAGE` names: `postgres://…`, or
//! `s3:BUCKET@http://HOST:PORT` with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use strata_net::TlsTrust;
use strata_secret::SecretString;
use strata_server::storage::embedded::{EmbeddedOptions, EmbeddedStorage, FILE};
use strata_server::storage::postgres::{DatabaseOptions, PostgresStorage};
use strata_server::storage::s3::{BucketOptions, S3Storage};
use strata_server::storage::{Retention, Storage};

fn named() -> String {
    std::env::var("STRATA_TEST_STORAGE").unwrap_or_default()
}

pub(crate) fn is_embedded() -> bool {
    named().is_empty()
}

/// What is kept there belongs to the folder: two of them share nothing.
fn own(data: &Path) -> String {
    let own: String = data.to_string_lossy().chars().filter(char::is_ascii_alphanumeric).collect();
    format!("s_{}", own.to_ascii_lowercase())
}

pub(crate) async fn open(data: &Path, options: &EmbeddedOptions) -> Arc<dyn Storage> {
    let retention = options.retention;
    if named().starts_with("postgres://") {
        return Arc::new(postgres(&named(), own(data), retention).await);
    }
    if let Some(options) = bucket(data) {
        return Arc::new(S3Storage::open(&options, retention).await.unwrap());
    }
    Arc::new(EmbeddedStorage::open(&data.join(FILE), options).unwrap())
}

/// The bucket, if it is one.
pub(crate) fn bucket(data: &Path) -> Option<BucketOptions> {
    let named = named();
    let (bucket, endpoint) = named.strip_prefix("s3:")?.split_once('@')?;
    Some(s3(bucket, endpoint, own(data)))
}

async fn postgres(connection: &str, schema: String, retention: Retention) -> PostgresStorage {
    let options = DatabaseOptions {
        connection: connection.to_owned(),
        password: std::env::var("PGPASSWORD").ok().map(SecretString::from),
        tls: TlsTrust::System,
        folder: PathBuf::new(),
        schema,
        timeout: Duration::from_secs(30),
        application: "strata serve",
    };
    PostgresStorage::open(&options, retention).await.unwrap()
}

fn s3(bucket: &str, endpoint: &str, prefix: String) -> BucketOptions {
    let mut options = BucketOptions::new(bucket);
    options.endpoint = Some(endpoint.to_owned());
    options.prefix = prefix;
    options.region = Some("us-east-1".to_owned());
    options.environment = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), SecretString::from(std::env::var(name).ok()?))))
        .collect();
    options
}
