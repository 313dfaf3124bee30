//! What is read from places that publish versions.

use async_trait::async_trait;
use strata_net::NetError;

/// Who reads pages: the web, or a test.
#[async_trait]
pub trait Fetch: Send + Sync {
    /// The page at an address.
    async fn get(&self, url: &str) -> Result<Answer, FetchError>;
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What it says.
    pub text: String,
    /// The host that gave it, where that is another one than was asked.
    pub redirected: Option<String>,
}

/// Why there is no page.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FetchError {
    /// No answer came.
    #[error("{0}")]
    Net(#[from] NetError),
    /// The answer is an error.
    #[error("it answers HTTP {0}")]
    Status(u16),
    /// A redirection leaves TLS.
    #[error("it redirects to `{0}`, which is not encrypted")]
    Unencrypted(String),
    /// A redirection names no address.
    #[error("it redirects to nowhere")]
    NoTarget,
    /// Redirections do not end.
    #[error("it redirects more than {0} times")]
    Redirects(usize),
    /// Something else than a web address.
    #[error("`{0}` is no address of the web")]
    NoUrl(String),
    /// Bytes that are not UTF-8.
    #[error("its answer is no text")]
    NoText,
    /// Text in another form than is published there.
    #[error("its answer is not {0}")]
    Nonsense(&'static str),
}

impl FetchError {
    /// The page is not there, and the source answered.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Status(404 | 410))
    }

    /// Whether other pages of the same place would fail in the same way.
    pub(crate) fn is_of_place(&self) -> bool {
        match self {
            Self::Net(NetError::TooLarge { .. }) => false,
            Self::Net(_) | Self::Status(401 | 403 | 429 | 500..) => true,
            _ => false,
        }
    }
}
