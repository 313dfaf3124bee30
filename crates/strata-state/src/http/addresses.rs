//! Where on a server a state is, and by which methods it is locked.

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use super::HttpStoreOptions;
use crate::StoreError;

/// What stays as it is in a segment of a path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const STATE: &str = "{state}";

#[derive(Clone)]
pub(super) struct StateAddresses {
    /// `https://host:port`.
    pub(super) origin: String,
    /// The path below which `strata serve` may be; none if the address is of another kind.
    pub(super) strata_base: Option<String>,
    state: Template,
    lock: Template,
    unlock: Template,
    pub(super) lock_method: Method,
    pub(super) unlock_method: Method,
    pub(super) update_method: Method,
}

/// A path and a query, with or without a place for the name of the state.
#[derive(Clone)]
struct Template {
    path: String,
    query: String,
}

impl Template {
    fn of(url: &Url) -> Self {
        // A parsed URL has the braces encoded.
        let plain = |text: &str| text.replace("%7Bstate%7D", STATE);
        Self { path: plain(url.path()), query: plain(url.query().unwrap_or_default()) }
    }

    fn names_the_state(&self) -> bool {
        self.path.contains(STATE) || self.query.contains(STATE)
    }

    fn then(&self, more: &str) -> Self {
        Self { path: format!("{}{more}", self.path.trim_end_matches('/')), query: self.query.clone() }
    }

    fn fill(&self, key: &str) -> (String, String) {
        if self.names_the_state() {
            let name = utf8_percent_encode(&key.replace('/', "__"), SEGMENT).to_string();
            return (self.path.replace(STATE, &name), self.query.replace(STATE, &name));
        }
        (format!("{}/{}", self.path.trim_end_matches('/'), segments(key)), self.query.clone())
    }
}

/// The name of a state as part of a path.
pub(super) fn segments(key: &str) -> String {
    let encoded: Vec<String> =
        key.split('/').map(|part| utf8_percent_encode(part, SEGMENT).to_string()).collect();
    encoded.join("/")
}

fn wrong(url: &str, reason: &str) -> StoreError {
    let hint = "`state.url` is `https://host:port`, or an address with `{state}` in it";
    StoreError::remote(format!("the state's address `{url}` cannot be used"), reason)
        .with_hint(Some(hint.to_owned()))
}

impl StateAddresses {
    pub(super) fn of(options: &HttpStoreOptions) -> Result<Self, StoreError> {
        let parse = |text: &String| Url::parse(text).map_err(|error| wrong(text, &error.to_string()));
        let url = parse(&options.url)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(wrong(&options.url, "it is not `http://` or `https://`"));
        }
        let origin = url.origin().ascii_serialization();
        let within = |other: &Option<String>| -> Result<Option<Template>, StoreError> {
            let Some(text) = other else { return Ok(None) };
            let other = parse(text)?;
            if other.origin().ascii_serialization() != origin {
                return Err(wrong(text, "it is on another server than `state.url`"));
            }
            Ok(Some(Template::of(&other)))
        };
        let method = |name: &Option<String>, otherwise: &str| {
            let name = name.as_deref().unwrap_or(otherwise);
            Method::from_bytes(name.as_bytes()).map_err(|_| wrong(name, "it is not a method"))
        };
        let state = Template::of(&url);
        // GitLab's states are locked at an address of their own, by methods that every proxy knows.
        let gitlab = state.path.contains("/api/v4/projects/") && state.path.contains("/terraform/state/");
        let beside = |more: &str| if gitlab { state.then(more) } else { state.clone() };
        let lock = within(&options.lock_url)?.unwrap_or_else(|| beside("/lock"));
        let unlock = within(&options.unlock_url)?.unwrap_or_else(|| lock.clone());
        let plain = !state.names_the_state() && options.lock_url.is_none();
        let base = state.path.trim_end_matches('/');
        let base = base.strip_suffix("/states").or_else(|| base.strip_suffix("/tfstate")).unwrap_or(base);
        Ok(Self {
            strata_base: plain.then(|| base.to_owned()),
            lock_method: method(&options.lock_method, if gitlab { "POST" } else { "LOCK" })?,
            unlock_method: method(&options.unlock_method, if gitlab { "DELETE" } else { "UNLOCK" })?,
            update_method: method(&options.update_method, "POST")?,
            origin,
            state,
            lock,
            unlock,
        })
    }

    pub(super) fn state(&self, key: &str) -> (String, String) {
        self.state.fill(key)
    }

    pub(super) fn lock(&self, key: &str) -> (String, String) {
        self.lock.fill(key)
    }

    pub(super) fn unlock(&self, key: &str) -> (String, String) {
        self.unlock.fill(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> StateAddresses {
        StateAddresses::of(&HttpStoreOptions::new(url)).unwrap()
    }

    #[test]
    fn gitlab_is_known_by_its_address() {
        let place = place("https://gitlab.example/api/v4/projects/42/terraform/state/{state}");
        assert_eq!(place.origin, "https://gitlab.example");
        assert_eq!(place.strata_base, None);
        let path = "/api/v4/projects/42/terraform/state/dev__onprem__web";
        assert_eq!(place.state("dev/onprem/web").0, path);
        assert_eq!(place.lock("dev/onprem/web").0, format!("{path}/lock"));
        assert_eq!((place.lock_method, place.unlock_method), (Method::POST, Method::DELETE));
    }

    #[test]
    fn an_address_without_a_place_for_the_name_may_be_ours() {
        for (url, base) in [("https://a:8420", ""), ("https://a:8420/", ""), ("https://a/x/states/", "/x")] {
            assert_eq!(place(url).strata_base.as_deref(), Some(base), "{url}");
        }
        assert_eq!(place("https://a/x").state("dev/a b").0, "/x/dev/a%20b");
        assert_eq!(place("https://a/s?name={state}").state("dev/web"), ("/s".into(), "name=dev__web".into()));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in ["", "a", "ftp://a/b", "https://"] {
            assert!(StateAddresses::of(&HttpStoreOptions::new(url)).is_err(), "{url}");
        }
        let elsewhere = HttpStoreOptions {
            lock_url: Some("https://b/{state}/lock".into()),
            ..HttpStoreOptions::new("https://a/{state}")
        };
        assert!(StateAddresses::of(&elsewhere).is_err());
    }
}
