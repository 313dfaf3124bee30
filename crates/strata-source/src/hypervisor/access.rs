//! Users, groups, roles, tokens and what they may do.

use strata_yaml::{Spanned, Value, record};

use crate::value::name::{ACL_PATH, ID, TOKEN, USER};
use crate::value::place::VM_ID;

record! {
    /// A named set of privileges.
    pub struct Role [shorthand("privileges")] {
        /// such as `VM.Allocate`
        "privileges" privileges: Vec<Spanned<String>>;
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// A group of users.
    pub struct Group {
        /// for people
        "comment" comment: Option<String> [env()];
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// A user.
    pub struct User {
        /// the groups it is in
        "groups" groups: Vec<Spanned<String>> [text(ID)];
        /// whether it may log in
        "enabled" enabled: bool = true;
        /// for people
        "comment" comment: Option<String> [env()];
        /// the address
        "email" email: Option<String>;
        /// the given name
        "firstName" first_name: Option<String>;
        /// the family name
        "lastName" last_name: Option<String>;
        /// seconds since 1970; 0 for never
        "expire" expire: Option<u64>;
        /// sent when the user is made and when it changes here; it cannot be read back. An API token cannot change it later
        "password" password: Option<Value<String>> [secret];
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// An API token.
    pub struct Token {
        /// where its value is kept, as `user@realm!name=value`: the name of a secret in the first SOPS file of `strata.yaml`. Proxmox
        /// gives the value only once, when the token is made; without this nobody gets to know it
        "secret" secret: Option<Spanned<String>> [text(ID)];
        /// it may do only what an entry of `acl` says
        "privilegeSeparation" privilege_separation: bool = true;
        /// seconds since 1970; 0 for never
        "expire" expire: Option<u64>;
        /// for people
        "comment" comment: Option<String> [env()];
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

record! {
    /// Who may do what where.
    pub struct AclEntry [exactly_one(&["user", "group", "token"])] {
        /// where: `/`, `/vms/100`, `/storage/local`, …
        "path" path: Spanned<String> [text(ACL_PATH), env(), label(VM_ID)];
        /// what
        "role" role: Spanned<String> [text(ID)];
        /// who: `ops@pve`
        "user" user: Option<Spanned<String>> [text(USER)];
        /// who: a group
        "group" group: Option<Spanned<String>> [text(ID)];
        /// who: `ops@pve!ci`
        "token" token: Option<Spanned<String>> [text(TOKEN)];
        /// also below the path
        "propagate" propagate: bool = true;
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}
