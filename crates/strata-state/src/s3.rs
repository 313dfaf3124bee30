//! States in a bucket, with nothing but conditional writes: on Amazon S3, MinIO, R2, Ceph.
//!
//! ```text
//! <prefix>/<environment>/<stack>/state.json          the document, replaced only if its ETag is the one we read
//!                                lock                who holds it; never deleted, since a delete takes no condition everywhere
//!                                journal/00000001    records since the document was written, in pieces
//!                                history/00000001.json
//! ```

mod journal;
mod lock;
mod lock_table;
mod locked;
mod signature;

use std::sync::Arc;

use async_trait::async_trait;
use strata_net::HttpOptions;
use strata_secret::SecretString;
use strata_storage::s3::{AwsCredentials, BucketOptions, Objects, respects_conditions};
use strata_storage::{Failure, FailureKind};
use tokio::sync::OnceCell;

use crate::store::KEPT_VERSIONS;
use crate::{
    Codec, Holder, JournalRecord, LeaseTerms, LockOwner, LockedState, StateDocument, Store, StoreError,
    Version,
};
use lock::LockObject;
use lock_table::Table;
use locked::S3Lock;

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
}

pub struct S3Store {
    shared: Arc<Shared>,
    /// Whether the conditions of a write are respected was found out.
    probed: OnceCell<()>,
}

struct Shared {
    place: String,
    objects: Objects,
    table: Option<Table>,
    codec: Codec,
    lease: LeaseTerms,
    kept: usize,
}

impl S3StoreOptions {
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

/// What a bucket said no to, with what to do about it.
fn failed(failure: Failure) -> StoreError {
    let hint = match failure.kind {
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
    };
    StoreError::failure(failure).with_hint(hint.map(str::to_owned))
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        failed(failure)
    }
}

impl S3Store {
    /// Connects at the first question.
    pub fn new(options: S3StoreOptions) -> Result<Self, StoreError> {
        let objects = Objects::new(&options.bucket())?;
        let table =
            options.lock_table.as_ref().map(|table| Table::new(table, &options, &objects)).transpose()?;
        let prefix = options.prefix.trim_matches('/');
        let server =
            options.endpoint.as_deref().map(|endpoint| format!(" at {endpoint}")).unwrap_or_default();
        let shared = Shared {
            place: format!("s3://{}/{prefix}{server}", options.bucket),
            objects,
            table,
            codec: options.codec,
            lease: options.lease,
            kept: options.kept.max(1),
        };
        Ok(Self { shared: Arc::new(shared), probed: OnceCell::new() })
    }
}

fn document_at(key: &str) -> String {
    format!("{key}/state.json")
}

fn version_at(key: &str, serial: u64) -> String {
    format!("{key}/history/{serial:08}.json")
}

impl Shared {
    async fn versions(&self, key: &str) -> Result<Vec<Version>, StoreError> {
        let mut versions = Vec::new();
        for object in self.objects.list(&format!("{key}/history")).await? {
            let name = object.path.rsplit('/').next().unwrap_or_default();
            let serial = name.strip_suffix(".json").and_then(|serial| serial.parse().ok());
            // The history of a stack below this one has another folder in between.
            let ours = object.path.strip_suffix(name) == Some(&format!("{key}/history/"));
            if let (true, Some(serial)) = (ours, serial) {
                versions.push(Version { serial, written: object.written, bytes: object.bytes });
            }
        }
        versions.sort_by_key(|version| std::cmp::Reverse(version.serial));
        Ok(versions)
    }

    async fn read_version(&self, key: &str, serial: u64) -> Result<StateDocument, StoreError> {
        match self.objects.get(&version_at(key, serial)).await? {
            Some(found) => self.codec.decode(key, &found.bytes),
            None => Err(StoreError::NoVersion { key: key.to_owned(), serial }),
        }
    }

    async fn newest_good(&self, key: &str) -> Option<u64> {
        for version in self.versions(key).await.ok()? {
            if self.read_version(key, version.serial).await.is_ok() {
                return Some(version.serial);
            }
        }
        None
    }
}

#[async_trait]
impl Store for S3Store {
    fn describe(&self) -> String {
        self.shared.place.clone()
    }

    fn kept(&self) -> Option<usize> {
        Some(self.shared.kept)
    }

    async fn keys(&self) -> Result<Vec<String>, StoreError> {
        let objects = self.shared.objects.list("").await?;
        let key_of = |path: &str| -> Option<String> {
            let (folder, name) = path.rsplit_once('/')?;
            match name {
                "state.json" => Some(folder.to_owned()),
                _ if name.len() == 8 && name.bytes().all(|byte| byte.is_ascii_digit()) => {
                    folder.strip_suffix("/journal").map(str::to_owned)
                }
                _ => None,
            }
        };
        // A journal that was cleared stays as an empty object, and says nothing.
        let told = objects.iter().filter(|object| object.bytes > 0).filter_map(|object| key_of(&object.path));
        let keys: std::collections::BTreeSet<String> = told.collect();
        Ok(keys.into_iter().collect())
    }

    async fn read(&self, key: &str) -> Result<Option<StateDocument>, StoreError> {
        let Some(found) = self.shared.objects.get(&document_at(key)).await? else { return Ok(None) };
        match self.shared.codec.decode(key, &found.bytes) {
            Err(StoreError::Damaged { key, reason, .. }) => {
                let newest_good = self.shared.newest_good(&key).await;
                Err(StoreError::Damaged { key, reason, newest_good })
            }
            decoded => decoded.map(Some),
        }
    }

    async fn read_journal(&self, key: &str) -> Result<Vec<JournalRecord>, StoreError> {
        let text = journal::read(&self.shared.objects, key).await?.text();
        self.shared.codec.decode_journal(key, &text)
    }

    async fn lock(&self, key: &str, owner: LockOwner) -> Result<Box<dyn LockedState>, StoreError> {
        self.probed.get_or_try_init(|| respects_conditions(&self.shared.objects)).await?;
        Ok(Box::new(S3Lock::acquire(self.shared.clone(), key, owner).await?))
    }

    async fn holder(&self, key: &str) -> Result<Option<Holder>, StoreError> {
        if let Some(seen) = LockObject::read(&self.shared.objects, key).await?
            && let Some(holder) = seen.holder()
        {
            return Ok(Some(holder));
        }
        match &self.shared.table {
            Some(table) => Ok(table.holder(key).await?.map(Holder::endless)),
            None => Ok(None),
        }
    }

    async fn break_lock(&self, key: &str, id: &str) -> Result<(), StoreError> {
        let mut broken = false;
        if let Some(table) = &self.shared.table
            && let Some(owner) = table.holder(key).await?.filter(|owner| owner.id == id)
        {
            table.free(key, &owner.id).await?;
            broken = true;
        }
        if let Some(seen) = LockObject::read(&self.shared.objects, key).await?
            && seen.holder().is_some_and(|holder| holder.owner.id == id)
        {
            broken = seen.free(&self.shared.objects, key).await?;
        }
        if broken { Ok(()) } else { Err(StoreError::OtherLock { key: key.to_owned(), id: id.to_owned() }) }
    }

    async fn history(&self, key: &str) -> Result<Vec<Version>, StoreError> {
        self.shared.versions(key).await
    }

    async fn read_version(&self, key: &str, serial: u64) -> Result<StateDocument, StoreError> {
        self.shared.read_version(key, serial).await
    }
}
