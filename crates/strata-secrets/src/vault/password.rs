//! Passwords of vaults: from a file, from a script, from the environment, or from a person.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_secret::SecretString;
use zeroize::Zeroizing;

use super::VaultError;
use crate::prompt::{NoPrompt, Prompt};
use crate::{Environment, command};

/// A password, for vaults with an id or for any.
#[derive(Clone)]
pub struct VaultPassword {
    pub id: Option<String>,
    pub password: SecretString,
}

impl VaultPassword {
    pub fn new(id: Option<&str>, password: SecretString) -> Result<Self, VaultError> {
        if let Some(id) = id {
            check_id(id)?;
        }
        Ok(Self { id: id.map(str::to_owned), password })
    }
}

fn check_id(id: &str) -> Result<(), VaultError> {
    let bad = id.is_empty() || id.contains([';', '@']) || id.contains(char::is_whitespace);
    if bad { Err(VaultError::BadId(id.to_owned())) } else { Ok(()) }
}

/// Where a password comes from; it is fetched when a vault needs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PasswordSource {
    /// A file with the password, or an executable that prints it.
    File(PathBuf),
    /// A variable with the password itself.
    Variable(String),
    /// A person.
    Prompt,
}

impl PasswordSource {
    /// Reads `path`, `prompt`, `id@path` or `id@prompt`, as `ansible-vault --vault-id` takes it.
    pub fn parse(text: &str, environment: &Environment) -> (Option<String>, Self) {
        let (id, source) = match text.split_once('@') {
            Some((id, source)) => (Some(id.trim().to_owned()).filter(|id| !id.is_empty()), source),
            None => (None, text),
        };
        let source = match source.trim() {
            "prompt" | "prompt_ask_vault_pass" => PasswordSource::Prompt,
            path => PasswordSource::File(environment.path(path)),
        };
        (id, source)
    }

    fn place(&self) -> String {
        match self {
            PasswordSource::File(path) => format!("`{}`", path.display()),
            PasswordSource::Variable(name) => format!("the variable `{name}`"),
            PasswordSource::Prompt => "a prompt".to_owned(),
        }
    }
}

/// All passwords that may be tried.
pub struct Passwords {
    environment: Environment,
    prompt: Arc<dyn Prompt>,
    sources: Vec<(Option<String>, PasswordSource)>,
    /// Fetched once: a script may be slow, and nobody wants to be asked twice.
    fetched: Mutex<Vec<Option<SecretString>>>,
    given: Vec<VaultPassword>,
}

impl Passwords {
    /// No password at all.
    pub fn none() -> Self {
        Self::new(Environment::empty(), Arc::new(NoPrompt), Vec::new())
    }

    /// Just these.
    pub fn given(passwords: Vec<VaultPassword>) -> Self {
        Self { given: passwords, ..Self::none() }
    }

    pub fn new(
        environment: Environment,
        prompt: Arc<dyn Prompt>,
        sources: Vec<(Option<String>, PasswordSource)>,
    ) -> Self {
        let fetched = Mutex::new(vec![None; sources.len()]);
        Self { environment, prompt, sources, fetched, given: Vec::new() }
    }

    /// What the environment names, after what was asked for: `ANSIBLE_VAULT_IDENTITY_LIST`,
    /// `ANSIBLE_VAULT_PASSWORD_FILE`, `ANSIBLE_VAULT_PASSWORD`; a prompt if nothing is named at all.
    pub fn load(
        environment: &Environment,
        prompt: Arc<dyn Prompt>,
        asked_for: Vec<(Option<String>, PasswordSource)>,
    ) -> Self {
        let mut sources = asked_for;
        let list = environment.get("ANSIBLE_VAULT_IDENTITY_LIST").unwrap_or_default();
        let named = list.split(',').map(str::trim).filter(|text| !text.is_empty());
        sources.extend(named.map(|text| PasswordSource::parse(text, environment)));
        if let Some(path) = environment.get("ANSIBLE_VAULT_PASSWORD_FILE") {
            sources.push((None, PasswordSource::File(environment.path(path))));
        }
        if environment.get("ANSIBLE_VAULT_PASSWORD").is_some() {
            sources.push((None, PasswordSource::Variable("ANSIBLE_VAULT_PASSWORD".to_owned())));
        }
        if sources.is_empty() {
            sources.push((None, PasswordSource::Prompt));
        }
        Self::new(environment.clone(), prompt, sources)
    }

    /// The passwords to try for a vault with this id: those of the same id first, then the others.
    ///
    /// A source of another id is asked too, since ids are only labels; but if one of the right id is there, a
    /// problem with another does not matter.
    pub(super) fn for_id(&self, id: Option<&str>) -> Result<Vec<VaultPassword>, VaultError> {
        let id = id.unwrap_or("default");
        let is_own = |own: &Option<String>| own.as_deref().unwrap_or("default") == id;
        let mut found: Vec<VaultPassword> =
            self.given.iter().filter(|given| is_own(&given.id)).cloned().collect();
        let mut problem = None;
        for own in [true, false] {
            for (index, (source_id, source)) in self.sources.iter().enumerate() {
                if is_own(source_id) != own {
                    continue;
                }
                match self.fetch(index, source_id.as_deref(), source, id) {
                    Ok(password) => found.push(VaultPassword { id: source_id.clone(), password }),
                    Err(error) => problem = problem.or(Some(error)),
                }
            }
        }
        found.extend(self.given.iter().filter(|given| !is_own(&given.id)).cloned());
        match problem {
            Some(problem) if found.is_empty() => Err(problem),
            _ => Ok(found),
        }
    }

    /// The password to encrypt with: the one with this id, or the first of all. One that a person types and that has not opened
    /// anything yet is asked for twice, so that a slip locks nobody out.
    pub fn for_encryption(&self, id: Option<&str>) -> Result<VaultPassword, VaultError> {
        let unasked = self.unasked();
        let found = self.for_id(id)?;
        let exact = found.iter().find(|password| id.is_none() || password.id.as_deref() == id);
        let password = exact
            .or(found.first())
            .cloned()
            .map(|password| VaultPassword { id: id.map(str::to_owned).or(password.id), ..password })
            .ok_or_else(|| VaultError::NoPassword { id: id.map(str::to_owned) })?;
        self.confirm(&unasked, &password)?;
        Ok(password)
    }

    /// The sources that ask a person and have not done so.
    fn unasked(&self) -> Vec<usize> {
        let fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        let sources = self.sources.iter().enumerate();
        let prompts = sources.filter(|(_, (_, source))| *source == PasswordSource::Prompt);
        prompts.map(|(index, _)| index).filter(|index| fetched[*index].is_none()).collect()
    }

    fn confirm(&self, unasked: &[usize], password: &VaultPassword) -> Result<(), VaultError> {
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = |index: &&usize| {
            fetched[**index].as_ref().is_some_and(|new| new.expose() == password.password.expose())
        };
        let Some(index) = unasked.iter().find(is_new).copied() else { return Ok(()) };
        let id = password.id.as_deref().unwrap_or("default");
        let again = self.prompt.secret(&format!("password of the vault `{id}` again"));
        if again.is_some_and(|again| again.expose() == password.password.expose()) {
            return Ok(());
        }
        fetched[index] = None;
        let place = PasswordSource::Prompt.place();
        Err(VaultError::Password { place, reason: "the two answers differ".to_owned() })
    }

    fn fetch(
        &self,
        index: usize,
        source_id: Option<&str>,
        source: &PasswordSource,
        wanted: &str,
    ) -> Result<SecretString, VaultError> {
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &fetched[index] {
            return Ok(known.clone());
        }
        let failed = |reason: String| VaultError::Password { place: source.place(), reason };
        let password = match source {
            PasswordSource::File(path) => {
                self.read_file(path, source_id.unwrap_or(wanted)).map_err(failed)?
            }
            PasswordSource::Variable(name) => SecretString::from(
                self.environment.get(name).ok_or_else(|| failed("it is not set".to_owned()))?,
            ),
            PasswordSource::Prompt => {
                let question = format!("password of the vault `{}`", source_id.unwrap_or(wanted));
                self.prompt.secret(&question).ok_or_else(|| failed("there is nobody to ask".to_owned()))?
            }
        };
        if password.is_empty() {
            return Err(failed("it is empty".to_owned()));
        }
        fetched[index] = Some(password.clone());
        Ok(password)
    }

    fn read_file(&self, path: &Path, id: &str) -> Result<SecretString, String> {
        if is_executable(path) {
            let is_client = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("-client"));
            let arguments = if is_client { vec!["--vault-id".to_owned(), id.to_owned()] } else { Vec::new() };
            let printed = command::output(path, &arguments, &self.environment, &[])
                .map_err(|error| error.to_string())?;
            return text(&printed).map(|text| SecretString::from(text.trim_matches(['\r', '\n'])));
        }
        let content = Zeroizing::new(read_file(path, LARGEST_FILE).map_err(|error| error.to_string())?);
        text(&content).map(|text| SecretString::from(text.trim()))
    }
}

fn text(content: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(content).map_err(|_| "it is not text in UTF-8".to_owned())
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_path: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Answer(&'static str);

    impl Prompt for Answer {
        fn secret(&self, question: &str) -> Option<SecretString> {
            question.contains("vault").then(|| SecretString::from(self.0))
        }
    }

    fn passwords(variables: &[(&str, &str)], answer: &'static str) -> Vec<(Option<String>, String)> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let passwords = Passwords::load(&Environment::new(variables), Arc::new(Answer(answer)), Vec::new());
        let found = passwords.for_id(Some("prod")).unwrap_or_else(|error| panic!("{error}"));
        found.into_iter().map(|found| (found.id, found.password.expose().to_owned())).collect()
    }

    #[test]
    fn every_source_is_known_and_the_right_id_comes_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let plain = directory.path().join("plain");
        std::fs::write(&plain, "from file\n").expect("written");
        let script = directory.path().join("get-client.sh");
        std::fs::write(&script, "#!/bin/sh\necho \"for $2\"\n").expect("written");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).expect("permitted");
        }
        let list = format!("dev@{}, prod@{}", plain.display(), script.display());
        let id = |id: &str| Some(id.to_owned());
        assert_eq!(
            passwords(&[("ANSIBLE_VAULT_IDENTITY_LIST", &list), ("ANSIBLE_VAULT_PASSWORD", "direct")], ""),
            [
                (id("prod"), "for prod".to_owned()),
                (id("dev"), "from file".to_owned()),
                (None, "direct".to_owned())
            ]
        );
        let path = plain.display().to_string();
        assert_eq!(
            passwords(&[("ANSIBLE_VAULT_PASSWORD_FILE", &path)], ""),
            [(None, "from file".to_owned())]
        );
        assert_eq!(passwords(&[], "typed"), [(None, "typed".to_owned())]);
    }

    #[test]
    fn a_source_without_a_password_is_named() {
        let variables = [("ANSIBLE_VAULT_PASSWORD_FILE".to_owned(), "/nowhere/pass".to_owned())];
        let passwords = Passwords::load(&Environment::new(variables), Arc::new(NoPrompt), Vec::new());
        let error = passwords.for_id(None).err().expect("no such file").to_string();
        assert!(
            error.starts_with("the password of the vault cannot be had from `/nowhere/pass`:"),
            "{error}"
        );
    }

    #[test]
    fn an_id_has_no_separators() {
        for id in ["", "a;b", "a@b", "a b"] {
            assert!(VaultPassword::new(Some(id), SecretString::from("x")).is_err(), "{id}");
        }
    }
}
