//! The places that stacks are applied to.

use strata_yaml::{Spanned, TextRule, TextShape, Value, record};

use crate::value::name::URL;

pub(crate) const FINGERPRINT: TextRule = TextRule {
    shape: TextShape {
        what: "the SHA-256 fingerprint of a certificate: 32 bytes in hex with colons",
        pattern: Some("^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$"),
    },
    accepts: |text| {
        let digits: Vec<char> = text.chars().filter(|c| *c != ':').collect();
        digits.len() == 64 && digits.iter().all(char::is_ascii_hexdigit)
    },
};

record! {
    /// How the server proves who it is; by the system's authorities unless something is said here.
    pub struct Tls [at_most_one(&["fingerprint", "ca", "insecure"])] {
        /// the SHA-256 fingerprint of its certificate
        "fingerprint" fingerprint: Option<Spanned<String>> [text(FINGERPRINT)];
        /// a file with the certificates of an authority
        "ca" ca: Option<Spanned<String>>;
        /// anyone may answer: for experiments only
        "insecure" insecure: bool = false;
    }
}

record! {
    /// A login by user and password, for the few keys that no token may set.
    pub struct Login {
        /// the user with the realm: `root@pam`
        "user" user: Value<String>;
        /// the password
        "password" password: Value<String> [secret];
    }
}

record! {
    /// A Proxmox VE cluster or node.
    pub struct ProxmoxTarget {
        /// the address of the API, without `/api2/json`
        "endpoint" endpoint: Spanned<String> [text(URL)];
        /// an API token: `user@realm!name=uuid`
        "token" token: Option<Value<String>> [secret];
        /// a login for what no token may do
        "login" login: Option<Login>;
        /// how the server proves who it is
        "tls" tls: Option<Tls>;
    }
}

record! {
    /// A TrueNAS server.
    pub struct TruenasTarget {
        /// its address
        "endpoint" endpoint: Spanned<String> [text(URL)];
        /// an API key
        "apiKey" api_key: Value<String> [secret];
        /// how the server proves who it is
        "tls" tls: Option<Tls>;
    }
}

record! {
    /// A place that stacks are applied to.
    pub struct Target [exactly_one(&["proxmox", "truenas"])] {
        /// a Proxmox VE cluster or node
        "proxmox" proxmox: Option<ProxmoxTarget>;
        /// a TrueNAS server
        "truenas" truenas: Option<TruenasTarget>;
    }
}
