//! Identities: the private keys that open what was encrypted for their recipients.

use std::io::Read as _;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use age::armor::ArmoredReader;
use strata_secret::{SecretBytes, SecretString};
use zeroize::Zeroizing;

use super::AgeError;
use super::locate::KeyCommand;
use crate::prompt::{AgeQuestions, NoPrompt, Prompt};

/// No wrapped secret is longer than this: they are keys, or shares of keys.
const LONGEST_SECRET: u64 = 64 * 1024;

pub(super) type BoxedIdentity = Box<dyn age::Identity + Send + Sync>;

/// The identities at hand.
#[derive(Default)]
pub struct Identities {
    keys: Vec<BoxedIdentity>,
    /// The public half of the X25519 keys.
    recipients: Vec<String>,
    /// Gives keys by recipient, when asked.
    pub(super) commands: Vec<KeyCommand>,
    /// What was learnt from commands, by recipient.
    learnt: Mutex<Vec<(String, Arc<Identities>)>>,
    /// Where we looked and found nothing of use, for the message when nothing fits.
    pub(super) looked: Vec<String>,
}

impl Identities {
    /// Nothing can be opened with these.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads identities from text: lines of `AGE-SECRET-KEY-1…` with comments, or one SSH private key.
    pub fn parse(text: &SecretString) -> Result<Self, AgeError> {
        let mut identities = Self::default();
        identities.add_text(text.expose(), None, &(Arc::new(NoPrompt) as Arc<dyn Prompt>))?;
        Ok(identities)
    }

    /// The recipients that belong to these identities, as far as that is known without asking.
    pub fn recipients(&self) -> &[String] {
        &self.recipients
    }

    /// Whether there is nothing that could open anything.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.commands.is_empty()
    }

    pub(super) fn add_text(
        &mut self,
        text: &str,
        file: Option<&str>,
        prompt: &Arc<dyn Prompt>,
    ) -> Result<(), AgeError> {
        if text.trim_start().starts_with("-----BEGIN AGE ENCRYPTED FILE")
            || text.starts_with("age-encryption.org/")
        {
            let opened = open_with_passphrase(text.as_bytes(), file, prompt)?;
            let inner = std::str::from_utf8(&opened).map_err(|_| AgeError::NotAnIdentity)?;
            return self.add_lines(inner);
        }
        if text.contains("-----BEGIN") {
            return self.add_ssh(text, file, prompt);
        }
        self.add_lines(text)
    }

    pub(super) fn add_ssh(
        &mut self,
        text: &str,
        file: Option<&str>,
        prompt: &Arc<dyn Prompt>,
    ) -> Result<(), AgeError> {
        let key = age::ssh::Identity::from_buffer(text.as_bytes(), file.map(str::to_owned))
            .map_err(|_| AgeError::NotAnIdentity)?;
        if matches!(key, age::ssh::Identity::Unsupported(_)) {
            return Err(AgeError::NotAnIdentity);
        }
        self.keys.push(Box::new(key.with_callbacks(AgeQuestions(Arc::clone(prompt)))));
        Ok(())
    }

    fn add_lines(&mut self, text: &str) -> Result<(), AgeError> {
        let words =
            text.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(str::split_whitespace);
        for word in words {
            let key = age::x25519::Identity::from_str(word).map_err(|_| AgeError::NotAnIdentity)?;
            self.recipients.push(key.to_public().to_string());
            self.keys.push(Box::new(key));
        }
        Ok(())
    }

    /// Opens an armored or plain age file that is said to be for this recipient, if known.
    pub fn unwrap(&self, file: &str, recipient: Option<&str>) -> Result<Zeroizing<Vec<u8>>, AgeError> {
        self.open(file.as_bytes(), recipient, LONGEST_SECRET)
    }

    /// Opens an armored or plain age file of any size, such as a copy of a database.
    pub fn decrypt(&self, file: &[u8]) -> Result<SecretBytes, AgeError> {
        // The content is never longer than the file.
        self.open(file, None, file.len() as u64).map(|content| SecretBytes::from(content.to_vec()))
    }

    fn open(
        &self,
        file: &[u8],
        recipient: Option<&str>,
        longest: u64,
    ) -> Result<Zeroizing<Vec<u8>>, AgeError> {
        match decrypt(file, &self.keys, longest) {
            Err(AgeError::NoIdentity { .. }) => {}
            other => return other,
        }
        for command in &self.commands {
            match decrypt(file, &self.learn(command, recipient.unwrap_or_default()).keys, longest) {
                Err(AgeError::NoIdentity { .. }) => {}
                other => return other,
            }
        }
        Err(AgeError::NoIdentity { looked: self.looked.iter().map(|place| format!("\n  {place}")).collect() })
    }

    /// The keys that a command gives for a recipient; asked once for each.
    fn learn(&self, command: &KeyCommand, recipient: &str) -> Arc<Identities> {
        let mut learnt = self.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        let question = format!("{} {recipient}", command.variable);
        if let Some((_, known)) = learnt.iter().find(|(asked, _)| *asked == question) {
            return Arc::clone(known);
        }
        let answer = Arc::new(command.run(recipient));
        learnt.push((question, Arc::clone(&answer)));
        answer
    }
}

fn decrypt(file: &[u8], keys: &[BoxedIdentity], longest: u64) -> Result<Zeroizing<Vec<u8>>, AgeError> {
    use age::DecryptError;
    let classify = |error: DecryptError| match error {
        DecryptError::NoMatchingKeys => AgeError::NoIdentity { looked: String::new() },
        other => AgeError::Damaged(other.to_string()),
    };
    let decryptor = age::Decryptor::new(ArmoredReader::new(file)).map_err(classify)?;
    let keys = keys.iter().map(|key| &**key as &dyn age::Identity);
    let reader = decryptor.decrypt(keys).map_err(classify)?;
    let mut secret = Zeroizing::new(Vec::new());
    reader.take(longest).read_to_end(&mut secret).map_err(|error| AgeError::Damaged(error.to_string()))?;
    Ok(secret)
}

/// Identity files can themselves be encrypted with a passphrase.
fn open_with_passphrase(
    text: &[u8],
    file: Option<&str>,
    prompt: &Arc<dyn Prompt>,
) -> Result<Zeroizing<Vec<u8>>, AgeError> {
    let question = format!("passphrase of the age identity `{}`", file.unwrap_or("given"));
    let answer = prompt.secret(&question).ok_or_else(|| {
        AgeError::Damaged("its passphrase is needed, and there is nobody to ask".to_owned())
    })?;
    let passphrase = age::secrecy::SecretString::from(answer.expose().to_owned());
    let key: BoxedIdentity = Box::new(age::scrypt::Identity::new(passphrase));
    decrypt(text, &[key], LONGEST_SECRET)
}

#[cfg(test)]
mod tests {
    use age::secrecy::ExposeSecret as _;

    use super::*;
    use crate::age_keys::{Recipient, wrap};

    fn key_pair() -> (String, Recipient) {
        let key = age::x25519::Identity::generate();
        (
            key.to_string().expose_secret().to_owned(),
            Recipient::parse(&key.to_public().to_string()).expect("own key"),
        )
    }

    #[test]
    fn what_is_wrapped_for_two_is_opened_by_either() {
        let ((first, first_public), (second, second_public)) = (key_pair(), key_pair());
        let file = wrap(b"a secret", &[&first_public, &second_public]).expect("two recipients");
        assert!(file.ends_with("-----END AGE ENCRYPTED FILE-----\n"));
        for key in [first, second] {
            let text = SecretString::new(format!("# created: today\n{key}\n"));
            let identities = Identities::parse(&text).expect("an identity file");
            assert_eq!(identities.recipients().len(), 1);
            assert_eq!(identities.unwrap(&file, None).expect("its recipient").as_slice(), b"a secret");
        }
    }

    #[test]
    fn a_file_of_any_size_is_opened_whole() {
        let (identity, recipient) = key_pair();
        let content: Vec<u8> = (0..300_000u32).map(|byte| byte as u8).collect();
        let file = wrap(&content, &[&recipient]).expect("one recipient");
        let own = Identities::parse(&SecretString::new(identity)).expect("an identity");
        assert!(own.decrypt(file.as_bytes()).expect("whole").expose() == content);
        assert!(matches!(own.decrypt(&file.as_bytes()[..file.len() / 2]), Err(AgeError::Damaged(_))));
    }

    #[test]
    fn a_stranger_cannot_open_it_and_damage_is_seen() {
        let ((_, recipient), (other, _)) = (key_pair(), key_pair());
        let file = wrap(b"a secret", &[&recipient]).expect("one recipient");
        let other = Identities::parse(&SecretString::new(other)).expect("an identity");
        assert!(matches!(other.unwrap(&file, None), Err(AgeError::NoIdentity { .. })));
        assert!(matches!(other.unwrap(&file[..60], None), Err(AgeError::Damaged(_))));
        assert!(matches!(Identities::none().unwrap("", None), Err(AgeError::Damaged(_))));
    }

    #[test]
    fn text_that_is_no_identity_is_refused() {
        for text in ["AGE-SECRET-KEY-1", "age1eed", "-----BEGIN RSA PRIVATE KEY-----\nx\n"] {
            assert!(
                matches!(Identities::parse(&SecretString::from(text)), Err(AgeError::NotAnIdentity)),
                "{text}"
            );
        }
        assert!(Identities::parse(&SecretString::from("# nothing\n")).expect("an empty file").is_empty());
    }
}
