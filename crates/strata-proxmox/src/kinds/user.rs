//! Users.

use strata_resource::kind;

use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED};

kind! {
    /// A user.
    "user" {
        called: "user {user}",
        identity: &["user"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED],
        at_once: true,
        ..DATACENTER
    }
    /// name and realm: `ops@pve`
    "user": Text => InPlace;
    /// groups that it is in
    "groups": List => InPlace [set];
    /// it can log in
    "enabled": Bool => InPlace [on_by_default];
    /// when it ends, in seconds since 1970; 0 is never
    "expire": Int => InPlace [default_int(0)];
    /// its address for mail
    "email": Text => InPlace;
    /// first name
    "first_name": Text => InPlace;
    /// last name
    "last_name": Text => InPlace;
    /// its password, in Proxmox' own realm
    "password": Text => InPlace [write_only];
}
