//! Which forge, where, and as whom.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use strata_net::{Clock, DialMap, HttpClient, HttpOptions, Random, SystemClock, TlsTrust, TraceSink};
use strata_secret::SecretString;

use crate::api::Api;
use crate::gitea::Gitea;
use crate::github::GitHub;
use crate::gitlab::GitLab;
use crate::{ErrorKind, Forge, ForgeError, Token};

/// Forgejo's API is Gitea's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// GitHub, and GitHub Enterprise Server.
    GitHub,
    /// GitLab, wherever it runs.
    GitLab,
    /// Gitea, Forgejo and Codeberg.
    Gitea,
}

impl Kind {
    /// The variables that may hold the token, in this order.
    pub fn variables(self) -> &'static [&'static str] {
        match self {
            Self::GitHub => &["GITHUB_TOKEN"],
            Self::GitLab => &["GITLAB_TOKEN", "CI_JOB_TOKEN"],
            Self::Gitea => &["GITEA_TOKEN", "FORGEJO_TOKEN"],
        }
    }

    pub(crate) fn permissions(self) -> &'static str {
        match self {
            Self::GitHub => {
                "`pull-requests: write`, `statuses: write`, `contents: read`; for drift `issues: write`"
            }
            Self::GitLab => "the scope `api` and the role Developer; the token of a job may not comment",
            Self::Gitea => "the scopes `write:issue`, `write:repository`, `read:user`",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GitHub => "GitHub",
            Self::GitLab => "GitLab",
            Self::Gitea => "Gitea",
        })
    }
}

/// How one repository at a forge is reached.
#[derive(Clone)]
pub struct ForgeOptions {
    /// Which forge it is.
    pub kind: Kind,
    /// The address that people use: `https://github.com`, `https://git.example.org/code`.
    pub url: String,
    /// `owner/name`; with GitLab perhaps several groups.
    pub repository: String,
    /// What requests are signed in with.
    pub token: Token,
    /// Whose certificates are trusted.
    pub tls: TlsTrust,
    /// Where hosts are really reached.
    pub dial: DialMap,
    /// Who hears of each request.
    pub trace: Option<Arc<dyn TraceSink>>,
    /// What waits are measured by.
    pub clock: Arc<dyn Clock>,
    /// For jitter between attempts.
    pub random: Random,
    /// How long a forge that asks for patience is given some.
    pub patience: Duration,
}

impl ForgeOptions {
    /// With the trust of the system, and patience of five minutes.
    pub fn new(
        kind: Kind,
        url: impl Into<String>,
        repository: impl Into<String>,
        token: SecretString,
    ) -> Self {
        Self {
            kind,
            url: url.into(),
            repository: repository.into(),
            token: Token { text: token, is_of_job: false },
            tls: TlsTrust::System,
            dial: DialMap::new(),
            trace: None,
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(|| 0),
            patience: Duration::from_secs(300),
        }
    }
}

/// Nothing is sent yet.
pub fn connect(options: ForgeOptions) -> Result<Box<dyn Forge>, ForgeError> {
    let kind = options.kind;
    let parts: Vec<&str> = options.repository.split('/').collect();
    let wrong = match kind {
        Kind::GitLab => parts.len() < 2,
        Kind::GitHub | Kind::Gitea => parts.len() != 2,
    };
    if wrong || parts.iter().any(|part| part.is_empty() || *part == "." || *part == "..") {
        let reason = format!("`{}` is not of the form `owner/name`", options.repository);
        return Err(ForgeError::new(ErrorKind::Settings, kind, "have such a repository", reason));
    }
    let url = options.url.trim_end_matches('/');
    let endpoint = match url {
        "https://github.com" if kind == Kind::GitHub => "https://api.github.com",
        own => own,
    };
    let http = HttpOptions {
        tls: options.tls.clone(),
        dial: options.dial.clone(),
        trace: options.trace.clone(),
        clock: Arc::clone(&options.clock),
        user_agent: concat!("strata/", env!("CARGO_PKG_VERSION")).to_owned(),
        request_timeout: Duration::from_secs(30),
        ..HttpOptions::new(endpoint)
    };
    let client = HttpClient::new(http).map_err(|error| ForgeError::setup(kind, error))?;
    let is_own = endpoint == url;
    let api = Api::new(client, &options)?;
    Ok(match kind {
        Kind::GitHub => Box::new(GitHub::open(api, &options.repository, is_own)),
        Kind::GitLab => Box::new(GitLab::new(api, &options.repository)),
        Kind::Gitea => Box::new(Gitea::open(api, &options.repository)),
    })
}
