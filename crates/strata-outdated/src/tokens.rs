//! Tokens for places that ask for one: variables of the environment, under the names that OpenTofu reads them by.

use std::collections::BTreeMap;

use strata_secret::SecretString;

const PREFIX: &str = "TF_TOKEN_";

/// The tokens of hosts. Each goes to its own host alone.
#[derive(Default)]
pub struct Tokens(BTreeMap<String, SecretString>);

impl Tokens {
    /// Those that the variables of an environment hold.
    pub fn of(variables: &BTreeMap<String, String>) -> Self {
        let tokens =
            variables.iter().filter(|(_, text)| !text.trim().is_empty()).filter_map(|(name, text)| {
                let host = name.strip_prefix(PREFIX)?;
                Some((host.to_ascii_lowercase(), SecretString::new(text.trim())))
            });
        Self(tokens.collect())
    }

    pub(crate) fn get(&self, host: &str) -> Option<&SecretString> {
        let name = variable(host).to_ascii_lowercase();
        self.0.get(name.trim_start_matches(&PREFIX.to_ascii_lowercase()))
    }
}

/// The variable with the token of a host: a dot is written `_`, a hyphen `__`.
pub(crate) fn variable(host: &str) -> String {
    format!("{PREFIX}{}", host.replace('-', "__").replace('.', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_belongs_to_one_host() {
        let named = |name: &str| BTreeMap::from([(name.to_owned(), "secret".to_owned())]);
        let tokens = Tokens::of(&named("TF_TOKEN_my__registry_example_org"));
        let has = |host: &str| tokens.get(host).map(|token| token.expose().to_owned());
        assert_eq!(has("my-registry.example.org").as_deref(), Some("secret"));
        assert_eq!(has("my.registry.example.org"), None);
        assert_eq!(has("example.org"), None);
        assert!(
            Tokens::of(&BTreeMap::from([("TF_TOKEN_a_b".to_owned(), " ".to_owned())])).get("a.b").is_none()
        );
        assert!(Tokens::of(&named("TOKEN_a_b")).get("a.b").is_none());
    }
}
