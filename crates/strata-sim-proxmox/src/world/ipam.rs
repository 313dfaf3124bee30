//! The address management that the server has itself: which addresses of which subnets are taken, and by whom.
//! It knows nothing of changes that wait: what was taken stays taken when a change is rolled back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Who has an address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    pub gateway: bool,
    pub mac: Option<String>,
    pub vmid: Option<u32>,
    pub hostname: Option<String>,
}

type Leases = BTreeMap<String, Lease>;

/// By zone, then by network, then by address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ipam(pub BTreeMap<String, BTreeMap<String, Leases>>);

impl Ipam {
    /// A network is known from now on; what is taken in it stays.
    pub fn add_subnet(&mut self, zone: &str, cidr: &str) {
        self.0.entry(zone.to_owned()).or_default().entry(cidr.to_owned()).or_default();
    }

    fn leases(&mut self, zone: &str, cidr: &str) -> Result<&mut Leases, String> {
        let subnets =
            self.0.get_mut(zone).ok_or_else(|| format!("zone '{zone}' doesn't exist in IPAM DB"))?;
        subnets.get_mut(cidr).ok_or_else(|| format!("subnet '{cidr}' doesn't exist in IPAM DB"))
    }

    /// Forgets a network in which nothing but a gateway is left.
    pub fn remove_subnet(&mut self, zone: &str, cidr: &str) -> Result<(), String> {
        let leases = self.leases(zone, cidr)?;
        let only_gateway = leases.len() == 1 && leases.values().all(|lease| lease.gateway);
        if !leases.is_empty() && !only_gateway {
            return Err(format!("cannot delete subnet '{cidr}', not empty"));
        }
        if let Some(subnets) = self.0.get_mut(zone) {
            subnets.remove(cidr);
        }
        Ok(())
    }

    /// Takes an address. A gateway may be taken as one again.
    pub fn take(&mut self, zone: &str, cidr: &str, ip: &str, lease: Lease) -> Result<(), String> {
        let leases = self.leases(zone, cidr)?;
        if leases.get(ip).is_some_and(|old| !(lease.gateway && old.gateway)) {
            return Err(format!("IP '{ip}' already exist"));
        }
        leases.insert(ip.to_owned(), lease);
        Ok(())
    }

    pub fn release(&mut self, zone: &str, cidr: &str, ip: &str) -> Result<(), String> {
        let leases = self.leases(zone, cidr)?;
        leases.remove(ip).map(drop).ok_or_else(|| format!("IP '{ip}' does not exist in IPAM DB"))
    }

    /// The address of that version that a card has in a zone.
    pub fn address_of(&self, zone: &str, mac: &str, v6: bool) -> Option<&str> {
        let leases = self.0.get(zone)?.values().flatten();
        let mut own =
            leases.filter(|(ip, lease)| lease.mac.as_deref() == Some(mac) && ip.contains(':') == v6);
        own.next().map(|(ip, _)| ip.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_goes_when_nothing_but_its_gateway_is_left() {
        let mut ipam = Ipam::default();
        assert_eq!(ipam.remove_subnet("z", "10.0.0.0/24").unwrap_err(), "zone 'z' doesn't exist in IPAM DB");
        ipam.add_subnet("z", "10.0.0.0/24");
        let gateway = || Lease { gateway: true, ..Lease::default() };
        let guest = || Lease { mac: Some("BC:24:11:00:00:01".into()), ..Lease::default() };
        ipam.take("z", "10.0.0.0/24", "10.0.0.1", gateway()).unwrap();
        ipam.take("z", "10.0.0.0/24", "10.0.0.1", gateway()).unwrap();
        ipam.take("z", "10.0.0.0/24", "10.0.0.9", guest()).unwrap();
        assert_eq!(
            ipam.take("z", "10.0.0.0/24", "10.0.0.9", gateway()).unwrap_err(),
            "IP '10.0.0.9' already exist"
        );
        assert_eq!(ipam.address_of("z", "BC:24:11:00:00:01", false), Some("10.0.0.9"));
        assert_eq!(
            ipam.remove_subnet("z", "10.0.0.0/24").unwrap_err(),
            "cannot delete subnet '10.0.0.0/24', not empty"
        );
        ipam.release("z", "10.0.0.0/24", "10.0.0.9").unwrap();
        ipam.remove_subnet("z", "10.0.0.0/24").unwrap();
        assert_eq!(
            ipam.release("z", "10.0.0.0/24", "10.0.0.9").unwrap_err(),
            "subnet '10.0.0.0/24' doesn't exist in IPAM DB"
        );
    }
}
