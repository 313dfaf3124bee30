//! What a command is given from outside: options, environment, time, randomness.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::RngCore;
use strata_engine::Clock;
use strata_events::Event;
use strata_net::TraceSink;
use strata_secrets::vault::PasswordSource;
use strata_secrets::{Access, Environment};
use strata_session::{Process, ProviderSet, Surroundings};
use strata_state::ProcessMark;

use crate::cli::Global;
use crate::command_error::CommandError;
use crate::printer::Printer;
use crate::prompt::TerminalPrompt;
use crate::views::session_events::{Terminal, Trace};

pub(crate) struct Context {
    pub(crate) global: Global,
    pub(crate) printer: Printer,
    pub(crate) environment: BTreeMap<String, String>,
}

impl Context {
    pub(crate) fn new(global: Global, printer: Printer) -> Self {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { global, printer, environment }
    }

    /// Where the command was told to work; the repository is this folder or one above it.
    pub(crate) fn start(&self) -> PathBuf {
        self.global.directory.clone().unwrap_or_else(|| PathBuf::from("."))
    }

    /// What another repository is read from, by a path that starts where the program did, or where `-C` says.
    pub(crate) fn elsewhere(&self, given: &Path) -> PathBuf {
        let here = self.global.started_in.join(given);
        if here.exists() { here } else { self.absolute(given) }
    }

    /// A path from the command line.
    pub(crate) fn absolute(&self, given: &Path) -> PathBuf {
        let path = self.start().join(given);
        std::path::absolute(&path).unwrap_or(path)
    }

    /// What the command line names starts where the command was told to work.
    pub(crate) fn here(&self) -> Environment {
        Environment::new(self.environment.clone()).in_directory(self.absolute(Path::new("")))
    }

    /// The passwords of vaults that the command line names.
    pub(crate) fn vault_passwords(&self) -> Vec<(Option<String>, PasswordSource)> {
        let here = self.here();
        self.global.vault_password_file.iter().map(|text| PasswordSource::parse(text, &here)).collect()
    }

    /// The keys of the user, for the files of a folder. A person at a terminal may be asked.
    pub(crate) fn access(&self, root: &Path) -> Access {
        let environment = strata_session::secrets::environment(&self.environment, root);
        Access::new(environment, Arc::new(TerminalPrompt), self.vault_passwords())
    }

    /// Everything that a session is given.
    pub(crate) fn surroundings(&self, providers: Arc<dyn ProviderSet>) -> Surroundings {
        let user = ["USER", "LOGNAME"].iter().find_map(|name| self.environment.get(*name)).cloned();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let trace = || -> Arc<dyn TraceSink> { Arc::new(Trace(self.printer)) };
        Surroundings {
            start: self.start(),
            variables: self.environment.clone(),
            environment: self.global.environment.clone(),
            lock_timeout: self.global.lock_timeout,
            dial: self.global.dial.clone(),
            vault_passwords: self.vault_passwords(),
            prompt: Arc::new(TerminalPrompt),
            process: Process {
                who: format!("{}@{host}", user.unwrap_or_else(|| "somebody".to_owned())),
                pid: std::process::id(),
                mark: ProcessMark::of(std::process::id()),
            },
            clock: Arc::new(SystemClock),
            random: Arc::new(|buffer| rand::rng().fill_bytes(buffer)),
            observer: Arc::new(Terminal::new(self.printer)),
            trace: self.printer.is_verbose().then(trace),
            providers,
        }
    }
}

pub(crate) fn random_hex(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    rand::rng().fill_bytes(&mut random);
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> i64 {
        jiff::Timestamp::now().as_second()
    }
}

impl strata_events::Terminal for Context {
    fn line(&self, text: &str) {
        self.printer.line(text);
    }

    fn note(&self, text: &str) {
        self.printer.note(text);
    }

    fn event(&self, key: Option<&str>, event: &Event<'_>) {
        match key {
            Some(key) => self.printer.event_of(key, event),
            None => self.printer.event(event),
        }
    }

    fn ask(&self, question: &str) -> Result<(), CommandError> {
        crate::commands::execute::ask(question)
    }
}
