//! Errors of the two APIs as the engine knows them.

use strata_engine::{ErrorClass, ProviderError};
use strata_kubernetes::{Guarded, KubeError, Trouble};
use strata_talos_client::{TalosError, TalosReason};

pub(crate) fn internal(message: impl Into<String>) -> ProviderError {
    ProviderError::new(ErrorClass::Internal, message)
}

/// A guard of ours: nothing was done.
pub(crate) fn guard(message: impl Into<String>, hint: impl Into<String>) -> ProviderError {
    let mut error = ProviderError::new(ErrorClass::Guard, message).hint(hint);
    error.nothing_done = true;
    error
}

pub(crate) fn talos(error: TalosError) -> ProviderError {
    let class = match &error.reason {
        TalosReason::Withheld(reason) => {
            let mut own = ProviderError::new(ErrorClass::Stopped, reason);
            own.nothing_done = true;
            return own;
        }
        _ if error.is_unreachable() || error.is_transient() => ErrorClass::Unreachable,
        TalosReason::Refused(_) => ErrorClass::Refused,
        TalosReason::AlreadyExists(_) | TalosReason::FailedPrecondition(_) => ErrorClass::Conflict,
        TalosReason::InvalidArgument(_) => ErrorClass::BadInput,
        TalosReason::NotFound(_) => ErrorClass::Missing,
        TalosReason::InstallerFailed { .. } => ErrorClass::TaskFailed,
        _ => ErrorClass::Internal,
    };
    let mut own = ProviderError::new(class, error.to_string());
    own.hint = error.hint().map(str::to_owned);
    own.nothing_done = error.is_certainly_undone();
    own.because(error)
}

pub(crate) fn kube(error: KubeError) -> ProviderError {
    let class = match error.trouble() {
        Trouble::Withheld => return ProviderError::new(ErrorClass::Stopped, error.reason()),
        Trouble::Unreachable | Trouble::AnswerLost | Trouble::Throttled | Trouble::Unavailable => {
            ErrorClass::Unreachable
        }
        Trouble::Untrusted | Trouble::Refused => ErrorClass::Refused,
        Trouble::Conflict => ErrorClass::Conflict,
        Trouble::NotFound => ErrorClass::Missing,
        Trouble::Invalid => ErrorClass::BadInput,
        Trouble::NotReady => ErrorClass::TaskFailed,
        Trouble::Unreadable => ErrorClass::Internal,
    };
    let mut own = ProviderError::new(class, error.to_string());
    own.hint = error.hint().map(str::to_owned);
    own.because(error)
}

pub(crate) fn guarded(error: Guarded<ProviderError>) -> ProviderError {
    match error {
        Guarded::Stopped(error) => error,
        Guarded::Kube(error) => kube(error),
    }
}
