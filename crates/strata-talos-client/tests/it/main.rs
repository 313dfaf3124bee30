//! The API client against a small gRPC server that answers what a test tells it to.

mod calls;
mod failures;
mod permits;
mod proto;
mod resources;
mod server;
mod streams;
mod trust;

use std::time::Duration;

use strata_net::DialMap;
use strata_talos::{SecretsBundle, ServiceAccountKey};
use strata_talos_client::{Credentials, TalosClient, Timeouts};

use server::{Handler, Server};

/// The address of the node in the model: never dialled, only mapped.
pub(crate) const NODE: &str = "192.0.2.41";

/// Certificates are checked against the clock of this machine.
pub(crate) fn today() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Bytes that look random and are the same every time.
pub(crate) fn seeded(seed: u64) -> impl FnMut(&mut [u8]) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |buffer: &mut [u8]| {
        for byte in buffer {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = (state >> 32) as u8;
        }
    }
}

pub(crate) fn bundle(seed: u64) -> SecretsBundle {
    SecretsBundle::generate(today(), ServiceAccountKey::Ecdsa, &mut seeded(seed))
        .unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn credentials(bundle: &SecretsBundle) -> Credentials {
    Credentials::issue(bundle, today(), &mut seeded(77)).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn dial(server: &Server) -> DialMap {
    let mut dial = DialMap::new();
    dial.insert(format!("{NODE}:50000"), server.address.clone());
    dial
}

/// A configured node that answers like this, and a client that it trusts.
pub(crate) async fn node(handler: impl Handler) -> (Server, TalosClient) {
    let bundle = bundle(1);
    let server = Server::start(server::Tls::mutual(&bundle), handler).await;
    let client = TalosClient::connect(NODE, &dial(&server), &credentials(&bundle));
    (server, client.unwrap_or_else(|error| panic!("{error}")))
}

/// For what is to time out.
pub(crate) fn impatient() -> Timeouts {
    let [connect, call, slow, transfer] = [2000, 50, 50, 50].map(Duration::from_millis);
    Timeouts { connect, call, slow, transfer }
}
