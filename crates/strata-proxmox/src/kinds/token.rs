//! API tokens. Proxmox gives the value once, when the token is made: another place for it is another value.

use strata_resource::kind;

use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};

kind! {
    /// An API token of a user.
    "token" {
        called: "API token {token}",
        identity: &["token"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        // Nobody may know its value: it stays unknown, and the next plan makes it again.
        recorded_when_begun: false,
        ..DATACENTER
    }
    /// user and name: `ops@pve!ci`
    "token": Text => InPlace;
    /// it has privileges of its own
    "privsep": Bool => InPlace [on_by_default];
    /// when it ends, in seconds since 1970; 0 is never
    "expire": Int => InPlace [default_int(0)];
    /// where its value is kept
    "secret": Text => InPlace [write_only];
}
