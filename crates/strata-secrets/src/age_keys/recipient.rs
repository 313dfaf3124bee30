//! Recipients: X25519 and SSH public keys.

use std::io::Write as _;
use std::str::FromStr;

use age::armor::{ArmoredWriter, Format};

use super::AgeError;

/// Someone for whom a secret can be encrypted.
pub struct Recipient {
    text: String,
    key: Box<dyn age::Recipient + Send + Sync>,
}

impl Recipient {
    /// Reads `age1…`, `ssh-ed25519 …` or `ssh-rsa …`.
    pub fn parse(text: &str) -> Result<Self, AgeError> {
        let text = text.trim();
        let key: Box<dyn age::Recipient + Send + Sync> =
            if let Ok(key) = age::x25519::Recipient::from_str(text) {
                Box::new(key)
            } else if let Ok(key) = age::ssh::Recipient::from_str(text) {
                Box::new(key)
            } else if is_foreign(text) {
                return Err(AgeError::UnsupportedRecipient(text.to_owned()));
            } else {
                return Err(AgeError::NotARecipient(text.to_owned()));
            };
        Ok(Self { text: text.to_owned(), key })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Post-quantum recipients and those of plugins, which the age crate cannot encrypt for: `age1NAME1…`.
fn is_foreign(text: &str) -> bool {
    let name = text.strip_prefix("age1").and_then(|rest| rest.rsplit_once('1'));
    name.is_some_and(|(name, data)| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
            && data.bytes().all(|byte| b"qpzry9x8gf2tvdw0s3jn54khce6mua7l".contains(&byte))
    })
}

/// Refuses a text that no age program would take for a recipient; one of a kind that we cannot use is fine.
pub(crate) fn check(text: &str) -> Result<(), AgeError> {
    match Recipient::parse(text) {
        Ok(_) | Err(AgeError::UnsupportedRecipient(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Encrypts a few bytes so that each of the recipients can open them; the result is an armored age file.
pub(crate) fn wrap(secret: &[u8], recipients: &[&Recipient]) -> Result<String, AgeError> {
    let keys = recipients.iter().map(|recipient| &*recipient.key as &dyn age::Recipient);
    let encryptor = age::Encryptor::with_recipients(keys).map_err(|error| match error {
        age::EncryptError::MissingRecipients => AgeError::NoRecipients,
        other => AgeError::Damaged(other.to_string()),
    })?;
    let write = || -> std::io::Result<Vec<u8>> {
        let armored = ArmoredWriter::wrap_output(Vec::new(), Format::AsciiArmor)?;
        let mut writer = encryptor.wrap_output(armored)?;
        writer.write_all(secret)?;
        writer.finish()?.finish()
    };
    let armored = write().expect("writing to memory does not fail");
    Ok(String::from_utf8(armored).expect("armor is ASCII"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const X25519: &str = "age1eed4vev33ftsmnheqdnyt625qmzf0gjz9kpswkfraa9wvtqh9dls07tjgf";

    #[test]
    fn a_recipient_with_a_wrong_character_is_refused() {
        assert!(Recipient::parse(X25519).is_ok());
        for index in 4..X25519.len() {
            let mut changed = X25519.to_owned();
            let other = if &X25519[index..=index] == "q" { "p" } else { "q" };
            changed.replace_range(index..=index, other);
            assert!(check(&changed).is_err(), "{changed}");
        }
        assert!(check("ssh-ed25519 AAAA").is_err());
        assert!(check("").is_err());
    }

    #[test]
    fn a_recipient_of_a_plugin_is_kept_but_not_used() {
        let text = "age1yubikey1qwt50d05nh5vutpdzmlg5wn80xq5negm4uj9ghv0snvdd3yysf5yw3rhl3t";
        assert!(matches!(Recipient::parse(text), Err(AgeError::UnsupportedRecipient(_))));
        assert!(check(text).is_ok());
    }

    #[test]
    fn nobody_is_no_recipient() {
        assert!(matches!(wrap(b"x", &[]), Err(AgeError::NoRecipients)));
    }
}
