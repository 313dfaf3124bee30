//! The request that a review is about, at its forge.

use strata_forge::{
    ChangeRequest, Forge, ForgeOptions, Kind, Outcome, Place, RequestState, Status, Token, connect,
    upsert_comment,
};
use strata_net::{DialMap, TlsTrust};
use strata_session::{SessionError, Surroundings};
use strata_source::settings::review::ForgeKind;

use crate::announce::{apply_marker, context};
use crate::base::Base;
use crate::comment::marker;
use crate::error::of_forge;

/// A request, and what is said of it.
pub struct Desk {
    pub forge: Box<dyn Forge>,
    pub me: String,
    pub request: ChangeRequest,
    /// The id of the repository of Strata.
    repository: String,
}

impl Desk {
    /// The open request of a commit: the one that is named, that of the pipeline, or the one that has it as its head.
    pub async fn of_head(
        base: &Base,
        surroundings: &Surroundings,
        named: Option<u64>,
        head: &str,
    ) -> Result<Self, SessionError> {
        let (forge, place) = reach(base, surroundings)?;
        let request = match named.or(place.request) {
            Some(number) => forge.request(number).await.map_err(of_forge)?,
            None => only(forge.requests_of(head).await.map_err(of_forge)?, RequestState::Open, head)?,
        };
        if request.head != head {
            let error = format!(
                "the head of request {} is {}, and {head} is checked out",
                request.number, request.head
            );
            return Err(SessionError::refused(error)
                .hint("check out the head of the request itself, not a merge of it; where it has moved on, its own pipeline plans it"));
        }
        Self::open(base, forge, request).await
    }

    /// The merged request of a commit: the one that ended in it, or the one that is named.
    pub async fn of_merge(
        base: &Base,
        surroundings: &Surroundings,
        named: Option<u64>,
        merged: &str,
    ) -> Result<Self, SessionError> {
        let (forge, _) = reach(base, surroundings)?;
        let request = match named {
            Some(number) => forge.request(number).await.map_err(of_forge)?,
            None => only(forge.requests_of(merged).await.map_err(of_forge)?, RequestState::Merged, merged)?,
        };
        if request.state != RequestState::Merged {
            return Err(SessionError::refused(format!("request {} is not merged", request.number)));
        }
        Self::open(base, forge, request).await
    }

    async fn open(base: &Base, forge: Box<dyn Forge>, request: ChangeRequest) -> Result<Self, SessionError> {
        let me = forge.me().await.map_err(of_forge)?;
        Ok(Self { forge, me, request, repository: base.repository.clone() })
    }

    pub fn context(&self, what: &str) -> String {
        context(&self.repository, what)
    }

    pub fn repository(&self) -> &str {
        &self.repository
    }

    pub async fn status(
        &self,
        what: &str,
        commit: &str,
        outcome: Outcome,
        description: &str,
    ) -> Result<(), SessionError> {
        let status = Status { outcome, context: self.context(what), description: description.to_owned() };
        self.forge.set_status(commit, &status).await.map_err(of_forge)
    }

    /// The comment with the plan. One of a head that is none any more is not written.
    pub async fn comment(&self, text: &str) -> Result<(), SessionError> {
        let now = self.forge.request(self.request.number).await.map_err(of_forge)?;
        if now.head != self.request.head {
            let error = format!("request {} has moved on to {}", now.number, now.head);
            return Err(SessionError::refused(error).hint("the pipeline of the new head plans it"));
        }
        upsert_comment(self.forge.as_ref(), self.request.number, &marker(&self.repository), text)
            .await
            .map_err(of_forge)?;
        Ok(())
    }

    /// The comment about the apply.
    pub async fn comment_apply(&self, text: &str) -> Result<(), SessionError> {
        let marker = apply_marker(&self.repository);
        upsert_comment(self.forge.as_ref(), self.request.number, &marker, text).await.map_err(of_forge)?;
        Ok(())
    }
}

fn only(found: Vec<ChangeRequest>, state: RequestState, commit: &str) -> Result<ChangeRequest, SessionError> {
    let what = if state == RequestState::Open { "open" } else { "merged" };
    let mut own: Vec<ChangeRequest> = found.into_iter().filter(|request| request.state == state).collect();
    match (own.len(), own.pop()) {
        (1, Some(request)) => Ok(request),
        (0, _) => Err(SessionError::refused(format!("the forge has no {what} request of {commit}"))
            .hint("`--request N` names one; what was pushed without a request is applied by `strata apply`")),
        (several, _) => {
            Err(SessionError::refused(format!("the forge has {several} {what} requests of {commit}"))
                .hint("`--request N` names the one that is meant"))
        }
    }
}

/// The forge that the base names, or that the pipeline runs for. A request does not say where a token goes.
pub(crate) fn reach(
    base: &Base,
    surroundings: &Surroundings,
) -> Result<(Box<dyn Forge>, Place), SessionError> {
    let place = Place::of(&surroundings.variables);
    let named = base.review.as_ref().and_then(|review| review.forge.as_ref());
    let kind = named.and_then(|named| named.kind).map(|kind| match kind {
        ForgeKind::Github => Kind::GitHub,
        ForgeKind::Gitlab => Kind::GitLab,
        ForgeKind::Gitea | ForgeKind::Forgejo => Kind::Gitea,
    });
    let missing = |what: &str| {
        SessionError::failed(format!("nobody says {what}"))
            .hint("on the base branch: `review: {forge: {kind: gitea, url: 'https://git.example.org', repository: ops/infra}}`")
            .hint("the pipelines of GitHub, GitLab, Gitea, Forgejo and Woodpecker say it by their variables")
    };
    let kind = kind.or(place.kind).ok_or_else(|| missing("which forge this is"))?;
    let usual = match kind {
        Kind::GitHub => Some("https://github.com".to_owned()),
        Kind::GitLab => Some("https://gitlab.com".to_owned()),
        Kind::Gitea => None,
    };
    // Variables of a pipeline of another forge say nothing of this one.
    let of_place = |text: &Option<String>| text.clone().filter(|_| place.kind == Some(kind));
    let url = named.and_then(|named| named.url.as_ref()).map(|url| url.value.clone());
    let url = url.or_else(|| of_place(&place.url)).or(usual).ok_or_else(|| missing("where the forge is"))?;
    let repository = named.and_then(|named| named.repository.clone()).or_else(|| of_place(&place.repository));
    let repository = repository.ok_or_else(|| missing("which repository of the forge this is"))?;
    let token = Token::find(kind, &surroundings.variables).ok_or_else(|| {
        let names: Vec<String> = kind.variables().iter().map(|name| format!("`{name}`")).collect();
        SessionError::failed(format!("there is no token for {kind}"))
            .hint(format!("set the variable {}", names.join(" or ")))
    })?;
    let tls = base.forge_ca.clone().map_or(TlsTrust::System, TlsTrust::Ca);
    let forge = connect(ForgeOptions {
        tls,
        dial: dial(base),
        trace: surroundings.trace.clone(),
        random: surroundings.jitter(),
        token: token.clone(),
        ..ForgeOptions::new(kind, url, repository, token.text)
    })
    .map_err(of_forge)?;
    let request = place.request.filter(|_| place.kind == Some(kind));
    Ok((forge, Place { request, ..place }))
}

fn dial(base: &Base) -> DialMap {
    let mut map = DialMap::new();
    if let Some(proxy) = &base.proxy {
        map.through(proxy.trim_end_matches('/').trim_start_matches("http://"));
    }
    map
}
