//! Places that publish versions: each page is read once, and a place that fails is asked no further.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::OnceCell;
use url::Url;

use super::Unknown;
use crate::fetch::{Answer, Fetch, FetchError};

/// A place that did not answer.
#[derive(Debug, Clone)]
pub struct Unanswered {
    /// The page that was asked for.
    pub url: String,
    /// Why.
    pub error: FetchError,
}

type Page = Arc<OnceCell<Result<Answer, FetchError>>>;

pub(super) struct Sources<'f> {
    fetch: &'f dyn Fetch,
    pages: Mutex<HashMap<String, Page>>,
    /// By origin and sentence: a place that is down is named once.
    failed: Mutex<BTreeMap<(String, String), Unanswered>>,
    down: Mutex<HashMap<String, FetchError>>,
}

fn origin(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.origin().ascii_serialization())
}

impl<'f> Sources<'f> {
    pub(super) fn new(fetch: &'f dyn Fetch) -> Self {
        Self { fetch, pages: Mutex::default(), failed: Mutex::default(), down: Mutex::default() }
    }

    pub(super) fn unanswered(&self) -> Vec<Unanswered> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    async fn page(&self, url: &str) -> Result<Answer, FetchError> {
        let place = origin(url);
        let down = self.down.lock().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        if let Some(error) = down {
            return Err(error);
        }
        let page = {
            let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(pages.entry(url.to_owned()).or_default())
        };
        let answer = page.get_or_init(|| self.fetch.get(url)).await.clone();
        if let Err(error) = &answer
            && error.is_of_place()
        {
            self.down.lock().unwrap_or_else(PoisonError::into_inner).insert(place, error.clone());
        }
        answer
    }

    /// The failure of a source is told once, and what depends on it is unknown.
    fn fail(&self, url: &str, error: FetchError) -> Unknown {
        let told = Unanswered { url: url.to_owned(), error: error.clone() };
        let key = (origin(url), error.to_string());
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert(told);
        Unknown(format!("`{}`: {error}", origin(url)))
    }

    /// A page that has to be there.
    pub(super) async fn text(&self, url: &str) -> Result<Answer, Unknown> {
        self.page(url).await.map_err(|error| self.fail(url, error))
    }

    /// A page that may be missing.
    pub(super) async fn text_if_there(&self, url: &str) -> Result<Option<Answer>, Unknown> {
        match self.page(url).await {
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(self.fail(url, error)),
            Ok(answer) => Ok(Some(answer)),
        }
    }

    /// A page of JSON.
    pub(super) async fn json(&self, url: &str) -> Result<Value, Unknown> {
        let answer = self.text(url).await?;
        serde_json::from_str(&answer.text).map_err(|_| self.nonsense(url, "JSON"))
    }

    /// The source answers, and not with what it should.
    pub(super) fn nonsense(&self, url: &str, expected: &'static str) -> Unknown {
        self.fail(url, FetchError::Nonsense(expected))
    }
}
