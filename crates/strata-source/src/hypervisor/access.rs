//! Users, groups, roles, tokens and what they may do.

use strata_yaml::{Spanned, Value, record};

record! {
    /// A named set of privileges.
    pub struct Role [shorthand("privileges")] {
        /// such as `VM.Allocate`
        "privileges" privileges: Vec<Spanned<String>>;
    }
}

record! {
    /// A group of users.
    pub struct Group {
        /// for people
        "comment" comment: Option<String>;
    }
}

record! {
    /// A user.
    pub struct User {
        /// the groups it is in
        "groups" groups: Vec<Spanned<String>>;
        /// whether it may log in
        "enabled" enabled: bool = true;
        /// for people
        "comment" comment: Option<String>;
        /// the address
        "email" email: Option<String>;
        /// the given name
        "firstName" first_name: Option<String>;
        /// the family name
        "lastName" last_name: Option<String>;
        /// seconds since 1970; 0 for never
        "expire" expire: Option<u64>;
        /// set at creation; it cannot be read back
        "password" password: Option<Value<String>> [secret];
    }
}

record! {
    /// An API token.
    pub struct Token {
        /// it may do only what an entry of `acl` says
        "privilegeSeparation" privilege_separation: bool = true;
        /// seconds since 1970; 0 for never
        "expire" expire: Option<u64>;
        /// for people
        "comment" comment: Option<String>;
    }
}

record! {
    /// Who may do what where.
    pub struct AclEntry [exactly_one(&["user", "group", "token"])] {
        /// where: `/`, `/vms/100`, `/storage/local`, …
        "path" path: Spanned<String>;
        /// what
        "role" role: Spanned<String>;
        /// who: `ops@pve`
        "user" user: Option<Spanned<String>>;
        /// who: a group
        "group" group: Option<Spanned<String>>;
        /// who: `ops@pve!ci`
        "token" token: Option<Spanned<String>>;
        /// also below the path
        "propagate" propagate: bool = true;
    }
}
