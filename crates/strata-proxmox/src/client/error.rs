//! Why a call failed, and the error that the engine gets to see.

use strata_engine::{ErrorClass, ProviderError};
use strata_net::{Delivery, NetError, TlsSetupError};

use crate::api::{ApiError, ApiErrorKind};

/// Why a client cannot be made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    #[error("the API token does not have the form `user@realm!name=uuid`")]
    Token,
    #[error("the user `{0}` does not have the form `user@realm`")]
    User(String),
    #[error("there is neither an API token nor a user and password")]
    NoCredentials,
}

/// Why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Api(Box<ApiError>),
    #[error("the answer to {method} {path} cannot be read: {reason}")]
    Unreadable { method: String, path: String, reason: String },
    #[error("{0}")]
    Login(String),
}

/// What a failed call says about what the server did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It did nothing, and may do it a moment later.
    NotDelivered,
    /// It may have done it.
    AnswerLost,
    /// It did not do it and would not if asked again.
    Refused,
    /// A server error that says nothing about what was done.
    Unexplained,
}

impl CallError {
    pub(super) fn unreadable(method: &str, path: &str, error: &serde_json::Error) -> Self {
        // The text of a serde error can quote a value; its place cannot.
        let reason = format!("{:?} at line {} column {}", error.classify(), error.line(), error.column());
        Self::Unreadable { method: method.to_owned(), path: path.to_owned(), reason }
    }

    pub(crate) fn trouble(&self) -> Trouble {
        match self {
            Self::Net(error) => match error.delivery() {
                Delivery::Unknown => Trouble::AnswerLost,
                Delivery::NotSent if error.is_transient() => Trouble::NotDelivered,
                Delivery::NotSent => Trouble::Refused,
            },
            Self::Api(error) => match error.kind {
                ApiErrorKind::LockTimeout | ApiErrorKind::NodeUnreachable => Trouble::NotDelivered,
                ApiErrorKind::NoWorker if !error.leaves_a_lock() => Trouble::NotDelivered,
                ApiErrorKind::AnswerLost => Trouble::AnswerLost,
                ApiErrorKind::Other if error.status >= 500 && error.status != 501 => Trouble::Unexplained,
                _ => Trouble::Refused,
            },
            Self::Unreadable { .. } => Trouble::AnswerLost,
            Self::Login(_) => Trouble::Refused,
        }
    }

    pub(crate) fn kind(&self) -> Option<&ApiErrorKind> {
        match self {
            Self::Api(error) => Some(&error.kind),
            _ => None,
        }
    }

    pub(crate) fn says_no_storage(&self, storage: &str) -> bool {
        matches!(self, Self::Api(error) if error.says_no_storage(storage))
    }

    pub(crate) fn says_no_task(&self) -> bool {
        matches!(self, Self::Api(error) if error.says_no_task())
    }

    pub(crate) fn leaves_a_lock(&self) -> bool {
        matches!(self, Self::Api(error) if error.leaves_a_lock())
    }

    pub(crate) fn is_unreachable_node(&self) -> bool {
        self.kind() == Some(&ApiErrorKind::NodeUnreachable)
    }

    pub(crate) fn says_no_node(&self, node: &str) -> bool {
        matches!(self, Self::Api(error) if error.says_no_node(node))
    }

    /// As the engine's error. `doing` completes "cannot …".
    pub(crate) fn explain(&self, doing: &str) -> ProviderError {
        let mut error = match self {
            Self::Net(net) => {
                let class = match net {
                    NetError::PinMismatch { .. } | NetError::Untrusted { .. } | NetError::Tls { .. } => {
                        ErrorClass::Refused
                    }
                    NetError::BadRequest(_) => ErrorClass::Internal,
                    _ => ErrorClass::Unreachable,
                };
                let error = ProviderError::new(class, format!("cannot {doing}: {net}"));
                net.hint().into_iter().fold(error, ProviderError::hint)
            }
            Self::Api(api) => explain_api(api, doing),
            Self::Unreadable { .. } => {
                ProviderError::new(ErrorClass::Internal, format!("cannot {doing}: {self}"))
            }
            Self::Login(_) => ProviderError::new(ErrorClass::Refused, format!("cannot {doing}: {self}")),
        };
        error.nothing_done = self.did_nothing();
        error.because(self.clone())
    }

    /// The server did nothing about this call, for certain.
    pub(crate) fn did_nothing(&self) -> bool {
        match self {
            Self::Net(net) => net.delivery() == Delivery::NotSent,
            Self::Api(api) => api.did_nothing(),
            Self::Login(_) => true,
            Self::Unreadable { .. } => false,
        }
    }
}

fn explain_api(api: &ApiError, doing: &str) -> ProviderError {
    let message = format!("cannot {doing}: {}", api.text());
    let new = |class: ErrorClass| ProviderError::new(class, message.clone());
    match &api.kind {
        ApiErrorKind::NotAuthenticated => new(ErrorClass::Refused)
            .hint("check the token's user, name and secret, and that neither it nor its user has expired"),
        ApiErrorKind::Denied { path, privileges } if !privileges.is_empty() => {
            ProviderError::new(
                ErrorClass::Refused,
                format!("cannot {doing}: {} is missing on `{path}`", any_of(privileges)),
            )
            .hint("`strata doctor --role` prints a role with everything that is needed")
        }
        ApiErrorKind::Denied { .. } => new(ErrorClass::Refused)
            .hint("`strata doctor --role` prints a role with everything that is needed"),
        ApiErrorKind::RootOnly { .. } => new(ErrorClass::Refused).hint(
            "an API token is never root, not even root@pam's: give the target `login: {user: root@pam, password: …}` for such keys",
        ),
        ApiErrorKind::BadParameter | ApiErrorKind::NotHotplugged | ApiErrorKind::Other => {
            new(ErrorClass::BadInput)
        }
        ApiErrorKind::Missing => new(ErrorClass::Missing),
        ApiErrorKind::NoSuchNode => new(ErrorClass::Missing)
            .hint("there is no node of this name, or the node that answers cannot resolve it: see its `/etc/hosts`"),
        ApiErrorKind::NoWorker => new(ErrorClass::Conflict)
            .hint("the server could not start a task, which happens under load; apply again, perhaps with a smaller `--parallelism`"),
        ApiErrorKind::AlreadyExists | ApiErrorKind::PoolAsAsked => new(ErrorClass::Conflict),
        ApiErrorKind::Changed => new(ErrorClass::Conflict)
            .hint("somebody else changed it in the meantime; nothing was overwritten; plan again"),
        ApiErrorKind::Locked { .. } => {
            new(ErrorClass::Conflict).hint("wait until the operation that holds the lock has ended, then apply again")
        }
        ApiErrorKind::LockTimeout => new(ErrorClass::Conflict)
            .hint("another task works on the same object; apply again when it has ended"),
        ApiErrorKind::NodeUnreachable => new(ErrorClass::Unreachable)
            .hint("the node that answers cannot reach the other one: see that it is up and part of its cluster, then try again"),
        ApiErrorKind::AnswerLost => {
            new(ErrorClass::Unreachable).hint("the answer was lost on its way; try again, what was begun is found")
        }
    }
}

fn any_of(privileges: &[String]) -> String {
    let named: Vec<String> = privileges.iter().map(|privilege| format!("`{privilege}`")).collect();
    match named.len() {
        1 => format!("the privilege {}", named[0]),
        _ => format!("each of the privileges {}", named.join(", ")),
    }
}
