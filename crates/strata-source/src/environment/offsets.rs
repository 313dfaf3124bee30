//! What moves with an environment: VMIDs by a number, addresses from one network to another, VLANs and bridges by name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use strata_diagnostics::{Diagnostic, Diagnostics, Span};
use strata_yaml::{Map, Spanned, TextRule, TextShape, record};

use crate::value::address::{Cidr, IpRange, number};
use crate::value::name::ID;

const NETWORK: TextRule = TextRule {
    shape: TextShape {
        what: "a network such as `192.0.2.0/24`",
        pattern: Some("^[0-9a-fA-F:.]+/[0-9]{1,3}$"),
    },
    accepts: |text| text.parse::<Cidr>().is_ok(),
};

const TAG: TextRule = TextRule {
    shape: TextShape { what: "a VLAN tag from 1 to 4094", pattern: Some("^[0-9]{1,4}$") },
    accepts: |text| text.parse::<u16>().is_ok_and(|tag| (1..=4094).contains(&tag)),
};

record! {
    /// What moves with an environment. What is written in the environment's own file is taken as it is.
    pub struct Offsets {
        /// added to every VMID, `idBase` and `idRange`
        "vmId" vm_id: Option<Spanned<i64>> [range(-999_999_999, 999_999_999)];
        /// networks, and the networks of the same size that stand in their place; the smallest that an address lies in decides
        "addresses" addresses: Map<Spanned<Cidr>> [keys(NETWORK)];
        /// VLAN tags, and those that stand in their place
        "vlans" vlans: Map<Spanned<u16>> [keys(TAG), range(1, 4094)];
        /// bridges, and those that stand in their place
        "bridges" bridges: Map<Spanned<String>> [keys(ID), text(ID)];
    }
}

/// A network that stands in the place of another.
struct Moved {
    from: Cidr,
    to: Cidr,
    span: Span,
}

/// Offsets, ready to be applied.
pub(crate) struct Movement<'a> {
    offsets: &'a Offsets,
    networks: Vec<Moved>,
    used: Vec<Span>,
}

impl<'a> Movement<'a> {
    /// Networks that do not fit each other are reported.
    pub(crate) fn new(offsets: &'a Offsets, diagnostics: &mut Diagnostics) -> Self {
        let mut networks = Vec::new();
        for (key, to) in offsets.addresses.iter() {
            let Ok(from) = key.parse::<Cidr>() else { continue };
            if from.address.is_ipv4() != to.address.is_ipv4() || from.prefix != to.prefix {
                let message = format!("`{from}` and `{}` are not of one size", to.value);
                let problem = Diagnostic::error("wrong-network", message).at(to.span);
                diagnostics
                    .push(problem.also(key.span, "this network").hint("write both with the same prefix"));
                continue;
            }
            let host = |cidr: &Cidr| !is_network(*cidr);
            if let Some((wrong, span)) =
                [(from, key.span), (to.value, to.span)].into_iter().find(|(cidr, _)| host(cidr))
            {
                let message = format!("`{wrong}` is an address in a network, not a network");
                let hint = format!("write `{}`", network(wrong));
                diagnostics.push(Diagnostic::error("wrong-network", message).at(span).hint(hint));
                continue;
            }
            networks.push(Moved { from, to: to.value, span: key.span });
        }
        // The smallest network first: what lies in it is decided by it.
        networks.sort_by_key(|moved| std::cmp::Reverse(moved.from.prefix));
        Self { offsets, networks, used: Vec::new() }
    }

    /// Networks, VLANs and bridges that nothing lay in.
    pub(crate) fn unused(&self) -> impl Iterator<Item = (&'static str, &Spanned<String>)> {
        let networks = self.offsets.addresses.iter().map(|(key, _)| ("address is in", key));
        let vlans = self.offsets.vlans.iter().map(|(key, _)| ("device is in the VLAN", key));
        let bridges = self.offsets.bridges.iter().map(|(key, _)| ("device is plugged into", key));
        networks.chain(vlans).chain(bridges).filter(|(_, key)| !self.used.contains(&key.span))
    }

    /// A VMID, a range of them, or a path to one.
    pub(crate) fn vm_id(&self, text: &str) -> Option<Result<String, String>> {
        let offset = self.offsets.vm_id.as_ref()?.value;
        let one = |text: &str| -> Option<Result<String, String>> {
            let moved = text.parse::<i64>().ok()?.checked_add(offset)?;
            Some(match (100..=999_999_999).contains(&moved) {
                true => Ok(moved.to_string()),
                false => {
                    Err(format!("`{text}` moved by {offset} is {moved}; VMIDs go from 100 to 999999999"))
                }
            })
        };
        if let Some(id) = text.strip_prefix("/vms/") {
            return one(id).map(|moved| moved.map(|id| format!("/vms/{id}")));
        }
        match text.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (one(first)?, one(last)?);
                Some(first.and_then(|first| last.map(|last| format!("{first}-{last}"))))
            }
            None => one(text),
        }
    }

    /// Where a movement of VMIDs is written.
    pub(crate) fn vm_id_span(&self) -> Option<Span> {
        self.offsets.vm_id.as_ref().map(|offset| offset.span)
    }

    pub(crate) fn vlan(&mut self, text: &str) -> Option<String> {
        let (key, to) = self.offsets.vlans.entry(text)?;
        self.used.push(key.span);
        Some(to.value.to_string())
    }

    pub(crate) fn bridge(&mut self, text: &str) -> Option<String> {
        let (key, to) = self.offsets.bridges.entry(text)?;
        self.used.push(key.span);
        Some(to.value.clone())
    }

    /// An address with or without prefix, a range, several with commas, or a URL; text without any is left alone.
    pub(crate) fn address(&mut self, text: &str) -> Option<Result<String, String>> {
        if let Some((scheme, rest)) = text.split_once("://") {
            return self.url(scheme, rest).map(Ok);
        }
        if text.contains(',') {
            let mut changed = false;
            let mut parts = Vec::new();
            for part in text.split(',') {
                match self.address(part.trim()) {
                    Some(Ok(moved)) => {
                        changed = true;
                        parts.push(moved);
                    }
                    Some(Err(problem)) => return Some(Err(problem)),
                    None => parts.push(part.trim().to_owned()),
                }
            }
            return changed.then(|| Ok(parts.join(",")));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return self.moved(address).map(|moved| Ok(moved.to_string()));
        }
        if let Ok(cidr) = text.parse::<Cidr>() {
            return self.moved(cidr.address).map(|address| Ok(cidr.with_address(address).to_string()));
        }
        let range = text.parse::<IpRange>().ok()?;
        match (self.place(range.first), self.place(range.last)) {
            (None, None) => None,
            (first, last) if first != last => Some(Err(format!(
                "the range `{text}` lies only in part in a network that the environment moves"
            ))),
            _ => {
                let (first, last) = (self.moved(range.first)?, self.moved(range.last)?);
                Some(Ok(format!("{first}-{last}")))
            }
        }
    }

    fn url(&mut self, scheme: &str, rest: &str) -> Option<String> {
        let end = rest.find('/').unwrap_or(rest.len());
        let (server, path) = rest.split_at(end);
        if let Some((address, port)) = server.strip_prefix('[').and_then(|server| server.split_once(']')) {
            let moved = self.moved(address.parse().ok()?)?;
            return Some(format!("{scheme}://[{moved}]{port}{path}"));
        }
        let (host, port) = server.split_at(server.find(':').unwrap_or(server.len()));
        let moved = self.moved(host.parse().ok()?)?;
        Some(format!("{scheme}://{moved}{port}{path}"))
    }

    fn place(&self, address: IpAddr) -> Option<usize> {
        self.networks.iter().position(|moved| moved.from.contains(address))
    }

    fn moved(&mut self, address: IpAddr) -> Option<IpAddr> {
        let place = self.place(address)?;
        let Moved { from, to, span } = &self.networks[place];
        self.used.push(*span);
        let host = number(address) - number(from.address);
        let moved = number(to.address) + host;
        Some(match address {
            IpAddr::V4(_) => Ipv4Addr::from(u32::try_from(moved).ok()?).into(),
            IpAddr::V6(_) => Ipv6Addr::from(moved).into(),
        })
    }
}

fn network(cidr: Cidr) -> Cidr {
    let bits = if cidr.address.is_ipv4() { 32 } else { 128 };
    let shift = bits - u32::from(cidr.prefix);
    let base = number(cidr.address).checked_shr(shift).unwrap_or(0).checked_shl(shift).unwrap_or(0);
    let address = match cidr.address {
        IpAddr::V4(_) => Ipv4Addr::from(u32::try_from(base).unwrap_or_default()).into(),
        IpAddr::V6(_) => Ipv6Addr::from(base).into(),
    };
    cidr.with_address(address)
}

fn is_network(cidr: Cidr) -> bool {
    network(cidr) == cidr
}
