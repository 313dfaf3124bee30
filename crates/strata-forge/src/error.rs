//! Why a forge did not do what was asked.

use std::sync::Arc;

use strata_net::{Delivery, NetError, TlsSetupError};

use crate::Kind;

/// What is wrong, by what helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The settings of the connection.
    Settings,
    /// No answer.
    Unreachable,
    /// The token is not known.
    Unauthorized,
    /// The token may not do this.
    Forbidden,
    /// There is no such thing, or the token may not see it.
    NotFound,
    /// Too many requests, for longer than is worth waiting.
    Limited,
    /// The forge said no for another reason.
    Rejected,
    /// The forge is broken, or something else answered.
    Unexpected,
}

/// Why a forge did not do something.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{forge} does not {what}: {reason}")]
pub struct ForgeError {
    /// What is wrong, by what helps.
    pub kind: ErrorKind,
    /// Whose answer it is.
    pub forge: Kind,
    /// `answer GET /repos/ops/infra/pulls/7`.
    pub what: String,
    /// In the words of the forge, where it said any.
    pub reason: String,
    /// Whether it may have been done all the same.
    pub may_have_arrived: bool,
    #[source]
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl ForgeError {
    pub(crate) fn new(
        kind: ErrorKind,
        forge: Kind,
        what: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        let (what, reason) = (what.into(), reason.into());
        Self { kind, forge, what, reason, may_have_arrived: false, source: None }
    }

    pub(crate) fn net(forge: Kind, what: String, error: NetError) -> Self {
        let may_have_arrived = error.delivery() == Delivery::Unknown;
        let own = Self::new(ErrorKind::Unreachable, forge, what, error.to_string());
        Self { may_have_arrived, source: Some(Arc::new(error)), ..own }
    }

    pub(crate) fn setup(forge: Kind, error: TlsSetupError) -> Self {
        let own = Self::new(ErrorKind::Settings, forge, "get a connection", error.to_string());
        Self { source: Some(Arc::new(error)), ..own }
    }

    pub(crate) fn unreadable(forge: Kind, what: String, error: serde_json::Error) -> Self {
        let own = Self::new(
            ErrorKind::Unexpected,
            forge,
            what,
            format!("its answer is not what its API says: {error}"),
        );
        Self { source: Some(Arc::new(error)), ..own }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let variable = self.forge.variables()[0];
        Some(match self.kind {
            ErrorKind::Settings => {
                "`review.forge` of `strata.yaml` on the base branch says where the forge is".to_owned()
            }
            ErrorKind::Unreachable => {
                "look at the address and at `review.forge.ca`; the same command can be run again".to_owned()
            }
            ErrorKind::Unauthorized => format!("`{variable}` must be a token that is valid now"),
            ErrorKind::Forbidden => format!("`{variable}` needs {}", self.forge.permissions()),
            ErrorKind::NotFound => {
                format!(
                    "look at the repository and the number; a forge also says this where `{variable}` may not look"
                )
            }
            ErrorKind::Limited => "run it again later".to_owned(),
            ErrorKind::Rejected | ErrorKind::Unexpected => return None,
        })
    }
}
