//! What a review takes from the base and never from the request: who may sign, who may read, what may be applied.

use std::collections::BTreeMap;

use strata_secrets::{Recipient, sops};
use strata_session::SessionError;
use strata_source::Repository;
use strata_source::settings::Settings;
use strata_source::settings::review::Review;
use strata_source::world::World;

use crate::git::Git;
use crate::range::short;
use crate::signing::PublicKey;

/// The settings of the base.
pub struct Base {
    pub commit: String,
    /// The id of the repository.
    pub repository: String,
    /// `review:` of strata.yaml, where it has one.
    pub review: Option<Review>,
    pub recipients: Vec<Recipient>,
    /// The authority of the forge, where `review.forge` names one.
    pub forge_ca: Option<Vec<u8>>,
    /// How connections leave this network.
    pub proxy: Option<String>,
}

impl Base {
    /// Reads the settings at a commit. What is not valid there decides nothing.
    pub fn read(git: &Git, name: &str, env: &BTreeMap<String, String>) -> Result<Self, SessionError> {
        let commit = git.commit(name)?;
        let files = git.files(&commit, env.clone())?;
        let (repository, diagnostics) = Repository::load(&files);
        if let Some(error) = diagnostics.iter().find(|one| one.is_error()) {
            let short = short(&commit);
            return Err(SessionError::refused(format!(
                "the source of {short} is not valid: {}",
                error.message
            ))
            .hint("guardrails, runners and recipients are read from the base: repair it first"));
        }
        let recipients = recipients(&repository.settings, &files)?;
        let review = repository.settings.review.clone();
        let ca = review.as_ref().and_then(|review| review.forge.as_ref()).and_then(|forge| forge.ca.as_ref());
        let read = |path: &String| {
            let wrong = |error| SessionError::failed(format!("cannot read `{path}`: {error}"));
            files.read(path).map_err(wrong)
        };
        let forge_ca = ca.map(|path| read(&path.value)).transpose()?;
        let proxy = repository.settings.proxy.as_ref().map(|proxy| proxy.value.clone());
        let id = repository.settings.repository.as_ref().map(|id| id.to_string()).unwrap_or_default();
        Ok(Self { commit, repository: id, review, recipients, forge_ca, proxy })
    }

    /// The keys whose plans may be applied.
    pub fn runners(&self) -> Vec<PublicKey> {
        let named = self.review.iter().flat_map(|review| review.runners.iter());
        named.filter_map(|(_, key)| PublicKey::parse(key).ok()).collect()
    }
}

/// Who reads a sealed plan: those that `review` names, those of the states, those of the files of secrets.
fn recipients(settings: &Settings, files: &dyn World) -> Result<Vec<Recipient>, SessionError> {
    let own = settings.review.as_ref().map(|review| &review.recipients).filter(|named| !named.is_empty());
    let of_state = settings.state.as_ref().and_then(|state| state.encryption.as_ref()).map(|one| &one.age);
    let mut names: Vec<String> = match own.or(of_state.filter(|named| !named.is_empty())) {
        Some(named) => named.iter().map(|one| one.value.clone()).collect(),
        None => strata_session::secrets::sources(settings)
            .iter()
            .flat_map(|source| of_file(source.path().to_string_lossy().as_ref(), files))
            .collect(),
    };
    names.sort();
    names.dedup();
    let parse =
        |name: &String| Recipient::parse(name).map_err(|error| SessionError::failed(error.to_string()));
    names.iter().map(parse).collect()
}

fn of_file(path: &str, files: &dyn World) -> Vec<String> {
    let Ok(content) = files.read(path) else { return Vec::new() };
    let Ok(file) = sops::SopsFile::parse(&content, sops::Format::of(path.as_ref())) else {
        return Vec::new();
    };
    file.recipients().into_iter().flatten().map(str::to_owned).collect()
}
