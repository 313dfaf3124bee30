//! Objects below a prefix, and the four ways in which they are touched.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsCredential};
use object_store::path::Path;
use object_store::{
    BackoffConfig, Error, GetOptions, ObjectStore, PutMode, PutOptions, PutPayload, RetryConfig,
    UpdateVersion,
};
use strata_net::{HttpClient, HttpOptions};
use strata_secret::SecretString;

use super::connector::{Connector, NoSpace, ServerTime};
use crate::{Failure, FailureKind};

/// Who asks.
#[derive(Clone)]
pub struct AwsCredentials {
    pub access_key_id: String,
    pub secret_access_key: SecretString,
}

/// A bucket, and how it is reached.
#[derive(Clone)]
pub struct BucketOptions {
    pub bucket: String,
    /// What the names of the objects begin with.
    pub prefix: String,
    pub region: Option<String>,
    /// The server, where it is not Amazon's.
    pub endpoint: Option<String>,
    /// Whether the bucket is part of the path and not of the host; for other servers it is unless said otherwise.
    pub path_style: Option<bool>,
    /// Without them, as the variables say.
    pub credentials: Option<AwsCredentials>,
    /// The variables `AWS_…`.
    pub environment: Vec<(String, SecretString)>,
    /// How long one request may take.
    pub timeout: Duration,
    /// TLS, dialling, tracing; its endpoint is not used.
    pub http: HttpOptions,
}

impl BucketOptions {
    pub fn new(bucket: impl Into<String>) -> Self {
        Self {
            bucket: bucket.into(),
            prefix: String::new(),
            region: None,
            endpoint: None,
            path_style: None,
            credentials: None,
            environment: Vec::new(),
            timeout: Duration::from_secs(15),
            http: HttpOptions::new("https://s3.amazonaws.com"),
        }
    }
}

#[derive(Clone)]
pub struct Objects {
    store: Arc<AmazonS3>,
    place: String,
    prefix: String,
    timeout: Duration,
    connector: Connector,
}

/// What an object held when it was read.
pub struct StoredObject {
    pub bytes: Bytes,
    pub tag: String,
    /// How long ago it was written, by the server's clock, where that tells the time.
    pub age: Option<Duration>,
}

pub struct Listed {
    /// Below the prefix.
    pub path: String,
    pub written: String,
    pub bytes: u64,
}

impl Objects {
    /// Connects at the first question.
    pub fn new(options: &BucketOptions) -> Result<Self, Failure> {
        let timeout = options.timeout;
        let http = HttpOptions { request_timeout: timeout, ..options.http.clone() };
        let connector = Connector::new(http);
        let mut builder = AmazonS3Builder::new();
        for (name, value) in &options.environment {
            if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
                builder = builder.with_config(key, value.expose());
            }
        }
        builder = builder
            .with_bucket_name(&options.bucket)
            .with_disable_bulk_delete(true)
            .with_http_connector(connector.clone())
            .with_retry(RetryConfig {
                backoff: BackoffConfig::default(),
                max_retries: 3,
                retry_timeout: timeout,
            });
        if let Some(region) = &options.region {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = &options.endpoint {
            builder = builder
                .with_endpoint(endpoint.trim_end_matches('/'))
                .with_allow_http(endpoint.starts_with("http://"));
        }
        let path_style = options.path_style.unwrap_or(options.endpoint.is_some());
        builder = builder.with_virtual_hosted_style_request(!path_style);
        if let Some(credentials) = &options.credentials {
            builder = builder
                .with_access_key_id(&credentials.access_key_id)
                .with_secret_access_key(credentials.secret_access_key.expose());
        }
        let store = builder.build().map_err(|error| {
            Failure::of(format!("the bucket `{}` cannot be used", options.bucket), error)
                .kind(FailureKind::Settings)
        })?;
        let prefix = options.prefix.trim_matches('/').to_owned();
        let place = format!("s3://{}/{prefix}", options.bucket);
        Ok(Self { store: Arc::new(store), place, prefix, timeout, connector })
    }

    /// A client for another service of the same owner.
    pub fn client(&self, origin: &str) -> Result<HttpClient, Failure> {
        self.connector.client(origin).map_err(Failure::from_error)
    }

    /// Who asks, as the S3 client knows it.
    pub async fn credential(&self) -> Result<Arc<AwsCredential>, Failure> {
        self.within("get credentials for", "", self.store.credentials().get_credential()).await
    }

    fn path(&self, path: &str) -> Path {
        if self.prefix.is_empty() { Path::from(path) } else { Path::from(format!("{}/{path}", self.prefix)) }
    }

    async fn within<T>(
        &self,
        what: &str,
        path: &str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(self.timeout, work).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.failed(what, path, error)),
            Err(elapsed) => {
                let what = format!(
                    "cannot {what} `{}/{path}`: no answer within {} s",
                    self.place,
                    self.timeout.as_secs()
                );
                Err(Failure::of(what, elapsed).kind(FailureKind::Unreachable))
            }
        }
    }

    fn failed(&self, what: &str, path: &str, error: Error) -> Failure {
        let kind = match &error {
            Error::Unauthenticated { .. } => FailureKind::Unauthenticated,
            Error::PermissionDenied { .. } => FailureKind::Forbidden,
            error if NoSpace::is_behind(error) => FailureKind::Full,
            _ => FailureKind::Other,
        };
        Failure::of(format!("cannot {what} `{}/{path}`", self.place), error).kind(kind)
    }

    fn tag(&self, path: &str, tag: Option<String>) -> Result<String, Failure> {
        tag.ok_or_else(|| {
            Failure::new(format!("`{}/{path}` cannot be kept there: the server gives no ETag", self.place))
                .kind(FailureKind::Conditions)
        })
    }

    pub async fn get(&self, path: &str) -> Result<Option<StoredObject>, Failure> {
        let read = async {
            let result = match self.store.get_opts(&self.path(path), GetOptions::default()).await {
                Err(Error::NotFound { .. }) => return Ok(None),
                other => other?,
            };
            let written = result.meta.last_modified.timestamp();
            let now = result.extensions.get::<ServerTime>().map(|time| time.0);
            let age = now.map(|now| Duration::from_secs(u64::try_from(now - written).unwrap_or(0)));
            let tag = result.meta.e_tag.clone();
            Ok(Some((result.bytes().await?, tag, age)))
        };
        match self.within("read", path, read).await? {
            Some((bytes, tag, age)) => Ok(Some(StoredObject { bytes, tag: self.tag(path, tag)?, age })),
            None => Ok(None),
        }
    }

    async fn put_if(&self, path: &str, bytes: Bytes, mode: PutMode) -> Result<Option<String>, Failure> {
        let write = async {
            let options = PutOptions { mode, ..PutOptions::default() };
            match self.store.put_opts(&self.path(path), PutPayload::from(bytes), options).await {
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotFound { .. }) => {
                    Ok(None)
                }
                other => other.map(Some),
            }
        };
        match self.within("write", path, write).await? {
            Some(written) => self.tag(path, written.e_tag).map(Some),
            None => Ok(None),
        }
    }

    /// Only if there is none; none if there is one. An answer that was lost is asked for again: what is there may be ours.
    pub async fn create(&self, path: &str, bytes: Bytes) -> Result<Option<String>, Failure> {
        let created = self.put_if(path, bytes.clone(), PutMode::Create).await;
        self.or_there(path, &bytes, created).await
    }

    /// Only if it is still the one with this tag; none if not.
    pub async fn replace(&self, path: &str, bytes: Bytes, tag: &str) -> Result<Option<String>, Failure> {
        let version = UpdateVersion { e_tag: Some(tag.to_owned()), version: None };
        let replaced = self.put_if(path, bytes.clone(), PutMode::Update(version)).await;
        self.or_there(path, &bytes, replaced).await
    }

    /// A condition that does not hold any more can be our own doing, if an answer was lost on the way.
    async fn or_there(
        &self,
        path: &str,
        bytes: &Bytes,
        written: Result<Option<String>, Failure>,
    ) -> Result<Option<String>, Failure> {
        if let Ok(Some(tag)) = written {
            return Ok(Some(tag));
        }
        match self.get(path).await {
            Ok(Some(there)) if there.bytes == *bytes => Ok(Some(there.tag)),
            _ => written,
        }
    }

    /// Whatever is there. Only for what nobody else writes.
    pub async fn put(&self, path: &str, bytes: Bytes) -> Result<(), Failure> {
        self.put_if(path, bytes, PutMode::Overwrite).await.map(|_| ())
    }

    /// Without looking whether it was lost; for the probe, which wants the plain answer.
    pub(super) async fn condition_holds(
        &self,
        path: &str,
        bytes: Bytes,
        tag: Option<&str>,
    ) -> Result<bool, Failure> {
        let mode = match tag {
            Some(tag) => PutMode::Update(UpdateVersion { e_tag: Some(tag.to_owned()), version: None }),
            None => PutMode::Create,
        };
        Ok(self.put_if(path, bytes, mode).await?.is_some())
    }

    pub async fn delete(&self, path: &str) -> Result<(), Failure> {
        use object_store::ObjectStoreExt as _;
        let delete = async {
            match self.store.delete(&self.path(path)).await {
                Err(Error::NotFound { .. }) => Ok(()),
                other => other,
            }
        };
        self.within("delete", path, delete).await
    }

    pub async fn list(&self, folder: &str) -> Result<Vec<Listed>, Failure> {
        let below = self.path(folder);
        let below = (!below.as_ref().is_empty()).then_some(&below);
        let objects = self.within("list", folder, self.store.list(below).try_collect::<Vec<_>>()).await?;
        let listed = objects.into_iter().filter_map(|object| {
            let path = object.location.as_ref();
            let path = if self.prefix.is_empty() {
                path
            } else {
                path.strip_prefix(&self.prefix)?.strip_prefix('/')?
            };
            let written = jiff::Timestamp::from_second(object.last_modified.timestamp()).ok();
            Some(Listed {
                path: path.to_owned(),
                written: written.map(|time| time.to_string()).unwrap_or_default(),
                bytes: object.size,
            })
        });
        Ok(listed.collect())
    }
}
