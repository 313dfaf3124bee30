//! Options of the whole datacenter.

use strata_resource::{Spec, Value};
use strata_source::hypervisor::Hypervisor;
use strata_source::hypervisor::services::{DatacenterOptions, TagStyle, Transfer, TransferType};

use super::Part;
use crate::fields::{Fields, int};
use crate::kinds;
use crate::site::Draft;

impl Draft<'_> {
    pub(super) fn datacenter_options(&mut self, hypervisor: &Hypervisor) {
        let Some(options) = &hypervisor.services.options else { return };
        let mut part = Part::new(kinds::OPTIONS, "datacenter", options.span);
        if let Some(next) = &options.next_id
            && let (Some(lower), Some(upper)) = (next.lower, next.upper)
            && lower >= upper
        {
            let message = format!("`nextId` offers no VMID: `lower` is {lower}, and `upper` is {upper}");
            self.refuse("no-id", message, options.span);
        }
        part.spec = spec(options);
        self.part(part);
    }
}

fn spec(options: &DatacenterOptions) -> Spec {
    let mut spec = Spec::new();
    spec.put("options", "datacenter");
    spec.put_some("keyboard", options.keyboard.clone());
    spec.put_some("console", options.console.map(|console| console.to_string()));
    spec.put_some("email_from", options.email_from.clone());
    spec.put_some("http_proxy", options.http_proxy.clone());
    spec.put_some("mac_prefix", options.mac_prefix.as_ref().map(|prefix| prefix.value.clone()));
    spec.put_some("max_workers", options.max_workers.map(int));
    spec.put_some("migration", options.migration.as_ref().map(transfer));
    spec.put_some("replication", options.replication.as_ref().map(transfer));
    let mut scheduler = Spec::new();
    if let Some(own) = &options.scheduler {
        scheduler.put_some("ha", own.ha.map(|mode| mode.to_string()));
        scheduler.put_some("rebalance_on_start", own.rebalance_on_start);
    }
    spec.put_full("scheduler", Value::Map(scheduler));
    let mut availability = Spec::new();
    availability.put_some("shutdown_policy", options.ha_shutdown_policy.map(|policy| policy.to_string()));
    spec.put_full("ha", Value::Map(availability));
    let mut next = Spec::new();
    if let Some(own) = &options.next_id {
        next.put_some("lower", own.lower.map(int));
        next.put_some("upper", own.upper.map(int));
    }
    spec.put_full("next_id", Value::Map(next));
    spec.put_full("tag_style", options.tag_style.as_ref().map_or(Value::Map(Spec::new()), tag_style));
    let mut limits = Spec::new();
    if let Some(own) = &options.bandwidth_limits {
        limits.put_some("default", own.default.map(int));
        limits.put_some("clone", own.clone_.map(int));
        limits.put_some("migration", own.migration.map(int));
        limits.put_some("move", own.move_.map(int));
        limits.put_some("restore", own.restore.map(int));
    }
    spec.put_full("bandwidth_limits", Value::Map(limits));
    spec
}

/// Proxmox takes no network without a type.
fn transfer(transfer: &Transfer) -> Value {
    let mut spec = Spec::new();
    spec.put("type", transfer.kind.unwrap_or(TransferType::Secure).to_string());
    spec.put_some("network", transfer.network.as_ref().map(|network| network.value.to_string()));
    Value::Map(spec)
}

fn tag_style(style: &TagStyle) -> Value {
    let mut spec = Spec::new();
    spec.put_some("shape", style.shape.map(|shape| shape.to_string()));
    spec.put_some("ordering", style.ordering.map(|ordering| ordering.to_string()));
    spec.put_some("case_sensitive", style.case_sensitive);
    let colors: Vec<String> = style.colors.iter().map(|(tag, color)| format!("{tag}:{color}")).collect();
    spec.put_some("colors", Some(colors.join(";")).filter(|colors| !colors.is_empty()));
    Value::Map(spec)
}
