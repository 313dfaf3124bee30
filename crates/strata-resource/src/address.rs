//! Where a resource stands: `[<environment>:]<stack>/<kind>/<name>`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Kind;

/// The name of one managed object, unique within a repository.
///
/// The environment is named only where it is not the stack's own (`metadata.environment`), so that most addresses read as
/// `homelab/vm/homelab-cp-1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Address {
    environment: Option<String>,
    stack: String,
    kind: Kind,
    name: String,
}

/// Why a text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an address: {reason}")]
pub struct AddressError {
    text: String,
    reason: String,
}

impl Address {
    /// Without an environment where the repository has none, or where it is the stack's own.
    pub fn new(environment: Option<&str>, stack: &str, kind: Kind, name: &str) -> Self {
        Self {
            environment: environment.map(str::to_owned),
            stack: stack.to_owned(),
            kind,
            name: name.to_owned(),
        }
    }

    /// None in the environment that is the stack's own: its addresses are the short ones.
    pub fn environment(&self) -> Option<&str> {
        self.environment.as_deref()
    }

    /// The stack that it is declared in.
    pub fn stack(&self) -> &str {
        &self.stack
    }

    /// What sort of object it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its name within the stack and the kind.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A neighbour: the same but for its name.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(environment) = &self.environment {
            write!(f, "{environment}:")?;
        }
        write!(f, "{}/{}/{}", self.stack, self.kind, self.name)
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |reason: &str| AddressError { text: text.to_owned(), reason: reason.to_owned() };
        let (environment, rest) = match text.split_once(':') {
            Some((environment, rest)) => (Some(environment), rest),
            None => (None, text),
        };
        if environment.is_some_and(str::is_empty) {
            return Err(refuse("the environment before `:` is empty"));
        }
        // The stack may be a path; kind and name are always the last two parts.
        let mut parts = rest.rsplitn(3, '/');
        let (Some(name), Some(kind), Some(stack)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(refuse("it has the form `[environment:]stack/kind/name`"));
        };
        if name.is_empty() || stack.is_empty() {
            return Err(refuse("stack and name must not be empty"));
        }
        let kind = Kind::from_str(kind).map_err(|reason| refuse(&reason))?;
        Ok(Self::new(environment, stack, kind, name))
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KindTable, register_kinds};

    static BOX: KindTable = KindTable::new("box", "", &[]);
    static SHELF: KindTable = KindTable::new("shelf", "", &[]);

    #[test]
    fn an_address_reads_back_as_written() {
        register_kinds(&[&BOX, &SHELF]);
        for text in ["homelab/box/homelab-cp-1", "staging:web/shelf/monitor", "onprem/web/box/debian12@pve1"]
        {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_wrong_address_says_why() {
        register_kinds(&[&BOX, &SHELF]);
        let error = "homelab/boxx/x".parse::<Address>().unwrap_err().to_string();
        let said = "`homelab/boxx/x` is not an address: `boxx` is no kind; there are ";
        assert!(error.starts_with(said), "{error}");
        assert!(error.contains("box, ") && error.contains("shelf"), "{error}");
        assert!("a/box".parse::<Address>().is_err());
        assert!(":a/box/b".parse::<Address>().is_err());
    }
}
