//! A machine's addresses, name servers and clock: fields up to 1.11, documents from 1.12 on.

use super::{Link, NodeNetwork, Own};
use crate::document::Document;
use crate::generate::Role;
use crate::tree::{Map, Value, tree};

/// What a card is called here if it is not known by its name.
const ALIAS: &str = "net0";

impl Own<'_> {
    /// `machine.network`, for 1.11.
    pub(super) fn legacy_network(&self) -> Map {
        let mut network = Map::new();
        let mut set = |key: &str, value: Value| drop(network.insert(key.to_owned(), value));
        if let Some(hostname) = &self.node.hostname {
            set("hostname", hostname.as_str().into());
        }
        for (key, values) in
            [("nameservers", &self.node.nameservers), ("searchDomains", &self.node.search_domains)]
        {
            if !values.is_empty() {
                set(key, Value::texts(values.iter().cloned()));
            }
        }
        if let Some(interface) = &self.node.network {
            set("interfaces", Value::List(vec![Value::Map(self.legacy_interface(interface))]));
        }
        network
    }

    fn legacy_interface(&self, network: &NodeNetwork) -> Map {
        let mut interface = Map::new();
        match &network.link {
            Link::Name(name) => interface.insert("interface".to_owned(), name.as_str().into()),
            Link::Mac(mac) => {
                let selector = tree! { "hardwareAddr" => mac.to_lowercase(), "physical" => true };
                interface.insert("deviceSelector".to_owned(), selector)
            }
            Link::Only => interface.insert("deviceSelector".to_owned(), tree! { "physical" => true }),
        };
        if let Some(mtu) = network.mtu {
            interface.insert("mtu".to_owned(), mtu.into());
        }
        let mut addressed = self.legacy_addresses(network);
        match network.vlan {
            None => interface.extend(addressed),
            Some(vlan) => {
                addressed.insert("vlanId".to_owned(), vlan.into());
                interface.insert("dhcp".to_owned(), false.into());
                interface.insert("vlans".to_owned(), Value::List(vec![Value::Map(addressed)]));
            }
        }
        interface
    }

    /// What an interface and a VLAN of it have in common.
    fn legacy_addresses(&self, network: &NodeNetwork) -> Map {
        let mut map = Map::new();
        let mut set = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
        set("dhcp", network.addresses.is_empty().into());
        if !network.addresses.is_empty() {
            set("addresses", Value::texts(network.addresses.iter().cloned()));
        }
        if let Some(gateway) = &network.gateway {
            let everywhere = if gateway.contains(':') { "::/0" } else { "0.0.0.0/0" };
            let route = tree! { "network" => everywhere, "gateway" => gateway.as_str() };
            set("routes", Value::List(vec![route]));
        }
        if let Some(vip) = self.vip(network) {
            set("vip", tree! { "ip" => vip });
        }
        map
    }

    /// Only control planes share the address.
    fn vip<'v>(&self, network: &'v NodeNetwork) -> Option<&'v str> {
        network.vip.as_deref().filter(|_| self.node.role == Role::ControlPlane)
    }

    /// Documents of the network, from 1.12 on.
    pub(super) fn network_settings(&self) -> Vec<Document> {
        let mut documents = Vec::new();
        if !self.contract.network_documents() {
            return documents;
        }
        if let Some(hostname) = &self.node.hostname {
            let body = tree! { "auto" => "off", "hostname" => hostname.as_str() };
            documents.push(Document::new("HostnameConfig", body));
        }
        let mut resolver = Map::new();
        if !self.node.nameservers.is_empty() {
            let servers = self.node.nameservers.iter().map(|address| tree! { "address" => address.as_str() });
            resolver.insert("nameservers".to_owned(), Value::List(servers.collect()));
        }
        if !self.node.search_domains.is_empty() {
            let domains = Value::texts(self.node.search_domains.iter().cloned());
            resolver.insert("searchDomains".to_owned(), tree! { "domains" => domains });
        }
        if !resolver.is_empty() {
            documents.push(Document::new("ResolverConfig", Value::Map(resolver)));
        }
        if !self.node.time_servers.is_empty() {
            let servers = Value::texts(self.node.time_servers.iter().cloned());
            documents
                .push(Document::new("TimeSyncConfig", tree! { "ntp" => tree! { "servers" => servers } }));
        }
        if let Some(network) = &self.node.network {
            documents.extend(self.link_documents(network));
        }
        documents
    }

    fn link_documents(&self, network: &NodeNetwork) -> Vec<Document> {
        let mut documents = Vec::new();
        let alias = |expression: String| {
            let body = tree! { "name" => ALIAS, "selector" => tree! { "match" => expression } };
            Document::new("LinkAliasConfig", body)
        };
        let link = match &network.link {
            Link::Name(name) => name.as_str(),
            Link::Mac(mac) => {
                documents.push(alias(format!("mac(link.permanent_addr) == \"{}\"", mac.to_lowercase())));
                ALIAS
            }
            Link::Only => {
                documents.push(alias("true".to_owned()));
                ALIAS
            }
        };
        let mut card = tree! { "name" => link, "up" => true };
        if let (Some(card), Some(mtu)) = (card.as_map_mut(), network.mtu) {
            card.insert("mtu".to_owned(), mtu.into());
        }
        let addressed = self.addresses(network);
        let name = match network.vlan {
            None => {
                card.as_map_mut().expect("a mapping").extend(addressed);
                documents.push(Document::new("LinkConfig", card));
                link.to_owned()
            }
            Some(id) => {
                let name = format!("{link}.{id}");
                documents.push(Document::new("LinkConfig", card));
                let mut vlan =
                    tree! { "name" => name.as_str(), "vlanID" => id, "parent" => link, "up" => true };
                vlan.as_map_mut().expect("a mapping").extend(addressed);
                documents.push(Document::new("VLANConfig", vlan));
                name
            }
        };
        if network.addresses.is_empty() {
            documents.push(Document::new("DHCPv4Config", tree! { "name" => name.as_str() }));
        }
        if let Some(vip) = self.vip(network) {
            documents
                .push(Document::new("Layer2VIPConfig", tree! { "name" => vip, "link" => name.as_str() }));
        }
        documents
    }

    fn addresses(&self, network: &NodeNetwork) -> Map {
        let mut map = Map::new();
        if !network.addresses.is_empty() {
            let addresses = network.addresses.iter().map(|address| tree! { "address" => address.as_str() });
            map.insert("addresses".to_owned(), Value::List(addresses.collect()));
        }
        if let Some(gateway) = &network.gateway {
            map.insert("routes".to_owned(), Value::List(vec![tree! { "gateway" => gateway.as_str() }]));
        }
        map
    }
}
