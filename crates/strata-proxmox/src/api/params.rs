//! Parameters of a request, in the order they were put in. Secret ones cannot be printed.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Params(Vec<Param>);

#[derive(Clone, PartialEq, Eq)]
struct Param {
    key: String,
    value: String,
    secret: bool,
}

impl Params {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub(crate) fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.set(key, value);
        self
    }

    /// Sets a key; the last value wins, as a repeated key would become an array on the other side.
    pub(crate) fn set(&mut self, key: &str, value: impl ToString) {
        self.put(key, value.to_string(), false);
    }

    /// Adds one more value of a key: a repeated key is an array on the other side.
    pub(crate) fn push(&mut self, key: &str, value: impl ToString) {
        self.0.push(Param { key: key.to_owned(), value: value.to_string(), secret: false });
    }

    pub(crate) fn push_secret(&mut self, key: &str, value: String) {
        self.0.push(Param { key: key.to_owned(), value, secret: true });
    }

    pub(crate) fn set_secret(&mut self, key: &str, value: &str) {
        self.put(key, value.to_owned(), true);
    }

    fn put(&mut self, key: &str, value: String, secret: bool) {
        match self.0.iter_mut().find(|param| param.key == key) {
            Some(param) => (param.value, param.secret) = (value, secret),
            None => self.0.push(Param { key: key.to_owned(), value, secret }),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|param| param.key.as_str())
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|param| (param.key.as_str(), param.value.as_str()))
    }

    /// Those that may be seen.
    pub(crate) fn plain_pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let plain = self.0.iter().filter(|param| !param.secret);
        plain.map(|param| (param.key.as_str(), param.value.as_str()))
    }

    /// The values that must not show up in any message.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|param| param.secret).map(|param| param.value.as_str())
    }

    /// As a form body or a query. `;` is encoded too: Proxmox takes a bare one as a separator.
    pub(crate) fn encode(&self) -> String {
        self.encode_with(|param| &param.value)
    }

    /// The same with nothing in the place of secrets.
    pub(crate) fn encode_without_secrets(&self) -> String {
        self.encode_with(|param| if param.secret { "" } else { &param.value })
    }

    fn encode_with(&self, value: impl Fn(&Param) -> &str) -> String {
        let pairs = self.0.iter().map(|param| {
            let (key, value) = (param.key.as_str(), value(param));
            format!("{}={}", utf8_percent_encode(key, RESERVED), utf8_percent_encode(value, RESERVED))
        });
        pairs.collect::<Vec<_>>().join("&")
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |param: &'_ Param| if param.secret { "<secret>".to_owned() } else { param.value.clone() };
        f.debug_map().entries(self.0.iter().map(|param| (&param.key, shown(param)))).finish()
    }
}

/// One part of a path: `local:iso/x.iso` becomes `local%3Aiso%2Fx.iso`.
pub(crate) fn encode_path_part(part: &str) -> String {
    utf8_percent_encode(part, RESERVED).to_string()
}

/// As `encodeURIComponent` would: what Proxmox calls urlencoded.
pub(crate) fn url_encode(text: &str) -> String {
    encode_path_part(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_what_would_separate() {
        let params = Params::new().with("boot", "order=scsi0;net0").with("tags", "a b+c&d");
        assert_eq!(params.encode(), "boot=order%3Dscsi0%3Bnet0&tags=a%20b%2Bc%26d");
    }

    #[test]
    fn the_last_value_of_a_key_wins() {
        let params = Params::new().with("a", 1).with("b", 2).with("a", 3);
        assert_eq!(params.encode(), "a=3&b=2");
    }

    #[test]
    fn a_secret_is_sent_and_never_shown() {
        let mut params = Params::new();
        params.set_secret("cipassword", "hunter2");
        assert_eq!(params.encode(), "cipassword=hunter2");
        assert_eq!(format!("{params:?}"), r#"{"cipassword": "<secret>"}"#);
        assert_eq!(params.secrets().collect::<Vec<_>>(), ["hunter2"]);
    }
}
