//! What is staged: controllers, zones, networks, subnets, each with its path and its keys.

use strata_resource::{FieldChange, FieldType, Spec, Value};

use crate::api::{Params, encode_path_part};
use crate::datacenter::{Row, row_text, spec_text, text_of};

/// A class of objects.
pub(super) struct Class {
    /// The field of the spec that has them by name.
    pub(super) field: &'static str,
    /// For people.
    pub(super) word: &'static str,
    list: &'static str,
    id: &'static str,
    /// Field, key of the remote, type.
    keys: &'static [(&'static str, &'static str, FieldType)],
}

const DNS: [(&str, &str, FieldType); 5] = [
    ("mtu", "mtu", FieldType::Int),
    ("ipam", "ipam", FieldType::Text),
    ("dns", "dns", FieldType::Text),
    ("reverse_dns", "reversedns", FieldType::Text),
    ("dns_zone", "dnszone", FieldType::Text),
];

/// In the order in which they are made.
pub(super) static CLASSES: [Class; 4] = [
    Class {
        field: "controllers",
        word: "SDN controller",
        list: "/cluster/sdn/controllers",
        id: "controller",
        keys: &[
            ("type", "type", FieldType::Text),
            ("asn", "asn", FieldType::Int),
            ("peers", "peers", FieldType::List),
            ("node", "node", FieldType::Text),
            ("ebgp", "ebgp", FieldType::Bool),
            ("loopback", "loopback", FieldType::Text),
        ],
    },
    Class {
        field: "zones",
        word: "SDN zone",
        list: "/cluster/sdn/zones",
        id: "zone",
        keys: &[
            ("type", "type", FieldType::Text),
            ("nodes", "nodes", FieldType::List),
            ("bridge", "bridge", FieldType::Text),
            ("tag", "tag", FieldType::Int),
            ("vlan_protocol", "vlan-protocol", FieldType::Text),
            ("peers", "peers", FieldType::List),
            ("vxlan_port", "vxlan-port", FieldType::Int),
            ("controller", "controller", FieldType::Text),
            ("vrf_vxlan", "vrf-vxlan", FieldType::Int),
            ("exit_nodes", "exitnodes", FieldType::List),
            ("primary_exit_node", "exitnodes-primary", FieldType::Text),
            ("advertise_subnets", "advertise-subnets", FieldType::Bool),
            ("dhcp", "dhcp", FieldType::Text),
            DNS[0],
            DNS[1],
            DNS[2],
            DNS[3],
            DNS[4],
        ],
    },
    Class {
        field: "vnets",
        word: "SDN network",
        list: "/cluster/sdn/vnets",
        id: "vnet",
        keys: &[
            ("zone", "zone", FieldType::Text),
            ("tag", "tag", FieldType::Int),
            ("alias", "alias", FieldType::Text),
            ("vlan_aware", "vlanaware", FieldType::Bool),
            ("isolate_ports", "isolate-ports", FieldType::Bool),
        ],
    },
    Class {
        field: SUBNETS,
        word: "SDN subnet",
        list: "/cluster/sdn/vnets",
        id: "subnet",
        keys: &[
            ("gateway", "gateway", FieldType::Text),
            ("snat", "snat", FieldType::Bool),
            ("dhcp_ranges", RANGES, FieldType::List),
            ("dns_server", "dhcp-dns-server", FieldType::Text),
            ("dns_prefix", "dnszoneprefix", FieldType::Text),
        ],
    },
];

/// Those whose names are made of two parts.
pub(super) const SUBNETS: &str = "subnets";
const RANGES: &str = "dhcp-range";

/// The network and the addresses of a subnet.
pub(super) fn subnet_parts(name: &str) -> (&str, &str) {
    name.split_once(' ').unwrap_or((name, ""))
}

/// The list of the subnets of a network.
pub(super) fn subnets_path(vnet: &str) -> String {
    format!("/cluster/sdn/vnets/{}/subnets", encode_path_part(vnet))
}

impl Class {
    /// Where they are listed and made.
    pub(super) fn path(&self, name: &str) -> String {
        match self.field {
            SUBNETS => subnets_path(subnet_parts(name).0),
            _ => self.list.to_owned(),
        }
    }

    /// Where one is changed and deleted. The id of a subnet has the zone of its network in it.
    pub(super) fn path_of(&self, name: &str, live: &Spec) -> String {
        let id = match self.field {
            SUBNETS => {
                let (vnet, cidr) = subnet_parts(name);
                let vnet = live.get("vnets").and_then(|vnets| vnets.as_map()?.get(vnet)?.as_map());
                let zone = vnet.map(|vnet| spec_text(vnet, "zone")).unwrap_or_default();
                format!("{zone}-{}", cidr.replace('/', "-"))
            }
            _ => name.to_owned(),
        };
        format!("{}/{}", self.path(name), encode_path_part(&id))
    }

    /// The name of a row.
    pub(super) fn name_of(&self, row: &Row) -> Option<String> {
        match self.field {
            SUBNETS => Some(format!("{} {}", row_text(row, "vnet")?, row_text(row, "cidr")?)),
            _ => row_text(row, self.id),
        }
    }

    /// A row as it will be once everything is in effect; none if it will be gone.
    pub(super) fn read(&self, row: &Row) -> Option<Spec> {
        if row_text(row, "state").as_deref() == Some("deleted") {
            return None;
        }
        let pending = row.get("pending").and_then(serde_json::Value::as_object);
        let value = |remote: &str| match pending.and_then(|pending| pending.get(remote)) {
            Some(serde_json::Value::String(gone)) if gone == "deleted" => None,
            Some(value) => Some(value),
            None => row.get(remote),
        };
        let read = |(field, remote, kind): &(&str, &str, FieldType)| {
            Some(((*field).to_owned(), typed(*kind, remote, value(remote)?)?))
        };
        Some(self.keys.iter().filter_map(read).collect())
    }

    pub(super) fn create(&self, name: &str, own: &Spec) -> Params {
        let mut params = match self.field {
            SUBNETS => Params::new().with("subnet", subnet_parts(name).1).with("type", "subnet"),
            _ => Params::new().with(self.id, name),
        };
        for (field, remote, _) in self.keys {
            if let Some(value) = own.get(*field) {
                put(&mut params, remote, value);
            }
        }
        params
    }

    pub(super) fn update(&self, own: &Spec, changes: &[&FieldChange]) -> Params {
        let mut params = Params::new();
        let mut delete = Vec::new();
        for (field, remote, _) in self.keys {
            let is_of = |change: &&FieldChange| change.path.keys().get(2).is_some_and(|key| key == field);
            if !changes.iter().any(is_of) {
                continue;
            }
            match own.get(*field) {
                Some(value) => put(&mut params, remote, value),
                None => delete.push(*remote),
            }
        }
        if !delete.is_empty() {
            params.set("delete", delete.join(","));
        }
        params
    }

    /// Whether an object is what was begun, as far as that says something.
    pub(super) fn is_just_that(&self, begun: &Spec, live: &Spec) -> bool {
        let plain = |spec: &Spec, field: &str| match spec.get(field) {
            Some(Value::Bool(false)) | None => None,
            Some(value) => Some(value.clone()),
        };
        self.keys.iter().all(|(field, ..)| plain(begun, field) == plain(live, field))
    }
}

fn typed(kind: FieldType, remote: &str, value: &serde_json::Value) -> Option<Value> {
    Some(match kind {
        FieldType::Int => Value::Int(text_of(value)?.parse().ok()?),
        FieldType::Bool => Value::Bool(text_of(value)? == "1"),
        FieldType::List if remote == RANGES => {
            let ranges: Vec<Value> = value.as_array()?.iter().filter_map(range).map(Value::Text).collect();
            return (!ranges.is_empty()).then_some(Value::List(ranges));
        }
        FieldType::List => {
            let text = text_of(value)?;
            let mut texts: Vec<&str> = text.split([',', ' ', ';']).filter(|text| !text.is_empty()).collect();
            texts.sort_unstable();
            Value::List(texts.into_iter().map(Value::text).collect())
        }
        _ => Value::Text(text_of(value).filter(|text| !text.is_empty())?),
    })
}

/// `first-last`. What waits is told as it was sent, what is in effect in parts.
fn range(value: &serde_json::Value) -> Option<String> {
    let part = |key: &str| match value {
        serde_json::Value::Object(parts) => parts.get(key).and_then(text_of),
        other => {
            let text = text_of(other)?;
            let mut parts = text.split(',').filter_map(|part| part.split_once('='));
            parts.find(|(own, _)| *own == key).map(|(_, value)| value.to_owned())
        }
    };
    Some(format!("{}-{}", part("start-address")?, part("end-address")?))
}

fn put(params: &mut Params, remote: &str, value: &Value) {
    match value {
        Value::Bool(on) => params.set(remote, u8::from(*on)),
        Value::Int(int) => params.set(remote, int),
        Value::Text(text) => params.set(remote, text),
        Value::List(items) if remote == RANGES => {
            for (first, last) in items.iter().filter_map(|item| item.as_text()?.split_once('-')) {
                params.push(remote, format!("start-address={first},end-address={last}"));
            }
        }
        Value::List(items) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_text).collect();
            params.set(remote, texts.join(","));
        }
        _ => {}
    }
}
