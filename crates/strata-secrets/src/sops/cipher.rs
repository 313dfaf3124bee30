//! One encrypted value: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`, bound to its path by the additional data.

use std::collections::HashMap;

use aes_gcm::aead::consts::U32;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::aes::Aes256;
use aes_gcm::{AesGcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use strata_secret::RandomSource;
use zeroize::Zeroizing;

use crate::value::Kind;

const NONCE: usize = 32;
const TAG: usize = 16;

/// The key of all values of one file.
#[derive(Clone, PartialEq)]
pub(crate) struct DataKey(Zeroizing<[u8; 32]>);

impl DataKey {
    pub(crate) fn generate(random: &mut dyn RandomSource) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        random.fill(key.as_mut_slice());
        Self(key)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self(Zeroizing::new(bytes.try_into().ok()?)))
    }

    pub(crate) fn expose(&self) -> &[u8] {
        self.0.as_slice()
    }

    fn cipher(&self) -> AesGcm<Aes256, U32> {
        AesGcm::new(self.0.as_slice().into())
    }
}

/// The parts of an encrypted value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    data: Vec<u8>,
    nonce: [u8; NONCE],
    tag: [u8; TAG],
    pub(crate) kind: Kind,
}

/// Whether a text was once an encrypted value, whole or damaged. Used where plain text is allowed too, so that a
/// damaged value is not taken for plain text.
pub(crate) fn resembles_token(text: &str) -> bool {
    ["ENC[", "AES256_GCM", ",data:", ",iv:", ",tag:", ",type:"]
        .iter()
        .filter(|mark| text.contains(**mark))
        .count()
        >= 3
}

impl Token {
    /// Reads the text form; the whole text must be one token.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parts = text.strip_prefix("ENC[AES256_GCM,data:")?.strip_suffix(']')?;
        let (data, rest) = parts.split_once(",iv:")?;
        let (nonce, rest) = rest.split_once(",tag:")?;
        let (tag, kind) = rest.split_once(",type:")?;
        let decode = |part: &str| STANDARD.decode(part).ok();
        Some(Token {
            data: decode(data)?,
            nonce: decode(nonce)?.try_into().ok()?,
            tag: decode(tag)?.try_into().ok()?,
            kind: Kind::from_name(kind)?,
        })
    }

    /// The plaintext, if the key and the additional data are the ones it was made with and nothing was changed.
    pub(crate) fn open(&self, key: &DataKey, additional: &str) -> Option<Zeroizing<Vec<u8>>> {
        let mut sealed = self.data.clone();
        sealed.extend_from_slice(&self.tag);
        let payload = Payload { msg: &sealed, aad: additional.as_bytes() };
        key.cipher().decrypt(Nonce::from_slice(&self.nonce), payload).ok().map(Zeroizing::new)
    }

    pub(crate) fn seal(
        key: &DataKey,
        additional: &str,
        kind: Kind,
        plaintext: &[u8],
        nonce: [u8; NONCE],
    ) -> Self {
        let payload = Payload { msg: plaintext, aad: additional.as_bytes() };
        let mut data = key
            .cipher()
            .encrypt(Nonce::from_slice(&nonce), payload)
            .expect("AES-GCM takes every length that fits in memory");
        let tag = data.split_off(data.len() - TAG);
        Token { data, nonce, tag: tag.try_into().expect("the tag has 16 bytes"), kind }
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "ENC[AES256_GCM,data:{},iv:{},tag:{},type:{}]",
            STANDARD.encode(&self.data),
            STANDARD.encode(self.nonce),
            STANDARD.encode(self.tag),
            self.kind.name()
        )
    }
}

/// The nonces of values that were read, so that an unchanged value keeps its ciphertext and an edit of one line
/// changes one line. A nonce is used again only for the very same plaintext and path.
#[derive(Clone, Default)]
pub(crate) struct Nonces(HashMap<[u8; 32], [u8; NONCE]>);

impl Nonces {
    pub(crate) fn remember(&mut self, token: &Token, additional: &str, plaintext: &[u8]) {
        self.0.entry(fingerprint(additional, plaintext)).or_insert(token.nonce);
    }

    pub(crate) fn next(
        &self,
        additional: &str,
        plaintext: &[u8],
        random: &mut dyn RandomSource,
    ) -> [u8; NONCE] {
        if let Some(known) = self.0.get(&fingerprint(additional, plaintext)) {
            return *known;
        }
        let mut fresh = [0; NONCE];
        random.fill(&mut fresh);
        fresh
    }
}

fn fingerprint(additional: &str, plaintext: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update((additional.len() as u64).to_be_bytes());
    hash.update(additional.as_bytes());
    hash.update(plaintext);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> DataKey {
        DataKey::from_bytes(&[byte; 32]).expect("32 bytes")
    }

    #[test]
    fn a_token_survives_its_text() {
        let token = Token::seal(&key(1), "a:b:", Kind::Int, b"42", [7; 32]);
        let text = token.to_string();
        assert!(text.starts_with("ENC[AES256_GCM,data:") && text.ends_with(",type:int]"), "{text}");
        let read = Token::parse(&text).expect("a token");
        assert_eq!(read, token);
        assert_eq!(read.open(&key(1), "a:b:").expect("same key and path").as_slice(), b"42");
    }

    #[test]
    fn another_key_path_or_byte_is_refused() {
        let token = Token::seal(&key(1), "a:", Kind::Text, b"secret", [7; 32]);
        assert!(token.open(&key(2), "a:").is_none());
        assert!(token.open(&key(1), "b:").is_none());
        for index in 0..token.data.len() {
            let mut changed = token.clone();
            changed.data[index] ^= 1;
            assert!(changed.open(&key(1), "a:").is_none());
        }
        let mut shorter = token;
        shorter.data.pop();
        assert!(shorter.open(&key(1), "a:").is_none());
    }

    #[test]
    fn anything_but_a_whole_token_is_no_token() {
        let text = Token::seal(&key(1), "a:", Kind::Text, b"secret", [7; 32]).to_string();
        for bad in [
            "",
            "plain",
            "ENC[AES256_GCM,data:,iv:,tag:,type:str]",
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text} "),
            &text.replace("type:str", "type:string"),
            &text.replace("AES256_GCM", "AES128_GCM"),
        ] {
            assert_eq!(Token::parse(bad), None, "{bad}");
        }
        assert!(resembles_token(&text[3..]));
        assert!(!resembles_token("use the ENC[...] form"));
    }

    #[test]
    fn an_unchanged_value_keeps_its_nonce_and_a_changed_one_does_not() {
        let mut nonces = Nonces::default();
        nonces.remember(&Token::seal(&key(1), "a:", Kind::Text, b"x", [7; 32]), "a:", b"x");
        let mut random = |buffer: &mut [u8]| buffer.fill(9);
        assert_eq!(nonces.next("a:", b"x", &mut random), [7; 32]);
        assert_eq!(nonces.next("a:", b"y", &mut random), [9; 32]);
        assert_eq!(nonces.next("b:", b"x", &mut random), [9; 32]);
    }
}
