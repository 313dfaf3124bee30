//! What a VM is told at its first boot.

use strata_yaml::{Spanned, TextRule, TextShape, Value, choice, record};

use crate::machine::guest::OnChange;
use crate::value::address::Ip;
use crate::value::document::Document;
use crate::value::name::ID;
use crate::value::place::ADDRESS;

choice! {
    /// How the data reach the guest.
    pub enum CloudInitType { NoCloud = "nocloud", ConfigDrive2 = "configdrive2", OpenNebula = "opennebula" }
}

const SLOT: TextRule = TextRule {
    shape: TextShape {
        what: "a slot for a CD drive such as `ide2`, `sata1` or `scsi3`",
        pattern: Some("^(ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30))$"),
    },
    accepts: |text| {
        let buses = [("ide", 3), ("sata", 5), ("scsi", 30)];
        let fits = |(bus, last): &(&str, u8)| {
            text.strip_prefix(bus)
                .and_then(|number| number.parse::<u8>().ok())
                .is_some_and(|number| number <= *last)
        };
        buses.iter().any(fits)
    },
};

record! {
    /// Cloud-init. Addresses are those of `network`.
    pub struct CloudInit {
        /// the user it makes
        "user" user: Option<Value<String>>;
        /// that user's password; by reference
        "password" password: Option<Value<String>> [secret];
        /// keys that may log in as that user
        "sshKeys" ssh_keys: Vec<Value<String>>;
        /// name servers
        "nameservers" nameservers: Vec<Spanned<Ip>> [label(ADDRESS)];
        /// the domain that short names are looked up in
        "searchDomain" search_domain: Option<String> [env()];
        /// user-data of your own: a file, text, or YAML in place
        "userData" user_data: Option<Document>;
        /// vendor-data of your own
        "vendorData" vendor_data: Option<Document>;
        /// network configuration of your own, in place of `network`'s addresses
        "networkData" network_data: Option<Document>;
        /// meta-data of your own
        "metaData" meta_data: Option<Document>;
        /// what to do when it changes
        "onChange" on_change: Option<OnChange>;
        /// user-data may hold secrets, which then lie on the hypervisor's storage
        "allowSecretOnStorage" allow_secret_on_storage: bool = false;
        /// whether packages are upgraded at the first boot
        "upgrade" upgrade: Option<bool>;
        /// the storage of the cloud-init drive
        "storage" storage: Option<Spanned<String>> [text(ID)];
        /// the slot of the cloud-init drive; otherwise `ide2`, or `ide0` where a CD is in that
        "slot" slot: Option<Spanned<String>> [text(SLOT)];
        /// how the data reach the guest
        "type" kind: Option<CloudInitType>;
    }
}

impl CloudInit {
    /// Documents of the user's own, which Proxmox' generated drive cannot hold.
    pub fn custom(&self) -> impl Iterator<Item = (&'static str, &Document)> {
        [
            ("userData", &self.user_data),
            ("vendorData", &self.vendor_data),
            ("networkData", &self.network_data),
            ("metaData", &self.meta_data),
        ]
        .into_iter()
        .filter_map(|(name, document)| document.as_ref().map(|document| (name, document)))
    }
}
