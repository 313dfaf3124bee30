//! Changing who can read a file: other recipients for the same data key, or a new data key.

use jiff::Timestamp;
use strata_secret::RandomSource;

use super::SopsError;
use super::cipher::{DataKey, Nonces};
use super::file::{OpenFile, seal};
use super::format::{Replacements, Writing};
use super::keys::{self, Recovered};
use super::metadata::{KeyGroup, Meta, Metadata};

/// What to do with keys of PGP and of cloud services, which cannot be given a new data key here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignKeys {
    /// Refuse the change if there are any.
    Keep,
    /// Take them out of the file.
    Drop,
}

impl OpenFile {
    /// The file for other recipients, with the same data key and the same ciphertext. Entries of recipients that
    /// stay are not touched. `None` if nothing changes.
    ///
    /// A recipient that is removed has seen the data key: rotate it to shut them out.
    pub fn update_keys(
        &self,
        groups: &[Vec<String>],
        threshold: Option<usize>,
        random: &mut dyn RandomSource,
    ) -> Result<Option<Vec<u8>>, SopsError> {
        let old = &self.source.metadata;
        let threshold = if groups.len() > 1 { Some(threshold.unwrap_or(groups.len())) } else { None };
        let metadata = match self.regroup(groups, threshold)? {
            Some(groups) => Metadata { groups, threshold, ..old.clone() },
            None => {
                refuse_foreign(&old.groups)?;
                let groups = keys::distribute(&self.recovered.key, groups, threshold, random)?;
                Metadata { groups, threshold, ..old.clone() }
            }
        };
        if metadata == *old {
            return Ok(None);
        }
        let bytes =
            self.source.file.render(&Replacements::new(), Some(&metadata.to_meta()), Writing::Usual)?;
        let again = super::SopsFile::parse(&bytes, self.source.format)?;
        super::crypt::open(again.file.documents(), &again.metadata, &self.recovered.key)?;
        if again.metadata == metadata { Ok(Some(bytes)) } else { Err(SopsError::NotReadBack) }
    }

    /// The groups with entries added and removed; `None` if the key must be shared out again.
    fn regroup(
        &self,
        groups: &[Vec<String>],
        threshold: Option<usize>,
    ) -> Result<Option<Vec<KeyGroup>>, SopsError> {
        let old = &self.source.metadata;
        let same_shape = groups.len() == old.groups.len()
            && (groups.len() == 1 || threshold == Some(old.threshold.unwrap_or(old.groups.len())));
        if !same_shape {
            return Ok(None);
        }
        let mut new = Vec::new();
        for ((old, part), recipients) in old.groups.iter().zip(&self.recovered.parts).zip(groups) {
            let mut group = KeyGroup { age: Vec::new(), foreign: old.foreign.clone() };
            for recipient in recipients {
                match (old.age.iter().find(|entry| entry.recipient == *recipient), part) {
                    (Some(entry), _) => group.age.push(entry.clone()),
                    (None, Some(part)) => {
                        group.age.extend(keys::entries(part, std::slice::from_ref(recipient))?)
                    }
                    (None, None) => return Ok(None),
                }
            }
            if group.age.is_empty() && group.foreign_count() == 0 {
                return Err(crate::AgeError::NoRecipients.into());
            }
            new.push(group);
        }
        Ok(Some(new))
    }

    /// The file with a new data key: every value is encrypted again, for these recipients or for the same as before.
    pub fn rotate(
        &self,
        recipients: Option<(&[Vec<String>], Option<usize>)>,
        foreign: ForeignKeys,
        now: Timestamp,
        random: &mut dyn RandomSource,
    ) -> Result<Vec<u8>, SopsError> {
        let old = &self.source.metadata;
        if foreign == ForeignKeys::Keep {
            refuse_foreign(&old.groups)?;
        }
        let settings = self.source.settings();
        let (groups, threshold) = recipients.unwrap_or((&settings.groups, settings.threshold));
        let key = DataKey::generate(random);
        let metadata = Metadata {
            groups: keys::distribute(&key, groups, threshold, random)?,
            threshold: if groups.len() > 1 { Some(threshold.unwrap_or(groups.len())) } else { None },
            ..old.clone()
        };
        let parts = vec![None; metadata.groups.len()];
        let recovered = Recovered { key, parts };
        seal(&self.plaintext()?, self.source.format, metadata, &recovered, &Nonces::default(), now, random)
    }
}

fn refuse_foreign(groups: &[KeyGroup]) -> Result<(), SopsError> {
    let entries = groups.iter().flat_map(|group| &group.foreign);
    let kinds: Vec<&str> = entries
        .filter(|(_, entries)| matches!(entries, Meta::List(list) if !list.is_empty()))
        .map(|(kind, _)| kind.as_str())
        .collect();
    if kinds.is_empty() { Ok(()) } else { Err(SopsError::ForeignKeys { kinds: kinds.join("`, `") }) }
}
