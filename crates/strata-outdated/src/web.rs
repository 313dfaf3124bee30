//! Pages of the web, through the mirrors of the repository.

use async_trait::async_trait;
use http::Method;
use http::header::{ACCEPT, AUTHORIZATION, HeaderValue, LOCATION};
use std::time::Duration;
use strata_net::{DialMap, HttpClient, HttpOptions, NetError, Request, TlsTrust};
use url::{Host, Url};

use crate::Tokens;
use crate::fetch::{Answer, Fetch, FetchError};

const MOST_REDIRECTS: usize = 5;
/// The largest index of images is a few megabytes.
const LARGEST: usize = 16 << 20;

/// Reads pages; sends nothing but what it asks for, and to a host its own token.
pub struct Web<'w> {
    /// Whose certificates are trusted.
    pub tls: TlsTrust,
    /// Where hosts are really reached.
    pub dial: DialMap,
    /// For one page, from the first byte to the last.
    pub timeout: Duration,
    /// Where a URL really leads: the mirrors of the settings. Asked for each redirect, too.
    pub mirror: &'w (dyn Fn(&str) -> String + Send + Sync),
    /// What hosts that ask who wants to know are given.
    pub tokens: Tokens,
}

#[async_trait]
impl Fetch for Web<'_> {
    async fn get(&self, url: &str) -> Result<Answer, FetchError> {
        let first = self.place(url)?;
        let mut here = first.clone();
        for _ in 0..=MOST_REDIRECTS {
            let response = self.ask(&here).await?;
            match response.status {
                200 => {
                    let text = String::from_utf8(response.body.to_vec()).map_err(|_| FetchError::NoText)?;
                    let redirected = (here.host_str() != first.host_str()).then(|| host(&here));
                    return Ok(Answer { text, redirected });
                }
                301 | 302 | 303 | 307 | 308 => {
                    let location = response.headers.get(LOCATION).and_then(|location| location.to_str().ok());
                    let next = location.and_then(|location| here.join(location).ok());
                    let next = self.place(next.ok_or(FetchError::NoTarget)?.as_str())?;
                    // What began encrypted stays so: whoever is in between could say anything.
                    if here.scheme() == "https" && next.scheme() != "https" {
                        return Err(FetchError::Unencrypted(host(&next)));
                    }
                    here = next;
                }
                status => return Err(FetchError::Status(status)),
            }
        }
        Err(FetchError::Redirects(MOST_REDIRECTS))
    }
}

impl Web<'_> {
    fn place(&self, url: &str) -> Result<Url, FetchError> {
        let mirrored = (self.mirror)(url);
        let parsed = Url::parse(&mirrored).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        parsed.ok_or(FetchError::NoUrl(mirrored))
    }

    /// The token of this very host; a redirect to another one has that one's, or none.
    fn authorization(&self, url: &Url) -> Option<HeaderValue> {
        let token = self.tokens.get(url.host_str()?).filter(|_| is_private(url))?;
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    async fn ask(&self, url: &Url) -> Result<strata_net::Response, FetchError> {
        let http = HttpClient::new(HttpOptions {
            tls: self.tls.clone(),
            dial: self.dial.clone(),
            largest_answer: LARGEST,
            request_timeout: self.timeout,
            ..HttpOptions::new(url.origin().ascii_serialization())
        })
        .map_err(|error| NetError::BadRequest(error.to_string()))?;
        let query = url.query().unwrap_or_default().to_owned();
        let mut headers =
            vec![(ACCEPT, HeaderValue::from_static("application/json, text/plain, text/html, */*"))];
        headers.extend(self.authorization(url).map(|value| (AUTHORIZATION, value)));
        let request = Request { query, headers, ..Request::new(Method::GET, url.path()) };
        Ok(http.send(&request).await?)
    }
}

/// Whether a token may be sent there: nobody in between can read it.
fn is_private(url: &Url) -> bool {
    let is_loopback = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        _ => false,
    };
    url.scheme() == "https" || is_loopback
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_where_nobody_else_reads_it() {
        let private = |url: &str| is_private(&Url::parse(url).unwrap());
        assert!(
            private("https://registry.example.org/")
                && private("http://127.0.0.1:8080/")
                && private("http://[::1]/")
        );
        assert!(!private("http://registry.example.org/") && !private("http://192.0.2.1/"));
    }
}
