//! Where the state is kept.

use strata_diagnostics::{Diagnostics, SourceMap};
use strata_yaml::{Context, Decode, Map, NoOutside, Spanned, TextRule, TextShape, Value, choice, record};

use crate::settings::target::Tls;
use crate::value::name::URL;

choice! {
    /// The kind of store.
    pub enum Backend { Local = "local", Http = "http", S3 = "s3", Postgres = "postgres" }
}

record! {
    /// A key that states may still be encrypted with.
    pub struct FormerKey [exactly_one(&["passphrase", "age", "plain"])] {
        /// a passphrase
        "passphrase" passphrase: Option<Value<String>> [secret];
        /// any age recipients: what opens it is the identity
        "age" age: Vec<Spanned<String>>;
        /// no key: states that were never encrypted are still read
        "plain" plain: bool = false;
    }
}

record! {
    /// How the state is encrypted, before it leaves this machine. Serial and lineage stay readable.
    pub struct Encryption [at_most_one(&["passphrase", "age"])] {
        /// a passphrase
        "passphrase" passphrase: Option<Value<String>> [secret];
        /// the age recipients that can read it
        "age" age: Vec<Spanned<String>>;
        /// keys that are read with and not written with any more; without one of the two above, what is written is not encrypted
        "previous" previous: Vec<FormerKey>;
    }
}

record! {
    /// A DynamoDB table in which locks are entered too.
    pub struct LockTable [shorthand("name")] {
        /// the name of the table; its key is `LockID`
        "name" name: Spanned<String>;
        /// the server, where it is not Amazon's
        "endpoint" endpoint: Option<String> [text(URL)];
    }
}

const METHOD: TextRule = TextRule {
    shape: TextShape { what: "an HTTP method in capital letters", pattern: Some("^[A-Z]{2,16}$") },
    accepts: |text| (2..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase()),
};

record! {
    /// Where the state is kept.
    pub struct State [shorthand("backend")] {
        /// the kind of store
        "backend" backend: Option<Backend>;
        /// local: the folder, from the root of the repository
        "path" path: Option<Spanned<String>>;
        /// http: a server that runs `strata serve`; or, with `{state}` in it, the address of each state on another server that OpenTofu could use
        "url" url: Option<Spanned<String>> [text(URL)];
        /// http: who
        "username" username: Option<Value<String>> [secret];
        /// http, postgres: the password
        "password" password: Option<Value<String>> [secret];
        /// http: a token, instead of user and password
        "token" token: Option<Value<String>> [secret];
        /// http: further headers of each request
        "headers" headers: Map<Value<String>> [secret];
        /// http, not for `strata serve`: where a state is locked, with `{state}` in it; `url` if not given, GitLab's own way for GitLab
        "lockUrl" lock_url: Option<Spanned<String>> [text(URL)];
        /// http, not for `strata serve`: where a state is unlocked; `lockUrl` if not given
        "unlockUrl" unlock_url: Option<Spanned<String>> [text(URL)];
        /// http, not for `strata serve`: `LOCK` if not given, `POST` for GitLab
        "lockMethod" lock_method: Option<String> [text(METHOD)];
        /// http, not for `strata serve`: `UNLOCK` if not given, `DELETE` for GitLab
        "unlockMethod" unlock_method: Option<String> [text(METHOD)];
        /// http, not for `strata serve`: `POST` if not given
        "updateMethod" update_method: Option<String> [text(METHOD)];
        /// http, s3, postgres: how the server proves who it is
        "tls" tls: Option<Tls>;
        /// s3: the bucket
        "bucket" bucket: Option<String>;
        /// s3: the server, where it is not Amazon's
        "endpoint" endpoint: Option<String> [text(URL)];
        /// s3: the region
        "region" region: Option<String>;
        /// s3: what the keys begin with
        "prefix" prefix: Option<String>;
        /// s3: whether the bucket is in the path of an address and not in its host; with an `endpoint` it is unless said otherwise
        "pathStyle" path_style: Option<bool>;
        /// s3: who; otherwise as AWS_ACCESS_KEY_ID and the other usual variables say
        "accessKeyId" access_key_id: Option<Value<String>> [secret];
        /// s3: their secret
        "secretAccessKey" secret_access_key: Option<Value<String>> [secret];
        /// s3: a DynamoDB table in which locks are entered too
        "lockTable" lock_table: Option<LockTable>;
        /// postgres: the connection, `postgres://user@host/database`, without the password; with `sslmode` and so on, files from the root of the repository
        "connection" connection: Option<Value<String>> [secret];
        /// postgres: the schema that the tables are in; `strata` if not given
        "schema" schema: Option<String>;
        /// http, s3, postgres: after how many seconds without a sign of life a lock can be taken over; 60 if not given
        "lease" lease: Option<u32> [range(10, 3600)];
        /// how it is encrypted
        "encryption" encryption: Option<Encryption>;
        /// how many versions are kept; `strata serve` has a setting of its own
        "history" history: Option<u32> [range(1, 10_000)];
    }
}

impl State {
    /// Settings that stand alone: a text such as `{backend: s3, bucket: states}`, or a file with a block `state:`.
    pub fn parse(name: &str, text: &str) -> (Option<Self>, SourceMap, Diagnostics) {
        let mut sources = SourceMap::new();
        let mut diagnostics = Diagnostics::new();
        let file = sources.add(name, text);
        let tree = strata_yaml::parse(&sources, file, &mut diagnostics).required(
            file,
            "the settings of a state",
            &mut diagnostics,
        );
        let state = tree.and_then(|tree| {
            let block = tree.as_mapping().and_then(|mapping| mapping.get("state"));
            Self::decode(block.unwrap_or(&tree), &mut Context::new(&mut diagnostics, &NoOutside))
        });
        (state.filter(|_| !diagnostics.has_errors()), sources, diagnostics)
    }
}
