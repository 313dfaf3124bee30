//! Documents and journals as the bytes that stores keep: as they are, or encrypted. Stores know no other form of them.

mod encryption;

use serde::{Deserialize, Serialize};
use strata_resource::Lineage;

use crate::document::ENCRYPTED_FORMAT;
use crate::journal::{line_of, parse_lines};
use crate::{FORMAT, JournalRecord, StateDocument, StoreError};
pub use encryption::{Encryption, KeySource, KeyWrap};
use encryption::{Sealed, Unreadable};

/// How documents and journals become bytes. One for each open store: it remembers derived keys.
#[derive(Clone, Default)]
pub struct Codec {
    encryption: Option<std::sync::Arc<Encryption>>,
}

/// What can be read of every document without a key.
#[derive(Deserialize)]
struct Header {
    format: u32,
    serial: u64,
}

#[derive(Serialize, Deserialize)]
struct SealedDocument {
    format: u32,
    lineage: Lineage,
    serial: u64,
    key: String,
    encrypted: Sealed,
}

#[derive(Serialize, Deserialize)]
struct SealedRecord {
    id: u64,
    encrypted: Sealed,
}

/// What an encrypted document is bound to: it cannot be passed off as another one.
fn document_place(key: &str, lineage: &Lineage, serial: u64) -> Vec<u8> {
    format!("strata state\0{key}\0{lineage}\0{serial}").into_bytes()
}

fn record_place(key: &str, id: u64) -> Vec<u8> {
    format!("strata journal\0{key}\0{id}").into_bytes()
}

impl Codec {
    pub fn plain() -> Self {
        Self::default()
    }

    pub fn encrypted(encryption: Encryption) -> Self {
        Self { encryption: Some(std::sync::Arc::new(encryption)) }
    }

    pub fn encode(&self, document: &StateDocument) -> Result<Vec<u8>, StoreError> {
        let failed = |error: serde_json::Error| StoreError::Io {
            what: "cannot write the state".to_owned(),
            source: error.into(),
        };
        let mut bytes = match self.encryption.as_ref().filter(|encryption| encryption.encrypts()) {
            None => serde_json::to_vec_pretty(document).map_err(failed)?,
            Some(encryption) => {
                let StateDocument { lineage, serial, key, .. } = document;
                let plain = zeroize::Zeroizing::new(serde_json::to_vec(document).map_err(failed)?);
                let sealed = encryption
                    .seal(&plain, &document_place(key, lineage, *serial))
                    .map_err(|reason| StoreError::Sealed { key: key.clone(), reason })?;
                let sealed = SealedDocument {
                    format: ENCRYPTED_FORMAT,
                    lineage: lineage.clone(),
                    serial: *serial,
                    key: key.clone(),
                    encrypted: sealed,
                };
                serde_json::to_vec_pretty(&sealed).map_err(failed)?
            }
        };
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// `key` is what the document is asked for by.
    pub fn decode(&self, key: &str, bytes: &[u8]) -> Result<StateDocument, StoreError> {
        let damaged = |error: serde_json::Error| StoreError::Damaged {
            key: key.to_owned(),
            reason: if bytes.is_empty() { "it is empty".to_owned() } else { error.to_string() },
            newest_good: None,
        };
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format } = serde_json::from_slice(bytes).map_err(damaged)?;
        match format {
            ..=FORMAT if self.takes_plain() => serde_json::from_slice(bytes).map_err(damaged),
            ..=FORMAT => Err(StoreError::Sealed {
                key: key.to_owned(),
                reason: "it is not encrypted, and `state.encryption` wants it to be".to_owned(),
            }),
            ENCRYPTED_FORMAT => {
                let sealed: SealedDocument = serde_json::from_slice(bytes).map_err(damaged)?;
                let place = document_place(key, &sealed.lineage, sealed.serial);
                let plain = self.open(key, &sealed.encrypted, &place)?;
                serde_json::from_slice(&plain).map_err(damaged)
            }
            _ => Err(StoreError::Newer { key: key.to_owned(), format, known: ENCRYPTED_FORMAT }),
        }
    }

    /// The serial of a document, which needs no key.
    pub(crate) fn serial(&self, key: &str, bytes: &[u8]) -> Result<u64, StoreError> {
        match serde_json::from_slice(bytes) {
            Ok(Header { format, .. }) if format > ENCRYPTED_FORMAT => {
                Err(StoreError::Newer { key: key.to_owned(), format, known: ENCRYPTED_FORMAT })
            }
            Ok(Header { serial, .. }) => Ok(serial),
            Err(_) => self.decode(key, bytes).map(|document| document.serial),
        }
    }

    pub fn encode_journal(&self, key: &str, records: &[JournalRecord]) -> Result<Vec<u8>, StoreError> {
        let failed = |error: serde_json::Error| StoreError::Io {
            what: "cannot write the journal".to_owned(),
            source: error.into(),
        };
        let mut bytes = Vec::new();
        for record in records {
            let line = match self.encryption.as_ref().filter(|encryption| encryption.encrypts()) {
                None => record.to_line(),
                Some(encryption) => {
                    let id = record.id();
                    let plain = zeroize::Zeroizing::new(serde_json::to_vec(record).map_err(failed)?);
                    let encrypted = encryption
                        .seal(&plain, &record_place(key, id))
                        .map_err(|reason| StoreError::Sealed { key: key.to_owned(), reason })?;
                    line_of(&SealedRecord { id, encrypted })
                }
            };
            bytes.extend_from_slice(line.map_err(failed)?.as_bytes());
        }
        Ok(bytes)
    }

    pub fn decode_journal(&self, key: &str, text: &[u8]) -> Result<Vec<JournalRecord>, StoreError> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Line {
            Sealed(SealedRecord),
            Plain(JournalRecord),
        }
        let lines =
            parse_lines(text, |json| serde_json::from_slice::<Line>(json).map_err(|error| error.to_string()));
        let lines = lines.map_err(|damage| StoreError::Journal { key: key.to_owned(), damage })?;
        let mut records = Vec::with_capacity(lines.len());
        for (index, line) in lines.into_iter().enumerate() {
            let damaged = |reason: &str| {
                let damage = crate::DamagedJournal { line: index + 1, reason: reason.to_owned() };
                StoreError::Journal { key: key.to_owned(), damage }
            };
            records.push(match line {
                Line::Plain(record) if self.takes_plain() => record,
                Line::Plain(_) => return Err(damaged("it is not encrypted")),
                Line::Sealed(SealedRecord { id, encrypted }) => {
                    let plain = self.open(key, &encrypted, &record_place(key, id))?;
                    serde_json::from_slice(&plain).map_err(|error| damaged(&error.to_string()))?
                }
            });
        }
        Ok(records)
    }

    /// What anybody could have written is not taken for what we wrote, once states are encrypted.
    fn takes_plain(&self) -> bool {
        self.encryption.as_ref().is_none_or(|encryption| encryption.takes_plain())
    }

    fn open(
        &self,
        key: &str,
        sealed: &Sealed,
        place: &[u8],
    ) -> Result<zeroize::Zeroizing<Vec<u8>>, StoreError> {
        let opened = match &self.encryption {
            Some(encryption) => encryption.open(sealed, place),
            None => {
                Err(Unreadable("it is encrypted, and `strata.yaml` has no `state.encryption`".to_owned()))
            }
        };
        opened.map_err(|Unreadable(reason)| StoreError::Sealed { key: key.to_owned(), reason })
    }
}

#[cfg(test)]
mod tests {
    use strata_secret::SecretString;

    use super::*;
    use crate::Action;

    const KEY: &str = "dev/web";

    fn document() -> StateDocument {
        let mut document = StateDocument::new(Lineage::derive("r", KEY), KEY);
        document.serial = 7;
        document.outputs.insert("where".into(), strata_resource::Value::Text("192.0.2.10".into()));
        document
    }

    fn begin() -> JournalRecord {
        JournalRecord::Begin(crate::OpenEntry {
            id: 3,
            action: Action::Create,
            address: crate::test_kinds::address("web/vm/web-1"),
            target: "pve".into(),
            identity: Default::default(),
            spec_digest: "00".into(),
            becomes: None,
            begun: 0,
            tasks: Vec::new(),
            to: None,
        })
    }

    fn passphrase(text: &str) -> KeySource {
        KeySource::passphrase(SecretString::new(text), 1000)
    }

    fn codec(current: Option<&str>, previous: &[&str], takes_plain: bool) -> Codec {
        let previous = previous.iter().map(|text| passphrase(text)).collect();
        Codec::encrypted(Encryption::new(current.map(passphrase), previous, takes_plain))
    }

    #[test]
    fn serial_and_lineage_are_readable_and_nothing_else_is() {
        let bytes = codec(Some("correct horse"), &[], false).encode(&document()).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(json["serial"], 7);
        assert_eq!(json["lineage"], document().lineage.to_string());
        assert!(!String::from_utf8(bytes.clone()).unwrap().contains("192.0.2.10"));
        assert_eq!(Codec::plain().serial(KEY, &bytes).unwrap(), 7);
        let again = codec(Some("correct horse"), &[], false);
        assert_eq!(again.decode(KEY, &bytes).unwrap(), document());
    }

    #[test]
    fn without_the_key_nothing_is_read() {
        let bytes = codec(Some("correct horse"), &[], false).encode(&document()).unwrap();
        for wrong in [Codec::plain(), codec(Some("battery staple"), &[], false)] {
            let error = wrong.decode(KEY, &bytes).unwrap_err();
            assert!(matches!(error, StoreError::Sealed { .. }), "{error}");
        }
    }

    #[test]
    fn an_encrypted_document_is_bound_to_its_place() {
        let codec = codec(Some("correct horse"), &[], false);
        let bytes = codec.encode(&document()).unwrap();
        assert!(matches!(codec.decode("dev/other", &bytes), Err(StoreError::Sealed { .. })));
        let raised = String::from_utf8(bytes).unwrap().replace("\"serial\": 7", "\"serial\": 8");
        assert!(matches!(codec.decode(KEY, raised.as_bytes()), Err(StoreError::Sealed { .. })));
    }

    #[test]
    fn a_key_is_rotated_by_reading_with_the_old_and_writing_with_the_new() {
        let bytes = codec(Some("old"), &[], false).encode(&document()).unwrap();
        let both = codec(Some("new"), &["older", "old"], false);
        assert_eq!(both.decode(KEY, &bytes).unwrap(), document());
        let bytes = both.encode(&document()).unwrap();
        assert_eq!(codec(Some("new"), &[], false).decode(KEY, &bytes).unwrap(), document());
        assert!(codec(Some("old"), &[], false).decode(KEY, &bytes).is_err());
    }

    #[test]
    fn the_way_in_and_out_of_encryption_is_said_aloud() {
        let plain = Codec::plain().encode(&document()).unwrap();
        assert!(matches!(codec(Some("new"), &[], false).decode(KEY, &plain), Err(StoreError::Sealed { .. })));
        assert_eq!(codec(Some("new"), &[], true).decode(KEY, &plain).unwrap(), document());
        let sealed = codec(Some("new"), &[], false).encode(&document()).unwrap();
        let out = codec(None, &["new"], true);
        assert_eq!(out.decode(KEY, &sealed).unwrap(), document());
        assert_eq!(Codec::plain().decode(KEY, &out.encode(&document()).unwrap()).unwrap(), document());
    }

    #[test]
    fn journals_are_encrypted_line_by_line() {
        let codec = codec(Some("correct horse"), &[], false);
        let text = codec.encode_journal(KEY, &[begin(), begin()]).unwrap();
        assert!(!String::from_utf8(text.clone()).unwrap().contains("web-1"));
        assert_eq!(codec.decode_journal(KEY, &text).unwrap(), [begin(), begin()]);
        let (first, _) = text.split_at(text.len() / 2 + 10);
        assert_eq!(codec.decode_journal(KEY, first).unwrap(), [begin()], "a torn line is dropped");
        assert!(Codec::plain().decode_journal(KEY, &text).is_err());
        let plain = Codec::plain().encode_journal(KEY, &[begin()]).unwrap();
        assert!(codec.decode_journal(KEY, &plain).is_err(), "a forged line is not taken");
    }

    #[test]
    fn a_key_can_be_wrapped_by_something_else() {
        /// Turns every bit: enough to see that the key goes through it.
        struct Turned;
        impl KeyWrap for Turned {
            fn wrap(&self, key: &[u8; 32]) -> Result<String, String> {
                Ok(hex::encode(key.map(|byte| !byte)))
            }
            fn unwrap(&self, wrapped: &str) -> Result<zeroize::Zeroizing<[u8; 32]>, String> {
                let bytes = hex::decode(wrapped).map_err(|error| error.to_string())?;
                let key: [u8; 32] = bytes.try_into().map_err(|_| "not a key".to_owned())?;
                Ok(zeroize::Zeroizing::new(key.map(|byte| !byte)))
            }
        }
        let source = || KeySource::Wrapped(std::sync::Arc::new(Turned));
        let codec = Codec::encrypted(Encryption::new(Some(source()), Vec::new(), false));
        let bytes = codec.encode(&document()).unwrap();
        let again = Codec::encrypted(Encryption::new(Some(source()), Vec::new(), false));
        assert_eq!(again.decode(KEY, &bytes).unwrap(), document());
    }
}
