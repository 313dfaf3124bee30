//! How remotes are reached: values of the source, certificates, proxies, and the tokens of stacks.

use strata_diagnostics::{LARGEST_FILE, read_file, read_text_file};
use strata_net::{DialMap, Fingerprint, TlsTrust};
use strata_secret::SecretString;
use strata_source::cluster::ClusterProxmox;
use strata_source::cluster::flat::{TOKEN_ID, TOKEN_SECRET};
use strata_source::settings::target::Tls;
use strata_source::{EffectiveStack, Value};

use super::Workspace;
use super::resolve::Outside;
use crate::error::SessionError;
use crate::observer::SessionEvent;

/// The name of the target that a cluster writes down itself; none in strata.yaml can have it.
pub fn own_name(stack: &EffectiveStack) -> Option<String> {
    stack.own_endpoint().map(|_| format!("{}/proxmox", stack.name))
}

impl Workspace {
    /// A value of the source, or what it refers to. Files are looked for in `folder` first.
    pub fn resolve(&self, folder: &str, value: &Value<String>) -> Result<SecretString, SessionError> {
        match value {
            Value::Literal(text) => Ok(SecretString::new(text.clone())),
            Value::Reference(reference) => {
                let origin = self.origin(reference.span);
                let value = Outside::new(self, folder).value(&reference.source);
                value.map_err(|error| SessionError::from(error).origin(Some(origin)))
            }
        }
    }

    /// The token in one piece, from the source or else from the encrypted files, where the flat family keeps it.
    pub fn own_token(
        &self,
        stack: &EffectiveStack,
        proxmox: &ClusterProxmox,
    ) -> Result<SecretString, SessionError> {
        let part = |value: &Option<Value<String>>, name: &str| match value {
            Some(value) => self.resolve(&stack.folder, value),
            None => self.secret(name).map_err(|error| {
                SessionError::failed(format!(
                    "the cluster `{}` has no API token of its Proxmox: {error}",
                    stack.name
                ))
                .origin(Some(stack.path.clone()))
                .hint(format!(
                    "write `{TOKEN_ID}` and `{TOKEN_SECRET}` into it; `strata secrets collect` encrypts them"
                ))
            }),
        };
        let secret = part(&proxmox.token, TOKEN_SECRET)?;
        if secret.expose().contains('!') {
            return Ok(secret);
        }
        let id = part(&proxmox.token_id, TOKEN_ID)?;
        Ok(SecretString::new(format!("{}={}", id.expose(), secret.expose())))
    }

    /// The API token of the Proxmox that a stack is on, where it has one.
    pub(super) fn token_of(&self, stack: &EffectiveStack) -> Result<Option<SecretString>, SessionError> {
        if let Some((_, target)) = self.repository.proxmox(stack) {
            return target.token.as_ref().map(|token| self.resolve("", token)).transpose();
        }
        let own = stack.cluster().and_then(|cluster| cluster.proxmox.as_ref());
        match own.filter(|own| own.endpoint.is_some()) {
            Some(own) => self.own_token(stack, own).map(Some),
            None => Ok(None),
        }
    }

    /// No certificate is verified, and the observer hears of it.
    pub fn insecure(&self) -> TlsTrust {
        self.surroundings.observer.session_event(SessionEvent::Insecure);
        TlsTrust::Insecure
    }

    pub fn trust(&self, tls: Option<&Tls>) -> Result<TlsTrust, SessionError> {
        let Some(tls) = tls else { return Ok(TlsTrust::System) };
        if tls.insecure {
            return Ok(self.insecure());
        }
        if let Some(fingerprint) = &tls.fingerprint {
            let fingerprint: Fingerprint = fingerprint.parse().map_err(|error| {
                SessionError::failed(format!("`{}` is no fingerprint: {error}", fingerprint.value))
            })?;
            return Ok(TlsTrust::Fingerprint(fingerprint));
        }
        match &tls.ca {
            Some(path) => {
                let place = self.root.join(&path.value);
                let pem = read_file(&place, LARGEST_FILE).map_err(|error| {
                    SessionError::failed(format!("cannot read `{}`: {error}", path.value))
                })?;
                Ok(TlsTrust::Ca(pem))
            }
            None => Ok(TlsTrust::System),
        }
    }

    /// Where connections go instead.
    pub fn dial(&self) -> Result<DialMap, SessionError> {
        let mut map = DialMap::new();
        if let Some(proxy) = &self.repository.settings.proxy {
            let place = proxy.trim_end_matches('/').trim_start_matches("http://");
            if place.contains("://") {
                return Err(SessionError::failed(format!(
                    "the proxy `{}` is not of the form `http://host:port`",
                    proxy.value
                )));
            }
            map.through(place);
        }
        let Some(path) = &self.surroundings.dial else { return Ok(map) };
        let name = path.display();
        let json = read_text_file(path, LARGEST_FILE)
            .map_err(|error| SessionError::failed(format!("cannot read `{name}`: {error}")))?;
        let own =
            DialMap::parse(&json).map_err(|error| SessionError::failed(format!("`{name}`: {error}")))?;
        Ok(map.with(own))
    }
}
