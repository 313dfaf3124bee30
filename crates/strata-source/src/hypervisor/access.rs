//! Users, their realms, groups, roles, tokens and what they may do.

use strata_yaml::{Spanned, Value, choice, record};

use crate::value::name::{ACL_PATH, ID, TOKEN, USER};
use crate::value::place::{ADDRESS, VM_ID};

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

choice! {
    /// Where the users of a realm are kept.
    pub enum RealmType { Ldap = "ldap", ActiveDirectory = "ad", OpenId = "openid" }
}

choice! {
    /// How a directory is reached.
    pub enum DirectoryMode { Plain = "ldap", Tls = "ldaps", StartTls = "ldap+starttls" }
}

record! {
    /// A realm: where users come from.
    pub struct Realm {
        /// where its users are kept
        "type" kind: RealmType;
        /// ldap, ad: the server
        "server" server: Option<String> [label(ADDRESS)];
        /// ldap, ad: the server that is asked if the first one does not answer
        "fallbackServer" fallback_server: Option<String> [label(ADDRESS)];
        /// ldap, ad: its port
        "port" port: Option<u16> [range(1, 65535)];
        /// ldap, ad: how it is reached; otherwise in the clear
        "mode" mode: Option<DirectoryMode>;
        /// ldap, ad: its certificate is checked
        "verify" verify: Option<bool>;
        /// ad: the domain
        "domain" domain: Option<String>;
        /// ldap, ad: where users are looked for
        "baseDn" base_dn: Option<String>;
        /// ldap, ad: the attribute that is the name of a user
        "userAttribute" user_attribute: Option<String>;
        /// ldap, ad: who Proxmox logs in as
        "bindDn" bind_dn: Option<String>;
        /// ldap, ad: their password
        "password" password: Option<Value<String>> [secret];
        /// ldap, ad: which users
        "filter" filter: Option<String>;
        /// ldap, ad: where groups are looked for
        "groupDn" group_dn: Option<String>;
        /// ldap, ad: which groups
        "groupFilter" group_filter: Option<String>;
        /// ldap, ad: attributes of users: `email=mail,firstname=givenName`
        "syncAttributes" sync_attributes: Option<String>;
        /// openid: the URL of the provider
        "issuerUrl" issuer_url: Option<String>;
        /// openid: what Proxmox is called there
        "clientId" client_id: Option<String>;
        /// openid: its key
        "clientKey" client_key: Option<Value<String>> [secret];
        /// openid: the claim that is the name of a user; it cannot be changed
        "usernameClaim" username_claim: Option<String>;
        /// openid: what is asked for; otherwise `email profile`
        "scopes" scopes: Option<String>;
        /// openid: users are made when they log in for the first time
        "autocreate" autocreate: Option<bool>;
        /// it is chosen where somebody logs in and says nothing
        "default" default: Option<bool>;
        /// for people
        "comment" comment: Option<String> [env()];
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}

choice! {
    /// What is taken over from a directory.
    pub enum SyncScope { Users = "users", Groups = "groups", Both = "both" }
}

choice! {
    /// What goes with a user or group that the directory no longer has.
    pub enum Vanished { Acl = "acl", Entry = "entry", Properties = "properties" }
}

record! {
    /// Users and groups of a realm that are taken over from its directory at set times.
    pub struct RealmSyncJob {
        /// the realm: of type `ldap` or `ad`
        "realm" realm: Spanned<String> [text(ID)];
        /// when, as a calendar event of systemd: `hourly`, `02:00`
        "schedule" schedule: String;
        /// what is taken over
        "scope" scope: SyncScope;
        /// users that are new may log in
        "enableNew" enable_new: bool = true;
        /// what goes with those that the directory no longer has: their permissions, themselves, what else is known of them
        "removeVanished" remove_vanished: Vec<Vanished>;
        /// whether it runs
        "enabled" enabled: bool = true;
        /// for people
        "comment" comment: Option<String> [env()];
        /// taken over if it is there already and nobody's mark is on it
        "adopt" adopt: bool = false;
        /// never destroyed or replaced by Strata
        "protect" protect: bool = false;
    }
}
