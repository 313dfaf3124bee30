//! The text form of a vault: a header, and hexadecimal digits in lines of 80.

use super::VaultError;
use super::cipher::Sealed;

/// What every vault starts with.
pub(super) const MARK: &str = "$ANSIBLE_VAULT;";

const WIDTH: usize = 80;

pub(super) struct Envelope {
    /// Only version 1.2 has one.
    pub(super) id: Option<String>,
    pub(super) sealed: Sealed,
}

impl Envelope {
    pub(super) fn parse(content: &[u8]) -> Result<Self, VaultError> {
        let text = std::str::from_utf8(content).map_err(|_| VaultError::NotAVault)?;
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default().trim_end();
        let fields = header.strip_prefix(MARK).ok_or(VaultError::NotAVault)?;
        let fields: Vec<&str> = fields.split(';').map(str::trim).collect();
        let id = match fields.as_slice() {
            ["1.1", "AES256"] => None,
            ["1.2", "AES256", id] if !id.is_empty() => Some((*id).to_owned()),
            [version, cipher, ..] => {
                return Err(VaultError::Unsupported {
                    version: (*version).to_owned(),
                    cipher: (*cipher).to_owned(),
                });
            }
            _ => return Err(VaultError::NotAVault),
        };
        let digits: String = lines.collect();
        let inner = unhex(digits.trim_end().as_bytes())?;
        let mut parts = inner.splitn(3, |byte| *byte == b'\n');
        let mut part = || unhex(parts.next().ok_or(VaultError::Damaged("a part is missing"))?);
        let sealed = Sealed { salt: part()?, hmac: part()?, ciphertext: part()? };
        if sealed.hmac.len() != 32 || sealed.salt.is_empty() || sealed.ciphertext.is_empty() {
            return Err(VaultError::Damaged("a part is missing"));
        }
        Ok(Self { id, sealed })
    }
}

/// Takes lower case only, as it is written: two spellings of one vault would be a change that nobody sees.
fn unhex(digits: &[u8]) -> Result<Vec<u8>, VaultError> {
    if digits.iter().any(u8::is_ascii_uppercase) {
        return Err(VaultError::Damaged("an upper-case digit"));
    }
    hex::decode(digits).map_err(|_| VaultError::Damaged("not hexadecimal digits"))
}

impl std::fmt::Display for Envelope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.id.as_deref() {
            None | Some("default") => writeln!(f, "{MARK}1.1;AES256")?,
            Some(id) => writeln!(f, "{MARK}1.2;AES256;{id}")?,
        }
        let Sealed { salt, hmac, ciphertext } = &self.sealed;
        let inner = [hex::encode(salt), hex::encode(hmac), hex::encode(ciphertext)].join("\n");
        let digits = hex::encode(inner);
        for start in (0..digits.len()).step_by(WIDTH) {
            writeln!(f, "{}", &digits[start..digits.len().min(start + WIDTH)])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Sealed {
        Sealed { salt: vec![1; 32], hmac: vec![2; 32], ciphertext: vec![3; 48] }
    }

    #[test]
    fn an_envelope_survives_its_text() {
        for id in [None, Some("prod".to_owned())] {
            let text = Envelope { id: id.clone(), sealed: sealed() }.to_string();
            assert!(text.lines().all(|line| line.len() <= 80));
            let read = Envelope::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((read.id, read.sealed), (id, sealed()));
        }
    }

    #[test]
    fn what_is_no_vault_is_refused() {
        let good = Envelope { id: None, sealed: sealed() }.to_string();
        for bad in [
            "",
            "plain: text\n",
            "$ANSIBLE_VAULT;1.1;AES256\n",
            "$ANSIBLE_VAULT;1.0;AES\n00\n",
            "$ANSIBLE_VAULT;1.2;AES256\n00\n",
            "$ANSIBLE_VAULT;1.1;AES256\nzz\n",
            &good.to_uppercase(),
            &good[..good.len() - 40],
        ] {
            assert!(Envelope::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
