//! Where the state is kept.

use strata_yaml::{Spanned, Value, choice, record};

use crate::value::name::URL;

choice! {
    /// The kind of store.
    pub enum Backend { Local = "local", Http = "http", S3 = "s3", Postgres = "postgres" }
}

record! {
    /// How the state is encrypted.
    pub struct Encryption {
        /// a passphrase
        "passphrase" passphrase: Option<Value<String>> [secret];
        /// age recipients
        "recipients" recipients: Vec<Spanned<String>>;
    }
}

record! {
    /// Where the state is kept.
    pub struct State [shorthand("backend")] {
        /// the kind of store
        "backend" backend: Option<Backend>;
        /// local: the folder, from the root of the repository
        "path" path: Option<Spanned<String>>;
        /// http: the server
        "url" url: Option<Spanned<String>> [text(URL)];
        /// http: who
        "username" username: Option<Value<String>>;
        /// http, postgres: the password
        "password" password: Option<Value<String>> [secret];
        /// s3: the bucket
        "bucket" bucket: Option<String>;
        /// s3: the server, where it is not Amazon's
        "endpoint" endpoint: Option<String> [text(URL)];
        /// s3: the region
        "region" region: Option<String>;
        /// s3: what the keys begin with
        "prefix" prefix: Option<String>;
        /// s3: who
        "accessKeyId" access_key_id: Option<Value<String>>;
        /// s3: their secret
        "secretAccessKey" secret_access_key: Option<Value<String>> [secret];
        /// postgres: the connection, without the password
        "connection" connection: Option<Value<String>>;
        /// how it is encrypted
        "encryption" encryption: Option<Encryption>;
        /// how many versions are kept
        "history" history: Option<u32> [range(1, 10_000)];
    }
}
