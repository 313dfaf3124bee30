//! Watches: what happens to objects from a version on, as the server tells it.

use http::Method;
use serde_json::Value;
use strata_net::{Request, Streamed};

use crate::client::Selector;
use crate::{KubeClient, KubeError, Object, Trouble};

/// A line with more than this is no event.
const LONGEST_LINE: usize = 64 << 20;

#[derive(Debug, Clone)]
pub enum WatchEvent {
    Added(Object),
    Modified(Object),
    Deleted(Object),
    /// Nothing happened up to this version.
    Bookmark(String),
}

/// A watch that is being read. It ends when the server ends it: list again, then watch from that list's version.
pub struct Watch<'c> {
    client: &'c KubeClient,
    action: String,
    body: Streamed,
    rest: Vec<u8>,
}

impl KubeClient {
    /// Watches objects of a kind; the server ends it after `seconds`.
    pub async fn watch(
        &self,
        api_version: &str,
        kind: &str,
        selector: &Selector,
        resource_version: Option<&str>,
        seconds: u32,
    ) -> Result<Watch<'_>, KubeError> {
        let action = format!("watch objects of the kind `{kind}`");
        let path = self.collection_path(api_version, kind, selector.namespace.as_deref()).await?;
        let mut query = format!("watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}");
        if let Some(version) = resource_version {
            query = format!("{query}&resourceVersion={version}");
        }
        let selected = selector.query();
        if !selected.is_empty() {
            query = format!("{query}&{selected}");
        }
        let request = Request { query, ..Request::new(Method::GET, path) };
        let body = self.stream(&action, &request).await?;
        Ok(Watch { client: self, action, body, rest: Vec::new() })
    }
}

impl Watch<'_> {
    /// The next event, or nothing at the end. A version that is too old to start from is `NotFound`.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, KubeError> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return self.event(&line).map(Some);
            }
            if self.rest.len() > LONGEST_LINE {
                return Err(self.unreadable());
            }
            let net = |error| KubeError::net(&self.action, self.client.endpoint(), &error);
            match self.body.chunk().await.map_err(net)? {
                Some(chunk) => self.rest.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }

    fn event(&self, line: &[u8]) -> Result<WatchEvent, KubeError> {
        let mut event: Value = serde_json::from_slice(line).map_err(|_| self.unreadable())?;
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let object = event.get_mut("object").map(Value::take).unwrap_or_default();
        let object = match kind.as_str() {
            "BOOKMARK" => {
                let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                return Ok(WatchEvent::Bookmark(version.unwrap_or_default().to_owned()));
            }
            "ERROR" => {
                let code = object.get("code").and_then(Value::as_u64).unwrap_or(500);
                let body = object.to_string();
                let code = u16::try_from(code).unwrap_or(500);
                let body = self.client.redactor().redact(&body);
                return Err(KubeError::status(&self.action, self.client.endpoint(), code, "", &body));
            }
            _ => self.client.object(&self.action, object)?,
        };
        match kind.as_str() {
            "ADDED" => Ok(WatchEvent::Added(object)),
            "MODIFIED" => Ok(WatchEvent::Modified(object)),
            "DELETED" => Ok(WatchEvent::Deleted(object)),
            _ => Err(self.unreadable()),
        }
    }

    fn unreadable(&self) -> KubeError {
        let reason = "the answer holds something that is no event";
        KubeError::new(Trouble::Unreadable, self.action.as_str(), self.client.endpoint(), reason)
    }
}
