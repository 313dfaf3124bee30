//! Opening and sealing a whole tree, and the MAC over it.

use sha2::{Digest, Sha512};
use strata_secret::RandomSource;
use subtle::ConstantTimeEq;

use super::SopsError;
use super::cipher::{DataKey, Nonces, Token, resembles_token};
use super::format::{Replacement, Replacements};
use super::metadata::Metadata;
use super::rule::Rule;
use super::tree::{Comment, Document, Leaf, TreePosition, Visited, walk};
use crate::value::{Kind, Value};

/// What the MAC starts with if only encrypted values count: the SHA-256 of `sops`, so that the two kinds differ.
const ONLY_ENCRYPTED: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b, 0x0b,
    0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

/// A digest over all values in their order. Comments are not part of it, as in SOPS.
struct Mac {
    hash: Sha512,
    only_encrypted: bool,
}

impl Mac {
    fn new(only_encrypted: bool) -> Self {
        let mut hash = Sha512::new();
        if only_encrypted {
            hash.update(ONLY_ENCRYPTED);
        }
        Self { hash, only_encrypted }
    }

    fn add(&mut self, value: &Value, encrypted: bool) {
        if encrypted || !self.only_encrypted {
            self.hash.update(value.to_bytes().as_slice());
        }
    }

    fn finish(self) -> String {
        hex::encode_upper(self.hash.finalize())
    }
}

/// A tree that was decrypted.
pub(crate) struct Opened {
    pub(crate) replacements: Replacements,
    pub(crate) nonces: Nonces,
}

/// Decrypts every value and checks the MAC. Anything that does not fit is refused as a whole.
pub(crate) fn open(documents: &[Document], metadata: &Metadata, key: &DataKey) -> Result<Opened, SopsError> {
    let rule = metadata.rule.compile()?;
    let mut opened = Opened { replacements: Replacements::new(), nonces: Nonces::default() };
    let mut mac = Mac::new(metadata.mac_only_encrypted);
    walk(documents, &mut |place, visited| match visited {
        Visited::Value(leaf) => open_value(place, leaf, &rule, key, &mut opened, &mut mac),
        Visited::Comment(comment) => open_comment(place, comment, key, &mut opened),
    })?;
    check_mac(metadata, key, &mac.finish())?;
    Ok(opened)
}

fn check_mac(metadata: &Metadata, key: &DataKey, computed: &str) -> Result<(), SopsError> {
    let binding = metadata.mac_binding()?;
    let stored = Token::parse(&metadata.mac)
        .and_then(|token| token.open(key, &binding))
        .ok_or(SopsError::MacUnreadable)?;
    if stored.as_slice().ct_eq(computed.as_bytes()).into() { Ok(()) } else { Err(SopsError::MacMismatch) }
}

fn open_value(
    place: &TreePosition<'_>,
    leaf: &Leaf,
    rule: &Rule,
    key: &DataKey,
    opened: &mut Opened,
    mac: &mut Mac,
) -> Result<(), SopsError> {
    if !rule.encrypts(place, false) || leaf.value.is_empty_text() {
        mac.add(&leaf.value, false);
        return Ok(());
    }
    let path = || place.path.join(".");
    let token =
        leaf.value.as_str().and_then(Token::parse).ok_or_else(|| SopsError::NotEncrypted { path: path() })?;
    let additional = place.additional();
    let plaintext = token.open(key, &additional).ok_or_else(|| SopsError::Tampered { path: path() })?;
    opened.nonces.remember(&token, &additional, &plaintext);
    let replacement = if token.kind == Kind::Comment {
        let text = String::from_utf8(plaintext.to_vec()).map_err(|_| SopsError::Tampered { path: path() })?;
        Replacement::Comment(text)
    } else {
        let value =
            Value::from_bytes(token.kind, plaintext).ok_or_else(|| SopsError::Tampered { path: path() })?;
        mac.add(&value, true);
        Replacement::Value(value)
    };
    opened.replacements.insert(leaf.slot, replacement);
    Ok(())
}

fn open_comment(
    place: &TreePosition<'_>,
    comment: &Comment,
    key: &DataKey,
    opened: &mut Opened,
) -> Result<(), SopsError> {
    // A comment in plain text is no reason to refuse a file: someone may have written it beside the encrypted values.
    if !resembles_token(&comment.text) {
        return Ok(());
    }
    let refused = || SopsError::TamperedComment { path: place.path.join(".") };
    let token =
        Token::parse(&comment.text).filter(|token| token.kind == Kind::Comment).ok_or_else(refused)?;
    let own = place.additional();
    let candidates = [&own].into_iter().chain(&comment.neighbours);
    let (additional, plaintext) = candidates
        .filter_map(|additional| token.open(key, additional).map(|plaintext| (additional, plaintext)))
        .next()
        .ok_or_else(refused)?;
    opened.nonces.remember(&token, additional, &plaintext);
    let text = String::from_utf8(plaintext.to_vec()).map_err(|_| refused())?;
    opened.replacements.insert(comment.slot, Replacement::Comment(text));
    Ok(())
}

/// Encrypts every value that the rule names. Returns the changes and the MAC in the clear.
pub(crate) fn seal(
    documents: &[Document],
    rule: &Rule,
    only_encrypted: bool,
    key: &DataKey,
    nonces: &Nonces,
    random: &mut dyn RandomSource,
) -> Result<(Replacements, String), SopsError> {
    let mut replacements = Replacements::new();
    let mut mac = Mac::new(only_encrypted);
    walk(documents, &mut |place, visited| {
        let additional = place.additional();
        match visited {
            Visited::Value(leaf) => {
                let encrypted = rule.encrypts(place, false);
                mac.add(&leaf.value, encrypted);
                if let (true, false, Some(kind)) = (encrypted, leaf.value.is_empty_text(), leaf.value.kind())
                {
                    let plaintext = leaf.value.to_bytes();
                    let nonce = nonces.next(&additional, &plaintext, random);
                    let token = Token::seal(key, &additional, kind, &plaintext, nonce);
                    replacements.insert(leaf.slot, Replacement::Token(token.to_string()));
                }
            }
            Visited::Comment(comment) => {
                if rule.encrypts(place, true) && !comment.text.is_empty() {
                    let plaintext = comment.text.as_bytes();
                    let nonce = nonces.next(&additional, plaintext, random);
                    let token = Token::seal(key, &additional, Kind::Comment, plaintext, nonce).to_string();
                    if rule.is_confused_by(&token) {
                        return Err(SopsError::ConfusingRule);
                    }
                    replacements.insert(comment.slot, Replacement::Comment(token));
                }
            }
        }
        Ok(())
    })?;
    Ok((replacements, mac.finish()))
}

/// The MAC, encrypted and bound to the time of the change.
pub(crate) fn seal_mac(mac: &str, binding: &str, key: &DataKey, random: &mut dyn RandomSource) -> String {
    let mut nonce = [0; 32];
    random.fill(&mut nonce);
    Token::seal(key, binding, Kind::Text, mac.as_bytes(), nonce).to_string()
}
