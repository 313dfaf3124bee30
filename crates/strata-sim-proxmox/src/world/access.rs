//! Users, groups, roles, tokens and who may do what where.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::World;
use super::privileges;
use crate::api::{Refusal, forbidden};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct User {
    pub enable: bool,
    pub expire: i64,
    pub password: Option<String>,
    /// comment, email, firstname, lastname, keys: whatever text was set.
    pub fields: BTreeMap<String, String>,
    pub tokens: BTreeMap<String, Token>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Token {
    pub secret: String,
    pub privsep: bool,
    pub expire: i64,
    pub comment: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Group {
    pub comment: Option<String>,
    pub users: BTreeSet<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Role {
    pub privs: BTreeSet<String>,
    pub special: bool,
}

/// Roles by name; the value says whether they also hold below this path.
pub type Granted = BTreeMap<String, bool>;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Acl {
    pub users: BTreeMap<String, Granted>,
    pub groups: BTreeMap<String, Granted>,
    pub tokens: BTreeMap<String, Granted>,
}

impl Acl {
    pub fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty() && self.tokens.is_empty()
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Domain {
    pub kind: String,
    pub fields: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Pool {
    pub comment: Option<String>,
    pub vms: BTreeSet<u32>,
    pub storage: BTreeSet<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Access {
    pub users: BTreeMap<String, User>,
    pub groups: BTreeMap<String, Group>,
    pub roles: BTreeMap<String, Role>,
    /// By path.
    pub acl: BTreeMap<String, Acl>,
    pub domains: BTreeMap<String, Domain>,
    /// How often a token of this name was made: each of them has another secret.
    #[serde(default)]
    pub made_tokens: BTreeMap<String, u32>,
}

impl Access {
    /// A fresh installation: root@pam, the built-in roles and realms.
    pub fn fresh() -> Self {
        let domain = |kind: &str, comment: &str| Domain {
            kind: kind.to_owned(),
            fields: [("comment".to_owned(), comment.to_owned())].into(),
        };
        Self {
            users: [("root@pam".to_owned(), User { enable: true, ..User::default() })].into(),
            groups: BTreeMap::new(),
            roles: privileges::special_roles(),
            acl: BTreeMap::new(),
            domains: [
                ("pam".to_owned(), domain("pam", "Linux PAM standard authentication")),
                ("pve".to_owned(), domain("pve", "Proxmox VE authentication server")),
            ]
            .into(),
            made_tokens: BTreeMap::new(),
        }
    }

    pub fn token(&self, user: &str, token: &str) -> Option<&Token> {
        self.users.get(user)?.tokens.get(token)
    }

    /// Gives a role to a user or token on a path.
    pub fn grant(&mut self, path: &str, who: &str, role: &str, propagate: bool) {
        let acl = self.acl.entry(path.to_owned()).or_default();
        let list = if who.contains('!') { &mut acl.tokens } else { &mut acl.users };
        list.entry(who.to_owned()).or_default().insert(role.to_owned(), propagate);
    }

    /// The roles of a user or token on a path, by access lists alone: deeper paths override, users override groups.
    fn roles_on(&self, who: &str, path: &str) -> Granted {
        let mut roles = Granted::new();
        for (place, is_final) in prefixes(path) {
            let Some(acl) = self.acl.get(place) else { continue };
            let applies = |granted: &Granted| -> Granted {
                granted
                    .iter()
                    .filter(|(_, below)| is_final || **below)
                    .map(|(r, b)| (r.clone(), *b))
                    .collect()
            };
            let own = if who.contains('!') { acl.tokens.get(who) } else { acl.users.get(who) };
            let mut new = own.map(applies).unwrap_or_default();
            if new.is_empty() {
                for (group, granted) in &acl.groups {
                    if self.groups.get(group).is_some_and(|g| g.users.contains(who)) {
                        new.extend(applies(granted));
                    }
                }
            }
            if !new.is_empty() {
                roles = new;
            }
        }
        if let Some(propagate) = roles.get("NoAccess") {
            return [("NoAccess".to_owned(), *propagate)].into();
        }
        roles
    }
}

/// `/a/b` → `/`, `/a`, `/a/b`, the last one marked.
fn prefixes(path: &str) -> impl Iterator<Item = (&str, bool)> {
    let root = std::iter::once(("/", path == "/"));
    let ends = path.char_indices().skip(1).filter(|(_, c)| *c == '/').map(|(at, _)| at);
    let below = ends.chain(std::iter::once(path.len())).filter(move |_| path != "/");
    root.chain(below.map(move |end| (&path[..end], end == path.len())))
}

/// The path as access lists know it; none if it has characters that no path has.
pub fn normal_path(path: &str) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    let normal = format!("/{}", parts.join("/"));
    normal.chars().all(|c| c.is_ascii_alphanumeric() || "./-_".contains(c)).then_some(normal)
}

impl World {
    /// Roles including those that come from the pool that a guest or storage is in.
    fn roles_of(&self, who: &str, path: &str) -> Granted {
        let mut roles = self.access.roles_on(who, path);
        if roles.contains_key("NoAccess") {
            return roles;
        }
        let in_pool: Box<dyn Fn(&Pool) -> bool> =
            if let Some(vmid) = path.strip_prefix("/vms/").and_then(|v| v.parse::<u32>().ok()) {
                Box::new(move |pool| pool.vms.contains(&vmid))
            } else if let Some(storage) = path.strip_prefix("/storage/") {
                let storage = storage.to_owned();
                Box::new(move |pool| pool.storage.contains(&storage))
            } else {
                return roles;
            };
        for (id, _) in self.pools.iter().filter(|(_, pool)| in_pool(pool)) {
            for (role, _) in self.access.roles_on(who, &format!("/pool/{id}")) {
                if role == "NoAccess" {
                    return [(role, false)].into();
                }
                roles.entry(role).or_insert(false);
            }
        }
        roles
    }

    fn has(&self, who: &str, path: &str, privilege: &str) -> bool {
        let roles = self.roles_of(who, path);
        roles.keys().any(|role| self.access.roles.get(role).is_some_and(|r| r.privs.contains(privilege)))
    }

    /// Whether a user or token has a privilege on a path. A token without privilege separation is its user; one with
    /// it has what both have.
    pub fn may(&self, who: &str, path: &str, privilege: &str) -> bool {
        if who == "root@pam" {
            return privileges::exists(privilege);
        }
        let Some((user, token)) = who.split_once('!') else { return self.has(who, path, privilege) };
        match self.access.token(user, token) {
            None => false,
            Some(token) if !token.privsep => self.may(user, path, privilege),
            Some(_) => self.has(who, path, privilege) && self.may(user, path, privilege),
        }
    }

    /// Every privilege on a path; the value says whether it also holds below.
    pub fn permissions(&self, who: &str, path: &str) -> BTreeMap<String, bool> {
        if who == "root@pam" {
            return privileges::every().into_iter().map(|p| (p.to_owned(), true)).collect();
        }
        let own = || {
            let mut privs: BTreeMap<String, bool> = BTreeMap::new();
            for (role, propagate) in self.roles_of(who, path) {
                for privilege in self.access.roles.get(&role).into_iter().flat_map(|r| &r.privs) {
                    *privs.entry(privilege.clone()).or_default() |= propagate;
                }
            }
            privs
        };
        let Some((user, token)) = who.split_once('!') else { return own() };
        match self.access.token(user, token) {
            None => BTreeMap::new(),
            Some(token) if !token.privsep => self.permissions(user, path),
            Some(_) if user == "root@pam" => own(),
            Some(_) => {
                let users = self.permissions(user, path);
                own().into_iter().filter_map(|(p, b)| users.get(&p).map(|ub| (p, b && *ub))).collect()
            }
        }
    }

    /// All (or any) of these privileges, or 403 in the words of the API. No path means one that no access list can have.
    pub fn access_check(
        &self,
        who: &str,
        path: Option<&str>,
        privs: &[&str],
        any: bool,
    ) -> Result<(), Refusal> {
        let has = |privilege: &&str| path.is_some_and(|path| self.may(who, path, privilege));
        if any {
            if privs.iter().any(has) {
                return Ok(());
            }
            return Err(forbidden(format!("{}, {}", path.unwrap_or_default(), privs.join("|"))));
        }
        match privs.iter().find(|p| !has(p)) {
            None => Ok(()),
            Some(missing) => Err(forbidden(format!("{}, {missing}", path.unwrap_or_default()))),
        }
    }

    /// Whether the caller may change permissions on a path.
    pub fn check_modify(&self, who: &str, path: &str) -> Result<(), Refusal> {
        let below = |prefix: &str| path.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty());
        let privs: &[&str] = if below("/storage/") {
            &["Permissions.Modify", "Datastore.Allocate"]
        } else if below("/vms/") {
            &["Permissions.Modify", "VM.Allocate"]
        } else if below("/pool/") {
            &["Permissions.Modify", "Pool.Allocate"]
        } else {
            &["Permissions.Modify"]
        };
        self.access_check(who, Some(path), privs, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_with_the_path_itself() {
        let of = |p| prefixes(p).collect::<Vec<_>>();
        assert_eq!(of("/"), [("/", true)]);
        assert_eq!(of("/vms"), [("/", false), ("/vms", true)]);
        assert_eq!(of("/vms/110"), [("/", false), ("/vms", false), ("/vms/110", true)]);
    }

    #[test]
    fn paths_are_normal_or_nothing() {
        assert_eq!(normal_path("//vms//110/").as_deref(), Some("/vms/110"));
        assert_eq!(normal_path("/nodes/b@d"), None);
        assert_eq!(normal_path("/").as_deref(), Some("/"));
    }
}
