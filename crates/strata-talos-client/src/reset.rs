//! Wiping a node. What is wiped is always said in full: to Talos, an empty list means everything.

use strata_net::WritePermit;

use crate::client::TalosClient;
use crate::error::{TalosError, TalosReason};
use crate::wire::machine as wire;

/// What a reset wipes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wipe {
    /// Partitions of the system disk, by label: `EPHEMERAL` for data, `STATE` for the configuration.
    Partitions(Vec<String>),
    /// The whole system disk, Talos included.
    SystemDisk,
    /// Other disks, by their device paths.
    UserDisks(Vec<String>),
    /// The whole system disk and these others.
    SystemAndUserDisks(Vec<String>),
}

/// A reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reset {
    pub wipe: Wipe,
    /// Leave etcd first and drain the node, and refuse if that fails.
    pub graceful: bool,
    /// Afterwards boot again, rather than power off.
    pub reboot: bool,
}

impl Reset {
    fn request(&self) -> Result<wire::ResetRequest, &'static str> {
        let mut request =
            wire::ResetRequest { graceful: self.graceful, reboot: self.reboot, ..Default::default() };
        let partition = |label: &String| wire::ResetPartition { label: label.clone(), wipe: true };
        let (mode, named) = match &self.wipe {
            Wipe::Partitions(labels) => {
                request.system_partitions_to_wipe = labels.iter().map(partition).collect();
                (1, Some(labels))
            }
            Wipe::SystemDisk => (1, None),
            Wipe::UserDisks(disks) => (2, Some(disks)),
            Wipe::SystemAndUserDisks(disks) => (0, Some(disks)),
        };
        request.mode = mode;
        if named.is_some_and(|names| names.is_empty() || names.iter().any(String::is_empty)) {
            return Err("what to wipe must be named");
        }
        if let Wipe::UserDisks(disks) | Wipe::SystemAndUserDisks(disks) = &self.wipe {
            request.user_disks_to_wipe.clone_from(disks);
        }
        Ok(request)
    }
}

impl TalosClient {
    /// Begins a reset. In maintenance mode, before 1.13, only the disks as a whole can be wiped.
    pub async fn reset(&self, permit: &WritePermit<'_>, reset: &Reset) -> Result<(), TalosError> {
        let path = "/machine.MachineService/Reset";
        let request = reset
            .request()
            .map_err(|reason| self.error(path, TalosReason::InvalidArgument(reason.to_owned())))?;
        let _: wire::Begun = self.write(permit, path, &request, self.timeouts.call).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_never_means_everything() {
        let request = |wipe| Reset { wipe, graceful: true, reboot: false }.request();
        for wipe in [
            Wipe::Partitions(Vec::new()),
            Wipe::Partitions(vec![String::new()]),
            Wipe::UserDisks(Vec::new()),
            Wipe::SystemAndUserDisks(Vec::new()),
        ] {
            assert!(request(wipe.clone()).is_err(), "{wipe:?}");
        }
        let partitions = request(Wipe::Partitions(vec!["EPHEMERAL".to_owned()])).unwrap();
        assert_eq!(partitions.mode, 1);
        assert!(partitions.system_partitions_to_wipe[0].wipe && partitions.graceful && !partitions.reboot);
        assert_eq!(request(Wipe::UserDisks(vec!["/dev/sdb".to_owned()])).unwrap().mode, 2);
        let whole = request(Wipe::SystemDisk).unwrap();
        assert_eq!((whole.mode, whole.system_partitions_to_wipe.len()), (1, 0));
        let all = request(Wipe::SystemAndUserDisks(vec!["/dev/sdb".to_owned()])).unwrap();
        assert_eq!((all.mode, all.user_disks_to_wipe), (0, vec!["/dev/sdb".to_owned()]));
    }
}
