//! A SOPS file from the outside: read, open, change, and write again.

use jiff::Timestamp;
use strata_secret::{RandomSource, SecretBytes, SecretString};

use super::binary::{PlainBinary, SealedBinary};
use super::cipher::{DataKey, Nonces, Token};
use super::crypt::{self, Opened};
use super::dotenv::DotenvFile;
use super::format::{File, Format, Replacements, Writing};
use super::ini::IniFile;
use super::json::JsonFile;
use super::keys::{self, Recovered};
use super::lookup::{self, Named};
use super::metadata::{KeyGroup, Metadata};
use super::rule::RuleSetting;
use super::tree::{Document, Visited, walk};
use super::yaml::YamlFile;
use super::{SopsError, VERSION};
use crate::age_keys::Identities;
use crate::value::Value;
use crate::yaml::write::{Spot, write_text};

/// Who can read a file, and what of it is encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Recipients; several groups share the key by Shamir's scheme.
    pub groups: Vec<Vec<String>>,
    /// How many of several groups are needed; all of them if not given.
    pub threshold: Option<usize>,
    pub rule: RuleSetting,
    pub mac_only_encrypted: bool,
}

/// An encrypted file whose keys can be read and whose values cannot.
pub struct SopsFile {
    pub(super) format: Format,
    pub(super) file: AnyFile,
    pub(super) metadata: Metadata,
}

/// An encrypted file and its decrypted values.
pub struct OpenFile {
    pub(super) source: SopsFile,
    pub(super) recovered: Recovered,
    opened: Opened,
}

type AnyFile = Box<dyn File + Send + Sync>;

fn parse_sealed(content: &[u8], format: Format) -> Result<AnyFile, SopsError> {
    match format {
        Format::Binary => Ok(Box::new(SealedBinary::parse(text(content)?)?)),
        _ => parse_plain(content, format),
    }
}

fn parse_plain(content: &[u8], format: Format) -> Result<AnyFile, SopsError> {
    Ok(match format {
        Format::Yaml => Box::new(YamlFile::parse(text(content)?)?),
        Format::Json => Box::new(JsonFile::parse(text(content)?)?),
        Format::Dotenv => Box::new(DotenvFile::parse(text(content)?)?),
        Format::Ini => Box::new(IniFile::parse(text(content)?)?),
        Format::Binary => Box::new(PlainBinary::new(content)),
    })
}

fn text(content: &[u8]) -> Result<&str, SopsError> {
    std::str::from_utf8(content).map_err(|_| SopsError::NotText)
}

/// Whether this is a file that SOPS encrypted, as far as its metadata says.
pub fn is_encrypted(content: &[u8], format: Format) -> bool {
    SopsFile::parse(content, format).is_ok()
}

/// Encrypts a plain file.
pub fn encrypt(
    plain: &SecretBytes,
    format: Format,
    settings: &Settings,
    now: Timestamp,
    random: &mut dyn RandomSource,
) -> Result<Vec<u8>, SopsError> {
    let key = DataKey::generate(random);
    let metadata = Metadata {
        groups: keys::distribute(&key, &settings.groups, settings.threshold, random)?,
        threshold: (settings.groups.len() > 1).then(|| settings.threshold.unwrap_or(settings.groups.len())),
        rule: settings.rule.clone(),
        mac_only_encrypted: settings.mac_only_encrypted,
        last_modified: String::new(),
        mac: String::new(),
        version: VERSION.to_owned(),
    };
    let parts = vec![None; metadata.groups.len()];
    seal(plain, format, metadata, &Recovered { key, parts }, &Default::default(), now, random)
}

pub(super) fn seal(
    plain: &SecretBytes,
    format: Format,
    mut metadata: Metadata,
    recovered: &Recovered,
    nonces: &Nonces,
    now: Timestamp,
    random: &mut dyn RandomSource,
) -> Result<Vec<u8>, SopsError> {
    let file = parse_plain(plain.expose(), format)?;
    if file.metadata()?.is_some() {
        return Err(SopsError::AlreadyEncrypted);
    }
    let rule = metadata.rule.compile()?;
    let only = metadata.mac_only_encrypted;
    let (replacements, mac) = crypt::seal(file.documents(), &rule, only, &recovered.key, nonces, random)?;
    metadata.last_modified = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    metadata.mac = crypt::seal_mac(&mac, &metadata.mac_binding()?, &recovered.key, random);
    let sealed = file.render(&replacements, Some(&metadata.to_meta()), Writing::Usual)?;
    // What cannot be read back must not replace what can.
    let again = SopsFile::parse(&sealed, format)?;
    let opened = crypt::open(again.file.documents(), &again.metadata, &recovered.key)?;
    let (before, after) =
        (values(file.documents()), lookup::values(again.file.documents(), &opened.replacements));
    if again.metadata == metadata && lookup::same(&before, &after) {
        Ok(sealed)
    } else {
        Err(SopsError::NotReadBack)
    }
}

fn is_sealed(value: &Value) -> bool {
    value.is_empty_text() || value.as_str().is_some_and(|text| Token::parse(text).is_some())
}

fn values(documents: &[Document]) -> Vec<Named> {
    lookup::values(documents, &Replacements::new())
}

impl SopsFile {
    pub fn parse(content: &[u8], format: Format) -> Result<Self, SopsError> {
        let file = parse_sealed(content, format)?;
        let metadata = Metadata::from_meta(&file.metadata()?.ok_or(SopsError::NotEncryptedFile)?)?;
        Ok(Self { format, file, metadata })
    }

    /// The names of all values. Nothing is decrypted for this.
    pub fn names(&self) -> Vec<Vec<String>> {
        values(self.file.documents()).into_iter().map(|named| named.path).collect()
    }

    /// The names of the values that are encrypted. An empty text has nothing to encrypt and counts as well.
    pub fn encrypted_names(&self) -> Vec<Vec<String>> {
        let sealed = values(self.file.documents()).into_iter().filter(|named| is_sealed(&named.value));
        sealed.map(|named| named.path).collect()
    }

    /// The names of values that should be encrypted and are not, such as one that was added by hand. Such a file
    /// does not open.
    pub fn plain_values(&self) -> Vec<String> {
        let mut plain = Vec::new();
        let Ok(rule) = self.metadata.rule.compile() else { return plain };
        let walked = walk(self.file.documents(), &mut |place, visited| {
            if let Visited::Value(leaf) = visited
                && !is_sealed(&leaf.value)
                && rule.encrypts(place, false)
            {
                plain.push(place.path.join("."));
            }
            Ok(())
        });
        debug_assert!(walked.is_ok(), "the visitor never fails");
        plain
    }

    /// The age recipients, by group.
    pub fn recipients(&self) -> Vec<Vec<&str>> {
        let groups = self.metadata.groups.iter();
        groups.map(|group| group.age.iter().map(|entry| entry.recipient.as_str()).collect()).collect()
    }

    /// How many keys of PGP or of cloud services the file lists, which only other programs can use.
    pub fn foreign_keys(&self) -> usize {
        self.metadata.groups.iter().map(KeyGroup::foreign_count).sum()
    }

    /// What the file was encrypted with, without its foreign keys.
    pub fn settings(&self) -> Settings {
        let owned = |group: Vec<&str>| group.into_iter().map(str::to_owned).collect();
        Settings {
            groups: self.recipients().into_iter().map(owned).collect(),
            threshold: self.metadata.threshold,
            rule: self.metadata.rule.clone(),
            mac_only_encrypted: self.metadata.mac_only_encrypted,
        }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Decrypts all values and checks the MAC.
    pub fn open(self, identities: &Identities) -> Result<OpenFile, SopsError> {
        let recovered = keys::recover(&self.metadata, identities)?;
        let opened = crypt::open(self.file.documents(), &self.metadata, &recovered.key)?;
        Ok(OpenFile { source: self, recovered, opened })
    }
}

impl OpenFile {
    /// The file in the clear, with its layout kept.
    pub fn plaintext(&self) -> Result<SecretBytes, SopsError> {
        let expected = lookup::values(self.source.file.documents(), &self.opened.replacements);
        for writing in [Writing::Usual, Writing::Quoted] {
            let plain =
                SecretBytes::from(self.source.file.render(&self.opened.replacements, None, writing)?);
            let reads_back = |plain: &SecretBytes| {
                let file = parse_plain(plain.expose(), self.source.format).ok()?;
                lookup::same(&expected, &values(file.documents())).then_some(())
            };
            if reads_back(&plain).is_some() {
                return Ok(plain);
            }
        }
        Err(SopsError::NotReadBack)
    }

    /// All values as text, by name. Null has no text and is left out.
    pub fn values(&self) -> Vec<(Vec<String>, SecretBytes)> {
        lookup::values(self.source.file.documents(), &self.opened.replacements)
            .into_iter()
            .filter(|named| named.value.kind().is_some())
            .map(|named| (named.path, SecretBytes::new(named.value.to_plain_text().to_vec())))
            .collect()
    }

    /// One value as text.
    pub fn get(&self, path: &[&str]) -> Option<SecretString> {
        let mut values = self.values().into_iter();
        let (_, value) = values.find(|(found, _)| found.iter().eq(path.iter()))?;
        value.into_string().ok()
    }

    pub fn source(&self) -> &SopsFile {
        &self.source
    }

    /// The file with new plain content, encrypted with the same key for the same recipients. Values that did not
    /// change keep their ciphertext. `None` if nothing changed.
    pub fn edit(
        &self,
        plain: &SecretBytes,
        now: Timestamp,
        random: &mut dyn RandomSource,
    ) -> Result<Option<Vec<u8>>, SopsError> {
        if self.plaintext()? == *plain {
            return Ok(None);
        }
        let metadata = self.source.metadata.clone();
        seal(plain, self.source.format, metadata, &self.recovered, &self.opened.nonces, now, random).map(Some)
    }
}

/// A YAML file with one line for each name and value, to be encrypted.
pub fn plain_yaml(values: &[(&str, &SecretString)]) -> SecretBytes {
    let mut text = zeroize::Zeroizing::new(String::new());
    for (name, value) in values {
        let name = write_text(name, Spot::Flow, false);
        let value = write_text(value.expose(), Spot::Value(0), true);
        text.push_str(&format!("{}: {}{}\n", name.head, value.head, value.block));
    }
    SecretBytes::new(text.as_bytes())
}
