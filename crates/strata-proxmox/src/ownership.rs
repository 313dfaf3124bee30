//! Whether a guest is ours (docs/ownership.md, "Guests").

use strata_engine::{Dispute, Unmanaged};
use strata_resource::{Address, Lineage, Mark, Spec, Value};
use strata_state::StateResource;

use crate::codec::{GuestKind, LiveConfig};
use crate::guest::{Guest, PROOF_FACTS};

/// Who we would be if the guest were ours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) lineage: &'a Lineage,
    pub(crate) address: &'a Address,
    /// What the state knows of this very VMID.
    pub(crate) facts: Option<&'a Spec>,
    /// The mark that was applied last: another one than ours where the guest was moved since then.
    pub(crate) former: Option<&'a str>,
}

impl<'a> Claim<'a> {
    /// What the state knows counts only if it is about the same VMID.
    pub(crate) fn new(
        lineage: &'a Lineage,
        address: &'a Address,
        recorded: Option<&'a StateResource>,
        vmid: u32,
    ) -> Self {
        let same = |recorded: &&StateResource| {
            recorded.spec.get("vmid").and_then(Value::as_int) == Some(i64::from(vmid))
        };
        let recorded = recorded.filter(same);
        let former = recorded.and_then(|recorded| recorded.spec.get("mark")).and_then(Value::as_text);
        Self { lineage, address, facts: recorded.map(|recorded| &recorded.facts), former }
    }

    /// Why the guest is not ours; none if it is.
    pub(crate) fn dispute(&self, guest: &Guest, config: &LiveConfig) -> Option<Dispute> {
        let recorded = |fact: &str| self.facts?.get(fact)?.as_text();
        let live = guest.proof(config);
        if let Some((fact, live)) = &live
            && recorded(fact).is_some_and(|known| known.eq_ignore_ascii_case(live))
        {
            return None;
        }
        let known = PROOF_FACTS.iter().find(|fact| recorded(fact).is_some());
        let (mark, _) = Mark::split_from_notes(config.get("description").unwrap_or_default());
        let Some(mark) = mark else {
            if let Some(expected) =
                self.facts.and_then(|facts| facts.get(TAKEN_OVER)).and_then(Value::as_text)
            {
                return taken_over(expected, guest, config).map(Dispute::Because);
            }
            return Some(match known {
                Some(fact) => Dispute::Because(format!(
                    "it carries no ownership mark, and its {fact} is not the one that the state knows"
                )),
                None => Dispute::Unclaimed,
            });
        };
        let ours = Mark::new(self.lineage, self.address, guest.vmid);
        if mark == ours || self.former == Some(mark.to_string().as_str()) {
            return None;
        }
        Some(Dispute::Because(if mark.vmid != guest.vmid {
            format!("its ownership mark is that of VMID {}: it is a copy", mark.vmid)
        } else if mark.lineage != ours.lineage {
            format!("it belongs to another state: its ownership mark names `{}`", mark.address)
        } else {
            format!("its ownership mark names `{}`", mark.address)
        }))
    }
}

/// Lineage and address of the ownership mark that a guest carries, unless that is of another one: a copy has what it was copied from.
pub(crate) fn carried_mark(guest: &Guest, config: &LiveConfig) -> Option<(String, String)> {
    let (mark, _) = Mark::split_from_notes(config.get("description").unwrap_or_default());
    mark.filter(|mark| mark.vmid == guest.vmid).map(|mark| (mark.lineage, mark.address))
}

/// The fact by which a guest that somebody else built is proven: the hardware address of its first network device, or its name where it
/// has none. It is given only while a guest is taken over, and never recorded.
pub const TAKEN_OVER: &str = "taken_over";

fn taken_over(expected: &str, guest: &Guest, config: &LiveConfig) -> Option<String> {
    let live = taken_over_proof(guest, config);
    let what = match config.get("net0").and_then(hardware_address) {
        Some(_) => "its hardware address is",
        None => "its name is",
    };
    if live.eq_ignore_ascii_case(expected) {
        return None;
    }
    Some(format!("{what} `{live}` and not `{expected}`: it is another one"))
}

/// What a guest is known by while it is taken over.
pub(crate) fn taken_over_proof<'c>(guest: &Guest, config: &'c LiveConfig) -> &'c str {
    let name = if guest.kind == GuestKind::Qemu { "name" } else { "hostname" };
    config.get("net0").and_then(hardware_address).or_else(|| config.get(name)).unwrap_or_default()
}

/// The one part of a network device that looks like `BC:24:11:…`.
pub(crate) fn hardware_address(device: &str) -> Option<&str> {
    device
        .split(',')
        .filter_map(|part| Some(part.split_once('=')?.1))
        .find(|value| value.len() == 17 && value.split(':').filter(|octet| octet.len() == 2).count() == 6)
}

/// A guest that is not ours, for people.
pub(crate) fn unmanaged(guest: &Guest, config: &LiveConfig, why: Dispute) -> Unmanaged {
    let name = config.get("name").or_else(|| config.get("hostname"));
    Unmanaged { what: describe(guest, name), why, mark: carried_mark(guest, config) }
}

/// How an unmanaged guest is called: ``VM 9100 `db` on `pve2` ``.
pub(crate) fn describe(guest: &Guest, name: Option<&str>) -> String {
    let name = name.map(|name| format!(" `{name}`")).unwrap_or_default();
    format!("{guest}{name} on `{}`", guest.node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::live;

    fn guest(kind: GuestKind) -> Guest {
        Guest { kind, node: "pve1".into(), vmid: 9100 }
    }

    fn dispute(kind: GuestKind, facts: Option<(&str, &str)>, config: &[(&str, &str)]) -> Option<String> {
        let lineage = Lineage::derive("r", "dev/web");
        let address = crate::kinds::address("web/vm/web-1");
        let facts: Option<Spec> = facts.map(|(key, value)| [(key.to_owned(), Value::text(value))].into());
        let claim = Claim { lineage: &lineage, address: &address, facts: facts.as_ref(), former: None };
        claim.dispute(&guest(kind), &live(config)).map(|why| match why {
            Dispute::Because(why) => why,
            other => format!("{other:?}"),
        })
    }

    fn mark(vmid: u32, address: &str) -> String {
        Mark::new(&Lineage::derive("r", "dev/web"), &crate::kinds::address(address), vmid)
            .join_to_notes("by hand")
    }

    #[test]
    fn the_state_s_proof_is_enough() {
        let smbios = ("smbios1", "uuid=AAAA-1,manufacturer=Zm9v");
        assert_eq!(
            dispute(GuestKind::Qemu, Some(("uuid", "aaaa-1")), &[smbios, ("description", "edited")]),
            None
        );
        let net = ("net0", "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,type=veth");
        assert_eq!(dispute(GuestKind::Lxc, Some(("hwaddr", "BC:24:11:00:00:01")), &[net]), None);
    }

    /// VMs of old versions have no uuid.
    #[test]
    fn a_vm_without_a_uuid_is_known_by_its_first_network_device() {
        let (net, known) = (("net0", "e1000=52:54:00:1A:0C:01,bridge=vmbr0"), "52:54:00:1a:0c:01");
        assert_eq!(dispute(GuestKind::Qemu, Some(("hwaddr", known)), &[net]), None);
        let other = ("net0", "e1000=52:54:00:1A:0C:02,bridge=vmbr0");
        let taken = dispute(GuestKind::Qemu, Some(("hwaddr", known)), &[other]).unwrap();
        assert!(taken.contains("its hwaddr is not the one"), "{taken}");
        // Where there is one, it decides.
        assert!(dispute(GuestKind::Qemu, Some(("uuid", "x")), &[net]).is_some());
        assert!(dispute(GuestKind::Qemu, Some(("hwaddr", known)), &[net, ("smbios1", "uuid=x")]).is_some());
    }

    /// An address of the internet protocol can be just as long, and one of six parts just as many.
    #[test]
    fn a_hardware_address_is_told_from_other_values() {
        let net = "name=eth0,ip=192.168.100.10/24,ip6=20:01:0d:b8:00:01::/64,hwaddr=BC:24:11:00:00:01";
        assert_eq!(hardware_address(net), Some("BC:24:11:00:00:01"));
        assert_eq!(hardware_address("name=eth0,ip=192.168.100.10/24"), None);
    }

    #[test]
    fn without_it_only_the_whole_mark_counts() {
        let marked =
            |text: &str| dispute(GuestKind::Qemu, None, &[("description", text), ("smbios1", "uuid=x")]);
        assert_eq!(marked(&mark(9100, "web/vm/web-1")), None);
        assert_eq!(
            marked(&mark(9000, "web/vm/web-1")).unwrap(),
            "its ownership mark is that of VMID 9000: it is a copy"
        );
        assert_eq!(marked(&mark(9100, "web/vm/web-2")).unwrap(), "its ownership mark names `web/vm/web-2`");
        assert_eq!(marked("mine").unwrap(), "Unclaimed");
        let foreign = Mark::new(&Lineage::derive("other", "x"), &crate::kinds::address("web/vm/web-1"), 9100);
        assert!(marked(&foreign.to_string()).unwrap().starts_with("it belongs to another state"));
    }

    #[test]
    fn what_somebody_else_built_is_known_by_its_hardware_address() {
        let net = ("net0", "virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=4");
        let expected = |text| Some((TAKEN_OVER, text));
        assert_eq!(dispute(GuestKind::Qemu, expected("bc:24:11:00:00:01"), &[net]), None);
        let other = dispute(GuestKind::Qemu, expected("BC:24:11:00:00:02"), &[net]).unwrap();
        assert_eq!(
            other,
            "its hardware address is `BC:24:11:00:00:01` and not `BC:24:11:00:00:02`: it is another one"
        );
        assert_eq!(dispute(GuestKind::Qemu, expected("web"), &[("name", "web")]), None);
        // Somebody else's mark is stronger than what a file says.
        let foreign = Mark::new(&Lineage::derive("other", "x"), &crate::kinds::address("web/vm/web-1"), 9100)
            .to_string();
        assert!(
            dispute(GuestKind::Qemu, expected("BC:24:11:00:00:01"), &[net, ("description", &foreign)])
                .is_some()
        );
    }

    #[test]
    fn who_took_over_the_vmid_is_a_stranger_unless_marked() {
        let facts = Some(("uuid", "old"));
        let taken = dispute(GuestKind::Qemu, facts, &[("smbios1", "uuid=new")]).unwrap();
        assert!(taken.contains("its uuid is not the one"), "{taken}");
        let restored = mark(9100, "web/vm/web-1");
        assert_eq!(
            dispute(GuestKind::Qemu, facts, &[("smbios1", "uuid=new"), ("description", &restored)]),
            None
        );
    }
}
