//! What VMs and containers have in common.

use strata_diagnostics::{Diagnostic, nearest};
use strata_resource::{Address, FieldPath, IgnoredField, Kind, RestartPolicy, Spec, Value};
use strata_source::machine::guest::{Guest, IgnoredChanges, OnChange, Startup, Timeouts};
use strata_yaml::{Map, Raw};

use crate::fields::{Fields, int, list};
use crate::firewall;
use crate::site::Draft;

/// Lower case, sorted, each once: as Proxmox keeps them.
pub(crate) fn tags(tags: &[String]) -> Value {
    let mut tags: Vec<String> = tags.iter().map(|tag| tag.to_ascii_lowercase()).collect();
    tags.sort();
    tags.dedup();
    list(tags)
}

pub(crate) fn policy(on_change: Option<OnChange>) -> RestartPolicy {
    match on_change {
        None | Some(OnChange::Reboot) => RestartPolicy::Reboot,
        Some(OnChange::Ignore) => RestartPolicy::Ignore,
        Some(OnChange::Recreate) => RestartPolicy::Recreate,
    }
}

pub(crate) fn startup(startup: &Startup) -> Value {
    let mut spec = Spec::new();
    spec.put_some("order", startup.order.map(int));
    spec.put_some("up", startup.up_delay.map(|delay| int(delay.0)));
    spec.put_some("down", startup.down_delay.map(|delay| int(delay.0)));
    Value::Map(spec)
}

pub(crate) fn timeouts(timeouts: &Timeouts) -> Value {
    let mut spec = Spec::new();
    spec.put_some("create", timeouts.create.map(|time| int(time.0)));
    spec.put_some("clone", timeouts.clone_.map(|time| int(time.0)));
    spec.put_some("start", timeouts.start.map(|time| int(time.0)));
    spec.put_some("shutdown", timeouts.shutdown.map(|time| int(time.0)));
    spec.put_some("migrate", timeouts.migrate.map(|time| int(time.0)));
    spec.put_some("delete", timeouts.delete.map(|time| int(time.0)));
    Value::Map(spec)
}

pub(crate) fn raw<'a>(options: impl Iterator<Item = (&'a str, &'a Raw)>) -> Value {
    Value::Map(options.map(|(key, value)| (key.to_owned(), Value::Text(value.to_wire()))).collect())
}

/// Properties of a slot that Strata has no field for.
pub(crate) fn put_raw(spec: &mut Spec, options: &Map<Raw>) {
    for (key, value) in options.iter() {
        spec.put(key, value.to_wire());
    }
}

impl Draft<'_> {
    /// The fields that are left to others once a guest is made.
    pub(crate) fn ignored(&mut self, kind: Kind, guest: &Guest) -> Vec<IgnoredField> {
        let table = kind.table();
        let mut ignored = Vec::new();
        for IgnoredChanges { field, reason, .. } in &guest.ignore_changes {
            let path = FieldPath::dotted(field);
            let first = path.first().unwrap_or_default();
            let problem = if table.identity.contains(&first) || table.mark_field() == Some(first) {
                let message = format!("`{field}` cannot be left to others: the guest is known by it");
                Some(Diagnostic::error("ignored-identity", message).at(field.span))
            } else if table.has_field(&path) {
                None
            } else {
                let known = table.fields_like(&path);
                let meant = nearest(field, known.iter().map(String::as_str));
                let hint = match meant {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => {
                        "fields are called as plans show them: `cpu.cores`, `disks.scsi0.size`".to_owned()
                    }
                };
                let message = format!("a {kind} has no field `{field}`");
                Some(Diagnostic::error("unknown-field", message).at(field.span).hint(hint))
            };
            match problem {
                Some(problem) => self.found.push(problem),
                None => ignored.push(IgnoredField { path, reason: reason.clone() }),
            }
        }
        ignored
    }

    /// Identity, mark, and all that does not differ between VMs and containers.
    pub(crate) fn guest(&self, address: &Address, vm_id: u32, node: &str, name: &str, guest: &Guest) -> Spec {
        let mut spec = Spec::new();
        spec.put("vmid", int(vm_id));
        spec.put("node", node);
        spec.put("name", name);
        spec.put("mark", self.mark(address, vm_id));
        spec.put_some("notes", guest.notes.as_ref().map(|notes| notes.trim_end().to_owned()));
        spec.put_full("tags", tags(&guest.tags));
        spec.put_some("onboot", guest.onboot);
        spec.put_some("protection", guest.protection);
        spec.put_some("startup", guest.startup.as_ref().map(startup));
        spec.put_some("firewall", guest.firewall.as_ref().map(firewall::spec));
        spec.put_full("options", raw(guest.raw_options().map(|(key, value)| (key.as_str(), value))));
        spec.put("power", if guest.started { "running" } else { "stopped" });
        spec.put_some("timeouts", guest.timeouts.as_ref().map(timeouts));
        spec
    }

    /// The node of a guest, which the guest or its stack must name.
    pub(crate) fn node<'n>(
        &mut self,
        node: Option<&'n strata_yaml::Spanned<String>>,
        what: &strata_yaml::Spanned<String>,
    ) -> Option<&'n str> {
        if node.is_none() {
            self.refuse("no-node", format!("`{what}` has no Proxmox node"), what.span);
            if let Some(last) = self.found.pop() {
                self.found.push(last.hint("set `node` here, or `proxmox: {node: …}` for the whole stack"));
            }
        }
        node.map(|node| node.value.as_str())
    }
}
