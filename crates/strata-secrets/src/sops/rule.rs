//! Which values of a file are encrypted: one of six rules, by key or by comment.

use regex::Regex;

use super::SopsError;
use super::tree::TreePosition;

/// Without another rule, values below a key with this ending stay as they are.
const DEFAULT_SUFFIX: &str = "_unencrypted";

/// The rule of a file, as its metadata and `.sops.yaml` name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleSetting {
    UnencryptedSuffix(String),
    EncryptedSuffix(String),
    UnencryptedRegex(String),
    EncryptedRegex(String),
    UnencryptedCommentRegex(String),
    EncryptedCommentRegex(String),
}

impl Default for RuleSetting {
    fn default() -> Self {
        RuleSetting::UnencryptedSuffix(DEFAULT_SUFFIX.to_owned())
    }
}

impl RuleSetting {
    pub(crate) const NAMES: [&'static str; 6] = [
        "unencrypted_suffix",
        "encrypted_suffix",
        "unencrypted_regex",
        "encrypted_regex",
        "unencrypted_comment_regex",
        "encrypted_comment_regex",
    ];

    /// The rule of this name; `None` if there is no such rule.
    pub(crate) fn named(name: &str, value: String) -> Option<Self> {
        Some(match name {
            "unencrypted_suffix" => RuleSetting::UnencryptedSuffix(value),
            "encrypted_suffix" => RuleSetting::EncryptedSuffix(value),
            "unencrypted_regex" => RuleSetting::UnencryptedRegex(value),
            "encrypted_regex" => RuleSetting::EncryptedRegex(value),
            "unencrypted_comment_regex" => RuleSetting::UnencryptedCommentRegex(value),
            "encrypted_comment_regex" => RuleSetting::EncryptedCommentRegex(value),
            _ => return None,
        })
    }

    pub(crate) fn name_and_value(&self) -> (&'static str, &str) {
        match self {
            RuleSetting::UnencryptedSuffix(value) => ("unencrypted_suffix", value),
            RuleSetting::EncryptedSuffix(value) => ("encrypted_suffix", value),
            RuleSetting::UnencryptedRegex(value) => ("unencrypted_regex", value),
            RuleSetting::EncryptedRegex(value) => ("encrypted_regex", value),
            RuleSetting::UnencryptedCommentRegex(value) => ("unencrypted_comment_regex", value),
            RuleSetting::EncryptedCommentRegex(value) => ("encrypted_comment_regex", value),
        }
    }

    /// Makes the rule ready for use; fails on a regular expression that cannot be read.
    pub(crate) fn compile(&self) -> Result<Rule, SopsError> {
        let (name, value) = self.name_and_value();
        let regex = || {
            Regex::new(value)
                .map_err(|error| SopsError::Regex { setting: name, reason: last_line(&error.to_string()) })
        };
        Ok(match self {
            RuleSetting::UnencryptedSuffix(suffix) => Rule::UnencryptedSuffix(suffix.clone()),
            RuleSetting::EncryptedSuffix(suffix) => Rule::EncryptedSuffix(suffix.clone()),
            RuleSetting::UnencryptedRegex(_) => Rule::UnencryptedRegex(regex()?),
            RuleSetting::EncryptedRegex(_) => Rule::EncryptedRegex(regex()?),
            RuleSetting::UnencryptedCommentRegex(_) => Rule::UnencryptedCommentRegex(regex()?),
            RuleSetting::EncryptedCommentRegex(_) => Rule::EncryptedCommentRegex(regex()?),
        })
    }
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

pub(crate) enum Rule {
    UnencryptedSuffix(String),
    EncryptedSuffix(String),
    UnencryptedRegex(Regex),
    EncryptedRegex(Regex),
    UnencryptedCommentRegex(Regex),
    EncryptedCommentRegex(Regex),
}

impl Rule {
    /// Whether what stands at this place is encrypted.
    pub(crate) fn encrypts(&self, place: &TreePosition<'_>, is_comment: bool) -> bool {
        match self {
            Rule::UnencryptedSuffix(suffix) => !place.path.iter().any(|key| key.ends_with(suffix)),
            Rule::EncryptedSuffix(suffix) => place.path.iter().any(|key| key.ends_with(suffix)),
            Rule::UnencryptedRegex(regex) => !place.path.iter().any(|key| regex.is_match(key)),
            Rule::EncryptedRegex(regex) => place.path.iter().any(|key| regex.is_match(key)),
            Rule::UnencryptedCommentRegex(regex) => {
                !place.comments.iter().flatten().any(|text| regex.is_match(text))
            }
            Rule::EncryptedCommentRegex(regex) => {
                let all: Vec<&str> = place.comments.iter().flatten().copied().collect();
                // The comment that asks for encryption stays readable itself. It is the last one at its place.
                let above = if is_comment { &all[..all.len().saturating_sub(1)] } else { &all[..] };
                above.iter().any(|text| regex.is_match(text))
            }
        }
    }

    /// A comment that this matches, once encrypted, would switch encryption off for what follows it.
    pub(crate) fn is_confused_by(&self, encrypted_comment: &str) -> bool {
        matches!(self, Rule::UnencryptedCommentRegex(regex) if regex.is_match(encrypted_comment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encrypts(setting: RuleSetting, path: &[&str], comments: &[Vec<&str>], is_comment: bool) -> bool {
        setting.compile().expect("a good rule").encrypts(&TreePosition { path, comments }, is_comment)
    }

    #[test]
    fn a_suffix_or_regex_holds_for_all_below_its_key() {
        let regex = || RuleSetting::EncryptedRegex("^(data|stringData)$".to_owned());
        assert!(encrypts(regex(), &["stringData", "apiKey"], &[], false));
        assert!(!encrypts(regex(), &["metadata", "name"], &[], false));
        assert!(!encrypts(RuleSetting::default(), &["a_unencrypted", "b"], &[], false));
        assert!(encrypts(RuleSetting::default(), &["a", "b"], &[], false));
        assert!(encrypts(RuleSetting::EncryptedSuffix("_secret".into()), &["x_secret"], &[], false));
        assert!(!encrypts(RuleSetting::EncryptedSuffix("_secret".into()), &[], &[], true));
        assert!(!encrypts(RuleSetting::UnencryptedRegex("^p".into()), &["a", "public"], &[], false));
    }

    #[test]
    fn a_comment_rule_leaves_its_own_comment_readable() {
        let rule = || RuleSetting::EncryptedCommentRegex("sops:enc".to_owned());
        assert!(!encrypts(rule(), &[], &[vec![" sops:enc"]], true));
        assert!(encrypts(rule(), &["a"], &[vec![" sops:enc"]], false));
        assert!(encrypts(rule(), &[], &[vec![" sops:enc", " more"]], true));
        assert!(encrypts(rule(), &["a", "b"], &[vec![" sops:enc"], vec![]], false));
        assert!(!encrypts(rule(), &["a"], &[vec![]], false));
        assert!(!encrypts(
            RuleSetting::UnencryptedCommentRegex("plain".into()),
            &["a"],
            &[vec!["plain"]],
            false
        ));
    }

    #[test]
    fn a_bad_regex_is_named() {
        let error = RuleSetting::EncryptedRegex("(".to_owned()).compile().err().expect("unclosed group");
        assert_eq!(
            error.to_string(),
            "the regular expression of `encrypted_regex` cannot be read: unclosed group"
        );
    }
}
