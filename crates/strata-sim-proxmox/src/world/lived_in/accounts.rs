//! Users, tokens, groups, roles, permissions and pools, as `user.cfg` has them: one a line, fields between colons.

use super::files::sections;
use crate::world::World;
use crate::world::access::{Domain, Group, Pool, Role, Token};
use crate::world::cluster::Section;

fn list(text: &str) -> impl Iterator<Item = String> {
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned)
}

fn comment(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl World {
    pub(super) fn furnish_accounts(&mut self, text: &str) {
        for line in text.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            match fields.as_slice() {
                ["user", id, enable, expire, first, last, email, note, ..] => {
                    let fields =
                        [("firstname", first), ("lastname", last), ("email", email), ("comment", note)];
                    let user = self.access.users.entry((*id).to_owned()).or_default();
                    user.enable = *enable == "1";
                    user.expire = expire.parse().unwrap_or_default();
                    let said = fields.into_iter().filter(|(_, value)| !value.is_empty());
                    user.fields.extend(said.map(|(key, value)| (key.to_owned(), (*value).to_owned())));
                }
                ["token", id, expire, privsep, note, ..] => self.put_token(id, expire, privsep, note),
                ["group", id, users, note, ..] => {
                    let group = Group { comment: comment(note), users: list(users).collect() };
                    self.access.groups.insert((*id).to_owned(), group);
                }
                ["role", id, privs, ..] => {
                    let role = Role { privs: list(privs).collect(), special: false };
                    self.access.roles.insert((*id).to_owned(), role);
                }
                ["acl", propagate, path, who, role, ..] => {
                    self.put_permission(path, who, role, *propagate == "1")
                }
                ["pool", id, note, vms, storages, ..] => {
                    let pool = Pool {
                        comment: comment(note),
                        vms: list(vms).filter_map(|vmid| vmid.parse().ok()).collect(),
                        storage: list(storages).collect(),
                    };
                    self.pools.insert((*id).to_owned(), pool);
                }
                _ => {}
            }
        }
        self.furnish_operator();
    }

    pub(super) fn furnish_realms(&mut self, text: &str) {
        self.access.domains.extend(sections(text).map(|(name, Section { kind, props })| {
            (name, Domain { kind, fields: props.into_iter().collect() })
        }));
    }

    fn put_token(&mut self, id: &str, expire: &str, privsep: &str, note: &str) {
        let secret = self.uuid(&["token", id]);
        let Some((user, name)) = id.split_once('!') else { return };
        let token = Token {
            secret,
            privsep: privsep == "1",
            expire: expire.parse().unwrap_or_default(),
            comment: comment(note),
        };
        if let Some(user) = self.access.users.get_mut(user) {
            user.tokens.insert(name.to_owned(), token);
        }
    }

    /// To a group if the name begins with `@`, else to a user or token.
    fn put_permission(&mut self, path: &str, who: &str, role: &str, propagate: bool) {
        match who.strip_prefix('@') {
            None => self.access.grant(path, who, role, propagate),
            Some(group) => {
                let acl = self.access.acl.entry(path.to_owned()).or_default();
                acl.groups.entry(group.to_owned()).or_default().insert(role.to_owned(), propagate);
            }
        }
    }
}
