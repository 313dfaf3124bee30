//! Reading metadata strictly: what is not understood could change the meaning of the rest, so it is refused.

use super::{AgeEntry, FOREIGN, KeyGroup, Meta, Metadata};
use crate::sops::SopsError;
use crate::sops::rule::RuleSetting;
use crate::time;

fn bad(field: &str, reason: &str) -> SopsError {
    SopsError::Metadata { field: field.to_owned(), reason: reason.to_owned() }
}

impl Metadata {
    pub(crate) fn from_meta(meta: &Meta) -> Result<Self, SopsError> {
        let Meta::Mapping(fields) = meta else { return Err(bad("sops", "not a mapping")) };
        let mut reader = Reader::default();
        for (name, value) in fields {
            reader.field(name, value)?;
        }
        reader.finish()
    }
}

#[derive(Default)]
struct Reader {
    group: KeyGroup,
    groups: Vec<KeyGroup>,
    threshold: Option<usize>,
    rule: Option<RuleSetting>,
    mac_only_encrypted: bool,
    last_modified: Option<String>,
    mac: Option<String>,
    version: Option<String>,
}

impl Reader {
    fn field(&mut self, name: &str, value: &Meta) -> Result<(), SopsError> {
        match name {
            "age" => self.group.age = age_entries(value)?,
            "key_groups" => self.groups = key_groups(value)?,
            "shamir_threshold" => self.threshold = Some(threshold(value)?).filter(|threshold| *threshold > 0),
            "mac_only_encrypted" => self.mac_only_encrypted = boolean(name, value)?,
            "lastmodified" => {
                let text = text(name, value)?;
                time::parse_rfc3339(&text).ok_or_else(|| bad(name, "not a time in RFC 3339"))?;
                self.last_modified = Some(text);
            }
            "mac" => self.mac = Some(text(name, value)?),
            "version" => {
                let text = text(name, value)?;
                if !text.split('.').all(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
                    return Err(bad(name, "not a version"));
                }
                self.version = Some(text);
            }
            _ if FOREIGN.contains(&name) => {
                if let Some(entries) = foreign_entries(name, value)? {
                    self.group.foreign.push((name.to_owned(), entries));
                }
            }
            _ if RuleSetting::NAMES.contains(&name) => self.rule(name, text(name, value)?)?,
            _ => return Err(bad(name, "not known; the file may be from a newer version of `sops`")),
        }
        Ok(())
    }

    fn rule(&mut self, name: &str, value: String) -> Result<(), SopsError> {
        if value.is_empty() {
            return Ok(());
        }
        let rule = RuleSetting::named(name, value);
        match (&self.rule, rule) {
            (Some(other), Some(_)) => {
                Err(bad(name, &format!("cannot stand beside `{}`", other.name_and_value().0)))
            }
            (None, rule) => {
                self.rule = rule;
                Ok(())
            }
            (Some(_), None) => Ok(()),
        }
    }

    fn finish(self) -> Result<Metadata, SopsError> {
        // A group at the top wins over `key_groups`, as in SOPS; both together are never written.
        let groups = match (self.group.is_empty(), self.groups.is_empty()) {
            (false, true) => vec![self.group],
            (true, false) => self.groups,
            (true, true) => return Err(bad("age", "no keys are listed")),
            (false, false) => return Err(bad("key_groups", "cannot stand beside keys outside of a group")),
        };
        if groups.iter().any(KeyGroup::is_empty) {
            return Err(bad("key_groups", "a group has no keys"));
        }
        Ok(Metadata {
            threshold: self.threshold,
            groups,
            rule: self.rule.unwrap_or_default(),
            mac_only_encrypted: self.mac_only_encrypted,
            last_modified: self.last_modified.ok_or_else(|| bad("lastmodified", "missing"))?,
            mac: self.mac.ok_or_else(|| bad("mac", "missing"))?,
            version: self.version.ok_or_else(|| bad("version", "missing"))?,
        })
    }
}

fn text(name: &str, value: &Meta) -> Result<String, SopsError> {
    match value {
        Meta::Scalar(text) => Ok(text.clone()),
        Meta::Number(number) => Ok(number.to_string()),
        Meta::Null => Ok(String::new()),
        _ => Err(bad(name, "not a text")),
    }
}

/// Formats without types write numbers and truth values as text.
fn threshold(value: &Meta) -> Result<usize, SopsError> {
    let number = match value {
        Meta::Number(number) => usize::try_from(*number).ok(),
        Meta::Scalar(text) => text.parse().ok(),
        Meta::Null => Some(0),
        _ => None,
    };
    number.ok_or_else(|| bad("shamir_threshold", "not a number"))
}

fn boolean(name: &str, value: &Meta) -> Result<bool, SopsError> {
    match value {
        Meta::Bool(value) => Ok(*value),
        Meta::Scalar(text) if text == "true" => Ok(true),
        Meta::Scalar(text) if text == "false" => Ok(false),
        _ => Err(bad(name, "neither true nor false")),
    }
}

fn list<'m>(name: &str, value: &'m Meta) -> Result<&'m [Meta], SopsError> {
    match value {
        Meta::List(entries) => Ok(entries),
        Meta::Null => Ok(&[]),
        _ => Err(bad(name, "not a list")),
    }
}

fn age_entries(value: &Meta) -> Result<Vec<AgeEntry>, SopsError> {
    let entry = |entry: &Meta| {
        let Meta::Mapping(fields) = entry else { return Err(bad("age", "an entry is not a mapping")) };
        let (mut recipient, mut enc) = (None, None);
        for (name, value) in fields {
            match name.as_str() {
                "recipient" => recipient = Some(text(name, value)?),
                "enc" => enc = Some(text(name, value)?),
                _ => return Err(bad(&format!("age.{name}"), "not known")),
            }
        }
        let recipient = recipient.ok_or_else(|| bad("age.recipient", "missing"))?;
        crate::age_keys::check_recipient(&recipient)
            .map_err(|error| bad("age.recipient", &error.to_string()))?;
        Ok(AgeEntry { recipient, enc: enc.ok_or_else(|| bad("age.enc", "missing"))? })
    };
    list("age", value)?.iter().map(entry).collect()
}

fn foreign_entries(name: &str, value: &Meta) -> Result<Option<Meta>, SopsError> {
    let entries = list(name, value)?;
    if entries.iter().any(|entry| !matches!(entry, Meta::Mapping(_))) {
        return Err(bad(name, "an entry is not a mapping"));
    }
    // Old versions wrote a list for every kind of key, mostly empty; those are left out, as SOPS leaves them out.
    Ok((!entries.is_empty()).then(|| Meta::List(entries.to_vec())))
}

fn key_groups(value: &Meta) -> Result<Vec<KeyGroup>, SopsError> {
    let group = |group: &Meta| {
        let Meta::Mapping(fields) = group else { return Err(bad("key_groups", "a group is not a mapping")) };
        let mut read = KeyGroup::default();
        for (name, value) in fields {
            match name.as_str() {
                "age" => read.age = age_entries(value)?,
                _ if FOREIGN.contains(&name.as_str()) => {
                    read.foreign.extend(foreign_entries(name, value)?.map(|entries| (name.clone(), entries)));
                }
                _ => return Err(bad(&format!("key_groups.{name}"), "not known")),
            }
        }
        Ok(read)
    };
    list("key_groups", value)?.iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: Meta) -> (String, Meta) {
        (name.to_owned(), value)
    }

    fn complete() -> Vec<(String, Meta)> {
        let recipient = "age1eed4vev33ftsmnheqdnyt625qmzf0gjz9kpswkfraa9wvtqh9dls07tjgf";
        let age =
            Meta::Mapping(vec![field("enc", Meta::text("x")), field("recipient", Meta::text(recipient))]);
        let pgp =
            Meta::Mapping(vec![field("fp", Meta::text("ABC")), field("created_at", Meta::text("2026"))]);
        vec![
            field("age", Meta::List(vec![age])),
            field("kms", Meta::List(vec![])),
            field("lastmodified", Meta::text("2026-01-02T03:04:05Z")),
            field("mac", Meta::text("ENC[]")),
            field("pgp", Meta::List(vec![pgp])),
            field("unencrypted_suffix", Meta::text("_plain")),
            field("version", Meta::text("3.13.3")),
        ]
    }

    #[test]
    fn what_is_read_is_written_again() {
        let metadata = Metadata::from_meta(&Meta::Mapping(complete())).expect("complete");
        assert_eq!(metadata.groups.len(), 1);
        assert_eq!(metadata.groups[0].foreign_count(), 1);
        let mut expected = complete();
        expected.retain(|(name, _)| name != "kms");
        assert_eq!(metadata.to_meta(), Meta::Mapping(expected));
    }

    #[test]
    fn what_is_missing_unknown_or_contradictory_is_named() {
        let with = |name: &str, value: Meta| {
            let mut fields = complete();
            fields.retain(|(existing, _)| existing != name);
            fields.push(field(name, value));
            Metadata::from_meta(&Meta::Mapping(fields)).expect_err(name).to_string()
        };
        for (name, value, message) in [
            ("wersion", Meta::text("1"), "not known; the file may be from a newer version of `sops`"),
            ("encrypted_regex", Meta::text("^a"), "cannot stand beside `unencrypted_suffix`"),
            ("lastmodified", Meta::text("now"), "not a time in RFC 3339"),
            ("age", Meta::text("age1"), "not a list"),
            ("version", Meta::text("three"), "not a version"),
            ("shamir_threshold", Meta::text("two"), "not a number"),
        ] {
            assert_eq!(with(name, value), format!("the sops metadata cannot be used: `{name}`: {message}"));
        }
        for missing in ["lastmodified", "mac", "version"] {
            let mut fields = complete();
            fields.retain(|(name, _)| name != missing);
            assert!(Metadata::from_meta(&Meta::Mapping(fields)).is_err(), "{missing}");
        }
    }
}
