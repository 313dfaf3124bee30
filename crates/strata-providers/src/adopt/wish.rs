//! What somebody wants to manage, as it is written on a command line.

use strata_proxmox::kinds::is_datacenter;
use strata_resource::Address;
use strata_session::SessionError;

/// A guest or an object that somebody wants to manage, and as what.
#[derive(Debug, Clone)]
pub struct Wish {
    pub address: Address,
    /// Of a guest. An object of the datacenter is known by its address.
    pub vmid: Option<u32>,
    /// Where it is; otherwise on the target of its stack.
    pub target: Option<String>,
}

impl Wish {
    /// `web/vm/db=9110`, or `pve/pool/production`.
    pub fn read(wanted: &str, target: Option<&str>) -> Result<Self, SessionError> {
        let object = Self::new(wanted, None, target);
        match (object, wanted.split_once('=')) {
            // The name of a permission has the sign, too.
            (Ok(object), _) if is_datacenter(object.address.kind()) => Ok(object),
            (_, Some((address, vmid))) => Self::of_guest(address, vmid, target),
            (Err(error), None) if wanted.parse::<u32>().is_err() => Err(error),
            _ => Err(SessionError::failed(format!("`{wanted}` does not say as what the guest is adopted"))
                .hint("write `ADDRESS=VMID`, such as `web/vm/db=9110`, or name the address with `--as`")),
        }
    }

    /// A guest by its VMID.
    pub fn of_guest(address: &str, vmid: &str, target: Option<&str>) -> Result<Self, SessionError> {
        let number = vmid.parse().map_err(|_| {
            SessionError::failed(format!("`{vmid}` is no VMID")).hint("it is a number, such as 9110")
        })?;
        Self::new(address, Some(number), target)
    }

    fn new(address: &str, vmid: Option<u32>, target: Option<&str>) -> Result<Self, SessionError> {
        let address: Address = address
            .parse()
            .map_err(|error| SessionError::failed(format!("`{address}` is no address: {error}")))?;
        Ok(Self { address, vmid, target: target.map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_has_a_vmid_and_an_object_its_address() {
        strata_proxmox::kinds::register();
        let read = |wanted: &str| Wish::read(wanted, None).map(|wish| (wish.address.to_string(), wish.vmid));
        assert_eq!(read("web/vm/db=9110").unwrap(), ("web/vm/db".to_owned(), Some(9110)));
        assert_eq!(read("pve/pool/web").unwrap(), ("pve/pool/web".to_owned(), None));
        let entry = "pve/acl/ops=Ops=~vms~100";
        assert_eq!(read(entry).unwrap(), (entry.to_owned(), None));
        for wrong in ["web/vm/db", "9110", "web/vm/db=x", "nothing"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
