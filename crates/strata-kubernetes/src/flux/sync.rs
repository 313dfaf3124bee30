//! The two objects that make Flux follow a repository: a GitRepository and a Kustomization.

use serde_json::{Value, json};

use super::{FLUX_SYSTEM, GIT_REPOSITORY, GitAuth, KUSTOMIZATION, SOPS_AGE};
use crate::{Object, ObjectRef, content_digest};

/// Which commit to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitRef {
    Branch(String),
    Tag(String),
    Semver(String),
    Commit(String),
}

/// What Flux follows, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FluxSync {
    /// `ssh://…` or `https://…`; see [`git_url`].
    pub url: String,
    pub reference: GitRef,
    /// The folder with the cluster's overlay.
    pub path: String,
    /// How often to look at the repository, and how often to set things right.
    pub source_interval: String,
    pub interval: String,
    /// Whether there is an auth secret.
    pub authenticated: bool,
    /// Whether files are decrypted with the age key.
    pub decryption: bool,
}

impl FluxSync {
    pub fn new(url: impl Into<String>, reference: GitRef, path: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            reference,
            path: path.into(),
            source_interval: "1m0s".to_owned(),
            interval: "10m0s".to_owned(),
            authenticated: true,
            decryption: true,
        }
    }

    pub fn with_auth(mut self, auth: &GitAuth) -> Self {
        self.authenticated = auth.needs_secret();
        self
    }

    pub fn source_reference() -> ObjectRef {
        ObjectRef::namespaced(GIT_REPOSITORY.0, GIT_REPOSITORY.1, FLUX_SYSTEM, FLUX_SYSTEM)
    }

    pub fn kustomization_reference() -> ObjectRef {
        ObjectRef::namespaced(KUSTOMIZATION.0, KUSTOMIZATION.1, FLUX_SYSTEM, FLUX_SYSTEM)
    }

    pub fn git_repository(&self) -> Object {
        let mut spec = json!({
            "interval": self.source_interval,
            "url": self.url,
            "ref": self.reference.value(),
        });
        if self.authenticated {
            spec["secretRef"] = json!({"name": FLUX_SYSTEM});
        }
        object(GIT_REPOSITORY, spec)
    }

    pub fn kustomization(&self) -> Object {
        let mut spec = json!({
            "interval": self.interval,
            "path": self.flux_path(),
            "prune": true,
            "sourceRef": {"kind": GIT_REPOSITORY.1, "name": FLUX_SYSTEM},
        });
        if self.decryption {
            spec["decryption"] = json!({"provider": "sops", "secretRef": {"name": SOPS_AGE}});
        }
        object(KUSTOMIZATION, spec)
    }

    /// Both, in the order to apply them.
    pub fn objects(&self) -> [Object; 2] {
        [self.git_repository(), self.kustomization()]
    }

    pub fn digest(&self) -> String {
        content_digest(&self.objects())
    }

    /// The path as Flux writes it: from the root of the repository, with `./`.
    pub(super) fn flux_path(&self) -> String {
        format!("./{}", self.path.trim_start_matches("./").trim_matches('/'))
    }
}

impl GitRef {
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Branch(branch) => json!({"branch": branch}),
            Self::Tag(tag) => json!({"tag": tag}),
            Self::Semver(range) => json!({"semver": range}),
            Self::Commit(commit) => json!({"commit": commit}),
        }
    }
}

fn object((api_version, kind): (&str, &str), spec: Value) -> Object {
    Object::built(json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": FLUX_SYSTEM,
            "namespace": FLUX_SYSTEM,
            "labels": {"app.kubernetes.io/managed-by": "strata"},
        },
        "spec": spec,
    }))
}

/// Why a text is not a repository that Flux can follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a repository that Flux can follow: it takes `ssh://user@host/path`, `https://host/path` or `user@host:path`"
)]
pub struct GitUrlError(String);

/// The URL in the form that Flux takes; `git@host:path` becomes `ssh://git@host/path`.
pub fn git_url(text: &str) -> Result<String, GitUrlError> {
    // A URL with a password in it would be shown by this message: only the part before is.
    let wrong = || GitUrlError(text.split('@').next_back().unwrap_or(text).to_owned());
    if let Some((scheme, rest)) = text.split_once("://") {
        let good = matches!(scheme, "ssh" | "https" | "http")
            && url::Url::parse(text).is_ok_and(|url| url.has_host());
        return if good && !rest.is_empty() { Ok(text.to_owned()) } else { Err(wrong()) };
    }
    match text.split_once(':') {
        Some((host, path)) if host.contains('@') && !host.contains('/') && !path.is_empty() => {
            Ok(format!("ssh://{host}/{}", path.trim_start_matches('/')))
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_what_flux_reads() {
        let sync = FluxSync::new(
            "ssh://git@git.example/me/infra",
            GitRef::Branch("main".to_owned()),
            "infrastructure/core/overlays/homelab/",
        );
        assert_eq!(
            sync.git_repository().at("/spec").unwrap(),
            &json!({"interval": "1m0s", "url": "ssh://git@git.example/me/infra", "ref": {"branch": "main"}, "secretRef": {"name": "flux-system"}})
        );
        assert_eq!(
            sync.kustomization().at("/spec").unwrap(),
            &json!({"interval": "10m0s", "path": "./infrastructure/core/overlays/homelab", "prune": true,
                "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
                "decryption": {"provider": "sops", "secretRef": {"name": "sops-age"}}})
        );
    }

    #[test]
    fn knows_the_ways_to_write_a_repository() {
        assert_eq!(git_url("git@git.example:me/infra.git").unwrap(), "ssh://git@git.example/me/infra.git");
        for good in ["ssh://git@git.example:2222/me/infra", "https://git.example/me/infra"] {
            assert_eq!(git_url(good).unwrap(), good);
        }
        for bad in ["", "infra", "file:///a", "/srv/git/infra", "https://", "git.example:me", "oci://x/y"] {
            assert!(git_url(bad).is_err(), "{bad}");
        }
    }
}
