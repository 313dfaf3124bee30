//! Lists, page by page.

use http::Method;
use serde_json::Value;
use strata_net::Request;

use super::KubeClient;
use super::discovery::encoded;
use crate::{KubeError, Object, Trouble};

/// How many objects the server puts on a page.
const PAGE: usize = 500;
/// More pages than any cluster of ours has: a server that never ends is stopped.
const MOST_PAGES: usize = 10_000;

/// Which objects of a kind.
#[derive(Debug, Clone, Default)]
pub struct Selector {
    /// In this namespace; in all if there is none.
    pub namespace: Option<String>,
    /// `key=value,…`
    pub labels: Option<String>,
    /// `spec.nodeName=…`
    pub fields: Option<String>,
}

impl Selector {
    pub fn all() -> Self {
        Self::default()
    }

    pub fn namespace(namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..Self::default() }
    }

    pub fn labels(mut self, labels: &str) -> Self {
        self.labels = Some(labels.to_owned());
        self
    }

    pub fn fields(mut self, fields: &str) -> Self {
        self.fields = Some(fields.to_owned());
        self
    }

    pub(crate) fn query(&self) -> String {
        let pairs = [("labelSelector", &self.labels), ("fieldSelector", &self.fields)];
        let pairs = pairs
            .iter()
            .filter_map(|(key, value)| value.as_ref().map(|value| format!("{key}={}", encoded(value))));
        pairs.collect::<Vec<_>>().join("&")
    }
}

impl KubeClient {
    /// All objects of a kind that a selector chooses; none if the server has no such kind (yet).
    pub async fn list(
        &self,
        api_version: &str,
        kind: &str,
        selector: &Selector,
    ) -> Result<Vec<Object>, KubeError> {
        let path = match self.collection_path(api_version, kind, selector.namespace.as_deref()).await {
            Err(error) if error.trouble() == Trouble::NotFound => return Ok(Vec::new()),
            path => path?,
        };
        let action = format!("list objects of the kind `{kind}`");
        let mut objects = Vec::new();
        let mut next: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let mut query = format!("limit={PAGE}");
            let selected = selector.query();
            if !selected.is_empty() {
                query = format!("{query}&{selected}");
            }
            if let Some(next) = &next {
                query = format!("{query}&continue={}", encoded(next));
            }
            let request = Request { query, ..Request::new(Method::GET, path.clone()) };
            let page = self.read(&action, request).await?;
            for mut item in items(&page) {
                complete(&mut item, api_version, kind);
                objects.push(self.object(&action, item)?);
            }
            next = page.pointer("/metadata/continue").and_then(Value::as_str).map(str::to_owned);
            if next.as_ref().is_none_or(String::is_empty) {
                return Ok(objects);
            }
        }
        Err(KubeError::new(Trouble::Unreadable, action, self.endpoint(), "the list does not end"))
    }
}

fn items(page: &Value) -> Vec<Value> {
    page.get("items").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// In a list the server leaves out what is the same for all.
pub(crate) fn complete(item: &mut Value, api_version: &str, kind: &str) {
    if let Some(map) = item.as_object_mut() {
        map.entry("apiVersion").or_insert_with(|| Value::from(api_version));
        map.entry("kind").or_insert_with(|| Value::from(kind));
    }
}
