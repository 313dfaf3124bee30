//! The data key of a file: getting it out of the metadata, and putting it in for a list of recipients.

use strata_secret::RandomSource;
use zeroize::Zeroizing;

use super::SopsError;
use super::cipher::DataKey;
use super::metadata::{AgeEntry, KeyGroup, Metadata};
use super::shamir;
use crate::age_keys::{AgeError, Identities, Recipient, wrap};

/// The data key, and what each group of the file holds of it.
#[derive(Clone)]
pub(crate) struct Recovered {
    pub(crate) key: DataKey,
    /// The whole key for a single group, else a share; `None` for a group that nobody here can open.
    pub(crate) parts: Vec<Option<Zeroizing<Vec<u8>>>>,
}

/// Finds the data key with the identities at hand.
pub(crate) fn recover(metadata: &Metadata, identities: &Identities) -> Result<Recovered, SopsError> {
    let mut parts = Vec::new();
    let mut problem = None;
    for group in &metadata.groups {
        let opened = open_group(group, identities);
        parts.push(match opened {
            Ok(part) => Some(part),
            Err(error) => {
                problem.get_or_insert(error);
                None
            }
        });
    }
    let known: Vec<_> = parts.iter().flatten().cloned().collect();
    let needed = if parts.len() == 1 { 1 } else { metadata.threshold.unwrap_or(parts.len()).max(2) };
    if known.len() < needed {
        return Err(SopsError::NoKey {
            have: known.len(),
            needed,
            recipients: recipients(&metadata.groups),
            reason: problem.map_or_else(String::new, |problem| problem.to_string()),
        });
    }
    let bytes = if parts.len() == 1 { known.into_iter().next() } else { shamir::combine(&known) };
    let key = bytes.and_then(|bytes| DataKey::from_bytes(&bytes)).ok_or(SopsError::BadKey)?;
    Ok(Recovered { key, parts })
}

fn open_group(group: &KeyGroup, identities: &Identities) -> Result<Zeroizing<Vec<u8>>, AgeError> {
    let mut problem = AgeError::NoIdentity { looked: "\n  it is not encrypted for age".to_owned() };
    for entry in &group.age {
        match identities.unwrap(&entry.enc, Some(&entry.recipient)) {
            Ok(part) => return Ok(part),
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

fn recipients(groups: &[KeyGroup]) -> String {
    let all: Vec<&str> =
        groups.iter().flat_map(|group| &group.age).map(|entry| entry.recipient.as_str()).collect();
    if all.is_empty() { "nobody with an age key".to_owned() } else { format!("`{}`", all.join("`, `")) }
}

/// New groups that hold the key for these recipients.
pub(crate) fn distribute(
    key: &DataKey,
    groups: &[Vec<String>],
    threshold: Option<usize>,
    random: &mut dyn RandomSource,
) -> Result<Vec<KeyGroup>, SopsError> {
    let parts = match groups.len() {
        0 => return Err(AgeError::NoRecipients.into()),
        1 => vec![Zeroizing::new(key.expose().to_vec())],
        count => {
            let threshold = threshold.unwrap_or(count);
            shamir::split(key.expose(), count, threshold, random)
                .ok_or(SopsError::Threshold { threshold, groups: count })?
        }
    };
    let group = |(part, recipients): (&Zeroizing<Vec<u8>>, &Vec<String>)| {
        Ok(KeyGroup { age: entries(part, recipients)?, foreign: Vec::new() })
    };
    parts.iter().zip(groups).map(group).collect()
}

/// The part, encrypted for each recipient by itself, as SOPS does, so that entries can come and go one by one.
pub(crate) fn entries(part: &[u8], recipients: &[String]) -> Result<Vec<AgeEntry>, SopsError> {
    if recipients.is_empty() {
        return Err(AgeError::NoRecipients.into());
    }
    let entry = |text: &String| {
        let recipient = Recipient::parse(text)?;
        Ok(AgeEntry { enc: wrap(part, &[&recipient])?, recipient: recipient.as_str().to_owned() })
    };
    recipients.iter().map(entry).collect()
}
