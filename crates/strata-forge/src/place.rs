//! Where a pipeline runs, as its variables say.

use std::collections::BTreeMap;

use strata_secret::SecretString;

use crate::Kind;

/// What requests are signed in with.
#[derive(Clone)]
pub struct Token {
    /// The token itself.
    pub text: SecretString,
    /// GitLab gives each job one, which may do little.
    pub is_of_job: bool,
}

impl Token {
    /// The one that the variables hold.
    pub fn find(kind: Kind, variables: &BTreeMap<String, String>) -> Option<Self> {
        // Gitea's own pipelines call it as GitHub's do.
        let of_pipeline = ["GITHUB_TOKEN"].into_iter().filter(|_| kind == Kind::Gitea && is_gitea(variables));
        let (name, text) = kind.variables().iter().copied().chain(of_pipeline).find_map(|name| {
            let text = variables.get(name).filter(|text| !text.trim().is_empty())?;
            Some((name, text))
        })?;
        Some(Self { text: SecretString::new(text.clone()), is_of_job: name == "CI_JOB_TOKEN" })
    }
}

/// The forge that a pipeline runs for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Which forge it is.
    pub kind: Option<Kind>,
    /// The address that people use.
    pub url: Option<String>,
    /// `owner/name`.
    pub repository: Option<String>,
    /// The request that it runs for.
    pub request: Option<u64>,
}

impl Place {
    /// What the variables of a pipeline say; nothing outside of one.
    pub fn of(variables: &BTreeMap<String, String>) -> Self {
        let text = |name: &str| variables.get(name).filter(|text| !text.is_empty()).cloned();
        let number = |name: &str| text(name)?.parse().ok();
        if text("CI").as_deref() == Some("woodpecker") {
            let kind = match text("CI_FORGE_TYPE").as_deref() {
                Some("github") => Some(Kind::GitHub),
                Some("gitlab") => Some(Kind::GitLab),
                Some("gitea" | "forgejo") => Some(Kind::Gitea),
                _ => None,
            };
            let request = number("CI_COMMIT_PULL_REQUEST");
            return Self { kind, url: text("CI_FORGE_URL"), repository: text("CI_REPO"), request };
        }
        if text("GITLAB_CI").is_some() {
            let (url, repository) = (text("CI_SERVER_URL"), text("CI_PROJECT_PATH"));
            return Self {
                kind: Some(Kind::GitLab),
                url,
                repository,
                request: number("CI_MERGE_REQUEST_IID"),
            };
        }
        let kind = match (is_gitea(variables), text("GITHUB_ACTIONS")) {
            (true, _) => Kind::Gitea,
            (false, Some(_)) => Kind::GitHub,
            (false, None) => return Self::default(),
        };
        // `refs/pull/7/merge`, `refs/pull/7/head`.
        let of_ref = |name: String| name.strip_prefix("refs/pull/")?.split('/').next()?.parse().ok();
        let request = text("GITHUB_REF").and_then(of_ref);
        Self {
            kind: Some(kind),
            url: text("GITHUB_SERVER_URL"),
            repository: text("GITHUB_REPOSITORY"),
            request,
        }
    }
}

fn is_gitea(variables: &BTreeMap<String, String>) -> bool {
    ["GITEA_ACTIONS", "FORGEJO_ACTIONS"].iter().any(|name| variables.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn each_pipeline_is_known_by_its_variables() {
        let github = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_REPOSITORY", "ops/infra"),
            ("GITHUB_REF", "refs/pull/7/merge"),
        ];
        let own = Place::of(&of(&github));
        assert_eq!((own.kind, own.request), (Some(Kind::GitHub), Some(7)));
        let gitea = [&github[..], &[("GITEA_ACTIONS", "true")]].concat();
        assert_eq!(Place::of(&of(&gitea)).kind, Some(Kind::Gitea));
        let gitlab = [
            ("GITLAB_CI", "true"),
            ("CI_SERVER_URL", "https://gitlab.example"),
            ("CI_PROJECT_PATH", "a/b/c"),
            ("CI_MERGE_REQUEST_IID", "12"),
        ];
        let own = Place::of(&of(&gitlab));
        assert_eq!(
            (own.kind, own.repository.as_deref(), own.request),
            (Some(Kind::GitLab), Some("a/b/c"), Some(12))
        );
        let woodpecker = [
            ("CI", "woodpecker"),
            ("CI_FORGE_TYPE", "forgejo"),
            ("CI_REPO", "a/b"),
            ("CI_COMMIT_PULL_REQUEST", "3"),
        ];
        let own = Place::of(&of(&woodpecker));
        assert_eq!((own.kind, own.request), (Some(Kind::Gitea), Some(3)));
        assert_eq!(Place::of(&of(&[("CI", "true")])), Place::default());
        // A branch is no request.
        assert_eq!(
            Place::of(&of(&[("GITHUB_ACTIONS", "true"), ("GITHUB_REF", "refs/heads/main")])).request,
            None
        );
    }

    #[test]
    fn a_token_is_taken_from_the_variables_of_its_forge_alone() {
        let variables = of(&[("GITHUB_TOKEN", "a"), ("CI_JOB_TOKEN", "b")]);
        assert_eq!(
            Token::find(Kind::GitHub, &variables).map(|token| token.text.expose().to_owned()),
            Some("a".into())
        );
        assert!(Token::find(Kind::GitLab, &variables).is_some_and(|token| token.is_of_job));
        assert!(Token::find(Kind::Gitea, &variables).is_none());
        let variables = of(&[("GITHUB_TOKEN", "a"), ("GITEA_ACTIONS", "true")]);
        assert!(Token::find(Kind::Gitea, &variables).is_some());
    }
}
