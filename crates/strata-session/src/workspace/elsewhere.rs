//! Objects that two states would know: each of them would change and remove what the other has.

use strata_engine::is_known_twice;
use strata_resource::Lineage;
use strata_state::{StateDocument, replay};

use super::Workspace;
use crate::error::SessionError;

impl Workspace {
    /// Refuses to go back to an older version of a state if that has what was moved to another one since then. A state that cannot be read says
    /// nothing.
    pub async fn refuse_known_elsewhere(
        &self,
        now: Option<&StateDocument>,
        older: &StateDocument,
    ) -> Result<(), SessionError> {
        let comes_back = |address: &_| now.is_none_or(|now| !now.resources.contains_key(address));
        let back: Vec<_> = older.resources.iter().filter(|(address, _)| comes_back(*address)).collect();
        if back.is_empty() {
            return Ok(());
        }
        let (store, repository) = (self.store()?, self.repository_id()?);
        // A target of the same name can be another datacenter in another environment.
        let environment = |key: &str| key.split_once('/').map(|(environment, _)| environment.to_owned());
        let is_other = |key: &String| *key != older.key && environment(key) == environment(&older.key);
        for key in store.keys().await?.into_iter().filter(is_other) {
            let Ok(journal) = store.read_journal(&key).await else { continue };
            let Ok(Some(other)) = store.read(&key).await else { continue };
            if other.lineage != Lineage::derive(repository, &key) {
                continue;
            }
            let other = replay(other, journal).document;
            for own in &back {
                let Some((twin, _)) = other.resources.iter().find(|other| is_known_twice(*own, *other))
                else {
                    continue;
                };
                let message = format!(
                    "serial {} has `{}`, which is `{twin}` of the state `{key}` by now: one of the two states would remove what the other has",
                    older.serial, own.0
                );
                return Err(SessionError::refused(message)
                    .hint(format!("move it back first, or roll `{key}` back to before it came there")));
            }
        }
        Ok(())
    }
}
