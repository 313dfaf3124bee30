//! What OpenTofu built of a datacenter besides guests, by the names that Strata's addresses have.

use strata_blueprint::kinds;
use strata_resource::Kind;

use strata_tofu::{Attributes, TofuResource};

/// An object of the datacenter that OpenTofu built.
pub struct BuiltObject {
    /// The address in the state.
    pub address: String,
    /// What Strata calls its kind.
    pub kind: Kind,
    /// The last part of its address in Strata.
    pub name: String,
}

/// Nothing if the resource is another kind of thing, or does not say which object it is.
pub(super) fn built(resource: &TofuResource) -> Option<BuiltObject> {
    let attributes = resource.attributes();
    let own = |kind: Kind, field: &str| Some((kind, attributes.text(field)?.to_owned()));
    let short = resource.kind.strip_prefix("proxmox_")?;
    let (kind, name) = match short.strip_prefix("virtual_environment_").unwrap_or(short) {
        "pool" => own(kinds::POOL, "pool_id")?,
        "role" => own(kinds::ROLE, "role_id")?,
        "group" => own(kinds::GROUP, "group_id")?,
        "user" => own(kinds::USER, "user_id")?,
        "user_token" => {
            let (user, token) = (attributes.text("user_id")?, attributes.text("token_name")?);
            (kinds::TOKEN, format!("{user}!{token}"))
        }
        "acl" => (kinds::ACL, acl(attributes)?),
        "hardware_mapping_pci" => (kinds::MAPPING, format!("pci-{}", attributes.text("name")?)),
        "hardware_mapping_usb" => (kinds::MAPPING, format!("usb-{}", attributes.text("name")?)),
        "dns" => own(kinds::DNS, "node_name")?,
        "time" => own(kinds::TIMEZONE, "node_name")?,
        // The interfaces of a host are one resource.
        "network_linux_bridge" | "network_linux_bond" | "network_linux_vlan" => {
            own(kinds::NETWORK, "node_name")?
        }
        "cluster_firewall" => (kinds::FIREWALL, "datacenter".to_owned()),
        "firewall_rules" if is_of_datacenter(resource) => (kinds::FIREWALL, "datacenter".to_owned()),
        "firewall_alias" if is_of_datacenter(resource) => own(kinds::ALIAS, "name")?,
        "firewall_ipset" if is_of_datacenter(resource) => own(kinds::IPSET, "name")?,
        "cluster_firewall_security_group" => own(kinds::SECURITY_GROUP, "name")?,
        kind if kind.starts_with("storage_") => own(kinds::STORAGE, "id")?,
        _ => return None,
    };
    Some(BuiltObject { address: resource.address.clone(), kind, name: name.replace('/', "~") })
}

/// Whether a part of a firewall belongs to no node and no guest.
fn is_of_datacenter(resource: &TofuResource) -> bool {
    let attributes = resource.attributes();
    let elsewhere = attributes.text("node_name").is_some_and(|node| !node.is_empty())
        || attributes.positive("vm_id").is_some()
        || attributes.positive("container_id").is_some();
    !elsewhere
}

fn acl(attributes: Attributes<'_>) -> Option<String> {
    let subject = ["user_id", "group_id", "token_id"]
        .into_iter()
        .find_map(|field| attributes.text(field).filter(|text| !text.is_empty()))?;
    Some(format!("{subject}={}={}", attributes.text("role_id")?, attributes.text("path")?))
}
