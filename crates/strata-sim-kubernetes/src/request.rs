//! A request taken apart: what it asks for, of which type, about which object.

use bytes::Bytes;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::failure::{Outcome, bad_request, unknown_path, unsupported};
use super::protobuf;
use super::resource::Resource;

/// Who asks.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    pub name: String,
    pub groups: Vec<String>,
}

/// A complete request.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: Query,
    pub content_type: String,
    /// What the client would like to be answered.
    pub accept: String,
    pub user_agent: String,
    pub body: Bytes,
    /// None if the client proved nothing.
    pub user: Option<User>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    pub fn parse(text: &str) -> Self {
        let decode =
            |part: &str| percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(k, v)| (decode(k), decode(v)))
                .collect(),
        )
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str()).filter(|v| !v.is_empty())
    }

    pub fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|v| matches!(v, "true" | "1" | "True"))
    }
}

/// The place that a path names.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourcePath {
    pub group: String,
    pub version: String,
    pub namespace: Option<String>,
    pub plural: String,
    pub name: Option<String>,
    pub sub: Option<String>,
}

impl ResourcePath {
    /// None for paths that name no type.
    pub fn parse(path: &str) -> Option<Self> {
        let decoded: Vec<String> = path
            .trim_matches('/')
            .split('/')
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            _ => (None, rest),
        };
        let owned = |part: &&str| (*part).to_owned();
        let (plural, name, sub) = match rest {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(name), None),
            [plural, name, sub] => (plural, Some(name), Some(sub)),
            _ => return None,
        };
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.map(str::to_owned),
            plural: owned(plural),
            name: name.map(owned),
            sub: sub.map(owned),
        })
    }

    /// The path with names left out, for counting.
    pub fn template(&self) -> String {
        let root = if self.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.group) };
        let mut text = format!("{root}/{}", self.version);
        if self.namespace.is_some() {
            text.push_str("/namespaces/{namespace}");
        }
        text.push_str(&format!("/{}", self.plural));
        if self.name.is_some() {
            text.push_str("/{name}");
        }
        if let Some(sub) = &self.sub {
            text.push_str(&format!("/{sub}"));
        }
        text
    }

    /// The namespace, where the type has namespaces; refused where path and type do not fit.
    pub fn namespace_for(&self, resource: &Resource) -> Outcome<&str> {
        match (&self.namespace, resource.namespaced) {
            (Some(_), false) => Err(unknown_path()),
            (Some(namespace), true) => Ok(namespace),
            (None, false) => Ok(""),
            (None, true) if self.name.is_some() => Err(unknown_path()),
            (None, true) => Ok(""),
        }
    }
}

impl Request {
    pub fn essence(&self) -> &str {
        self.content_type.split(';').next().unwrap_or_default().trim()
    }

    /// The client prints what it gets and would rather have it in rows.
    pub fn wants_table(&self) -> bool {
        self.accept.split(',').next().is_some_and(|first| {
            first.split(';').any(|part| part.trim() == "as=Table") && first.contains("application/json")
        })
    }

    /// The body as one object, from JSON, YAML or, for the most usual kinds, protobuf.
    pub fn object(&self, accepted: &str) -> Outcome<Value> {
        match self.essence() {
            "application/vnd.kubernetes.protobuf" => {
                protobuf::read(&self.body).ok_or_else(|| unsupported(self.essence(), accepted))
            }
            "application/cbor" => Err(unsupported(self.essence(), accepted)),
            _ => read(&self.body),
        }
    }

    /// What is to stand beside the cells of a table.
    pub fn include(&self) -> Option<&str> {
        self.query.get("includeObject")
    }

    /// Who owns what this request writes.
    pub fn manager(&self) -> &str {
        let agent = self.user_agent.split(['/', ' ']).next().filter(|a| !a.is_empty()).unwrap_or("unknown");
        self.query.get("fieldManager").unwrap_or(agent)
    }

    pub fn is_dry(&self, options: Option<&Value>) -> Outcome<bool> {
        let in_body = options.and_then(|o| o["dryRun"].as_array()).is_some_and(|list| !list.is_empty());
        match self.query.get("dryRun") {
            None => Ok(in_body),
            Some("All") => Ok(true),
            Some(other) => Err(bad_request(format!(
                "invalid: dryRun: Unsupported value: {other:?}: supported values: \"All\""
            ))),
        }
    }
}

/// JSON if it is JSON, YAML otherwise.
pub fn read(body: &[u8]) -> Outcome<Value> {
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    let text = std::str::from_utf8(body).map_err(|error| bad_request(error.to_string()))?;
    let mut documents = strata_sim_core::yaml::documents(text)
        .map_err(|error| bad_request(format!("couldn't get version/kind; json parse error: {error}")))?;
    match documents.len() {
        1 => Ok(documents.remove(0)),
        0 => Err(bad_request("request body is empty")),
        _ => Err(bad_request("the body holds more than one document")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_types_and_objects() {
        let place = ResourcePath::parse("/apis/apps/v1/namespaces/flux-system/deployments/a/scale").unwrap();
        assert_eq!((place.group.as_str(), place.namespace.as_deref()), ("apps", Some("flux-system")));
        assert_eq!((place.name.as_deref(), place.sub.as_deref()), (Some("a"), Some("scale")));
        assert_eq!(place.template(), "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale");
        let namespace = ResourcePath::parse("/api/v1/namespaces/flux-system").unwrap();
        assert_eq!((namespace.plural.as_str(), namespace.namespace), ("namespaces", None));
        let status = ResourcePath::parse("/api/v1/namespaces/x/status").unwrap();
        assert_eq!((status.plural.as_str(), status.sub.as_deref()), ("namespaces", Some("status")));
        assert_eq!(ResourcePath::parse("/api/v1"), None);
        assert_eq!(ResourcePath::parse("/version"), None);
    }
}
