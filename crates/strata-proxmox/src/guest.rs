//! One guest and the reads about it.

use std::fmt;

use crate::api::{GuestRow, GuestStatus, Params, Scalar};
use crate::client::{CallError, Client};
use crate::codec::{GuestKind, LiveConfig};
use crate::firewall::LiveFirewall;
use crate::ownership::hardware_address;

/// A guest at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guest {
    pub(crate) kind: GuestKind,
    pub(crate) node: String,
    pub(crate) vmid: u32,
}

impl Guest {
    /// A path below the guest's own.
    pub(crate) fn path(&self, below: &str) -> String {
        format!("/nodes/{}/{}/{}{below}", self.node, self.kind.path(), self.vmid)
    }

    pub(crate) async fn config(&self, client: &Client) -> Result<LiveConfig, CallError> {
        let rows = client.get(&self.path("/pending"), Params::new()).await?;
        Ok(LiveConfig::new(rows))
    }

    /// The configuration, or none if there is no such guest on this node.
    pub(crate) async fn config_if_any(&self, client: &Client) -> Result<Option<LiveConfig>, CallError> {
        match self.config(client).await {
            Ok(config) => Ok(Some(config)),
            Err(error) if self.is_said_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the server says that this very guest is not on this node.
    pub(crate) fn is_said_missing(&self, error: &CallError) -> bool {
        let folder = match self.kind {
            GuestKind::Qemu => "qemu-server",
            GuestKind::Lxc => "lxc",
        };
        matches!(error, CallError::Api(error) if error.says_no_guest(&self.node, folder, self.vmid))
    }

    pub(crate) async fn is_running(&self, client: &Client) -> Result<bool, CallError> {
        Ok(self.status(client).await?.is_running())
    }

    pub(crate) async fn status(&self, client: &Client) -> Result<GuestStatus, CallError> {
        client.get(&self.path("/status/current"), Params::new()).await
    }

    pub(crate) async fn firewall(&self, client: &Client) -> Result<LiveFirewall, CallError> {
        let (options_path, rules_path) = (self.path("/firewall/options"), self.path("/firewall/rules"));
        let options = client.get(&options_path, Params::new());
        let rules = client.get(&rules_path, Params::new());
        let (options, rules) = futures::future::try_join(options, rules).await?;
        Ok(LiveFirewall::new(options, rules))
    }

    /// What proves that a guest is the one that the state knows: the uuid of a VM; of a
    /// container, and of a VM that was made before there were any, the hardware address of its first network device.
    pub(crate) fn proof(&self, config: &LiveConfig) -> Option<(&'static str, String)> {
        let smbios = config.get("smbios1").filter(|_| self.kind == GuestKind::Qemu);
        let uuid = smbios.and_then(|smbios| smbios.split(',').find_map(|part| part.strip_prefix("uuid=")));
        let address = || config.get("net0").and_then(hardware_address);
        match uuid {
            Some(uuid) => Some((UUID, uuid.to_owned())),
            None => Some((HARDWARE_ADDRESS, address()?.to_owned())),
        }
    }
}

/// The facts in which proofs are kept.
pub(crate) const PROOF_FACTS: &[&str] = &[UUID, HARDWARE_ADDRESS];
const UUID: &str = "uuid";
const HARDWARE_ADDRESS: &str = "hwaddr";

impl fmt::Display for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.vmid)
    }
}

/// Where all guests of the cluster are listed: a path, and what is asked for there.
pub(crate) const ALL_GUESTS: (&str, (&str, &str)) = ("/cluster/resources", ("type", "vm"));

/// All guests of the cluster, as they are now.
pub(crate) async fn cluster_guests(client: &Client) -> Result<Vec<GuestRow>, CallError> {
    let (path, (key, value)) = ALL_GUESTS;
    client.get(path, Params::new().with(key, value)).await
}

/// Where a VMID is taken, whatever by.
pub(crate) async fn locate(client: &Client, vmid: u32) -> Result<Option<GuestRow>, CallError> {
    Ok(cluster_guests(client).await?.into_iter().find(|row| row.vmid == vmid))
}

/// A row of the firewall's answers: names and values.
pub(crate) type Row = std::collections::BTreeMap<String, Scalar>;
