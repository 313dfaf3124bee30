//! What VMs and containers have in common.

use std::net::IpAddr;

use strata_diagnostics::{Diagnostic, nearest};
use strata_resource::{Address, FieldPath, IgnoredField, Kind, RestartPolicy, Spec, Value};
use strata_source::machine::guest::{Guest, IgnoredChanges, OnChange, SnapshotBefore, Startup, Timeouts};
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

fn snapshot_before(before: &SnapshotBefore) -> Value {
    let mut spec = Spec::new();
    let mut changes: Vec<&str> = before.changes.iter().map(|change| change.as_str()).collect();
    changes.sort_unstable();
    changes.dedup();
    spec.put("changes", list(changes));
    spec.put("keep", int(before.keep.unwrap_or(3)));
    spec.put_some("storage", before.storage.as_ref().map(|storage| storage.value.clone()));
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

/// What says who the equals of a guest are.
pub(crate) struct Equals<'e> {
    pub(crate) address: &'e Address,
    /// The key of its entry.
    pub(crate) key: &'e strata_yaml::Spanned<String>,
    pub(crate) counted: bool,
    /// Its own entry of an `each`.
    pub(crate) each: Option<&'e str>,
    pub(crate) pool: Option<&'e str>,
    pub(crate) fixed: Option<IpAddr>,
}

/// Those that a guest must not be down with are those that it is kept apart from.
pub(crate) fn group(spec: &Spec) -> Option<String> {
    spec.get("rollout").and_then(|rollout| rollout.as_map()?.get("group")?.as_text()).map(str::to_owned)
}

fn tcp(place: String) -> Spec {
    let mut check = Spec::new();
    check.put("tcp", place);
    check
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
        spec.put_some("backup", guest.backup.as_ref().map(|backup| backup.job.value.clone()));
        spec.put_some("snapshot_before", guest.snapshot_before.as_ref().map(snapshot_before));
        spec
    }

    /// The guests that one must not be down with, and its check. Those of a `count` or an `each` have it without a word.
    pub(crate) fn rollout(&mut self, guest: &Guest, equals: Equals<'_>) -> Option<Value> {
        let Equals { address, key, counted, each, pool, fixed } = equals;
        let written = guest.rollout.as_ref();
        let of_each = each.and_then(|entry| key.strip_suffix(entry)?.strip_suffix('-'));
        let group = match (of_each, pool) {
            (Some(group), _) => format!("{}/{group}", address.kind()),
            (None, _) if counted => format!("{}/{key}", address.kind()),
            (None, Some(pool)) if written.is_some() => format!("pool/{pool}"),
            _ if written.is_some() => format!("{}/{key}", address.kind()),
            _ => return None,
        };
        let mut spec = Spec::new();
        spec.put("group", group);
        spec.put("max", int(written.and_then(|rollout| rollout.max_unavailable).unwrap_or(1)));
        let check = written.and_then(|rollout| rollout.check.as_ref());
        let port = check.and_then(|check| check.tcp);
        match (port, fixed) {
            (Some(port), Some(IpAddr::V6(address))) => spec.put("check", tcp(format!("[{address}]:{port}"))),
            (Some(port), Some(address)) => spec.put("check", tcp(format!("{address}:{port}"))),
            (Some(_), None) => {
                let message = format!("`{key}` has no written address that port could be asked at");
                self.refuse("no-address", message, key.span);
                if let Some(last) = self.found.pop() {
                    self.found.push(last.hint("give it an `ip`, or ask its agent: `check: {agent: true}`"));
                }
            }
            (None, _) if check.is_some_and(|check| check.agent == Some(true)) => {
                let mut agent = Spec::new();
                agent.put("agent", true);
                spec.put("check", agent);
            }
            (None, _) => {}
        }
        Some(Value::Map(spec))
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
