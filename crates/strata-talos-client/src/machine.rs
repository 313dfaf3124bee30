//! Calls about the machine itself: version, configuration, bootstrap, kubeconfig, services, reboot.

use std::time::Duration;

use strata_net::WritePermit;
use strata_secret::{SecretBytes, SecretString};

use crate::archive;
use crate::client::TalosClient;
use crate::error::{TalosError, TalosReason};
use crate::resource::ResourceKind;
use crate::wire::machine as wire;
use crate::wire::{Data, Empty};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// More than any kubeconfig or boot id has.
const LARGEST_FILE: usize = 4 << 20;

/// What a node runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TalosVersion {
    /// Such as `v1.13.9`.
    pub tag: String,
    /// Such as `amd64`; empty if the node does not say.
    pub arch: String,
    /// Such as `nocloud`; empty if the node does not say.
    pub platform: String,
}

/// What to do with a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMode {
    /// Up to 1.13: with a reboot if one is needed. From 1.14 on: as [`ApplyMode::NoReboot`].
    Auto,
    /// From 1.14 on only in maintenance mode, and [`TalosReason::Unimplemented`] otherwise.
    Reboot,
    /// Up to 1.13, a change that needs a reboot is [`TalosReason::InvalidArgument`]. From 1.14 on it is taken and stays pending
    /// until the next reboot, without an error.
    NoReboot,
    /// At the next reboot.
    Staged,
    /// Now, and back to the old one after this time unless another apply confirms it.
    Try(Duration),
}

impl ApplyMode {
    fn number(self) -> i32 {
        match self {
            Self::Reboot => 0,
            Self::Auto => 1,
            Self::NoReboot => 2,
            Self::Staged => 3,
            Self::Try(_) => 4,
        }
    }
}

/// What a node did with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub warnings: Vec<String>,
    /// Whether the node reboots because of it, or would, after a dry run. From 1.14 on, never. In maintenance mode it says
    /// nothing: a node that is not installed yet installs itself and then reboots in any case.
    pub reboots: bool,
    /// What the node says about it, without its diff: that has secrets in it.
    pub details: String,
}

/// How to reboot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RebootMode {
    #[default]
    Default,
    /// Through the firmware, without kexec.
    PowerCycle,
}

/// A service of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub id: String,
    /// Such as `Running`, `Waiting`, `Failed` or `Finished`.
    pub state: String,
    /// `None` if nothing checks its health.
    pub healthy: Option<bool>,
    /// What the last check said.
    pub message: String,
}

impl TalosClient {
    /// What the node runs. Before 1.13 a node in maintenance mode does not know this call, and is asked for the resource that holds
    /// the version.
    pub async fn version(&self) -> Result<TalosVersion, TalosError> {
        let path = "/machine.MachineService/Version";
        let answer: Result<wire::Version, _> = self.ask(path, &Empty {}, self.timeouts.call).await;
        let error = match answer {
            Ok(wire::Version { version, platform }) => {
                let version = version.unwrap_or_default();
                let platform = platform.unwrap_or_default().name;
                return Ok(TalosVersion { tag: version.tag, arch: version.arch, platform });
            }
            Err(error) if error.is_unimplemented() => error,
            Err(error) => return Err(error),
        };
        let resource = self.get(ResourceKind::VERSION, "version").await?.ok_or(error)?;
        let tag = resource.text(&["version"]).unwrap_or_default();
        Ok(TalosVersion { tag, arch: String::new(), platform: String::new() })
    }

    /// Gives the node a configuration. Unless it is a try, even a dry run ends a try that is still open.
    pub async fn apply_configuration(
        &self,
        permit: &WritePermit<'_>,
        config: &SecretString,
        mode: ApplyMode,
        dry_run: bool,
    ) -> Result<Applied, TalosError> {
        let path = "/machine.MachineService/ApplyConfiguration";
        let try_mode_timeout = match mode {
            ApplyMode::Try(revert) => Some(revert.into()),
            _ => None,
        };
        let request = wire::ApplyConfigurationRequest {
            data: config.expose().as_bytes().to_vec(),
            mode: mode.number(),
            dry_run,
            try_mode_timeout,
        };
        let answer: Result<wire::ApplyConfiguration, _> =
            self.write(permit, path, &request, self.timeouts.slow).await;
        let answer = answer.map_err(|error| TalosError {
            reason: error.reason.map(|text| before_diff(&text).to_owned()),
            ..error
        })?;
        Ok(Applied {
            warnings: answer.warnings.into_iter().map(|warning| self.scrub(warning)).collect(),
            reboots: answer.mode == ApplyMode::Reboot.number(),
            details: self.scrub(before_diff(&answer.mode_details).to_owned()),
        })
    }

    /// Makes etcd's first member. A node whose etcd has data answers [`TalosReason::AlreadyExists`]; one that has not started its
    /// services or not set its clock, [`TalosReason::FailedPrecondition`]. Says nothing about other nodes: that there is no
    /// cluster yet is for the caller to know.
    pub async fn bootstrap(&self, permit: &WritePermit<'_>) -> Result<(), TalosError> {
        self.bootstrap_with(permit, wire::BootstrapRequest::default()).await
    }

    /// As [`TalosClient::bootstrap`], with the data of the snapshot that was uploaded before. A snapshot that is an etcd snapshot's
    /// files has no checksum, which must then be skipped.
    pub async fn bootstrap_recovered(
        &self,
        permit: &WritePermit<'_>,
        skip_hash_check: bool,
    ) -> Result<(), TalosError> {
        let request = wire::BootstrapRequest { recover_etcd: true, recover_skip_hash_check: skip_hash_check };
        self.bootstrap_with(permit, request).await
    }

    async fn bootstrap_with(
        &self,
        permit: &WritePermit<'_>,
        request: wire::BootstrapRequest,
    ) -> Result<(), TalosError> {
        let path = "/machine.MachineService/Bootstrap";
        let _: wire::Begun = self.write(permit, path, &request, self.timeouts.slow).await?;
        Ok(())
    }

    /// An administrator's kubeconfig, made by a control plane.
    pub async fn kubeconfig(&self) -> Result<SecretString, TalosError> {
        let path = "/machine.MachineService/Kubeconfig";
        let archive = self.gather(path, &Empty {}).await?;
        let file = archive::only_file(archive.expose(), LARGEST_FILE);
        let text = file.and_then(|file| file.into_string().ok());
        text.ok_or_else(|| self.error(path, TalosReason::Malformed("it holds no kubeconfig".to_owned())))
    }

    pub async fn services(&self) -> Result<Vec<Service>, TalosError> {
        let path = "/machine.MachineService/ServiceList";
        let list: wire::ServiceList = self.ask(path, &Empty {}, self.timeouts.call).await?;
        let service = |info: wire::ServiceInfo| {
            let health = info.health.unwrap_or(wire::ServiceHealth { unknown: true, ..Default::default() });
            Service {
                id: info.id,
                state: info.state,
                healthy: (!health.unknown).then_some(health.healthy),
                message: self.scrub(health.last_message),
            }
        };
        Ok(list.services.into_iter().map(service).collect())
    }

    /// Stops a service and starts it again.
    pub async fn restart_service(&self, permit: &WritePermit<'_>, id: &str) -> Result<(), TalosError> {
        let path = "/machine.MachineService/ServiceRestart";
        let request = wire::ServiceRequest { id: id.to_owned() };
        let _: wire::Begun = self.write(permit, path, &request, self.timeouts.call).await?;
        Ok(())
    }

    /// Begins a reboot. Whether it happened shows in [`TalosClient::boot_id`].
    pub async fn reboot(&self, permit: &WritePermit<'_>, mode: RebootMode) -> Result<(), TalosError> {
        let mode = match mode {
            RebootMode::Default => 0,
            RebootMode::PowerCycle => 1,
        };
        let path = "/machine.MachineService/Reboot";
        let request = wire::RebootRequest { mode };
        let _: wire::Begun = self.write(permit, path, &request, self.timeouts.call).await?;
        Ok(())
    }

    /// Another one after every boot. From 1.14 on it is a resource; before, the kernel's file is read.
    pub async fn boot_id(&self) -> Result<String, TalosError> {
        let resource = match self.get(ResourceKind::BOOT_ID, "boot-id").await {
            // What nodes say about kinds that they do not know.
            Err(error) if matches!(error.reason, TalosReason::Refused(_)) => None,
            other => other?,
        };
        if let Some(id) = resource.and_then(|resource| resource.text(&["bootID"])) {
            return Ok(id);
        }
        let path = "/machine.MachineService/Read";
        let bytes = self.gather(path, &wire::ReadRequest { path: BOOT_ID.to_owned() }).await?;
        let id = String::from_utf8_lossy(bytes.expose()).trim().to_owned();
        if id.is_empty() {
            return Err(self.error(path, TalosReason::Malformed("the boot id is empty".to_owned())));
        }
        Ok(id)
    }

    /// When the kernel began, in seconds since 1970, by the node's clock.
    pub async fn boot_time(&self) -> Result<u64, TalosError> {
        let path = "/machine.MachineService/SystemStat";
        let stat: wire::SystemStat = self.ask(path, &Empty {}, self.timeouts.call).await?;
        Ok(stat.boot_time)
    }

    /// A small file that comes in pieces.
    async fn gather(
        &self,
        path: &'static str,
        request: &impl prost::Message,
    ) -> Result<SecretBytes, TalosError> {
        let mut stream = self.stream::<Data>(path, request, self.timeouts.call).await?;
        let mut bytes = zeroize::Zeroizing::new(Vec::new());
        while let Some(data) = stream.next().await? {
            bytes.extend_from_slice(&data.bytes);
            if bytes.len() > LARGEST_FILE {
                return Err(self.error(path, TalosReason::Malformed("it is too large".to_owned())));
            }
        }
        Ok(SecretBytes::new(bytes.as_slice()))
    }
}

/// Talos adds a diff of the configuration to some of its answers, with the secrets that changed.
fn before_diff(text: &str) -> &str {
    let end = ["\ndiff:", "Config diff:"].iter().filter_map(|mark| text.find(mark)).min();
    text[..end.unwrap_or(text.len())].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_out_the_diff() {
        assert_eq!(before_diff("no.\ndiff:\n-token: a\n"), "no.");
        assert_eq!(
            before_diff("Dry run summary:\nfine.\nConfig diff:\n\n+key: b"),
            "Dry run summary:\nfine."
        );
        assert_eq!(before_diff("fine"), "fine");
    }
}
