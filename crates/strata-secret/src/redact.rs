//! Scrubbing of known secrets from text that others wrote: remote errors, command output, logs.
//!
//! This is the second line of defence. The first is that a secret cannot be printed; but a server may quote a
//! request back at us, and what it quotes is only text.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use aho_corasick::AhoCorasick;

use crate::SecretString;

mod forms;

use forms::{Form, FormKind};

/// What stands in the place of a secret.
pub const REDACTED: &str = "<secret>";

/// The secrets known so far, and a search for all of them at once.
///
/// Clones share the same set: a secret that is resolved late is scrubbed everywhere from then on. Secrets shorter
/// than four bytes are left alone, as scrubbing `1` or `yes` would only make text unreadable. The set and its search tables
/// hold the secrets in memory and are not wiped.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<Known>>);

#[derive(Default)]
struct Known {
    secrets: BTreeSet<String>,
    /// Built at the first use after a change: many secrets are added one after the other, and searching comes later.
    search: Option<Search>,
}

struct Search {
    /// Of the beginning of each form. Keys and certificates have thousands of bytes in some twenty forms: an automaton of all of them takes
    /// longer to build than the rest of a plan.
    beginnings: AhoCorasick,
    forms: Vec<Form>,
}

/// So much of a form is searched for; the rest is then compared.
const BEGINNING: usize = 12;

impl Redactor {
    /// One that knows no secret yet. Clones know the same ones.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on, scrubs this secret in its raw, escaped, URL-encoded, base64 and hex forms.
    pub fn add(&self, secret: &SecretString) {
        self.add_text(secret.expose());
    }

    /// As [`Redactor::add`], for a secret that another library holds.
    pub fn add_text(&self, secret: &str) {
        if secret.len() < forms::SHORTEST {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.secrets.insert(secret.to_owned()) {
            known.search = None;
        }
    }

    /// The text with every form of every known secret replaced by [`REDACTED`].
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.find(text.as_bytes());
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut clean = String::with_capacity(text.len());
        let mut end = 0;
        for range in found {
            clean.push_str(&text[end..range.start]);
            clean.push_str(REDACTED);
            end = range.end;
        }
        clean.push_str(&text[end..]);
        Cow::Owned(clean)
    }

    /// Whether any form of any known secret is in these bytes.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        !self.find(bytes).is_empty()
    }

    /// Where the secrets are, in order and merged where they touch. Every range starts and ends between characters.
    fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        {
            let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
            if known.secrets.is_empty() {
                return Vec::new();
            }
            if let Some(search) = &known.search {
                return search.find(text);
            }
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let search = Search::build(&known.secrets);
        let found = search.find(text);
        known.search = Some(search);
        found
    }
}

impl Search {
    fn build(secrets: &BTreeSet<String>) -> Self {
        let forms: BTreeSet<Form> = secrets.iter().flat_map(|secret| forms::of(secret)).collect();
        let forms: Vec<Form> = forms.into_iter().collect();
        let beginning = |form: &Form| -> Vec<u8> { form.text.bytes().take(BEGINNING).collect() };
        let beginnings = AhoCorasick::new(forms.iter().map(beginning))
            .expect("patterns are far fewer and shorter than the automaton's limits");
        Self { beginnings, forms }
    }

    fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for hit in self.beginnings.find_overlapping_iter(text) {
            let form = &self.forms[hit.pattern().as_usize()];
            if !text[hit.start()..].starts_with(form.text.as_bytes()) {
                continue;
            }
            let range = hit.start()..hit.start() + form.text.len();
            found.push(match form.kind {
                FormKind::Exact => range,
                FormKind::Base64 => forms::surrounding_base64(text, range),
            });
        }
        found.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for range in found {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;

    use super::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        let redactor = Redactor::new();
        secrets.iter().for_each(|secret| redactor.add_text(secret));
        redactor
    }

    #[test]
    fn scrubs_the_raw_form_and_leaves_the_rest() {
        let redactor = redactor(&["hunter2-and-more"]);
        assert_eq!(redactor.redact("password hunter2-and-more refused"), "password <secret> refused");
        assert!(matches!(redactor.redact("nothing here"), Cow::Borrowed(_)));
    }

    #[test]
    fn scrubs_encoded_forms() {
        let secret = "p@ss word/+=ü\"\n1";
        let redactor = redactor(&[secret]);
        for text in [
            "token=p%40ss%20word%2F%2B%3D%C3%BC%22%0A1",
            "token=p%40ss%20word%2f%2b%3d%c3%bc%22%0a1",
            "token=p%40ss+word%2F%2B%3D%C3%BC%22%0A1",
            r#"{"token": "p@ss word/+=ü\"\n1"}"#,
            &format!("Basic {}", STANDARD.encode(format!("root:{secret}"))),
            &format!("Basic {}", URL_SAFE_NO_PAD.encode(format!("admin:{secret}:x"))),
            &hex::encode(secret),
        ] {
            let clean = redactor.redact(text);
            assert!(clean.contains(REDACTED), "{clean}");
            assert!(!clean.contains("ss") || clean.starts_with("Basic"), "{clean}");
        }
    }

    #[test]
    fn overlapping_secrets_leave_no_rest() {
        assert_eq!(redactor(&["abcdef", "defghi"]).redact("-abcdefghi-"), "-<secret>-");
    }

    #[test]
    fn a_line_of_a_key_is_a_secret_and_its_frame_is_not() {
        let redactor = redactor(&["-----BEGIN X-----\nMC4CAQAwBQYDK2Vw\n-----END X-----\n"]);
        assert_eq!(
            redactor.redact("  -----BEGIN X-----\n  MC4CAQAwBQYDK2Vw\n"),
            "  -----BEGIN X-----\n  <secret>\n"
        );
    }

    #[test]
    fn secrets_with_one_beginning_are_found_whole_and_their_beginning_is_no_secret() {
        let redactor = redactor(&[
            "one-long-beginning-and-an-end",
            "one-long-beginning-and-another",
            "one-long-beginning",
        ]);
        assert_eq!(redactor.redact("(one-long-beginning-and-another)"), "(<secret>)");
        assert_eq!(redactor.redact("(one-long-beginning-and-an-end)"), "(<secret>)");
        assert_eq!(redactor.redact("(one-long-beginning-and)"), "(<secret>-and)");
        assert_eq!(redactor.redact("one-long-begin"), "one-long-begin");
        assert_eq!(redactor.redact("one-long-beginnin"), "one-long-beginnin");
    }

    #[test]
    fn clones_learn_what_is_added_later() {
        let first = Redactor::new();
        let second = first.clone();
        assert_eq!(second.redact("late-secret"), "late-secret");
        first.add(&SecretString::from("late-secret"));
        assert_eq!(second.redact("late-secret"), REDACTED);
        assert!(second.is_in(b"\xff late-secret \xff"));
    }

    #[test]
    fn short_values_are_left_alone() {
        assert_eq!(redactor(&["yes", "1", ""]).redact("yes 1"), "yes 1");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn never_survives_in_any_form(secret in "\\PC{8,40}", before in "\\PC{0,20}", after in "\\PC{0,20}") {
            let redactor = redactor(&[&secret]);
            let joined = format!("{before}{secret}{after}");
            let url = percent_encoding::utf8_percent_encode(&joined, percent_encoding::NON_ALPHANUMERIC).to_string();
            for text in [joined.clone(), url, STANDARD.encode(&joined), hex::encode(&joined), serde_json::to_string(&joined).unwrap()] {
                prop_assert!(redactor.redact(&text).contains(REDACTED), "{}", text);
            }
        }
    }
}
