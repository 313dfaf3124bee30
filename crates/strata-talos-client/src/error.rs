//! Why a call to a node failed, and whether the node may have acted on it all the same.

use std::time::Duration;

use crate::pin::SpkiPin;
use crate::status::{Code, Status};

/// A call to a node that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call} on node `{node}`: {reason}")]
pub struct TalosError {
    /// `host:port` of the node.
    pub node: String,
    /// The call, by its name in the Talos API.
    pub call: &'static str,
    pub reason: TalosReason,
}

/// Why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TalosReason {
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error(transparent)]
    Tls(TlsProblem),
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The connection broke after the request had left.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The role of our certificate does not allow it, or there is none.
    #[error("the node does not allow it: {0}")]
    Refused(String),
    #[error("the node has it already: {0}")]
    AlreadyExists(String),
    /// This version of Talos, this kind of machine or maintenance mode does not know the call.
    #[error("the node does not know this call: {0}")]
    Unimplemented(String),
    /// Not now: the node is not ready for it, or busy with something that excludes it.
    #[error("the node is not ready for it: {0}")]
    FailedPrecondition(String),
    #[error("not found: {0}")]
    NotFound(String),
    #[error("the node refuses what it was given: {0}")]
    InvalidArgument(String),
    /// A service of the node is down, or starting.
    #[error("the node is not available: {0}")]
    Unavailable(String),
    /// The installer ran on the node and failed.
    #[error("the installer ended with exit code {exit_code}: {output}")]
    InstallerFailed { exit_code: i32, output: String },
    #[error("the node failed: {message} (gRPC status {code})")]
    Failed { code: u16, message: String },
    /// The answer is not what the protocol says.
    #[error("the answer cannot be understood: {0}")]
    Malformed(String),
    /// It was not sent: the run may not write any more.
    #[error("{0}")]
    Withheld(String),
    /// A file or stream on our side failed.
    #[error("cannot read or write here: {0}")]
    Local(String),
}

/// Why the two sides did not trust each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsProblem {
    #[error("its certificate was not issued by this cluster")]
    WrongAuthority,
    #[error("its certificate has expired")]
    Expired,
    #[error("its certificate is not valid yet")]
    NotYetValid,
    #[error("its certificate is not for this address, but for {0}")]
    WrongName(String),
    #[error("the key of its certificate is not the pinned one: it is {presented}, pinned is {pinned}")]
    PinMismatch { presented: SpkiPin, pinned: SpkiPin },
    /// What a configured node says to a client without a certificate.
    #[error("it asks for a client certificate: it is not in maintenance mode")]
    CertificateRequired,
    #[error("it does not know the authority that issued the client certificate")]
    ClientUnknown,
    #[error("it says that the client certificate is not valid at this time")]
    ClientExpired,
    #[error("TLS failed: {0}")]
    Other(String),
}

impl TlsProblem {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::WrongAuthority => {
                "the node was configured with other secrets, or is in maintenance mode; compare the secrets file of the cluster, or \
                 reset the node if it may be taken over"
            }
            Self::Expired => {
                "if the clock of this machine is right, the node has not renewed its certificate: check the node's clock, then reboot it"
            }
            Self::NotYetValid => "the clock of this machine is behind the node's: set both by NTP",
            Self::WrongName(_) => "add the address to `certSANs` of the machine configuration",
            Self::PinMismatch { .. } => {
                "compare with what the node's console shows; a node makes a new key whenever it boots into maintenance mode"
            }
            Self::CertificateRequired => "the node has a configuration already",
            Self::ClientUnknown => {
                "the node was configured with other secrets; compare the secrets file of the cluster"
            }
            Self::ClientExpired => "the node's clock and the one of this machine differ: set both by NTP",
            Self::Other(_) => return None,
        })
    }
}

impl TalosReason {
    /// Whether the request certainly had no effect: it never reached the node, or the node refused it before it did anything.
    ///
    /// A timeout, a broken connection or a failure in the middle say nothing about that.
    pub fn is_certainly_undone(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Tls(_) | Self::Withheld(_) => true,
            Self::Refused(_) | Self::AlreadyExists(_) | Self::Unimplemented(_) => true,
            Self::FailedPrecondition(_) | Self::NotFound(_) | Self::InvalidArgument(_) => true,
            // A service between us and the one that acts says this too, perhaps after it passed the request on.
            Self::Unavailable(_) => false,
            Self::Timeout(_) | Self::Broken(_) | Self::InstallerFailed { .. } => false,
            Self::Failed { .. } | Self::Malformed(_) | Self::Local(_) => false,
        }
    }

    /// The same with other words: what the node said, changed.
    pub(crate) fn map(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Refused(text) => Self::Refused(change(text)),
            Self::AlreadyExists(text) => Self::AlreadyExists(change(text)),
            Self::Unimplemented(text) => Self::Unimplemented(change(text)),
            Self::FailedPrecondition(text) => Self::FailedPrecondition(change(text)),
            Self::NotFound(text) => Self::NotFound(change(text)),
            Self::InvalidArgument(text) => Self::InvalidArgument(change(text)),
            Self::Unavailable(text) => Self::Unavailable(change(text)),
            Self::Failed { code, message } => Self::Failed { code, message: change(message) },
            Self::InstallerFailed { exit_code, output } => {
                Self::InstallerFailed { exit_code, output: change(output) }
            }
            ours => ours,
        }
    }

    /// Whether the same call could succeed a moment later without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::Timeout(_)
                | Self::Broken(_)
                | Self::Unavailable(_)
                | Self::FailedPrecondition(_)
        )
    }
}

impl TalosError {
    /// See [`TalosReason::is_certainly_undone`].
    pub fn is_certainly_undone(&self) -> bool {
        self.reason.is_certainly_undone()
    }

    /// See [`TalosReason::is_transient`].
    pub fn is_transient(&self) -> bool {
        self.reason.is_transient()
    }

    /// Whether nobody answered at the address: the machine may be off, rebooting or not there yet.
    pub fn is_unreachable(&self) -> bool {
        matches!(self.reason, TalosReason::Unreachable(_))
    }

    pub(crate) fn is_unimplemented(&self) -> bool {
        matches!(self.reason, TalosReason::Unimplemented(_))
    }

    pub fn is_already_exists(&self) -> bool {
        matches!(self.reason, TalosReason::AlreadyExists(_))
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self.reason, TalosReason::NotFound(_))
    }

    /// Whether a call in maintenance mode met a node that is configured.
    pub fn is_certificate_required(&self) -> bool {
        matches!(self.reason, TalosReason::Tls(TlsProblem::CertificateRequired))
    }

    /// Whether the node showed a certificate that this cluster did not issue: one of another cluster, or a self-signed one.
    pub fn is_wrong_authority(&self) -> bool {
        matches!(self.reason, TalosReason::Tls(TlsProblem::WrongAuthority))
    }

    /// What a person can do about it, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match &self.reason {
            TalosReason::Unreachable(_) => Some(
                "check that the machine is up, and that port 50000 of its address can be reached from here",
            ),
            TalosReason::Tls(problem) => problem.hint(),
            TalosReason::Refused(_) => Some("the call needs a certificate with the role `os:admin`"),
            _ => None,
        }
    }
}

impl From<Status> for TalosReason {
    fn from(Status { code, message }: Status) -> Self {
        match code {
            Code::PERMISSION_DENIED | Code::UNAUTHENTICATED => Self::Refused(message),
            Code::ALREADY_EXISTS => Self::AlreadyExists(message),
            Code::UNIMPLEMENTED => Self::Unimplemented(message),
            Code::FAILED_PRECONDITION => Self::FailedPrecondition(message),
            Code::NOT_FOUND => Self::NotFound(message),
            Code::INVALID_ARGUMENT => Self::InvalidArgument(message),
            Code::UNAVAILABLE => Self::Unavailable(message),
            Code(code) => Self::Failed { code, message },
        }
    }
}
