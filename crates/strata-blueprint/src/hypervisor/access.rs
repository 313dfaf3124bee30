//! Pools, roles, groups, users, tokens, and who may do what where.

use std::collections::{BTreeMap, BTreeSet};

use strata_source::hypervisor::Hypervisor;
use strata_source::hypervisor::access::AclEntry;
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
        self.users(hypervisor);
        self.tokens(hypervisor);
        for entry in &hypervisor.acl {
            self.acl(entry);
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
