//! What opens secrets: age identities and vault passwords, looked for when the first secret needs them.

use std::sync::{Arc, OnceLock};

use crate::vault::{PasswordSource, Passwords};
use crate::{Environment, Identities, Prompt};

/// The keys of one user.
pub struct Access {
    environment: Environment,
    prompt: Arc<dyn Prompt>,
    identities: OnceLock<Identities>,
    passwords: Passwords,
}

impl Access {
    /// Takes the environment, someone to ask, and the vault passwords that were asked for on the command line.
    pub fn new(
        environment: Environment,
        prompt: Arc<dyn Prompt>,
        vault_passwords: Vec<(Option<String>, PasswordSource)>,
    ) -> Self {
        let passwords = Passwords::load(&environment, Arc::clone(&prompt), vault_passwords);
        Self { environment, prompt, identities: OnceLock::new(), passwords }
    }

    /// Just these keys, wherever they come from.
    pub fn with(identities: Identities, passwords: Passwords) -> Self {
        Self {
            environment: Environment::empty(),
            prompt: Arc::new(crate::NoPrompt),
            identities: OnceLock::from(identities),
            passwords,
        }
    }

    /// The age identities; key files are read at the first call.
    pub fn identities(&self) -> &Identities {
        self.identities.get_or_init(|| Identities::load(&self.environment, Arc::clone(&self.prompt)))
    }

    /// The vault passwords; each is fetched when a vault needs it.
    pub fn passwords(&self) -> &Passwords {
        &self.passwords
    }
}
