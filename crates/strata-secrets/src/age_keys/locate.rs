//! Where identities are looked for: the places that the `sops` program knows, in its variables and defaults.

use std::path::Path;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::{AgeError, Identities};
use crate::prompt::Prompt;
use crate::{Environment, command};
use strata_diagnostics::{LARGEST_FILE, read_file};

/// A command that prints an identity for the recipient in `SOPS_AGE_RECIPIENT`.
pub(super) struct KeyCommand {
    pub(super) variable: &'static str,
    line: String,
    environment: Environment,
    prompt: Arc<dyn Prompt>,
    is_ssh: bool,
}

impl KeyCommand {
    /// What the command printed; nothing if it failed. A command that knows no key for a recipient may well fail.
    pub(super) fn run(&self, recipient: &str) -> Identities {
        let mut identities = Identities::none();
        let Some(words) = command::words(&self.line).filter(|words| !words.is_empty()) else {
            return identities;
        };
        let extra = [("SOPS_AGE_RECIPIENT", recipient)];
        let Ok(printed) = command::output(Path::new(&words[0]), &words[1..], &self.environment, &extra)
        else {
            return identities;
        };
        let text = String::from_utf8_lossy(&printed);
        let _ = if self.is_ssh {
            identities.add_ssh(&text, None, &self.prompt)
        } else {
            identities.add_text(&text, None, &self.prompt)
        };
        identities
    }
}

impl Identities {
    /// Gathers every identity that the environment points to. A place that cannot be read is no error: another
    /// may have the key. The message that says that nothing fits names them all.
    pub fn load(environment: &Environment, prompt: Arc<dyn Prompt>) -> Self {
        let mut identities = Self::none();
        for (variable, is_ssh) in [("SOPS_AGE_SSH_PRIVATE_KEY_FILE", true), ("SOPS_AGE_KEY_FILE", false)] {
            match environment.get(variable) {
                Some(path) => {
                    let path = environment.path(path);
                    let place = format!("`{}` (by `{variable}`)", path.display());
                    identities.look(&place, &path, is_ssh, &prompt, true);
                }
                None => identities.looked.push(format!("`{variable}` is not set")),
            }
        }
        match environment.get("SOPS_AGE_KEY") {
            Some(text) => {
                let found = identities.add_text(text, None, &prompt);
                identities.note("`SOPS_AGE_KEY`", found);
            }
            None => identities.looked.push("`SOPS_AGE_KEY` is not set".to_owned()),
        }
        for (variable, is_ssh) in [("SOPS_AGE_KEY_CMD", false), ("SOPS_AGE_SSH_PRIVATE_KEY_CMD", true)] {
            if let Some(line) = environment.get(variable) {
                identities.looked.push(format!("the command in `{variable}` gave no key that fits"));
                let (line, environment, prompt) = (line.to_owned(), environment.clone(), Arc::clone(&prompt));
                identities.commands.push(KeyCommand { variable, line, environment, prompt, is_ssh });
            }
        }
        if let Some(directory) = environment.config_directory() {
            let path = directory.join("sops/age/keys.txt");
            identities.look(&format!("`{}`", path.display()), &path, false, &prompt, false);
        }
        for name in ["id_ed25519", "id_rsa"] {
            if let Some(home) = environment.home() {
                let path = home.join(".ssh").join(name);
                identities.look(&format!("`{}`", path.display()), &path, true, &prompt, false);
            }
        }
        identities
    }

    fn look(&mut self, place: &str, path: &Path, is_ssh: bool, prompt: &Arc<dyn Prompt>, named: bool) {
        let text = match read_file(path, LARGEST_FILE) {
            Ok(bytes) => Zeroizing::new(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => {
                self.looked.push(format!("{place} does not exist"));
                return;
            }
            Err(error) => {
                self.looked.push(format!("{place} cannot be read: {error}"));
                return;
            }
        };
        let file = path.display().to_string();
        let found = match std::str::from_utf8(&text) {
            Ok(text) if is_ssh => self.add_ssh(text, Some(&file), prompt),
            Ok(text) => self.add_text(text, Some(&file), prompt),
            Err(_) => Err(AgeError::NotAnIdentity),
        };
        self.note(place, found);
    }

    fn note(&mut self, place: &str, found: Result<(), AgeError>) {
        self.looked.push(match found {
            Ok(()) => format!("{place} has no key that fits"),
            Err(error) => format!("{place} cannot be used: {error}"),
        });
    }
}

#[cfg(test)]
mod tests {
    use age::secrecy::ExposeSecret as _;

    use super::*;
    use crate::age_keys::{Recipient, wrap};
    use crate::prompt::NoPrompt;

    struct World {
        directory: tempfile::TempDir,
        key: String,
        file: String,
    }

    impl World {
        fn new() -> Self {
            let key = age::x25519::Identity::generate();
            let recipient = Recipient::parse(&key.to_public().to_string()).expect("own key");
            World {
                directory: tempfile::tempdir().expect("a directory"),
                key: key.to_string().expose_secret().to_owned(),
                file: wrap(b"x", &[&recipient]).expect("one recipient"),
            }
        }

        fn write(&self, path: &str, text: &str) -> String {
            let path = self.directory.path().join(path);
            std::fs::create_dir_all(path.parent().expect("below the directory")).expect("created");
            std::fs::write(&path, text).expect("written");
            path.display().to_string()
        }

        fn opens(&self, variables: &[(&str, &str)]) -> Result<(), String> {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let identities = Identities::load(&Environment::new(variables), Arc::new(NoPrompt));
            identities.unwrap(&self.file, Some("age1me")).map(|_| ()).map_err(|error| error.to_string())
        }
    }

    #[test]
    fn every_place_is_looked_at() {
        let world = World::new();
        let file = world.write("key.txt", &format!("# mine\n{}\n", world.key));
        let home = world.write("home/.config/sops/age/keys.txt", &world.key);
        let home = home.strip_suffix("/.config/sops/age/keys.txt").expect("below home");
        let xdg = world.write("xdg/sops/age/keys.txt", &world.key);
        let xdg = xdg.strip_suffix("/sops/age/keys.txt").expect("below xdg");
        world.opens(&[("SOPS_AGE_KEY", &world.key)]).expect("SOPS_AGE_KEY");
        world.opens(&[("SOPS_AGE_KEY_FILE", &file)]).expect("SOPS_AGE_KEY_FILE");
        if !cfg!(target_os = "macos") {
            world.opens(&[("HOME", home)]).expect("the default place");
        }
        world.opens(&[("XDG_CONFIG_HOME", xdg)]).expect("the default place of XDG");
        let command = format!("/bin/sh -c 'test \"$SOPS_AGE_RECIPIENT\" = age1me && echo {}'", world.key);
        world.opens(&[("SOPS_AGE_KEY_CMD", &command)]).expect("SOPS_AGE_KEY_CMD");
    }

    #[test]
    fn without_a_key_the_places_are_named() {
        let world = World::new();
        let error = world.opens(&[("SOPS_AGE_KEY_FILE", "/nowhere/key.txt"), ("SOPS_AGE_KEY", "nonsense")]);
        let error = error.expect_err("no identity");
        for part in
            ["`/nowhere/key.txt` (by `SOPS_AGE_KEY_FILE`) cannot be read", "`SOPS_AGE_KEY` cannot be used"]
        {
            assert!(error.contains(part), "{error}");
        }
        assert!(!error.contains("nonsense"), "{error}");
    }
}
