//! The `sops` part of a file: who can open it, what is encrypted, and the MAC over it all.
//!
//! Keys of PGP and of cloud services are kept as they are: their entries hold the data key for someone else, and
//! stay good as long as the data key stays the same.

use super::SopsError;
use super::rule::RuleSetting;
use crate::time;

mod read;

/// A piece of metadata, in whatever format it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Meta {
    Mapping(Vec<(String, Meta)>),
    List(Vec<Meta>),
    Scalar(String),
    Number(i64),
    Bool(bool),
    Null,
}

impl Meta {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Meta::Scalar(text.into())
    }
}

/// One recipient and the data key (or its share) encrypted for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgeEntry {
    pub(crate) recipient: String,
    /// An armored age file.
    pub(crate) enc: String,
}

/// Recipients that share one part of the data key: any one of them is enough for the group.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct KeyGroup {
    pub(crate) age: Vec<AgeEntry>,
    /// Lists of entries by kind (`pgp`, `kms`, …), as they stood in the file.
    pub(crate) foreign: Vec<(String, Meta)>,
}

impl KeyGroup {
    /// How many entries there are that only another program can read.
    pub(crate) fn foreign_count(&self) -> usize {
        self.foreign
            .iter()
            .map(|(_, entries)| if let Meta::List(list) = entries { list.len() } else { 0 })
            .sum()
    }

    fn is_empty(&self) -> bool {
        self.age.is_empty() && self.foreign_count() == 0
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Metadata {
    /// One group, or several that are combined by Shamir's scheme.
    pub(crate) groups: Vec<KeyGroup>,
    /// How many groups are needed, where there are several.
    pub(crate) threshold: Option<usize>,
    pub(crate) rule: RuleSetting,
    pub(crate) mac_only_encrypted: bool,
    pub(crate) last_modified: String,
    pub(crate) mac: String,
    pub(crate) version: String,
}

/// Kinds of keys that only other programs can use.
const FOREIGN: [&str; 6] = ["azure_kv", "gcp_kms", "hc_vault", "hckms", "kms", "pgp"];

impl Metadata {
    /// The additional data that binds the MAC to the time of the last change.
    pub(crate) fn mac_binding(&self) -> Result<String, SopsError> {
        time::whole_seconds(&self.last_modified).ok_or(SopsError::Metadata {
            field: "lastmodified".to_owned(),
            reason: "not a time in RFC 3339".to_owned(),
        })
    }

    /// In the order in which SOPS writes it.
    pub(crate) fn to_meta(&self) -> Meta {
        let mut fields = Vec::new();
        match self.groups.as_slice() {
            [group] => fields.extend(group_fields(group)),
            groups => {
                let groups = groups.iter().map(|group| Meta::Mapping(sorted(group_fields(group)))).collect();
                fields.push(("key_groups".to_owned(), Meta::List(groups)));
            }
        }
        if let Some(threshold) = self.threshold {
            let threshold = i64::try_from(threshold).unwrap_or(i64::MAX);
            fields.push(("shamir_threshold".to_owned(), Meta::Number(threshold)));
        }
        let (rule, value) = self.rule.name_and_value();
        fields.push((rule.to_owned(), Meta::text(value)));
        if self.mac_only_encrypted {
            fields.push(("mac_only_encrypted".to_owned(), Meta::Bool(true)));
        }
        fields.push(("lastmodified".to_owned(), Meta::text(&self.last_modified)));
        fields.push(("mac".to_owned(), Meta::text(&self.mac)));
        fields.push(("version".to_owned(), Meta::text(&self.version)));
        Meta::Mapping(sorted(fields))
    }
}

fn group_fields(group: &KeyGroup) -> Vec<(String, Meta)> {
    let entry = |entry: &AgeEntry| {
        Meta::Mapping(vec![
            ("enc".to_owned(), Meta::text(&entry.enc)),
            ("recipient".to_owned(), Meta::text(&entry.recipient)),
        ])
    };
    let mut fields = group.foreign.clone();
    if !group.age.is_empty() {
        fields.push(("age".to_owned(), Meta::List(group.age.iter().map(entry).collect())));
    }
    fields
}

fn sorted(mut fields: Vec<(String, Meta)>) -> Vec<(String, Meta)> {
    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    fields
}
