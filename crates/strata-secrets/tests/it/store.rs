//! Secrets by name, from files of both kinds.

use std::sync::Arc;

use jiff::Timestamp;
use strata_secret::{Redactor, SecretBytes, SecretString};
use strata_secrets::sops::{self, Format, Settings};
use strata_secrets::vault::{self, Passwords, VaultPassword};
use strata_secrets::{Access, Identities, SecretName, SecretStore, Source};

use crate::keys::{FIRST, SECOND, TestKey, random};

struct Repository {
    directory: tempfile::TempDir,
    sources: Vec<Source>,
}

fn password() -> VaultPassword {
    VaultPassword::new(Some("prod"), SecretString::from("vault password")).expect("a good id")
}

impl Repository {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory"), sources: Vec::new() }
    }

    fn sops(mut self, name: &str, plain: &str) -> Self {
        let settings = Settings { groups: vec![vec![FIRST.recipient.to_owned()]], ..Settings::default() };
        let format = Format::of(name.as_ref());
        let sealed =
            sops::encrypt(&SecretBytes::new(plain), format, &settings, Timestamp::UNIX_EPOCH, &mut random(1));
        std::fs::write(self.directory.path().join(name), sealed.expect("encrypted")).expect("written");
        self.sources.push(Source::Sops(name.into()));
        self
    }

    fn vault(mut self, name: &str, plain: &str) -> Self {
        let sealed =
            vault::encrypt(&SecretBytes::new(plain), &password(), &mut random(2)).expect("encrypted");
        std::fs::write(self.directory.path().join(name), sealed).expect("written");
        self.sources.push(Source::Vault(name.into()));
        self
    }

    fn store(&self, access: Access) -> SecretStore {
        SecretStore::new(self.directory.path(), self.sources.clone(), Arc::new(access))
    }

    fn opened_by(&self, key: &TestKey) -> SecretStore {
        self.store(Access::with(key.identities(), Passwords::given(vec![password()])))
    }
}

fn resolve(store: &SecretStore, name: &str) -> Result<String, String> {
    store.resolve(name).map(|secret| secret.expose().to_owned()).map_err(|error| error.to_string())
}

const YAML: &str =
    "proxmox:\n  token: root@pam!x=1\n  ports: [8006, 3128]\n  verify: true\nnone: null\ndotted.key: y\n";

#[test]
fn a_name_leads_to_a_value_of_any_file() {
    let repository = Repository::new()
        .vault("whole.vault.yaml", "db:\n  password: 0123\n")
        .sops("secrets.sops.yaml", YAML)
        .vault("secrets.tfvars", "token_auth = {\n  secret = \"tf\"\n}\n")
        .sops("app.sops.env", "KEY=from env\n");
    let store = repository.opened_by(&FIRST);
    for (name, value) in [
        ("proxmox.token", "root@pam!x=1"),
        ("proxmox.ports.1", "3128"),
        ("proxmox.verify", "true"),
        ("dotted.key", "y"),
        ("db.password", "0123"),
        ("token_auth.secret", "tf"),
        ("KEY", "from env"),
    ] {
        assert_eq!(resolve(&store, name).as_deref(), Ok(value), "{name}");
    }
}

#[test]
fn a_wrong_name_is_answered_with_what_there_is() {
    let repository = Repository::new().sops("secrets.sops.yaml", YAML);
    let store = repository.opened_by(&FIRST);
    for (name, message) in [
        (
            "proxmox.tokn",
            "there is no secret `proxmox.tokn` in `secrets.sops.yaml`; did you mean `proxmox.token`?",
        ),
        ("database", "there is no secret `database` in `secrets.sops.yaml`"),
        (
            "proxmox.ports",
            "the secret `proxmox.ports` in `secrets.sops.yaml` is not a single value: choose one of \
             `proxmox.ports.0`, `proxmox.ports.1`",
        ),
        ("none", "the secret `none` in `secrets.sops.yaml` has no value"),
    ] {
        assert_eq!(resolve(&store, name).unwrap_err(), message);
    }
    assert_eq!(
        resolve(&Repository::new().opened_by(&FIRST), "x").unwrap_err(),
        "there is no secret `x` in the repository, which lists no secrets"
    );
}

#[test]
fn names_are_listed_without_any_key() {
    let repository =
        Repository::new().sops("secrets.sops.yaml", "a: 1\nb: [x]\n").vault("all.vault.yaml", "c: 1\n");
    let store = repository.store(Access::with(Identities::none(), Passwords::none()));
    let name = |name: &str| SecretName { file: "secrets.sops.yaml".to_owned(), name: name.to_owned() };
    assert_eq!(store.names().expect("readable"), [name("a"), name("b.0")]);
    assert_eq!(store.contains("a").expect("readable"), Some(true));
    assert_eq!(store.contains("c").expect("readable"), None);
}

#[test]
fn without_the_key_the_file_and_its_recipient_are_named() {
    let repository = Repository::new().sops("secrets.sops.yaml", "a: 1\n").vault("all.vault.yaml", "c: 1\n");
    let error = resolve(&repository.opened_by(&SECOND), "a").unwrap_err();
    assert!(error.starts_with("`secrets.sops.yaml`: the file is encrypted for `age1"), "{error}");
    assert!(error.contains(FIRST.recipient), "{error}");
    let store = repository.store(Access::with(FIRST.identities(), Passwords::none()));
    assert_eq!(resolve(&store, "a").as_deref(), Ok("1"));
    let error = resolve(&store, "c").unwrap_err();
    assert_eq!(error, "`all.vault.yaml`: no password for the vault is known (its id is `prod`)");
}

#[test]
fn a_missing_file_is_an_error_only_for_what_is_not_found_elsewhere() {
    let mut repository = Repository::new().sops("secrets.sops.yaml", "a: 1\n");
    repository.sources.insert(0, Source::Sops("gone.sops.yaml".into()));
    let store = repository.opened_by(&FIRST);
    assert_eq!(resolve(&store, "a").as_deref(), Ok("1"));
    assert_eq!(resolve(&store, "b").unwrap_err(), "`gone.sops.yaml`: the file does not exist");
}

#[test]
fn single_values_in_a_vault_are_found_in_plain_yaml() {
    let mut repository = Repository::new();
    let plain = "host: db\nlogin:\n  password: secret\n";
    let yaml =
        vault::encrypt_value(plain, &["login", "password"], &password(), &mut random(3)).expect("a value");
    std::fs::write(repository.directory.path().join("vars.yaml"), yaml).expect("written");
    repository.sources.push(Source::Vault("vars.yaml".into()));
    let store = repository.opened_by(&FIRST);
    assert_eq!(resolve(&store, "login.password").as_deref(), Ok("secret"));
    assert_eq!(resolve(&store, "host").as_deref(), Ok("db"));
}

#[test]
fn what_was_resolved_is_redacted() {
    let redactor = Redactor::new();
    let repository = Repository::new().sops("secrets.sops.yaml", "a: a-long-secret\n");
    let store = repository.opened_by(&FIRST).with_redactor(redactor.clone());
    assert_eq!(redactor.redact("says a-long-secret"), "says a-long-secret");
    resolve(&store, "a").expect("there");
    assert_eq!(redactor.redact("says a-long-secret"), "says <secret>");
}
