//! The server's configuration file: YAML, read with all its mistakes at once.

use std::path::{Path, PathBuf};

use strata_diagnostics::{Diagnostics, SourceMap};
use strata_yaml::{Context, Decode as _, Map, NoOutside, Parsed, choice, parse, record};

use crate::access::{Action, Rule, Token, User};
use crate::proxies::{BadNetwork, ForwardedHeader, Proxies};
use crate::tls::TlsFiles;
use strata_storage::Retention;

choice! {
    /// What a user may do.
    pub enum Allowed { Read = "read", Write = "write", Lock = "lock", Unlock = "unlock", Admin = "admin" }
}

choice! {
    /// The header in which proxies say whom a request is from.
    pub enum Header { XForwardedFor = "X-Forwarded-For", Forwarded = "Forwarded" }
}

record! {
    /// The server's certificate; it is read again when it changes.
    pub struct TlsSettings {
        /// the certificate and those that lead to its authority, PEM
        "certificate" certificate: String;
        /// its key, PEM
        "key" key: String;
    }
}

record! {
    /// How many versions of a state are kept. The newest ten always are.
    pub struct VersionSettings {
        /// at most this many
        "count" count: u32 [range(10, 100_000)] = 100;
        /// not longer than this many days; 0 for ever
        "days" days: u32 [range(0, 36_500)] = 90;
    }
}

record! {
    /// A bucket on Amazon S3, MinIO or another that honours conditional writes.
    pub struct S3Settings {
        /// the bucket
        "bucket" bucket: String;
        /// what the names of the objects begin with
        "prefix" prefix: Option<String>;
        /// the region
        "region" region: Option<String>;
        /// the server, where it is not Amazon's
        "endpoint" endpoint: Option<String>;
    }
}

record! {
    /// A PostgreSQL database.
    pub struct PostgresSettings [shorthand("connection")] {
        /// the connection, without the password: it is in the variable `PGPASSWORD` or in `passwordFile`; `sslrootcert`, `sslcert` and `sslkey` in it are files, from the folder of this one
        "connection" connection: String;
        /// a file with nothing but the password
        "passwordFile" password_file: Option<String>;
        /// the schema of the tables, made if need be; `strata_server` if not given
        "schema" schema: Option<String>;
    }
}

record! {
    /// Where states are kept, if not in a file of the server's own.
    pub struct StorageSettings [exactly_one(&["s3", "postgres"])] {
        /// in a bucket
        "s3" s3: Option<S3Settings>;
        /// in a database
        "postgres" postgres: Option<PostgresSettings>;
    }
}

record! {
    /// Who may use the server, beside those that `strata serve user` adds.
    pub struct UserSettings {
        /// Argon2, as `strata serve hash` writes it
        "password" password: Option<String>;
        /// SHA-256 of each token as hex, by a name for it
        "tokens" tokens: Map<String>;
        /// what is allowed, by what the names of the states begin with; `""` is every state
        "rules" rules: Map<Vec<Allowed>>;
    }
}

record! {
    /// The configuration of `strata serve`.
    pub struct Config [document] {
        /// address and port; the loopback unless said otherwise
        "listen" listen: Option<String>;
        /// the folder of the server's data
        "data" data: Option<String>;
        /// certificate and key
        "tls" tls: Option<TlsSettings>;
        /// a proxy in front of it has TLS
        "behindProxy" behind_proxy: bool = false;
        /// proxies whose word about the sender of a request counts: addresses, or networks like `10.0.0.0/8`
        "trustedProxies" trusted_proxies: Vec<String>;
        /// the header in which they say it
        "forwardedHeader" forwarded_header: Option<Header>;
        /// where states are kept, if not in a file of its own
        "storage" storage: Option<StorageSettings>;
        /// how many versions are kept
        "versions" versions: Option<VersionSettings>;
        /// the largest state in MiB
        "maxState" max_state: u32 [range(1, 4096)] = 64;
        /// who may use it
        "users" users: Map<UserSettings>;
        /// `/metrics` without a user
        "openMetrics" open_metrics: bool = false;
    }
}

/// What is in a file, or what is wrong with it. The files that it names are found from its folder.
pub fn read_config(path: &str, text: String) -> Result<Config, (SourceMap, Diagnostics)> {
    let mut sources = SourceMap::new();
    let file = sources.add(path, text);
    let mut diagnostics = Diagnostics::new();
    let config = match parse(&sources, file, &mut diagnostics) {
        Parsed::Document(node) => Config::decode(&node, &mut Context::new(&mut diagnostics, &NoOutside)),
        Parsed::Empty | Parsed::Broken => None,
    };
    match config {
        Some(config) if !diagnostics.has_errors() => Ok(config),
        _ => {
            if diagnostics.is_empty() {
                let message = "the file is empty";
                diagnostics.push(strata_diagnostics::Diagnostic::error("empty-file", message));
            }
            Err((sources, diagnostics))
        }
    }
}

impl Config {
    pub fn tls_files(&self, folder: &Path) -> Option<TlsFiles> {
        let files = self.tls.as_ref()?;
        let place = |name: &str| -> PathBuf { folder.join(name) };
        Some(TlsFiles { certificate: place(&files.certificate), key: place(&files.key) })
    }

    pub fn proxies(&self) -> Result<Proxies, BadNetwork> {
        let trusted = self.trusted_proxies.iter().map(|network| network.parse()).collect::<Result<_, _>>()?;
        let header = match self.forwarded_header {
            Some(Header::Forwarded) => ForwardedHeader::Forwarded,
            Some(Header::XForwardedFor) | None => ForwardedHeader::XForwardedFor,
        };
        Ok(Proxies { trusted, header })
    }

    pub fn retention(&self) -> Retention {
        let Some(versions) = &self.versions else { return Retention::default() };
        let age = (versions.days > 0).then(|| u64::from(versions.days) * 24 * 3600);
        Retention { count: versions.count.into(), age }
    }

    pub fn configured_users(&self) -> Vec<User> {
        let token = |(name, sha256): (&strata_yaml::Spanned<String>, &String)| Token {
            name: name.value.clone(),
            sha256: sha256.clone(),
            expires: None,
        };
        let rule = |(prefix, allowed): (&strata_yaml::Spanned<String>, &Vec<Allowed>)| Rule {
            prefix: prefix.value.clone(),
            actions: allowed.iter().map(|allowed| Action::from(*allowed)).collect(),
        };
        self.users
            .into_iter()
            .map(|(name, user)| User {
                name: name.value.clone(),
                password: user.password.clone(),
                tokens: user.tokens.into_iter().map(token).collect(),
                rules: user.rules.into_iter().map(rule).collect(),
            })
            .collect()
    }
}

impl From<Allowed> for Action {
    fn from(allowed: Allowed) -> Self {
        match allowed {
            Allowed::Read => Self::Read,
            Allowed::Write => Self::Write,
            Allowed::Lock => Self::Lock,
            Allowed::Unlock => Self::Unlock,
            Allowed::Admin => Self::Admin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_configuration() {
        let text = "listen: 0.0.0.0:8420\ntls: {certificate: c.pem, key: k.pem}\nversions: {count: 50, days: 0}\nusers:\n  ci:\n    \
                    tokens: {runner: abc}\n    rules: {prod: [read, write, lock], \"\": [read]}\n";
        let config = read_config("serve.yaml", text.to_owned()).map_err(|_| ()).unwrap();
        assert_eq!(config.tls_files(Path::new("/etc")).unwrap().key, Path::new("/etc/k.pem"));
        assert_eq!((config.retention().count, config.retention().age), (50, None));
        let users = config.configured_users();
        assert_eq!(users[0].tokens[0].sha256, "abc");
        assert_eq!(users[0].rules.len(), 2);
        assert_eq!(config.max_state, 64);
        assert!(config.proxies().unwrap().trusted.is_empty());
    }

    #[test]
    fn trusted_proxies_are_networks() {
        let read = |text: &str| read_config("serve.yaml", text.to_owned()).map_err(|_| ()).unwrap().proxies();
        let proxies = read("trustedProxies: [10.0.0.0/8, \"::1\"]\nforwardedHeader: Forwarded\n").unwrap();
        assert_eq!((proxies.trusted.len(), proxies.header), (2, ForwardedHeader::Forwarded));
        let error = read("trustedProxies: [proxy.example]\n").unwrap_err().to_string();
        assert!(error.contains("`proxy.example`"), "{error}");
    }

    #[test]
    fn all_mistakes_are_told() {
        let text = "listn: x\nversions: {count: 1}\nusers: {ci: {rules: {prod: [destroy]}}}\n";
        let (_, diagnostics) = read_config("serve.yaml", text.to_owned()).err().unwrap();
        assert_eq!(diagnostics.error_count(), 3);
    }
}
