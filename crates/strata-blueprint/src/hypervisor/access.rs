//! Pools, roles, groups, users, tokens, and who may do what where.

use std::collections::{BTreeMap, BTreeSet};

use strata_source::hypervisor::Hypervisor;
use strata_source::hypervisor::access::{AclEntry, Realm, RealmType};
use strata_yaml::Spanned;

use super::Part;
use crate::fields::{Fields, int, list};
use crate::kinds;
use crate::site::Draft;

impl Draft<'_> {
    pub(super) fn access(&mut self, hypervisor: &Hypervisor) {
        for (name, pool) in hypervisor.pools.iter() {
            let mut part = Part::new(kinds::POOL, name, name.span).flags(pool.adopt, pool.protect);
            part.spec.put("pool", name.as_str());
            self.comment(&mut part.spec, kinds::POOL, name, pool.comment.as_ref());
            // A pool in another one needs that first.
            part.needs = self.known(kinds::POOL, name.rsplit_once('/').map(|(above, _)| above));
            self.part(part);
        }
        for (name, role) in hypervisor.roles.iter() {
            let mut part = Part::new(kinds::ROLE, name, name.span).flags(role.adopt, role.protect);
            part.spec.put("role", name.as_str());
            part.spec.put("privileges", list(sorted(&role.privileges)));
            self.part(part);
        }
        for (name, group) in hypervisor.groups.iter() {
            let mut part = Part::new(kinds::GROUP, name, name.span).flags(group.adopt, group.protect);
            part.spec.put("group", name.as_str());
            self.comment(&mut part.spec, kinds::GROUP, name, group.comment.as_ref());
            self.part(part);
        }
        for (name, realm) in hypervisor.realms.iter() {
            self.realm(name, realm);
        }
        self.realm_sync_jobs(hypervisor);
        self.users(hypervisor);
        self.tokens(hypervisor);
        for entry in &hypervisor.acl {
            self.acl(entry);
        }
    }

    fn realm(&mut self, name: &Spanned<String>, realm: &Realm) {
        let mut part = Part::new(kinds::REALM, name, name.span).flags(realm.adopt, realm.protect);
        for (key, given, belongs, needed) in keys_of_realm(realm) {
            let kind = realm.kind;
            if given && !belongs.contains(&kind) {
                let message = format!("the realm `{name}` is of type `{kind}`, which has no `{key}`");
                self.refuse("no-such-field", message, name.span);
            } else if !given && needed.contains(&kind) {
                let message = format!("the realm `{name}` is of type `{kind}`, and has no `{key}`");
                self.refuse("missing-field", message, name.span);
            }
        }
        let spec = &mut part.spec;
        spec.put("realm", name.as_str());
        spec.put("type", realm.kind.to_string());
        let texts = [
            ("server", &realm.server),
            ("fallback_server", &realm.fallback_server),
            ("domain", &realm.domain),
            ("base_dn", &realm.base_dn),
            ("user_attribute", &realm.user_attribute),
            ("bind_dn", &realm.bind_dn),
            ("filter", &realm.filter),
            ("group_dn", &realm.group_dn),
            ("group_filter", &realm.group_filter),
            ("sync_attributes", &realm.sync_attributes),
            ("issuer_url", &realm.issuer_url),
            ("client_id", &realm.client_id),
            ("username_claim", &realm.username_claim),
            ("scopes", &realm.scopes),
        ];
        for (field, text) in texts {
            spec.put_some(field, text.clone());
        }
        spec.put_some("port", realm.port.map(int));
        spec.put_some("mode", realm.mode.map(|mode| mode.to_string()));
        spec.put_some("verify", realm.verify);
        spec.put_some("autocreate", realm.autocreate);
        spec.put_some("preselected", realm.default);
        self.comment(spec, kinds::REALM, name, realm.comment.as_ref());
        let password = realm.password.as_ref().and_then(|password| self.secret(password));
        part.spec.put_some("password", password);
        let key = realm.client_key.as_ref().and_then(|key| self.secret(key));
        part.spec.put_some("client_key", key);
        self.part(part);
    }

    fn realm_sync_jobs(&mut self, hypervisor: &Hypervisor) {
        for (name, job) in hypervisor.realm_sync_jobs.iter() {
            let of = hypervisor.realms.iter().find(|(realm, _)| realm.value == job.realm.value);
            if of.is_some_and(|(_, realm)| realm.kind == RealmType::OpenId) {
                let message =
                    format!("the realm `{}` is of type `openid`, which has no directory", job.realm);
                self.refuse("no-such-field", message, job.realm.span);
            }
            let mut part = Part::new(kinds::REALM_SYNC, name, name.span).flags(job.adopt, job.protect);
            let spec = &mut part.spec;
            spec.put("realm_sync", name.as_str());
            spec.put("realm", job.realm.as_str());
            spec.put("schedule", job.schedule.as_str());
            spec.put("scope", job.scope.to_string());
            spec.put("enable_new", job.enable_new);
            let vanished: BTreeSet<String> = job.remove_vanished.iter().map(ToString::to_string).collect();
            let vanished: Vec<String> = vanished.into_iter().collect();
            spec.put(
                "remove_vanished",
                if vanished.is_empty() { "none".to_owned() } else { vanished.join(";") },
            );
            spec.put("enabled", job.enabled);
            self.comment(spec, kinds::REALM_SYNC, name, job.comment.as_ref());
            part.needs = self.known(kinds::REALM, Some(&job.realm));
            self.part(part);
        }
    }

    fn users(&mut self, hypervisor: &Hypervisor) {
        for (name, user) in hypervisor.users.iter() {
            let mut part = Part::new(kinds::USER, name, name.span).flags(user.adopt, user.protect);
            let spec = &mut part.spec;
            spec.put("user", name.as_str());
            spec.put_full("groups", list(sorted(&user.groups)));
            spec.put("enabled", user.enabled);
            spec.put_some("email", user.email.clone());
            spec.put_some("first_name", user.first_name.clone());
            spec.put_some("last_name", user.last_name.clone());
            spec.put_some("expire", user.expire.map(int));
            self.comment(spec, kinds::USER, name, user.comment.as_ref());
            let password = user.password.as_ref().and_then(|password| self.secret(password));
            part.spec.put_some("password", password);
            for group in &user.groups {
                part.needs.extend(self.known(kinds::GROUP, Some(group)));
            }
            part.needs.extend(self.known(kinds::REALM, name.rsplit_once('@').map(|(_, realm)| realm)));
            self.part(part);
        }
    }

    fn tokens(&mut self, hypervisor: &Hypervisor) {
        let mut kept: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, token) in hypervisor.tokens.iter() {
            if let Some(secret) = &token.secret
                && let Some(other) = kept.insert(secret, name)
            {
                // The value of one would be written over that of the other.
                let message =
                    format!("the values of `{other}` and `{name}` cannot both be kept as `{secret}`");
                self.refuse("twice", message, secret.span);
            }
            let mut part = Part::new(kinds::TOKEN, name, name.span).flags(token.adopt, token.protect);
            let spec = &mut part.spec;
            spec.put("token", name.as_str());
            spec.put("privsep", token.privilege_separation);
            spec.put_some("expire", token.expire.map(int));
            spec.put_some("secret", token.secret.as_ref().map(|secret| secret.value.clone()));
            self.comment(spec, kinds::TOKEN, name, token.comment.as_ref());
            part.needs = self.known(kinds::USER, name.split_once('!').map(|(user, _)| user));
            self.part(part);
        }
    }

    fn acl(&mut self, entry: &AclEntry) {
        let subjects = [
            (&entry.user, "user", kinds::USER),
            (&entry.group, "group", kinds::GROUP),
            (&entry.token, "token", kinds::TOKEN),
        ];
        // Exactly one is written, or the file was refused.
        let Some((subject, word, kind)) =
            subjects.into_iter().find_map(|(subject, word, kind)| Some((subject.as_ref()?, word, kind)))
        else {
            return;
        };
        let name = format!("{subject}={}={}", entry.role, entry.path);
        let mut part = Part::new(kinds::ACL, &name, entry.path.span).flags(entry.adopt, entry.protect);
        let spec = &mut part.spec;
        spec.put("path", entry.path.as_str());
        spec.put("subject", subject.as_str());
        spec.put("subject_type", word);
        spec.put("grants", entry.role.as_str());
        spec.put("propagate", entry.propagate);
        part.needs = self.known(kind, Some(subject));
        part.needs.extend(self.known(kinds::ROLE, Some(&entry.role)));
        // Proxmox drops the entries of a pool together with it.
        part.needs.extend(self.known(kinds::POOL, entry.path.strip_prefix("/pool/")));
        part.needs.extend(self.known(kinds::STORAGE, entry.path.strip_prefix("/storage/")));
        self.part(part);
    }
}

fn sorted(texts: &[Spanned<String>]) -> BTreeSet<String> {
    texts.iter().map(|text| text.value.clone()).collect()
}

type RealmKey = (&'static str, bool, &'static [RealmType], &'static [RealmType]);

/// The keys that not every type has: whether one is given, the types that have it, and those that need it.
fn keys_of_realm(realm: &Realm) -> [RealmKey; 19] {
    use RealmType::{ActiveDirectory, Ldap, OpenId};
    const DIRECTORY: &[RealmType] = &[Ldap, ActiveDirectory];
    const OPENID: &[RealmType] = &[OpenId];
    [
        ("server", realm.server.is_some(), DIRECTORY, DIRECTORY),
        ("fallbackServer", realm.fallback_server.is_some(), DIRECTORY, &[]),
        ("port", realm.port.is_some(), DIRECTORY, &[]),
        ("mode", realm.mode.is_some(), DIRECTORY, &[]),
        ("verify", realm.verify.is_some(), DIRECTORY, &[]),
        ("domain", realm.domain.is_some(), &[ActiveDirectory], &[ActiveDirectory]),
        ("baseDn", realm.base_dn.is_some(), DIRECTORY, &[Ldap]),
        ("userAttribute", realm.user_attribute.is_some(), DIRECTORY, &[Ldap]),
        ("bindDn", realm.bind_dn.is_some(), DIRECTORY, &[]),
        ("password", realm.password.is_some(), DIRECTORY, &[]),
        ("filter", realm.filter.is_some(), DIRECTORY, &[]),
        ("groupDn", realm.group_dn.is_some() || realm.group_filter.is_some(), DIRECTORY, &[]),
        ("syncAttributes", realm.sync_attributes.is_some(), DIRECTORY, &[]),
        ("issuerUrl", realm.issuer_url.is_some(), OPENID, OPENID),
        ("clientId", realm.client_id.is_some(), OPENID, OPENID),
        ("clientKey", realm.client_key.is_some(), OPENID, &[]),
        ("usernameClaim", realm.username_claim.is_some(), OPENID, &[]),
        ("scopes", realm.scopes.is_some(), OPENID, &[]),
        ("autocreate", realm.autocreate.is_some(), OPENID, &[]),
    ]
}
