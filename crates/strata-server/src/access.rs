//! Who may do what: users, their rules, and how they prove who they are.

mod file;
mod keeper;
mod password;
mod throttle;
mod token;

use serde::{Deserialize, Serialize};

use strata_storage::StateName;

pub use file::{AccessError, AccessFile};
pub use keeper::{AccessKeeper, Denied};
pub use password::{BadPassword, hash_password};
pub use token::{new_token, token_digest};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Read,
    Write,
    Lock,
    /// Take away a lock of another user.
    Unlock,
    /// All of the others, and to bypass the rules of a write.
    Admin,
}

impl Action {
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Lock, Self::Unlock, Self::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Lock => "lock",
            Self::Unlock => "unlock",
            Self::Admin => "admin",
        }
    }
}

impl std::str::FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::as_str).join(", ");
        Self::ALL
            .into_iter()
            .find(|action| action.as_str() == text)
            .ok_or_else(|| format!("`{text}` is no action; there are {known}"))
    }
}

/// What is allowed on the states within a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Whole segments; empty for every state.
    #[serde(default)]
    pub prefix: String,
    pub actions: Vec<Action>,
}

/// As the command line has it: `prod=read,write`; without a prefix it is about every state.
impl std::str::FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (prefix, actions) = text.split_once('=').unwrap_or(("", text));
        let actions = actions.split(',').map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { prefix: prefix.to_owned(), actions })
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let actions: Vec<&str> = self.actions.iter().map(|action| action.as_str()).collect();
        write!(out, "{}={}", self.prefix, actions.join(","))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// For people; a token is taken back by it.
    pub name: String,
    /// SHA-256 of the token, as hex. The token itself is nowhere.
    pub sha256: String,
    /// Seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub name: String,
    /// Argon2, as a PHC string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    #[serde(default)]
    pub tokens: Vec<Token>,
    #[serde(default)]
    pub rules: Vec<Rule>,
}

impl User {
    pub fn may(&self, action: Action, name: &StateName) -> bool {
        self.rules.iter().any(|rule| {
            name.is_within(&rule.prefix)
                && rule.actions.iter().any(|allowed| *allowed == action || *allowed == Action::Admin)
        })
    }

    /// Everything on every state: who uses a server without users.
    pub(crate) fn anybody() -> Self {
        let rules = vec![Rule { prefix: String::new(), actions: vec![Action::Admin] }];
        Self { name: "anybody".to_owned(), password: None, tokens: Vec::new(), rules }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_add_up() {
        let rule =
            |prefix: &str, actions: &[Action]| Rule { prefix: prefix.into(), actions: actions.to_vec() };
        let user = User {
            name: "ci".into(),
            password: None,
            tokens: Vec::new(),
            rules: vec![
                rule("", &[Action::Read]),
                rule("prod", &[Action::Write]),
                rule("lab/", &[Action::Admin]),
            ],
        };
        let may = |action, name| user.may(action, &StateName::parse(name).unwrap());
        assert!(may(Action::Read, "x"));
        assert!(!may(Action::Write, "x"));
        assert!(may(Action::Write, "prod/web"));
        assert!(!may(Action::Write, "production"));
        assert!(!may(Action::Lock, "prod/web"));
        assert!(may(Action::Unlock, "lab/a") && may(Action::Admin, "lab/a"));
    }
}
