//! Settings of hosts: name servers, time zone, network.

use std::collections::{BTreeMap, BTreeSet};

use strata_resource::{Secret, Spec, Value};
use strata_source::hypervisor::Hypervisor;
use strata_source::hypervisor::host::{Acme, Host, HostCertificate};
use strata_source::hypervisor::network::{HostInterface, HostInterfaceType};
use strata_talos::{certificate_fingerprint, check_certificate_key};
use strata_yaml::{Spanned, Value as Written};

use super::Part;
use crate::fields::{Fields, int, list};
use crate::guest::raw;
use crate::kinds;
use crate::resolved::Resolved;
use crate::site::Draft;

impl Draft<'_> {
    pub(super) fn hosts(&mut self, hypervisor: &Hypervisor) {
        let nodes = nodes(hypervisor);
        if nodes.is_empty() && (hypervisor.dns.is_some() || hypervisor.timezone.is_some()) {
            let problem =
                strata_diagnostics::Diagnostic::error("no-node", "settings of hosts, and no host is named");
            let server =
                hypervisor.dns.as_ref().and_then(|dns| dns.servers.first()).map(|server| server.span);
            let problem = match server.or(hypervisor.timezone.as_ref().map(|zone| zone.span)) {
                Some(span) => problem.at(span),
                None => problem,
            };
            self.found.push(problem.hint("set `proxmox: {nodes: [pve1, …]}`"));
        }
        if let Some(fourth) = hypervisor.dns.as_ref().and_then(|dns| dns.servers.get(3)) {
            self.refuse("too-many", "a host has up to three name servers", fourth.span);
        }
        for node in &nodes {
            if let Some(dns) = &hypervisor.dns {
                let mut part =
                    Part::new(kinds::DNS, node, dns.servers.first().map_or(node.span, |first| first.span));
                part.spec.put("dns", node.as_str());
                part.spec
                    .put_full("servers", list(dns.servers.iter().map(|server| server.value.to_string())));
                part.spec.put_some("search", dns.search_domain.clone());
                self.part(part);
            }
            if let Some(zone) = &hypervisor.timezone {
                let mut part = Part::new(kinds::TIMEZONE, node, zone.span);
                part.spec.put("clock", node.as_str());
                part.spec.put("zone", zone.as_str());
                self.part(part);
            }
        }
        if let Some(acme) = &hypervisor.acme {
            self.acme(acme);
        }
        for (name, host) in hypervisor.hosts.iter() {
            self.host(name, host);
        }
        self.networks(hypervisor, &nodes);
    }

    fn acme(&mut self, acme: &Acme) {
        for (name, account) in acme.accounts.iter() {
            let mut part =
                Part::new(kinds::ACME_ACCOUNT, name, name.span).flags(account.adopt, account.protect);
            if account.contact.is_empty() {
                let message = format!("the ACME account `{name}` has no `contact`");
                self.refuse("missing-field", message, name.span);
            }
            let spec = &mut part.spec;
            spec.put("acme_account", name.as_str());
            spec.put("contact", list(account.contact.iter().collect::<BTreeSet<_>>()));
            spec.put_some("directory", account.directory.clone());
            spec.put_some("terms", account.terms.clone());
            spec.put_some("eab_key_id", account.eab_key_id.clone());
            let key = account.eab_key.as_ref().and_then(|key| self.secret(key));
            part.spec.put_some("eab_key", key);
            self.part(part);
        }
        for (name, plugin) in acme.plugins.iter() {
            let mut part = Part::new(kinds::ACME_PLUGIN, name, name.span).flags(plugin.adopt, plugin.protect);
            let mut credentials = Spec::new();
            for (key, written) in plugin.credentials.iter() {
                credentials.put_some(key, self.secret(written));
            }
            let spec = &mut part.spec;
            spec.put("acme_plugin", name.as_str());
            spec.put("type", "dns");
            spec.put("api", plugin.api.as_str());
            spec.put_full("credentials", Value::Map(credentials));
            spec.put_full("nodes", list(plugin.nodes.iter().collect::<BTreeSet<_>>()));
            spec.put_some("validation_delay", plugin.validation_delay.map(int));
            spec.put("enabled", plugin.enabled);
            self.part(part);
        }
    }

    /// The settings of one host; without one, whatever it has stays.
    fn host(&mut self, name: &Spanned<String>, host: &Host) {
        let mut part = Part::new(kinds::HOST_OPTIONS, name, name.span);
        let spec = &mut part.spec;
        let notes = host.notes.as_ref().map(|text| text.trim_end().to_owned());
        spec.put_some("notes", notes.filter(|text| !text.is_empty()));
        spec.put_some("start_delay", host.start_delay.map(int));
        spec.put_some("ballooning_target", host.ballooning_target.map(int));
        if let Some(wake) = &host.wake_on_lan {
            let mut own = Spec::new();
            own.put("mac", wake.mac.to_string());
            own.put_some("interface", wake.interface.clone());
            own.put_some("broadcast", wake.broadcast.as_ref().map(ToString::to_string));
            spec.put("wake_on_lan", own);
        }
        if let Some(acme) = &host.acme {
            if let Some(account) = &acme.account {
                spec.put("acme", Spec::from([("account".to_owned(), Value::text(account.as_str()))]));
            }
            for (slot, domain) in acme.domains.iter().enumerate() {
                let mut own = Spec::new();
                own.put("domain", domain.domain.as_str());
                own.put_some("plugin", domain.plugin.as_ref().map(|plugin| plugin.value.clone()));
                own.put_some("alias", domain.alias.clone());
                spec.put(&format!("acme_domain{slot}"), own);
            }
        }
        let (account, plugins) = host.acme.as_ref().map_or((None, Vec::new()), |acme| {
            let plugins = acme.domains.iter().filter_map(|domain| domain.plugin.as_ref());
            (acme.account.as_ref(), plugins.collect())
        });
        // Proxmox takes no domain with a plugin that is not there.
        part.needs = self.known(kinds::ACME_ACCOUNT, account.map(|account| account.as_str()));
        for plugin in plugins {
            part.needs.extend(self.known(kinds::ACME_PLUGIN, Some(plugin)));
        }
        if let Some(seventh) = host.acme.as_ref().and_then(|acme| acme.domains.get(6)) {
            self.refuse("too-many", "a host has up to six domains", seventh.span);
        }
        if !part.spec.is_empty() {
            part.spec.put("host_options", name.as_str());
            self.part(part);
        }
        if let Some(certificate) = &host.certificate {
            self.certificate(name, certificate);
        }
        if !host.repositories.is_empty() {
            let mut part = Part::new(kinds::REPOSITORIES, name, name.span);
            part.spec.put("repositories", name.as_str());
            let own = host.repositories.iter().map(|(handle, on)| (handle.value.clone(), Value::Bool(*on)));
            part.spec.put("standard", Value::Map(own.collect()));
            self.part(part);
        }
    }

    /// A certificate, with the key that it was made for: a host that serves one with another key is not reached any more.
    fn certificate(&mut self, name: &Spanned<String>, certificate: &Spanned<HostCertificate>) {
        let mut part = Part::new(kinds::CERTIFICATE, name, certificate.span)
            .flags(certificate.adopt, certificate.protect);
        let chain = self.resolve_written(&certificate.chain).map(Resolved::into_secret);
        let key = self.resolve_written(&certificate.key).map(Resolved::into_secret);
        let (Some(chain), Some(key)) = (chain, key) else { return };
        let opens = self.site.resolver.opens_secrets();
        let is_at_hand = |written: &Written<String>| opens || matches!(written, Written::Literal(_));
        let mut wrong = Vec::new();
        if is_at_hand(&certificate.chain) {
            match certificate_fingerprint(chain.expose()) {
                Ok(fingerprint) => part.spec.put("fingerprint", fingerprint),
                Err(error) => wrong.push(("chain", error)),
            }
            if is_at_hand(&certificate.key)
                && wrong.is_empty()
                && let Err(error) = check_certificate_key(chain.expose(), key.expose())
            {
                wrong.push(("key", error));
            }
        }
        for (field, error) in wrong {
            let message = format!("the `{field}` of the certificate of `{name}`: {error}");
            self.refuse("certificate", message, certificate.span);
        }
        part.spec.put("certificate", name.as_str());
        part.spec.put("chain", Value::Secret(Secret::new(chain)));
        part.spec.put("key", Value::Secret(Secret::new(key)));
        self.part(part);
    }

    /// One resource for each host: its interfaces are edited together and come into effect with one reload.
    fn networks(&mut self, hypervisor: &Hypervisor, nodes: &[&Spanned<String>]) {
        let mut hosts: BTreeMap<&str, Part> = BTreeMap::new();
        for (name, interface) in hypervisor.network.iter() {
            let own: Vec<&Spanned<String>> =
                if interface.nodes.is_empty() { nodes.to_vec() } else { interface.nodes.iter().collect() };
            if own.is_empty() {
                let problem =
                    strata_diagnostics::Diagnostic::error("no-node", format!("`{name}` is on no host"));
                let hint = "set `nodes` here, or `proxmox: {nodes: [pve1, …]}` for the whole file";
                self.found.push(problem.at(name.span).hint(hint));
            }
            let Some(spec) = self.interface(name, interface) else { continue };
            for node in own {
                let host = hosts.entry(node.as_str()).or_insert_with(|| {
                    let mut part = Part::new(kinds::NETWORK, node, name.span);
                    part.spec.put("network", node.as_str());
                    part.spec.put("interfaces", Spec::new());
                    // Nothing is left that waits for a reload.
                    part.spec.put("staged", false);
                    part
                });
                if let Some(Value::Map(interfaces)) = host.spec.get_mut("interfaces") {
                    interfaces.put(name, spec.clone());
                }
            }
        }
        // One host after the other: what goes wrong on the first stays on the first.
        let mut before = None;
        for (_, mut part) in hosts {
            part.needs.extend(before.take());
            before = Some(self.part(part));
        }
    }

    fn interface(&mut self, name: &Spanned<String>, interface: &HostInterface) -> Option<Spec> {
        let Some(kind) = interface.kind.or_else(|| by_name(name)) else {
            let problem = strata_diagnostics::Diagnostic::error(
                "no-type",
                format!("`{name}`: nothing says what it is"),
            );
            self.found.push(problem.at(name.span).hint("set `type: bridge`, `bond`, `vlan` or `eth`"));
            return None;
        };
        let mut spec = Spec::new();
        spec.put("type", kind.to_string());
        spec.put_full("ports", list(interface.ports.iter()));
        spec.put_some("cidr", interface.address.as_ref().map(|cidr| cidr.value.to_string()));
        spec.put_some("gateway", interface.gateway.as_ref().map(|ip| ip.value.to_string()));
        spec.put_some("cidr6", interface.address6.as_ref().map(|cidr| cidr.value.to_string()));
        spec.put_some("gateway6", interface.gateway6.as_ref().map(|ip| ip.value.to_string()));
        spec.put_some("vlan_aware", interface.vlan_aware);
        spec.put_some("device", interface.device.clone());
        spec.put_some("tag", interface.tag.map(int));
        spec.put_some("mode", interface.mode.clone());
        spec.put_some("mtu", interface.mtu.map(int));
        // Hardware comes up with what stands on it.
        if kind != HostInterfaceType::Ethernet {
            spec.put("autostart", interface.autostart);
        }
        spec.put_some("comment", interface.comment.as_ref().map(|text| text.trim().to_owned()));
        spec.put_full("options", raw(interface.options.iter().map(|(key, value)| (key.as_str(), value))));
        if interface.adopt {
            spec.put("adopt", true);
        }
        if interface.may_cut_connection {
            spec.put("may_cut", true);
        }
        Some(spec)
    }
}

/// The hosts that settings apply to.
fn nodes(hypervisor: &Hypervisor) -> Vec<&Spanned<String>> {
    let proxmox = hypervisor.proxmox.as_ref();
    proxmox.into_iter().flat_map(|proxmox| proxmox.node.iter().chain(&proxmox.nodes)).collect()
}

/// As Proxmox names them itself.
fn by_name(name: &str) -> Option<HostInterfaceType> {
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if numbered("vmbr") {
        Some(HostInterfaceType::Bridge)
    } else if numbered("bond") {
        Some(HostInterfaceType::Bond)
    } else if numbered("vlan") || name.rsplit_once('.').is_some_and(|(_, tag)| tag.parse::<u16>().is_ok()) {
        Some(HostInterfaceType::Vlan)
    } else {
        None
    }
}
