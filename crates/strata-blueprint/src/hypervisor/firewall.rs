//! The firewalls of the datacenter and of its hosts: names for addresses, sets of them, groups of rules, and the rules themselves.

use std::collections::BTreeSet;
use std::net::IpAddr;

use strata_diagnostics::Diagnostic;
use strata_resource::{Address, Spec, Value};
use strata_source::hypervisor::Hypervisor;
use strata_source::hypervisor::host::HostFirewall;
use strata_source::value::address::Cidr;

use super::Part;
use crate::fields::{Fields, int, list};
use crate::firewall::rule;
use crate::kinds;
use crate::site::Draft;

impl Draft<'_> {
    pub(super) fn datacenter_firewall(&mut self, hypervisor: &Hypervisor) {
        let Some(firewall) = &hypervisor.firewall else {
            self.host_firewalls(hypervisor, &BTreeSet::new());
            return;
        };
        let mut aliases = BTreeSet::new();
        for (name, alias) in firewall.aliases.iter() {
            let mut part = Part::new(kinds::ALIAS, name, name.span).flags(alias.adopt, alias.protect);
            part.spec.put("alias", name.as_str());
            part.spec.put("cidr", plain(&alias.address));
            self.comment(&mut part.spec, kinds::ALIAS, name, alias.comment.as_ref());
            may_lock_out(&mut part.spec, hypervisor, firewall.may_lock_out);
            aliases.insert(self.part(part));
        }
        let mut names = aliases.clone();
        for (name, set) in firewall.ip_sets.iter() {
            let mut part = Part::new(kinds::IPSET, name, name.span).flags(set.adopt, set.protect);
            part.spec.put("ipset", name.as_str());
            for (address, network) in
                set.addresses.iter().filter_map(|address| Some((address, as_kept(address)?)))
            {
                let message =
                    format!("`{address}` in the IP set `{name}` is not how Proxmox keeps that network");
                let problem = Diagnostic::error("not-a-network", message).at(name.span);
                self.found.push(problem.hint(format!("write `{network}`, or the address without a prefix")));
            }
            part.spec.put(
                "addresses",
                list(set.addresses.iter().map(|address| plain(address)).collect::<BTreeSet<_>>()),
            );
            self.comment(&mut part.spec, kinds::IPSET, name, set.comment.as_ref());
            may_lock_out(&mut part.spec, hypervisor, firewall.may_lock_out);
            part.needs.clone_from(&aliases);
            names.insert(self.part(part));
        }
        let mut all = names.clone();
        for (name, group) in firewall.groups.iter() {
            let mut part =
                Part::new(kinds::SECURITY_GROUP, name, name.span).flags(group.adopt, group.protect);
            part.spec.put("security_group", name.as_str());
            part.spec.put("rules", Value::List(group.rules.iter().map(rule).collect()));
            self.comment(&mut part.spec, kinds::SECURITY_GROUP, name, group.comment.as_ref());
            may_lock_out(&mut part.spec, hypervisor, firewall.may_lock_out);
            part.needs.clone_from(&names);
            all.insert(self.part(part));
        }
        let mut options = Spec::new();
        options.put_some("enable", firewall.enabled);
        options.put_some("policy_in", firewall.policy_in.map(|policy| policy.to_string()));
        options.put_some("policy_out", firewall.policy_out.map(|policy| policy.to_string()));
        self.host_firewalls(hypervisor, &all);
        // Names alone say nothing of the firewall itself: it must not be switched by them.
        if options.is_empty() && firewall.rules.is_empty() {
            return;
        }
        let mut part =
            Part::new(kinds::FIREWALL, "datacenter", firewall.span).flags(firewall.adopt, firewall.protect);
        part.spec.put("firewall", "datacenter");
        part.spec.put_full("options", Value::Map(options));
        part.spec.put_full("rules", Value::List(firewall.rules.iter().map(rule).collect()));
        may_lock_out(&mut part.spec, hypervisor, firewall.may_lock_out);
        // The rules of the hosts let in before it keeps out.
        let hosts = hypervisor.hosts.iter().filter(|(_, host)| host.firewall.is_some());
        all.extend(hosts.map(|(name, _)| self.address(kinds::HOST_FIREWALL, name)));
        part.needs = all;
        self.part(part);
    }

    fn host_firewalls(&mut self, hypervisor: &Hypervisor, names: &BTreeSet<Address>) {
        for (name, host) in hypervisor.hosts.iter() {
            let Some(firewall) = &host.firewall else { continue };
            let mut part =
                Part::new(kinds::HOST_FIREWALL, name, firewall.span).flags(firewall.adopt, firewall.protect);
            part.spec.put("host_firewall", name.as_str());
            part.spec.put_full("options", Value::Map(host_options(firewall)));
            part.spec.put_full("rules", Value::List(firewall.rules.iter().map(rule).collect()));
            may_lock_out(&mut part.spec, hypervisor, firewall.may_lock_out);
            part.needs.clone_from(names);
            self.part(part);
        }
    }
}

fn host_options(firewall: &HostFirewall) -> Spec {
    let mut options = Spec::new();
    options.put_some("enable", firewall.enabled);
    for (option, level) in [
        ("log_level_in", firewall.log_level_in),
        ("log_level_out", firewall.log_level_out),
        ("log_level_forward", firewall.log_level_forward),
        ("smurf_log_level", firewall.smurf_log_level),
        ("tcp_flags_log_level", firewall.tcp_flags_log_level),
    ] {
        options.put_some(option, level.map(|level| level.to_string()));
    }
    options.put_some("log_connections", firewall.log_connections);
    options.put_some("max_connections", firewall.max_connections.map(int));
    options.put_some("connection_timeout", firewall.connection_timeout.map(int));
    options.put_some("allow_invalid", firewall.allow_invalid);
    options.put_some("ndp", firewall.ndp);
    options.put_some("no_smurfs", firewall.no_smurfs);
    options.put_some("tcp_flags", firewall.tcp_flags);
    options.put_some("syn_flood_protection", firewall.syn_flood_protection);
    options.put_some("syn_flood_rate", firewall.syn_flood_rate.map(int));
    options.put_some("syn_flood_burst", firewall.syn_flood_burst.map(int));
    options.put_some("nftables", firewall.nftables);
    options
}

/// Who must get through whatever the firewalls come to, unless the source says that nobody must.
fn may_lock_out(spec: &mut Spec, hypervisor: &Hypervisor, allowed: bool) {
    if allowed {
        spec.put("may_lock_out", true);
    }
    let from = hypervisor.proxmox.as_ref().map(|proxmox| &proxmox.managed_from);
    spec.put_full("managed_from", list(from.into_iter().flatten()));
}

/// A network as an IP set keeps it, if that is not how it is written.
fn as_kept(written: &str) -> Option<String> {
    let cidr: Cidr = written.trim_start_matches('!').parse().ok()?;
    let network = match cidr.address {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(cidr.prefix)).unwrap_or(0);
            IpAddr::V4((u32::from(ip) & mask).into())
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(cidr.prefix)).unwrap_or(0);
            IpAddr::V6((u128::from(ip) & mask).into())
        }
    };
    let sign = if written.starts_with('!') { "!" } else { "" };
    let kept = format!("{sign}{network}/{}", cidr.prefix);
    (kept != written).then_some(kept)
}

/// As Proxmox keeps it: a network of one address is that address.
fn plain(address: &str) -> &str {
    let bits = if address.contains(':') { "/128" } else { "/32" };
    address.strip_suffix(bits).unwrap_or(address)
}
