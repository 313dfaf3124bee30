//! How Flux proves to the git server who it is, and how it knows the server.

use strata_secret::SecretString;

use super::FLUX_SYSTEM;
use crate::BootstrapSecret;

/// The credentials of a repository. It has no `Debug`.
#[derive(Clone)]
pub enum GitAuth {
    /// Anybody can read it.
    None,
    Ssh {
        /// The private key.
        identity: SecretString,
        /// Only for people: Flux does not need it.
        identity_pub: Option<String>,
        /// The keys of the git server, as `ssh-keyscan` prints them.
        known_hosts: Option<String>,
    },
    /// A token or password, over HTTPS.
    Token {
        username: String,
        password: SecretString,
        /// The CA of the git server (PEM), if it is not a public one.
        ca: Option<String>,
    },
}

/// Why Flux could not use these credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthProblem {
    #[error(
        "the host keys of `{host}` are not given: Flux does not connect to a git server it cannot recognise"
    )]
    NoKnownHosts { host: String },
    #[error("the host keys do not name `{host}`")]
    OtherHost { host: String },
    #[error("`{url}` needs an SSH key")]
    NeedsKey { url: String },
    #[error("`{url}` is not reached over SSH: an SSH key is of no use there")]
    KeyWithoutSsh { url: String },
    #[error("a token would be sent in the clear to `{url}`")]
    TokenInTheClear { url: String },
    #[error("the SSH key is not a private key in PEM or OpenSSH form")]
    NotAKey,
}

impl AuthProblem {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoKnownHosts { host } | Self::OtherHost { host } => {
                let (name, port) =
                    host.strip_prefix('[').and_then(|host| host.split_once("]:")).unwrap_or((host, "22"));
                let port = if port == "22" { String::new() } else { format!(" -p {port}") };
                Some(format!(
                    "put what `ssh-keyscan{port} {name}` prints into `knownHosts`, and compare the fingerprints with those that the server's owner publishes"
                ))
            }
            Self::NeedsKey { .. } => Some(
                "make one with `ssh-keygen -t ed25519`, and let the repository know its public half"
                    .to_owned(),
            ),
            Self::TokenInTheClear { .. } => Some("use `https://`".to_owned()),
            Self::KeyWithoutSsh { .. } | Self::NotAKey => None,
        }
    }
}

impl GitAuth {
    pub(crate) fn needs_secret(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// What would keep Flux from using these for a URL.
    pub fn problems(&self, url: &str) -> Vec<AuthProblem> {
        let url = url.to_owned();
        let over_ssh = url.starts_with("ssh://");
        match self {
            Self::None if over_ssh => vec![AuthProblem::NeedsKey { url }],
            Self::Token { .. } if over_ssh => vec![AuthProblem::NeedsKey { url }],
            Self::Token { .. } if url.starts_with("http://") => vec![AuthProblem::TokenInTheClear { url }],
            Self::None | Self::Token { .. } => Vec::new(),
            Self::Ssh { .. } if !over_ssh => vec![AuthProblem::KeyWithoutSsh { url }],
            Self::Ssh { identity, known_hosts, .. } => {
                let mut problems = Vec::new();
                if !identity.expose().contains("PRIVATE KEY-----") {
                    problems.push(AuthProblem::NotAKey);
                }
                let host = ssh_host(&url);
                match known_hosts.as_deref().map(str::trim).filter(|hosts| !hosts.is_empty()) {
                    None => problems.push(AuthProblem::NoKnownHosts { host }),
                    Some(hosts) if !names(hosts, &host) => problems.push(AuthProblem::OtherHost { host }),
                    Some(_) => {}
                }
                problems
            }
        }
    }

    /// The Secret for a GitRepository.
    pub fn secret(&self) -> Option<BootstrapSecret> {
        let secret = BootstrapSecret::new(FLUX_SYSTEM, FLUX_SYSTEM);
        Some(match self {
            Self::None => return None,
            Self::Ssh { identity, identity_pub, known_hosts } => {
                let mut secret = secret.with("identity", with_final_break(identity));
                for (key, value) in [("identity.pub", identity_pub), ("known_hosts", known_hosts)] {
                    if let Some(value) = value {
                        secret = secret.with_public(key, value);
                    }
                }
                secret
            }
            Self::Token { username, password, ca } => {
                let mut secret = secret.with_public("username", username).with("password", password.clone());
                if let Some(ca) = ca {
                    secret = secret.with_public("ca.crt", ca);
                }
                secret
            }
        })
    }
}

/// A private key without its last line break is not read by SSH.
fn with_final_break(key: &SecretString) -> SecretString {
    if key.expose().ends_with('\n') { key.clone() } else { SecretString::new(format!("{}\n", key.expose())) }
}

/// As it stands in known_hosts: `host`, or `[host]:port`.
fn ssh_host(url: &str) -> String {
    let parsed = url::Url::parse(url).ok();
    let host = parsed.as_ref().and_then(|url| url.host_str()).unwrap_or_default();
    match parsed.as_ref().and_then(url::Url::port).filter(|port| *port != 22) {
        Some(port) => format!("[{host}]:{port}"),
        None => host.to_owned(),
    }
}

/// Whether host keys name a host. Names can be hashed or patterns: then nothing can be said, and it is taken for named.
fn names(known_hosts: &str, host: &str) -> bool {
    let lines = known_hosts.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut fields =
        lines.map(|line| line.split_whitespace().find(|field| !field.starts_with('@')).unwrap_or_default());
    fields.any(|names| {
        names.split(',').any(|name| name == host || name.starts_with("|1|") || name.contains(['*', '?']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(known_hosts: Option<&str>) -> GitAuth {
        GitAuth::Ssh {
            identity: SecretString::from(
                "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n-----END OPENSSH PRIVATE KEY-----",
            ),
            identity_pub: None,
            known_hosts: known_hosts.map(str::to_owned),
        }
    }

    #[test]
    fn missing_host_keys_are_told_with_the_command_that_gets_them() {
        let problem = ssh(None).problems("ssh://git@git.example:2222/me/infra").remove(0);
        assert!(
            problem.to_string().starts_with("the host keys of `[git.example]:2222` are not given"),
            "{problem}"
        );
        assert!(problem.hint().unwrap().contains("`ssh-keyscan -p 2222 git.example`"));
        let other = ssh(Some("github.com ssh-ed25519 AAAA")).problems("ssh://git@git.example/me/infra");
        assert_eq!(other, [AuthProblem::OtherHost { host: "git.example".to_owned() }]);
    }

    #[test]
    fn good_credentials_have_no_problems() {
        for hosts in [
            "# x\ngit.example,192.0.2.1 ssh-ed25519 AAAA",
            "|1|a|b ssh-rsa AAAA",
            "*.example ssh-rsa A",
            "@cert-authority git.example ssh-rsa A",
        ] {
            assert_eq!(ssh(Some(hosts)).problems("ssh://git@git.example/me/infra"), [], "{hosts}");
        }
        let token = GitAuth::Token { username: "git".to_owned(), password: "t".into(), ca: None };
        assert_eq!(token.problems("https://git.example/a"), []);
        assert_eq!(token.problems("http://git.example/a").len(), 1);
        assert_eq!(GitAuth::None.problems("ssh://git@git.example/a").len(), 1);
    }

    #[test]
    fn the_secret_has_the_entries_that_flux_reads() {
        let secret = ssh(Some("a b c")).secret().unwrap();
        assert_eq!(secret.data.keys().map(String::as_str).collect::<Vec<_>>(), ["identity", "known_hosts"]);
        assert!(secret.data["identity"].expose().ends_with(b"-----\n"));
        let token =
            GitAuth::Token { username: "git".to_owned(), password: "t".into(), ca: Some("pem".to_owned()) };
        assert_eq!(
            token.secret().unwrap().data.keys().map(String::as_str).collect::<Vec<_>>(),
            ["ca.crt", "password", "username"]
        );
        assert!(GitAuth::None.secret().is_none());
        let redactor = strata_secret::Redactor::new();
        let named = GitAuth::Token { username: "robot".to_owned(), password: "a-token".into(), ca: None };
        named.secret().unwrap().tell(&redactor);
        assert_eq!(redactor.redact("robot has a-token"), "robot has <secret>");
    }
}
