//! States in a bucket, with nothing but conditional writes: on Amazon S3, MinIO, R2, Ceph. What is there and how it is changed is in
//! `strata-storage/src/s3`; here are the settings, and a team's table of locks.

mod lock_table;
mod signature;

use strata_net::HttpOptions;
use strata_secret::SecretString;
use strata_storage::s3::{AwsCredentials, BucketOptions, Layout, S3Storage};
use strata_storage::{FailureKind, Retention, StorageError};

use crate::direct::{Direct, DirectStore};
use crate::store::KEPT_VERSIONS;
use crate::{Codec, LeaseTerms, StoreError};
pub(crate) use lock_table::Table;

/// A DynamoDB table in which a team keeps its locks.
#[derive(Clone)]
pub struct LockTable {
    pub name: String,
    /// The server, where it is not Amazon's.
    pub endpoint: Option<String>,
}

pub struct S3StoreOptions {
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
    pub lock_table: Option<LockTable>,
    pub codec: Codec,
    pub lease: LeaseTerms,
    pub kept: usize,
    /// TLS, dialling, tracing; its endpoint is not used.
    pub http: HttpOptions,
}

impl S3StoreOptions {
    pub fn new(bucket: impl Into<String>) -> Self {
        Self {
            bucket: bucket.into(),
            prefix: String::new(),
            region: None,
            endpoint: None,
            path_style: None,
            credentials: None,
            environment: Vec::new(),
            lock_table: None,
            codec: Codec::plain(),
            lease: LeaseTerms::default(),
            kept: KEPT_VERSIONS,
            http: HttpOptions::new("https://s3.amazonaws.com"),
        }
    }

    fn bucket(&self) -> BucketOptions {
        BucketOptions {
            bucket: self.bucket.clone(),
            prefix: self.prefix.clone(),
            region: self.region.clone(),
            endpoint: self.endpoint.clone(),
            path_style: self.path_style,
            credentials: self.credentials.clone(),
            environment: self.environment.clone(),
            timeout: self.lease.request_timeout(),
            http: self.http.clone(),
        }
    }
}

/// In a bucket.
pub enum S3 {}

pub type S3Store = DirectStore<S3>;

impl S3Store {
    /// Connects at the first question.
    pub fn new(options: S3StoreOptions) -> Result<Self, StoreError> {
        let kept = options.kept.max(1);
        let retention = Retention { count: kept as u64, age: None };
        let storage = S3Storage::new(&options.bucket(), Layout::Folders, retention).map_err(unusable)?;
        let objects = storage.objects();
        let table =
            options.lock_table.as_ref().map(|table| Table::new(table, &options, objects)).transpose()?;
        let prefix = options.prefix.trim_matches('/');
        let server =
            options.endpoint.as_deref().map(|endpoint| format!(" at {endpoint}")).unwrap_or_default();
        Ok(Self::over(Direct {
            storage: Box::new(storage),
            place: format!("s3://{}/{prefix}{server}", options.bucket),
            codec: options.codec,
            lease: options.lease,
            kept,
            table,
            hint,
        }))
    }
}

fn unusable(error: StorageError) -> StoreError {
    StoreError::remote_error("the bucket cannot be used", error)
}

fn hint(kind: FailureKind) -> Option<&'static str> {
    match kind {
        FailureKind::Unauthenticated => Some(
            "give `accessKeyId` and `secretAccessKey` in `state`, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ),
        FailureKind::Forbidden => {
            Some("the key needs s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket")
        }
        FailureKind::Conditions => Some(
            "it needs conditional writes, as Amazon S3, MinIO, R2 and Ceph have them; or use another backend",
        ),
        _ => None,
    }
}
