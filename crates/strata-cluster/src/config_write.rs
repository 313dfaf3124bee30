//! The one place from which a node gets a machine configuration.
//!
//! A configuration is sent as a whole, and Talos compares nothing: directly before that the node is read, and whatever somebody else
//! wrote into it since the plan was made is an error. What is read is what the node runs with and what is on its disk: a configuration that
//! somebody staged is only there.

use strata_engine::{ErrorClass, OperationContext, ProviderError};
use strata_talos::MachineConfig;
use strata_talos_client::{Applied, ApplyMode, ConfigSlot};

use crate::cluster::Cluster;
use crate::error::{internal, talos};
use crate::forecast::{differs, merged_config};
use crate::machine::is_passing;
use crate::node::Contact;
use crate::wait::permit;

/// What a node that runs gets, and what it may have until then.
pub(crate) struct ConfigWrite<'c> {
    /// The name of the node.
    pub(crate) name: &'c str,
    /// What it had when it was decided.
    pub(crate) seen: &'c MachineConfig,
    pub(crate) wanted: &'c MachineConfig,
}

/// What came of it.
pub(crate) enum Answer {
    Applied(Applied),
    /// Nobody knows whether it arrived: what the node then does shows it.
    Lost(ProviderError),
}

impl Answer {
    /// For who looks at what the node does next.
    pub(crate) fn whatever_came(self) {}

    pub(crate) fn must_be_applied(self) -> Result<(), ProviderError> {
        match self {
            Self::Applied(_) => Ok(()),
            Self::Lost(error) => Err(error),
        }
    }
}

impl ConfigWrite<'_> {
    /// Reads the node, compares, and sends.
    pub(crate) async fn send(
        &self,
        cluster: &Cluster,
        address: &str,
        mode: ApplyMode,
        context: &dyn OperationContext,
    ) -> Result<Answer, ProviderError> {
        let client = cluster.talos(address)?;
        let running = match cluster.contact(address).await? {
            Contact::Running(running) => running,
            Contact::Unreachable(why) => return Ok(Answer::Lost(self.unreachable(why))),
            Contact::Maintenance => {
                return Ok(Answer::Lost(self.unreachable(format!("{address} is in maintenance mode"))));
            }
            Contact::Unmanaged(who) => return Err(internal(who)),
        };
        self.refuse_changed(&running.config)?;
        match client.machine_config(ConfigSlot::Persistent).await {
            // After a boot there is none: it runs with what is on its disk.
            Ok(None) => {}
            Ok(Some(text)) => self.refuse_staged(&MachineConfig::from_yaml(&text).map_err(|error| {
                internal(format!(
                    "the machine configuration on the disk of `{}` cannot be read: {error}",
                    self.name
                ))
            })?)?,
            Err(error) if is_passing(&error) => return Ok(Answer::Lost(talos(error))),
            Err(error) => return Err(talos(error)),
        }
        let permit = permit(context)?;
        answer(client.apply_configuration(&permit, &self.wanted.to_yaml(), mode, false).await)
    }

    /// The whole configuration is sent, and takes back whatever somebody else wrote into it since the plan was made.
    pub(crate) fn refuse_changed(&self, live: &MachineConfig) -> Result<(), ProviderError> {
        let Self { name, seen, wanted } = self;
        // An earlier step of ours may have sent it ahead.
        if !differs(live, seen) || !differs(live, wanted) {
            return Ok(());
        }
        let kubernetes = differs(&merged_config(wanted, live), wanted);
        let message = match kubernetes {
            true => format!("the versions of Kubernetes on `{name}` changed since the plan was made"),
            false => format!("somebody else changed the configuration of `{name}` since the plan was made"),
        };
        Err(conflict(message).hint("nothing of it was overwritten; plan again"))
    }

    /// What is staged would be lost, and no plan shows it.
    fn refuse_staged(&self, kept: &MachineConfig) -> Result<(), ProviderError> {
        if !differs(kept, self.seen) || !differs(kept, self.wanted) {
            return Ok(());
        }
        let message = format!(
            "another configuration than the one that `{}` runs with is on its disk: somebody staged it, or tries one",
            self.name
        );
        Err(conflict(message).hint("nothing of it was overwritten; reboot the node to bring a staged one into effect, or wait until the try has ended; then plan again"))
    }

    fn unreachable(&self, why: String) -> ProviderError {
        let error =
            ProviderError::new(ErrorClass::Unreachable, format!("`{}` does not answer: {why}", self.name));
        ProviderError { nothing_done: true, ..error }.hint("`strata talos health` shows every node")
    }
}

/// The first configuration of a machine in maintenance mode. There is nothing to compare it with: a machine that somebody else has configured
/// meanwhile asks for a certificate, and takes nothing from who has none.
pub(crate) async fn send_first(
    cluster: &Cluster,
    address: &str,
    wanted: &MachineConfig,
    context: &dyn OperationContext,
) -> Result<Answer, ProviderError> {
    let permit = permit(context)?;
    context.progress("sending its configuration");
    let client = cluster.maintenance(address)?;
    answer(client.apply_configuration(&permit, &wanted.to_yaml(), ApplyMode::Auto, false).await)
}

fn answer(applied: Result<Applied, strata_talos_client::TalosError>) -> Result<Answer, ProviderError> {
    match applied {
        Ok(applied) => Ok(Answer::Applied(applied)),
        Err(error) if is_passing(&error) => Ok(Answer::Lost(talos(error))),
        Err(error) => Err(talos(error)),
    }
}

fn conflict(message: String) -> ProviderError {
    ProviderError { nothing_done: true, ..ProviderError::new(ErrorClass::Conflict, message) }
}
