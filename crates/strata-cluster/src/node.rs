//! One node: what answers at its address, and whether it is healthy.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use strata_engine::{OperationContext, ProviderError};
use strata_talos::MachineConfig;
use strata_talos_client::{ConfigSlot, MachineStage, TalosError, TalosReason, TlsProblem};

use crate::cluster::{Cluster, NodePlace};
use crate::error::{internal, talos};
use crate::machine::sent;
use crate::rejoin::OutsideEtcd;
use crate::wait::{Seen, permit, until};

const UNKNOWN: &str = "Kubernetes does not know it yet";
/// A kubelet that is healthy needs a moment until its Node is there.
const REGISTRATION: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Since when Kubernetes does not know a node, though everything else is healthy; and whether something was done about that.
#[derive(Default)]
pub(crate) struct Registration(Mutex<(Option<Instant>, bool)>);

impl Registration {
    /// Whether something is to be done about it now; true once.
    pub(crate) fn is_overdue(&self, unknown: bool) -> bool {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, restarted) = &mut *own;
        *since = unknown.then(|| since.unwrap_or_else(Instant::now));
        let overdue = since.is_some_and(|since| since.elapsed() >= REGISTRATION) && !*restarted;
        *restarted |= overdue;
        overdue
    }
}

/// What answers at a node's address.
pub(crate) enum Contact {
    /// Talos with the cluster's keys.
    Running(Box<Running>),
    /// Talos that waits for a configuration.
    Maintenance,
    /// Talos that belongs to somebody else.
    Unmanaged(String),
    Unreachable(String),
}

pub(crate) struct Running {
    pub(crate) version: String,
    pub(crate) config: MachineConfig,
}

impl Cluster {
    pub(crate) async fn contact(&self, address: &str) -> Result<Contact, ProviderError> {
        let client = self.talos(address)?;
        let error = match client.version().await {
            Ok(version) => return self.running(address, version.tag).await,
            Err(error) => error,
        };
        if error.is_wrong_authority() || error.is_certificate_required() {
            self.hang_up(address);
            return Ok(match self.maintenance(address)?.version().await {
                Ok(_) => Contact::Maintenance,
                Err(error) if error.is_unreachable() || error.is_transient() => {
                    Contact::Unreachable(error.to_string())
                }
                Err(TalosError {
                    reason: TalosReason::Tls(problem @ TlsProblem::PinMismatch { .. }),
                    ..
                }) => {
                    let hint = problem.hint().unwrap_or_default();
                    Contact::Unmanaged(format!(
                        "the machine at {address} is not the pinned one: {problem}; {hint}"
                    ))
                }
                Err(_) => {
                    Contact::Unmanaged(format!("a Talos machine of another cluster answers at {address}"))
                }
            });
        }
        if error.is_unreachable() || error.is_transient() {
            return Ok(Contact::Unreachable(error.to_string()));
        }
        Err(talos(error))
    }

    async fn running(&self, address: &str, version: String) -> Result<Contact, ProviderError> {
        let text = match self.talos(address)?.machine_config(ConfigSlot::Active).await {
            Ok(Some(text)) => text,
            Ok(None) => {
                return Ok(Contact::Unreachable(format!("{address} has not read its configuration yet")));
            }
            Err(error) if error.is_transient() || error.is_unreachable() => {
                return Ok(Contact::Unreachable(error.to_string()));
            }
            Err(error) => return Err(talos(error)),
        };
        let config = MachineConfig::from_yaml(&text).map_err(|error| {
            internal(format!("the machine configuration of {address} cannot be read: {error}"))
        })?;
        Ok(Contact::Running(Box::new(Running { version, config })))
    }

    /// Waits until a node's Talos answers, whatever it can do yet.
    pub(crate) async fn wait_answer(
        &self,
        node: &NodePlace,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        until(context, &format!("Talos on `{}`", node.name), self.options.deadlines.boot, || async {
            self.hang_up(&node.address);
            Ok(match self.contact(&node.address).await? {
                Contact::Unreachable(why) => Seen::NotYet(why),
                Contact::Running(_) | Contact::Maintenance | Contact::Unmanaged(_) => Seen::Done(()),
            })
        })
        .await
    }

    /// Waits until a node works: Talos is up, and it does its part in the cluster if there is one.
    pub(crate) async fn wait_healthy(
        &self,
        node: &NodePlace,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        let (registration, outside) = (Registration::default(), OutsideEtcd::default());
        until(context, &format!("`{}` to be healthy", node.name), self.options.deadlines.join, || async {
            let Some(trouble) = self.trouble(node).await? else { return Ok(Seen::Done(())) };
            if registration.is_overdue(trouble == UNKNOWN) {
                self.register_again(node, context).await?;
            }
            if node.control_plane && self.is_alive() && outside.is_due() {
                self.refuse_stale_data(node).await?;
            }
            Ok(Seen::NotYet(trouble))
        })
        .await
    }

    /// Whether Kubernetes does not know a node that runs, and does not get to know it in the time that a kubelet takes to register.
    pub(crate) async fn stays_unregistered(&self, name: &str) -> Result<bool, ProviderError> {
        let begun = Instant::now();
        loop {
            match self.kube().node(name).await {
                Ok(Some(_)) => return Ok(false),
                Ok(None) => {}
                Err(error) if error.is_transient() => return Ok(false),
                Err(error) => return Err(crate::error::kube(error)),
            }
            if begun.elapsed() >= REGISTRATION {
                return Ok(true);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// A kubelet makes its Node when it starts, and never again: not where someone deletes it, nor where etcd comes back from a copy
    /// that is older than the node.
    pub(crate) async fn register_again(
        &self,
        node: &NodePlace,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        let permit = permit(context)?;
        context.progress("its kubelet is restarted, so that Kubernetes knows it again");
        sent(self.talos(&node.address)?.restart_service(&permit, "kubelet").await)
    }

    /// What is wrong with a node; nothing if it is healthy.
    pub(crate) async fn trouble(&self, node: &NodePlace) -> Result<Option<String>, ProviderError> {
        let client = self.talos(&node.address)?;
        let status = match client.machine_status().await {
            Ok(Some(status)) => status,
            Ok(None) => return Ok(Some("it is booting".to_owned())),
            Err(error) if error.is_transient() || error.is_unreachable() => {
                self.hang_up(&node.address);
                return Ok(Some(error.to_string()));
            }
            Err(error) => return Err(talos(error)),
        };
        // Without etcd a control plane cannot get further than booting.
        let waits_for_etcd = node.control_plane && !self.is_alive() && status.stage == MachineStage::Booting;
        if status.stage != MachineStage::Running && !waits_for_etcd {
            return Ok(Some(format!("it is {}", stage(status.stage))));
        }
        if !self.is_alive() {
            return Ok(None);
        }
        if let Some(unmet) = status.unmet.first().filter(|_| !status.ready && !self.options.waits_for_cni) {
            return Ok(Some(format!("{}: {}", unmet.name, unmet.reason)));
        }
        if node.control_plane
            && let Some(trouble) = self.voter_trouble(node).await?
        {
            return Ok(Some(trouble));
        }
        self.kubelet_trouble(node).await
    }

    pub(crate) async fn kubelet_trouble(&self, node: &NodePlace) -> Result<Option<String>, ProviderError> {
        Ok(match self.kube().node(&node.name).await {
            Ok(Some(found)) if found.ready || self.options.waits_for_cni => None,
            Ok(Some(found)) => Some(found.message.unwrap_or_else(|| "its kubelet is not ready".to_owned())),
            Ok(None) => Some(UNKNOWN.to_owned()),
            Err(error) if error.is_transient() => Some(error.to_string()),
            Err(error) => return Err(crate::error::kube(error)),
        })
    }
}

pub(crate) fn stage(stage: MachineStage) -> &'static str {
    match stage {
        MachineStage::Booting => "booting",
        MachineStage::Installing => "installing itself",
        MachineStage::Maintenance => "in maintenance mode",
        MachineStage::Running => "running",
        MachineStage::Rebooting => "rebooting",
        MachineStage::ShuttingDown => "shutting down",
        MachineStage::Resetting => "being reset",
        MachineStage::Upgrading => "being upgraded",
        MachineStage::Unknown => "in a stage that it does not name",
    }
}
