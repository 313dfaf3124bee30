//! A file from the web that is used only if it has the pinned checksum, through mirrors and redirects.

use http::header::LOCATION;
use http::{HeaderMap, Method};
use sha2::{Digest, Sha256};
use strata_net::{DialMap, HttpClient, HttpOptions, Request, TlsTrust};
use url::Url;

/// GitHub needs one, mirrors perhaps one more.
const MOST_REDIRECTS: usize = 5;
const LARGEST: usize = 64 << 20;

/// A file to fetch.
pub struct Download<'d> {
    pub url: String,
    /// 64 hex digits, with `sha256:` before them or without.
    pub sha256: String,
    pub tls: TlsTrust,
    pub dial: DialMap,
    /// Where a URL really leads: the mirrors of the settings. Asked for each redirect, too.
    pub mirror: &'d (dyn Fn(&str) -> String + Send + Sync),
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error("`{0}` is not a SHA-256 checksum: it has 64 hex digits")]
    NotAChecksum(String),
    #[error("`{url}` cannot be fetched: {source}")]
    Fetch { url: String, source: Cause },
    #[error("`{url}` has the checksum sha256:{found}, and sha256:{wanted} is pinned")]
    Checksum { url: String, found: String, wanted: String },
}

impl DownloadError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Checksum { .. } => Some(
                "if the version was changed, take the new checksum from its release page; if not, somebody has changed the file",
            ),
            Self::Fetch { .. } => Some(
                "check that this machine reaches the place, name a mirror in `mirrors`, or give the file itself",
            ),
            Self::NotAChecksum(_) => None,
        }
    }
}

impl Download<'_> {
    pub async fn fetch(&self) -> Result<Vec<u8>, DownloadError> {
        let wanted = checksum(&self.sha256)?;
        let content = self.follow().await?;
        check(&self.url, &content, &wanted)?;
        Ok(content)
    }

    async fn follow(&self) -> Result<Vec<u8>, DownloadError> {
        let mut url = (self.mirror)(&self.url);
        let failed = |source: Cause| DownloadError::Fetch { url: self.url.clone(), source };
        for _ in 0..=MOST_REDIRECTS {
            let parsed = Url::parse(&url).map_err(|_| failed(format!("`{url}` is not a URL").into()))?;
            let response = self.get(&parsed).await.map_err(failed)?;
            match response.status {
                200 => return Ok(response.body.to_vec()),
                301 | 302 | 303 | 307 | 308 => {
                    let next = target(&parsed, &response.headers).map_err(failed)?;
                    url = (self.mirror)(next.as_str());
                }
                status => {
                    let said = format!("HTTP {status} {} from `{}`", response.reason, host(&parsed));
                    return Err(failed(said.into()));
                }
            }
        }
        Err(failed(format!("more than {MOST_REDIRECTS} redirects").into()))
    }

    async fn get(&self, url: &Url) -> Result<strata_net::Response, Cause> {
        let origin = url.origin().ascii_serialization();
        let http = HttpClient::new(HttpOptions {
            tls: self.tls.clone(),
            dial: self.dial.clone(),
            largest_answer: LARGEST,
            ..HttpOptions::new(origin)
        })?;
        let query = url.query().unwrap_or_default().to_owned();
        let request = Request { query, ..Request::new(Method::GET, url.path()) };
        http.send(&request).await.map_err(Cause::from)
    }
}

/// Compares a file that is already here with its checksum.
pub(crate) fn check(name: &str, content: &[u8], wanted: &str) -> Result<(), DownloadError> {
    let wanted = checksum(wanted)?;
    let found = hex::encode(Sha256::digest(content));
    if found != wanted {
        return Err(DownloadError::Checksum { url: name.to_owned(), found, wanted });
    }
    Ok(())
}

fn checksum(text: &str) -> Result<String, DownloadError> {
    let digits = text.trim().strip_prefix("sha256:").unwrap_or(text.trim()).to_ascii_lowercase();
    if digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(digits);
    }
    Err(DownloadError::NotAChecksum(text.to_owned()))
}

fn target(from: &Url, headers: &HeaderMap) -> Result<Url, Cause> {
    let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let location = location.ok_or_else(|| format!("`{}` redirects to nowhere", host(from)))?;
    let next = from.join(location).map_err(|_| format!("`{}` redirects to what is no URL", host(from)))?;
    if from.scheme() == "https" && next.scheme() != "https" {
        return Err(format!("`{}` redirects to `{}`, which is not encrypted", host(from), host(&next)).into());
    }
    Ok(next)
}

/// Without path and query: those of release pages hold passes that are good for a while.
fn host(url: &Url) -> String {
    url.origin().ascii_serialization()
}
