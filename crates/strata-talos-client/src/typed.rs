//! The resources that are asked for most, with their fields.

use prost::Message as _;
use strata_secret::{SecretBytes, SecretString};
use strata_talos::Value;

use crate::client::TalosClient;
use crate::error::{TalosError, TalosReason};
use crate::resource::{Resource, ResourceKind};
use crate::wire::cosi::MachineConfigSpec;

/// Which of the node's configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigSlot {
    /// The one that it runs with.
    Active,
    /// The one on its disk: ahead of the active one after a staged apply, behind it during a try.
    Persistent,
}

/// What a machine is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineStage {
    Booting,
    Installing,
    Maintenance,
    Running,
    Rebooting,
    ShuttingDown,
    Resetting,
    Upgrading,
    /// It does not say, or says something that is not known here.
    Unknown,
}

impl MachineStage {
    fn read(text: &str) -> Self {
        match text {
            "booting" => Self::Booting,
            "installing" => Self::Installing,
            "maintenance" => Self::Maintenance,
            "running" => Self::Running,
            "rebooting" => Self::Rebooting,
            "shutting down" => Self::ShuttingDown,
            "resetting" => Self::Resetting,
            "upgrading" => Self::Upgrading,
            _ => Self::Unknown,
        }
    }
}

/// How a machine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineStatus {
    pub stage: MachineStage,
    pub ready: bool,
    /// Why it is not ready.
    pub unmet: Vec<UnmetCondition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmetCondition {
    pub name: String,
    pub reason: String,
}

/// A machine of the cluster that discovery found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub hostname: String,
    pub addresses: Vec<String>,
    pub is_control_plane: bool,
    /// Such as `Talos (v1.13.9)`.
    pub operating_system: String,
}

impl TalosClient {
    /// The configuration as the node was given it; none in maintenance mode.
    pub async fn machine_config(&self, slot: ConfigSlot) -> Result<Option<SecretString>, TalosError> {
        let id = match slot {
            ConfigSlot::Active => "v1alpha1",
            ConfigSlot::Persistent => "persistent",
        };
        let Some(resource) = self.get(ResourceKind::MACHINE_CONFIG, id).await? else { return Ok(None) };
        let text = MachineConfigSpec::decode(resource.proto.expose())
            .ok()
            .and_then(|spec| SecretBytes::from(spec.yaml_marshalled).into_string().ok());
        let malformed = || TalosReason::Malformed("it holds no machine configuration".to_owned());
        text.map(Some).ok_or_else(|| self.error("/cosi.resource.State/Get", malformed()))
    }

    /// `None` early in the boot.
    pub async fn machine_status(&self) -> Result<Option<MachineStatus>, TalosError> {
        Ok(self
            .get(ResourceKind::MACHINE_STATUS, "machine")
            .await?
            .map(|resource| MachineStatus::read(&resource)))
    }

    /// The machines that discovery found, this one included.
    pub async fn members(&self) -> Result<Vec<Member>, TalosError> {
        let member = |resource: &Resource| Member {
            hostname: resource.text(&["hostname"]).unwrap_or_default(),
            addresses: texts(resource.spec.get("addresses")),
            is_control_plane: matches!(
                resource.text(&["machineType"]).as_deref(),
                Some("controlplane" | "init")
            ),
            operating_system: resource.text(&["operatingSystem"]).unwrap_or_default(),
        };
        Ok(self.list(ResourceKind::MEMBERS).await?.iter().map(member).collect())
    }

    /// The node's hostname; none while it has not got one.
    pub async fn hostname(&self) -> Result<Option<String>, TalosError> {
        let resource = self.get(ResourceKind::HOSTNAME, "hostname").await?;
        Ok(resource.and_then(|resource| resource.text(&["hostname"])))
    }

    /// The name under which the kubelet registers; none while there is none.
    pub async fn nodename(&self) -> Result<Option<String>, TalosError> {
        let resource = self.get(ResourceKind::NODENAME, "nodename").await?;
        Ok(resource.and_then(|resource| resource.text(&["nodename"])))
    }

    /// The id of the node's own member of etcd; none if it is no member, or etcd does not run.
    pub async fn etcd_member_id(&self) -> Result<Option<u64>, TalosError> {
        let resource = self.get(ResourceKind::ETCD_MEMBER, "local").await?;
        let id = resource.and_then(|resource| resource.text(&["memberID"]));
        Ok(id.and_then(|id| u64::from_str_radix(&id, 16).ok()))
    }
}

impl MachineStatus {
    /// From the resource of kind [`ResourceKind::MACHINE_STATUS`], as a watch gives it.
    pub fn read(resource: &Resource) -> Self {
        let unmet = resource.spec.at(&["status", "unmetConditions"]).and_then(Value::as_list);
        let text =
            |value: &Value, key| value.get(key).and_then(Value::as_text).unwrap_or_default().to_owned();
        let condition =
            |value: &Value| UnmetCondition { name: text(value, "name"), reason: text(value, "reason") };
        Self {
            stage: MachineStage::read(&resource.text(&["stage"]).unwrap_or_default()),
            ready: resource.spec.at(&["status", "ready"]).and_then(Value::as_bool).unwrap_or(false),
            unmet: unmet.unwrap_or_default().iter().map(condition).collect(),
        }
    }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_list).unwrap_or_default();
    items.iter().filter_map(Value::as_text).map(str::to_owned).collect()
}
