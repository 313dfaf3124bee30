//! A connection for other protocols than HTTP, under the same rules: dial map, trust, and errors that say what went wrong.

use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use url::Url;

use crate::connector::Connector;
use crate::trust::{ServerNames, client_config};
use crate::{ClientIdentity, DialMap, NetError, TlsSetupError, TlsTrust};

/// Opens TLS connections to one endpoint.
#[derive(Clone)]
pub struct TlsDialer {
    connector: Connector,
    endpoint: String,
}

impl TlsDialer {
    /// For `https://host:port`; any path in it is left to the caller.
    pub fn new(
        endpoint: &str,
        trust: &TlsTrust,
        identity: Option<&ClientIdentity>,
        dial: DialMap,
        connect_timeout: Duration,
    ) -> Result<Self, TlsSetupError> {
        let wrong = || TlsSetupError::Endpoint(endpoint.to_owned());
        let url = Url::parse(endpoint).ok().filter(|url| url.scheme() == "https").ok_or_else(wrong)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(|_| wrong())?;
        let place = format!("{host}:{}", url.port_or_known_default().ok_or_else(wrong)?);
        let config = client_config(trust, ServerNames::Checked, identity)?;
        let connector =
            Connector::new(place.clone(), Some((config, name)), dial, connect_timeout, connect_timeout);
        Ok(Self { connector, endpoint: place })
    }

    /// `host:port`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// A new connection, with its handshake done.
    pub async fn open(&self) -> Result<TlsStream<TcpStream>, NetError> {
        self.connector.open_tls().await
    }
}
