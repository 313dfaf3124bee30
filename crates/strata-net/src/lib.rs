//! HTTP client with TLS pinning, timeouts, classified retries; nothing of any one API.
//!
//! One [`HttpClient`] talks to one endpoint over a few kept-alive connections and sends each [`Request`] once. [`TlsTrust`] says what its
//! server must show, a [`DialMap`] where it is really dialled, a [`NetError`] whether the request may have arrived.
//!
//! Whether a failed request may be sent again is for the caller to say ([`retry()`]): only it knows what the request does. Redirects are not
//! followed and proxies are not used: the endpoints are machines of the same datacenter. No trace holds a body, a header or a query.
//!
//! ```no_run
//! use http::Method;
//! use strata_net::{Delivery, HttpClient, HttpOptions, Request, TlsTrust};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let pinned = "AB:".repeat(31) + "AB";
//! let options = HttpOptions { tls: TlsTrust::Fingerprint(pinned.parse()?), ..HttpOptions::new("https://192.0.2.10:8006") };
//! let client = HttpClient::new(options)?;
//! match client.send(&Request::new(Method::GET, "/api2/json/version")).await {
//!     Ok(answer) => println!("{} {}", answer.status, answer.reason),
//!     Err(error) if error.delivery() == Delivery::NotSent => println!("nothing was sent: {error}"),
//!     Err(error) => println!("it may have arrived: {error}"),
//! }
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod client;
mod clock;
mod connector;
mod dial;
mod error;
mod fingerprint;
mod guarded;
mod identity;
mod judge;
mod multipart;
mod open;
mod request;
mod retry;
mod streamed;
mod trace;
mod trust;

pub use client::{HttpClient, HttpOptions};
pub use clock::{Clock, SystemClock};
pub use dial::{DialMap, DialMapError};
pub use error::{Cause, CertificateFlaw, Delivery, NetError, TlsSetupError};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use guarded::{Permission, WritePermit, give_up_after};
pub use identity::ClientIdentity;
pub use judge::{Judge, Shown, judged_by, refusal};
pub use multipart::Multipart;
pub use open::TlsDialer;
pub use request::{Body, Request, Response};
pub use retry::{Random, RetryPolicy, Verdict, retry};
pub use streamed::Streamed;
pub use trace::{Exchange, TraceSink};
pub use trust::{ServerNames, TlsTrust, client_config};
