//! The firewall of the datacenter: names for addresses, sets of them, groups of rules, and the rules themselves.

use std::collections::BTreeSet;

use strata_resource::{Kind, Spec, Value};
use strata_source::hypervisor::Hypervisor;

use super::Part;
use crate::fields::{Fields, list};
use crate::firewall::rule;
use crate::site::Draft;

impl Draft<'_> {
    pub(super) fn datacenter_firewall(&mut self, hypervisor: &Hypervisor) {
        let Some(firewall) = &hypervisor.firewall else { return };
        let mut aliases = BTreeSet::new();
        for (name, alias) in firewall.aliases.iter() {
            let mut part = Part::new(Kind::Alias, name, name.span).flags(alias.adopt, alias.protect);
            part.spec.put("alias", name.as_str());
            part.spec.put("cidr", plain(&alias.address));
            self.comment(&mut part.spec, Kind::Alias, name, alias.comment.as_ref());
            aliases.insert(self.part(part));
        }
        let mut names = aliases.clone();
        for (name, set) in firewall.ip_sets.iter() {
            let mut part = Part::new(Kind::Ipset, name, name.span).flags(set.adopt, set.protect);
            part.spec.put("ipset", name.as_str());
            part.spec.put(
                "addresses",
                list(set.addresses.iter().map(|address| plain(address)).collect::<BTreeSet<_>>()),
            );
            self.comment(&mut part.spec, Kind::Ipset, name, set.comment.as_ref());
            part.needs.clone_from(&aliases);
            names.insert(self.part(part));
        }
        let mut all = names.clone();
        for (name, group) in firewall.groups.iter() {
            let mut part = Part::new(Kind::SecurityGroup, name, name.span).flags(group.adopt, group.protect);
            part.spec.put("security_group", name.as_str());
            part.spec.put("rules", Value::List(group.rules.iter().map(rule).collect()));
            self.comment(&mut part.spec, Kind::SecurityGroup, name, group.comment.as_ref());
            part.needs.clone_from(&names);
            all.insert(self.part(part));
        }
        let mut options = Spec::new();
        options.put_some("enable", firewall.enabled);
        options.put_some("policy_in", firewall.policy_in.map(|policy| policy.to_string()));
        options.put_some("policy_out", firewall.policy_out.map(|policy| policy.to_string()));
        // Names alone say nothing of the firewall itself: it must not be switched by them.
        if options.is_empty() && firewall.rules.is_empty() {
            return;
        }
        let mut part =
            Part::new(Kind::Firewall, "datacenter", firewall.span).flags(firewall.adopt, firewall.protect);
        part.spec.put("firewall", "datacenter");
        part.spec.put_full("options", Value::Map(options));
        part.spec.put_full("rules", Value::List(firewall.rules.iter().map(rule).collect()));
        part.needs = all;
        self.part(part);
    }
}

/// As Proxmox keeps it: a network of one address is that address.
fn plain(address: &str) -> &str {
    let bits = if address.contains(':') { "/128" } else { "/32" };
    address.strip_suffix(bits).unwrap_or(address)
}
