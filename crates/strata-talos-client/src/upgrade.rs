//! Upgrades of Talos, and images pulled beforehand.
//!
//! From 1.13 on a node pulls the installer's image, runs it while we look on, and is rebooted by us afterwards. Before, one call
//! does it all, and the node reboots by itself.

use strata_net::WritePermit;

use crate::client::TalosClient;
use crate::error::{TalosError, TalosReason};
use crate::wire::{image as wire, machine};

/// How much of the installer's output is kept for an error.
const LAST_LINES: usize = 5;

/// Where a node keeps an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageStore {
    /// For Talos' own services: the installer, etcd, the kubelet.
    System,
    /// For pods: the other parts of Kubernetes.
    Kubernetes,
}

impl ImageStore {
    fn namespace(self) -> i32 {
        match self {
            Self::System => 1,
            Self::Kubernetes => 2,
        }
    }

    /// Both are namespaces of the containerd that runs pods; the other one lives in memory.
    fn containerd(self) -> wire::Containerd {
        wire::Containerd { driver: 1, namespace: self.namespace() }
    }
}

/// How an upgrade went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upgraded {
    /// The new version is installed, and runs after the next reboot, which is ours to begin.
    NeedsReboot,
    /// The node works on it and reboots by itself.
    Rebooting,
}

impl TalosClient {
    /// Pulls an image, so that it is there when it is needed. It changes nothing else, and needs no permit: one that is pulled late does
    /// no harm.
    pub async fn pull_image(&self, image: &str, store: ImageStore) -> Result<(), TalosError> {
        match self.pull(image, store).await {
            Err(error) if error.is_unimplemented() => {
                let path = "/machine.MachineService/ImagePull";
                let namespace = store.namespace();
                let request = wire::OldPullRequest { namespace, reference: image.to_owned() };
                let _: machine::Begun = self.ask(path, &request, self.timeouts.transfer).await?;
                Ok(())
            }
            other => other,
        }
    }

    async fn pull(&self, image: &str, store: ImageStore) -> Result<(), TalosError> {
        let path = "/machine.ImageService/Pull";
        let request = wire::PullRequest { containerd: Some(store.containerd()), image_ref: image.to_owned() };
        let mut stream = self.stream::<wire::PullResponse>(path, &request, self.timeouts.transfer).await?;
        let mut done = false;
        while let Some(progress) = stream.next().await? {
            done |= progress.name.is_some();
        }
        match done {
            true => Ok(()),
            false => Err(self.error(path, TalosReason::Malformed("the image is not named".to_owned()))),
        }
    }

    /// Installs another version of Talos. `progress` is told what the installer says.
    pub async fn upgrade(
        &self,
        permit: &WritePermit<'_>,
        image: &str,
        progress: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Upgraded, TalosError> {
        let new = async {
            self.pull(image, ImageStore::System).await?;
            self.install(permit, image, progress).await
        };
        match new.await {
            Ok(()) => Ok(Upgraded::NeedsReboot),
            Err(error) if error.is_unimplemented() => self.upgrade_old(permit, image).await,
            Err(error) => Err(error),
        }
    }

    async fn install(
        &self,
        permit: &WritePermit<'_>,
        image: &str,
        progress: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), TalosError> {
        let path = "/machine.LifecycleService/Upgrade";
        let request = wire::UpgradeRequest {
            containerd: Some(ImageStore::System.containerd()),
            source: Some(wire::Source { image_name: image.to_owned() }),
        };
        let mut stream = self
            .write_stream::<wire::UpgradeResponse>(permit, path, &request, self.timeouts.transfer)
            .await?;
        let (mut lines, mut ended) = (Vec::new(), None);
        while let Some(answer) = stream.next().await? {
            let wire::Progress { message, exit_code } = answer.progress.unwrap_or_default();
            if let Some(line) = message {
                let line = self.scrub(line);
                progress(&line);
                lines.push(line);
                if lines.len() > LAST_LINES {
                    lines.remove(0);
                }
            }
            ended = exit_code.or(ended);
        }
        match ended {
            Some(0) => Ok(()),
            Some(exit_code) => {
                let output = lines.join("; ");
                Err(self.error(path, TalosReason::InstallerFailed { exit_code, output }))
            }
            None => {
                let reason = "the installer did not say how it ended".to_owned();
                Err(self.error(path, TalosReason::Malformed(reason)))
            }
        }
    }

    /// The node pulls and checks the image before it answers, and on a control plane looks after etcd's health.
    async fn upgrade_old(&self, permit: &WritePermit<'_>, image: &str) -> Result<Upgraded, TalosError> {
        let path = "/machine.MachineService/Upgrade";
        let request = machine::UpgradeRequest { image: image.to_owned() };
        let _: machine::Begun = self.write_slowly(permit, path, &request).await?;
        Ok(Upgraded::Rebooting)
    }
}
