//! The store that `state:` of strata.yaml describes.

use std::sync::Arc;
use std::time::Duration;

use strata_diagnostics::SourceMap;
use strata_net::{HttpOptions, TlsTrust};
use strata_secret::{DigestKey, SecretString};
use strata_secrets::{Access, Recipient};
use strata_source::Value;
use strata_source::settings::state::{Backend, Encryption as Settings, State};
use strata_state::{
    AwsCredentials, Codec, Encryption, HttpStore, HttpStoreOptions, KeySource, KeyWrap, LeaseTerms,
    LocalStore, LockTable, PostgresStore, PostgresStoreOptions, S3Store, S3StoreOptions, Store,
};
use zeroize::Zeroizing;

use super::resolve::Outside;
use super::{OWN_FOLDER, Workspace};
use crate::error::SessionError;

/// Opens the store; one on a server is first asked when something is read from it.
pub(super) fn open(
    workspace: &Workspace,
    state: Option<&State>,
    sources: &SourceMap,
) -> Result<Arc<dyn Store>, SessionError> {
    let local = || workspace.root().join(OWN_FOLDER).join("state");
    let Some(state) = state else { return Ok(Arc::new(LocalStore::new(local()))) };
    let opening = Opening { workspace, state, sources };
    Ok(match state.backend.unwrap_or(Backend::Local) {
        Backend::Local => {
            let folder = state.path.as_ref().map_or_else(local, |path| workspace.root().join(&path.value));
            let mut store = LocalStore::new(folder).with_codec(opening.codec()?);
            if let Some(kept) = opening.kept() {
                store = store.keeping(kept);
            }
            Arc::new(store)
        }
        Backend::Http => Arc::new(HttpStore::new(opening.http()?)?),
        Backend::S3 => Arc::new(S3Store::new(opening.s3()?)?),
        Backend::Postgres => Arc::new(PostgresStore::new(opening.postgres()?)?),
    })
}

/// Whether states are written so that only those with a key can read them.
pub(super) fn encrypts(state: Option<&State>) -> bool {
    let encryption = state.and_then(|state| state.encryption.as_ref());
    encryption.is_some_and(|encryption| encryption.passphrase.is_some() || !encryption.age.is_empty())
}

/// The terms of the leases under which states are written; none where a lock ends with its process.
pub(super) fn lease(state: Option<&State>) -> Option<LeaseTerms> {
    let state = state.filter(|state| state.backend.unwrap_or(Backend::Local) != Backend::Local)?;
    let seconds = state.lease.map(|seconds| Duration::from_secs(seconds.into()));
    Some(seconds.map_or_else(LeaseTerms::default, LeaseTerms::of))
}

struct Opening<'w> {
    workspace: &'w Workspace,
    state: &'w State,
    sources: &'w SourceMap,
}

impl Opening<'_> {
    fn resolve(&self, value: &Value<String>) -> Result<SecretString, SessionError> {
        match value {
            Value::Literal(text) => Ok(SecretString::new(text.clone())),
            Value::Reference(reference) => {
                let location = self.sources.location(reference.span);
                let origin = format!("{}:{}", location.file, location.line);
                let value = Outside::new(self.workspace, "").value(&reference.source);
                value.map_err(|error| SessionError::from(error).origin(Some(origin)))
            }
        }
    }

    fn resolved(&self, value: &Option<Value<String>>) -> Result<Option<SecretString>, SessionError> {
        value.as_ref().map(|value| self.resolve(value)).transpose()
    }

    fn required<'a, T>(&self, value: &'a Option<T>, name: &str) -> Result<&'a T, SessionError> {
        let backend = self.state.backend.unwrap_or(Backend::Local);
        value.as_ref().ok_or_else(|| {
            SessionError::failed(format!("the state backend `{backend}` needs {name}"))
                .hint("see `state` in docs/reference/strata.md")
        })
    }

    fn kept(&self) -> Option<usize> {
        self.state.history.map(|kept| kept as usize)
    }

    fn lease(&self) -> LeaseTerms {
        lease(Some(self.state)).unwrap_or_default()
    }

    fn tls(&self) -> Result<TlsTrust, SessionError> {
        self.workspace.trust(self.state.tls.as_ref())
    }

    fn net(&self, endpoint: &str) -> Result<HttpOptions, SessionError> {
        let mut options = HttpOptions::new(endpoint);
        options.tls = self.tls()?;
        options.dial = self.workspace.dial()?;
        options.user_agent = format!("strata/{}", env!("CARGO_PKG_VERSION"));
        options.trace.clone_from(&self.workspace.surroundings.trace);
        Ok(options)
    }

    fn http(&self) -> Result<HttpStoreOptions, SessionError> {
        let state = self.state;
        let url = &self.required(&state.url, "`url`")?.value;
        let text = |url: &Option<strata_source::Spanned<String>>| url.as_ref().map(|url| url.value.clone());
        let mut options = HttpStoreOptions {
            lock_url: text(&state.lock_url),
            unlock_url: text(&state.unlock_url),
            lock_method: state.lock_method.clone(),
            unlock_method: state.unlock_method.clone(),
            update_method: state.update_method.clone(),
            codec: self.codec()?,
            lease: self.lease(),
            known: self.workspace.state_keys(),
            http: self.net(url)?,
            ..HttpStoreOptions::new(url.clone())
        };
        if let Some(kept) = self.kept() {
            options.kept = kept;
        }
        for (name, value) in state.headers.iter() {
            options.headers.push((name.value.to_ascii_lowercase(), self.resolve(value)?));
        }
        match (self.resolved(&state.token)?, self.resolved(&state.username)?, self.resolved(&state.password)?)
        {
            (Some(token), None, None) => Ok(options.bearer(&token)),
            (None, Some(username), password) => {
                Ok(options.basic(username.expose(), &password.unwrap_or_default()))
            }
            (None, None, None) => Ok(options),
            _ => Err(SessionError::failed("`state` takes `token`, or `username` and `password`")),
        }
    }

    fn s3(&self) -> Result<S3StoreOptions, SessionError> {
        let state = self.state;
        let credentials =
            match (self.resolved(&state.access_key_id)?, self.resolved(&state.secret_access_key)?) {
                (Some(id), Some(secret_access_key)) => {
                    Some(AwsCredentials { access_key_id: id.expose().to_owned(), secret_access_key })
                }
                (None, None) => None,
                _ => return Err(SessionError::failed("`accessKeyId` and `secretAccessKey` go together")),
            };
        let variables = self.workspace.surroundings.variables.iter();
        let variables = variables.filter(|(name, _)| name.starts_with("AWS_"));
        let table = state.lock_table.as_ref();
        let mut options = S3StoreOptions {
            prefix: state.prefix.clone().unwrap_or_default(),
            region: state.region.clone(),
            endpoint: state.endpoint.clone(),
            path_style: state.path_style,
            credentials,
            environment: variables.map(|(name, value)| (name.clone(), value.clone().into())).collect(),
            lock_table: table
                .map(|table| LockTable { name: table.name.value.clone(), endpoint: table.endpoint.clone() }),
            codec: self.codec()?,
            lease: self.lease(),
            http: self.net("https://s3.amazonaws.com")?,
            ..S3StoreOptions::new(self.required(&state.bucket, "`bucket`")?.clone())
        };
        if let Some(kept) = self.kept() {
            options.kept = kept;
        }
        Ok(options)
    }

    fn postgres(&self) -> Result<PostgresStoreOptions, SessionError> {
        let state = self.state;
        let connection = self.resolve(self.required(&state.connection, "`connection`")?)?;
        let mut options = PostgresStoreOptions {
            password: self.resolved(&state.password)?,
            tls: self.tls()?,
            folder: self.workspace.root().to_owned(),
            codec: self.codec()?,
            lease: self.lease(),
            ..PostgresStoreOptions::new(connection.expose())
        };
        if let Some(schema) = &state.schema {
            options.schema.clone_from(schema);
        }
        if let Some(kept) = self.kept() {
            options.kept = kept;
        }
        Ok(options)
    }

    fn codec(&self) -> Result<Codec, SessionError> {
        let Some(Settings { passphrase, age, previous, .. }) = &self.state.encryption else {
            return Ok(Codec::plain());
        };
        let current = match passphrase {
            Some(passphrase) => {
                let passphrase = self.resolve(passphrase)?;
                strong_enough(&passphrase)?;
                Some(passphrase.into())
            }
            None if age.is_empty() => None,
            None => Some(self.age(age)?),
        };
        let mut former: Vec<KeySource> = Vec::new();
        for key in previous {
            match &key.passphrase {
                Some(passphrase) => former.push(self.resolve(passphrase)?.into()),
                None if key.plain => {}
                None => former.push(self.age(&key.age)?),
            }
        }
        let takes_plain = previous.iter().any(|key| key.plain);
        Ok(Codec::encrypted(Encryption::new(current, former, takes_plain)))
    }

    fn age(&self, recipients: &[strata_source::Spanned<String>]) -> Result<KeySource, SessionError> {
        let parse = |text: &strata_source::Spanned<String>| {
            let location = self.sources.location(text.span);
            let origin = format!("{}:{}", location.file, location.line);
            Recipient::parse(&text.value)
                .map_err(|error| SessionError::failed(error.to_string()).origin(Some(origin)))
        };
        let recipients: Vec<Recipient> = recipients.iter().map(parse).collect::<Result<_, _>>()?;
        let access = self.workspace.access.clone();
        Ok(KeySource::Wrapped(Arc::new(AgeWrap { recipients, access })))
    }
}

/// The least that a passphrase has; of its characters so many are different ones.
const LEAST_CHARACTERS: usize = 16;
const LEAST_DIFFERENT: usize = 8;

/// Whoever has the file of a state can guess at its passphrase for years.
fn strong_enough(passphrase: &SecretString) -> Result<(), SessionError> {
    let text = passphrase.expose().trim();
    let different: std::collections::BTreeSet<char> = text.chars().collect();
    let weakness = match text.chars().count() {
        0 => "it is empty".to_owned(),
        1 => "it has one character".to_owned(),
        count if count < LEAST_CHARACTERS => format!("it has {count} characters"),
        _ if different.len() < LEAST_DIFFERENT => {
            format!("it is made of {} different characters", different.len())
        }
        _ => return Ok(()),
    };
    let error = format!("the passphrase of `state.encryption` is too weak: {weakness}");
    Err(SessionError::refused(error)
        .hint(format!(
            "at least {LEAST_CHARACTERS} characters that nobody can guess: six random words, or what `openssl rand -base64 24` prints"
        ))
        .hint("states that are encrypted with it are read with `previous: [{passphrase: …}]` beside the new one"))
}

/// Keys of states, wrapped for age recipients.
struct AgeWrap {
    recipients: Vec<Recipient>,
    access: Arc<Access>,
}

impl KeyWrap for AgeWrap {
    fn wrap(&self, key: &[u8; 32]) -> Result<String, String> {
        let key = DigestKey::from_bytes(key).ok_or("a key has 32 bytes")?;
        strata_secrets::wrap_digest_key(&key, &self.recipients).map_err(|error| error.to_string())
    }

    fn unwrap(&self, wrapped: &str) -> Result<Zeroizing<[u8; 32]>, String> {
        let key = strata_secrets::unwrap_digest_key(wrapped, self.access.identities())
            .map_err(|error| error.to_string())?;
        let mut bytes = Zeroizing::new([0; 32]);
        bytes.copy_from_slice(key.expose());
        Ok(bytes)
    }
}
