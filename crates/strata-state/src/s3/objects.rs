//! Objects below a prefix, and the four ways in which they are touched.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{
    BackoffConfig, Error, GetOptions, ObjectStore, PutMode, PutOptions, PutPayload, RetryConfig,
    UpdateVersion,
};
use strata_net::HttpOptions;

use super::S3StoreOptions;
use super::connector::{Connector, ServerTime};
use crate::StoreError;

#[derive(Clone)]
pub struct Objects {
    store: Arc<AmazonS3>,
    place: String,
    prefix: String,
    timeout: Duration,
    connector: Connector,
}

/// What an object held when it was read.
pub struct Found {
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
    pub(super) fn new(options: &S3StoreOptions) -> Result<Self, StoreError> {
        let timeout = options.lease.request_timeout();
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
        let store = builder.build().map_err(|error| StoreError::Remote {
            what: format!("the bucket `{}` cannot be used", options.bucket),
            reason: error.to_string(),
            hint: None,
        })?;
        let prefix = options.prefix.trim_matches('/').to_owned();
        let place = format!("s3://{}/{prefix}", options.bucket);
        Ok(Self { store: Arc::new(store), place, prefix, timeout, connector })
    }

    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Who asks, as the S3 client knows it.
    pub(super) async fn credential(&self) -> Result<Arc<object_store::aws::AwsCredential>, StoreError> {
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
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.timeout, work).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.failed(what, path, &error)),
            Err(_) => Err(StoreError::Remote {
                what: format!("cannot {what} `{}/{path}`", self.place),
                reason: format!("no answer within {} s", self.timeout.as_secs()),
                hint: None,
            }),
        }
    }

    fn failed(&self, what: &str, path: &str, error: &Error) -> StoreError {
        let hint = match error {
            Error::Unauthenticated { .. } => Some(
                "give `accessKeyId` and `secretAccessKey` in `state`, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            ),
            Error::PermissionDenied { .. } => {
                Some("the key needs s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket")
            }
            _ => None,
        };
        StoreError::Remote {
            what: format!("cannot {what} `{}/{path}`", self.place),
            reason: error.to_string(),
            hint: hint.map(str::to_owned),
        }
    }

    fn tag(&self, path: &str, tag: Option<String>) -> Result<String, StoreError> {
        tag.ok_or_else(|| StoreError::Remote {
            what: format!("`{}/{path}` cannot be kept there", self.place),
            reason: "the server gives no ETag".to_owned(),
            hint: None,
        })
    }

    pub async fn get(&self, path: &str) -> Result<Option<Found>, StoreError> {
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
            Some((bytes, tag, age)) => Ok(Some(Found { bytes, tag: self.tag(path, tag)?, age })),
            None => Ok(None),
        }
    }

    async fn put_if(&self, path: &str, bytes: Bytes, mode: PutMode) -> Result<Option<String>, StoreError> {
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
    pub async fn create(&self, path: &str, bytes: Bytes) -> Result<Option<String>, StoreError> {
        let created = self.put_if(path, bytes.clone(), PutMode::Create).await;
        self.or_there(path, &bytes, created).await
    }

    /// Only if it is still the one with this tag; none if not.
    pub async fn replace(&self, path: &str, bytes: Bytes, tag: &str) -> Result<Option<String>, StoreError> {
        let version = UpdateVersion { e_tag: Some(tag.to_owned()), version: None };
        let replaced = self.put_if(path, bytes.clone(), PutMode::Update(version)).await;
        self.or_there(path, &bytes, replaced).await
    }

    /// A condition that does not hold any more can be our own doing, if an answer was lost on the way.
    async fn or_there(
        &self,
        path: &str,
        bytes: &Bytes,
        written: Result<Option<String>, StoreError>,
    ) -> Result<Option<String>, StoreError> {
        if let Ok(Some(tag)) = written {
            return Ok(Some(tag));
        }
        match self.get(path).await {
            Ok(Some(there)) if there.bytes == *bytes => Ok(Some(there.tag)),
            _ => written,
        }
    }

    /// Whatever is there. Only for what nobody else writes.
    pub async fn put(&self, path: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.put_if(path, bytes, PutMode::Overwrite).await.map(|_| ())
    }

    /// Without looking whether it was lost; for the probe, which wants the plain answer.
    pub(super) async fn condition_holds(
        &self,
        path: &str,
        bytes: Bytes,
        tag: Option<&str>,
    ) -> Result<bool, StoreError> {
        let mode = match tag {
            Some(tag) => PutMode::Update(UpdateVersion { e_tag: Some(tag.to_owned()), version: None }),
            None => PutMode::Create,
        };
        Ok(self.put_if(path, bytes, mode).await?.is_some())
    }

    pub async fn delete(&self, path: &str) -> Result<(), StoreError> {
        use object_store::ObjectStoreExt as _;
        let delete = async {
            match self.store.delete(&self.path(path)).await {
                Err(Error::NotFound { .. }) => Ok(()),
                other => other,
            }
        };
        self.within("delete", path, delete).await
    }

    pub async fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError> {
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
