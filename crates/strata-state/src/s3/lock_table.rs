//! A DynamoDB table of locks, as OpenTofu's backend `s3` uses it: `LockID` names the state, `Info` says who holds it.
//!
//! Where a team has one, its locks are respected and ours are entered there too. The lease stays in the bucket: an entry of ours
//! that a dead run left is known by the lock object that it left as well.

use http::Method;
use serde_json::{Value, json};
use strata_net::{Body, HttpClient, Request};

use strata_storage::s3::Objects;

use super::signature::Signature;
use super::{LockTable, S3StoreOptions, hint};
use crate::http::LockInfo;
use crate::{Holder, LockOwner, StoreError};

pub(crate) struct Table {
    name: String,
    client: HttpClient,
    /// `host` or `host:port`, as the client sends it.
    host: String,
    region: String,
    /// `<bucket>/<prefix>`.
    place: String,
    objects: Objects,
}

impl Table {
    pub(super) fn new(
        table: &LockTable,
        options: &S3StoreOptions,
        objects: &Objects,
    ) -> Result<Self, StoreError> {
        let what = || format!("the lock table `{}` cannot be used", table.name);
        let said = |name: &str| {
            let found = options.environment.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.expose().to_owned())
        };
        let region =
            options.region.clone().or_else(|| said("AWS_REGION")).or_else(|| said("AWS_DEFAULT_REGION"));
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        let endpoint = table.endpoint.clone();
        let endpoint = endpoint.unwrap_or_else(|| format!("https://dynamodb.{region}.amazonaws.com"));
        let url = url::Url::parse(&endpoint).map_err(|error| StoreError::remote_error(what(), error))?;
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let client = objects.client(&url.origin().ascii_serialization());
        let client = client.map_err(|error| StoreError::remote_error(what(), error))?;
        let prefix = options.prefix.trim_matches('/');
        let slash = if prefix.is_empty() { "" } else { "/" };
        let place = format!("{}{slash}{prefix}", options.bucket);
        Ok(Self { name: table.name.clone(), client, host, region, place, objects: objects.clone() })
    }

    fn lock_id(&self, key: &str) -> String {
        format!("{}/{key}/state.json", self.place)
    }

    /// None if the condition of the request does not hold.
    async fn call(&self, action: &str, body: &Value) -> Result<Option<Value>, StoreError> {
        let what = || format!("the lock table `{}` does not answer", self.name);
        let credential = self.objects.credential().await.map_err(|failure| {
            let hint = hint(failure.kind).map(str::to_owned);
            StoreError::failure(failure).with_hint(hint)
        })?;
        let body = serde_json::to_vec(body).expect("a JSON value can be written");
        let signature = Signature {
            key_id: &credential.key_id,
            secret: &credential.secret_key,
            token: credential.token.as_deref(),
            region: &self.region,
            service: "dynamodb",
            host: &self.host,
            unix: self.client.clock().unix(),
        };
        let target = format!("DynamoDB_20120810.{action}");
        let content_type = "application/x-amz-json-1.0";
        let mut request = Request::new(Method::POST, "/");
        for (name, value) in
            signature.headers(&[("content-type", content_type), ("x-amz-target", &target)], &body)
        {
            if name != "content-type" {
                let value = http::HeaderValue::try_from(value)
                    .map_err(|error| StoreError::remote_error(what(), error))?;
                request.headers.push((http::HeaderName::from_static(name), value));
            }
        }
        request.body = Body::Bytes { content_type: content_type.to_owned(), bytes: body.into() };
        let answer = self.client.send(&request).await;
        let answer = answer.map_err(|error| StoreError::remote_error(what(), error))?;
        let value: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let kind = value["__type"].as_str().unwrap_or_default();
        match answer.status {
            200 => Ok(Some(value)),
            400 if kind.ends_with("ConditionalCheckFailedException") => Ok(None),
            status => {
                let message = value["message"].as_str().or_else(|| value["Message"].as_str()).unwrap_or(kind);
                Err(StoreError::remote(what(), format!("it answered {status}: {message}")))
            }
        }
    }

    /// The entry as it is, and whom it names.
    async fn entry(&self, key: &str) -> Result<Option<(String, LockOwner)>, StoreError> {
        let body = json!({
            "TableName": self.name,
            "Key": {"LockID": {"S": self.lock_id(key)}},
            "ConsistentRead": true,
        });
        let answer = self.call("GetItem", &body).await?.unwrap_or_default();
        let Some(info) = answer["Item"]["Info"]["S"].as_str() else { return Ok(None) };
        let owner = serde_json::from_str::<LockInfo>(info).unwrap_or_default().owner();
        Ok(Some((info.to_owned(), owner)))
    }

    pub(crate) async fn holder(&self, key: &str) -> Result<Option<LockOwner>, StoreError> {
        Ok(self.entry(key).await?.map(|(_, owner)| owner))
    }

    /// Enters us. `former` held the lock in the bucket before us, so an entry of its own is a leftover.
    pub(crate) async fn take(
        &self,
        key: &str,
        owner: &LockOwner,
        former: Option<&LockOwner>,
    ) -> Result<(), StoreError> {
        let info = serde_json::to_string(&LockInfo::of(owner, &self.lock_id(key))).expect("texts are JSON");
        let mut put = json!({
            "TableName": self.name,
            "Item": {"LockID": {"S": self.lock_id(key)}, "Info": {"S": info}},
            "ConditionExpression": "attribute_not_exists(LockID)",
        });
        if self.call("PutItem", &put).await?.is_some() {
            return Ok(());
        }
        let locked =
            |owner| StoreError::Locked { key: key.to_owned(), holder: Box::new(Holder::endless(owner)) };
        let (left, holder) = self.entry(key).await?.unwrap_or_else(|| (String::new(), LockOwner::unknown()));
        if holder.id == owner.id {
            return Ok(());
        }
        let leftover = former.is_some_and(|former| former.id == holder.id) || holder.is_dead_here();
        if !leftover {
            return Err(locked(holder));
        }
        put["ConditionExpression"] = json!("Info = :left");
        put["ExpressionAttributeValues"] = json!({":left": {"S": left}});
        match self.call("PutItem", &put).await? {
            Some(_) => Ok(()),
            None => Err(locked(holder)),
        }
    }

    /// Takes the entry with this id away; another one stays.
    pub(crate) async fn free(&self, key: &str, id: &str) -> Result<(), StoreError> {
        let Some((info, _)) = self.entry(key).await?.filter(|(_, owner)| owner.id == id) else {
            return Ok(());
        };
        let body = json!({
            "TableName": self.name,
            "Key": {"LockID": {"S": self.lock_id(key)}},
            "ConditionExpression": "Info = :ours",
            "ExpressionAttributeValues": {":ours": {"S": info}},
        });
        self.call("DeleteItem", &body).await.map(|_| ())
    }
}
