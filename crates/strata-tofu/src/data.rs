//! The fields of a resource as the data of a `tfvars` file. What OpenTofu's provider has no word for is reported.

mod container;
mod datacenter;
mod image;
mod vm;

pub(crate) use container::container;
pub(crate) use datacenter::{datacenter, datacenter_firewall, is_adopted};
pub(crate) use image::image;
pub(crate) use vm::vm;

use strata_resource::{FieldPath, Resource, Spec, Value};

use crate::hcl::Expr;
use crate::project::Files;

/// One object while it is written; fields that are taken are not reported.
pub(crate) struct Reading<'a> {
    spec: &'a Spec,
    taken: Vec<&'static str>,
    pub(crate) entries: Vec<(String, Expr)>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(spec: &'a Spec) -> Self {
        Self { spec, taken: Vec::new(), entries: Vec::new() }
    }

    pub(crate) fn take(&mut self, field: &'static str) -> Option<&'a Value> {
        self.taken.push(field);
        self.spec.get(field)
    }

    /// A field under the provider's name.
    pub(crate) fn put(&mut self, name: &str, field: &'static str) {
        let value = self.take(field).and_then(plain);
        self.set(name, value);
    }

    /// A text that the provider takes as a number.
    pub(crate) fn put_number(&mut self, name: &str, field: &'static str) {
        let value = self.take(field).and_then(Value::as_text).filter(|text| text.parse::<f64>().is_ok());
        self.set(name, value.map(Expr::raw));
    }

    /// Bytes that the provider takes as GiB, rounded up.
    pub(crate) fn put_gib(&mut self, name: &str, field: &'static str) {
        let value = self.take(field).and_then(Value::as_int).map(|bytes| Expr::Int(gib(bytes)));
        self.set(name, value);
    }

    pub(crate) fn set(&mut self, name: &str, value: Option<Expr>) {
        if let Some(value) = value {
            self.entries.push((name.to_owned(), value));
        }
    }

    /// The fields that nothing took.
    pub(crate) fn left(&self) -> Vec<&'a str> {
        self.spec.keys().map(String::as_str).filter(|key| !self.taken.contains(key)).collect()
    }

    /// The object, unless there is nothing in it.
    pub(crate) fn object(self) -> Option<Expr> {
        (!self.entries.is_empty()).then_some(Expr::Object(self.entries))
    }
}

/// Reports what no word of the provider says, below fields that are written as a whole.
pub(crate) fn nested_gaps(resource: &Resource, words: &[(&str, &[&str])], files: &mut Files) {
    let spec = &resource.spec;
    for (path, known) in words {
        let (field, by_slot) = path.strip_suffix(".*").map_or((*path, false), |field| (field, true));
        let Some(map) = spec.get(field).and_then(Value::as_map) else { continue };
        let parts: Vec<(Vec<&str>, &Spec)> = match by_slot {
            false => vec![(vec![field], map)],
            true => {
                let slots = map.iter().filter_map(|(slot, value)| Some((slot, value.as_map()?)));
                slots.map(|(slot, part)| (vec![field, slot.as_str()], part)).collect()
            }
        };
        for (place, part) in parts {
            for left in part.keys().filter(|key| !known.contains(&key.as_str())) {
                not_rendered(resource, &[&place[..], &[left]].concat(), files);
            }
        }
    }
}

/// Reports a field, with the reason that its kind gives. A name may have dots in it, as interfaces do.
pub(crate) fn not_rendered(resource: &Resource, keys: &[&str], files: &mut Files) {
    let rules = resource.kind().rules();
    let path = keys.iter().fold(FieldPath::root(), |path, key| path.child(key));
    // What takes any key has its reason with the keys.
    let reasons = [rules.rule(&path).no_tofu, rules.rule(&path.child("*")).no_tofu];
    let reason = reasons.into_iter().find(|reason| !reason.is_empty());
    let reason = reason.unwrap_or("the provider has no field for it");
    files.gap(resource.address.to_string(), format!("`{path}`: {reason}"));
}

/// Bytes as GiB, rounded up.
pub(crate) fn gib(bytes: i64) -> i64 {
    const GIB: i64 = 1 << 30;
    bytes / GIB + i64::from(bytes % GIB != 0)
}

/// A value that is no secret and comes from no other resource.
pub(crate) fn plain(value: &Value) -> Option<Expr> {
    match value {
        Value::Bool(value) => Some(Expr::Bool(*value)),
        Value::Int(value) => Some(Expr::Int(*value)),
        Value::Text(text) => Some(Expr::text(text)),
        Value::List(items) => Some(Expr::List(items.iter().filter_map(plain).collect())),
        Value::Map(map) => Some(Expr::Object(
            map.iter().filter_map(|(key, value)| Some((key.clone(), plain(value)?))).collect(),
        )),
        Value::Secret(_) | Value::Input { .. } | Value::Unknown => None,
    }
}

/// What people wrote and the mark, as Proxmox keeps them.
pub(crate) fn description(spec: &Spec) -> Option<Expr> {
    let text = |field: &str| spec.get(field).and_then(Value::as_text);
    match (text("notes"), text("mark")) {
        (Some(notes), Some(mark)) => Some(Expr::text(format!("{notes}\n\n{mark}"))),
        (one, other) => one.or(other).map(Expr::text),
    }
}

/// `net3` is the fourth of a list; holes are filled with `hole`.
pub(crate) fn by_slot(map: &Spec, prefix: &str, hole: &Expr, entry: impl Fn(&Spec) -> Expr) -> Vec<Expr> {
    let mut list: Vec<Expr> = Vec::new();
    let mut slots: Vec<(usize, &Spec)> = map
        .iter()
        .filter_map(|(slot, value)| Some((slot.strip_prefix(prefix)?.parse().ok()?, value.as_map()?)))
        .collect();
    slots.sort_by_key(|(index, _)| *index);
    for (index, spec) in slots.into_iter().filter(|(index, _)| *index < 256) {
        while list.len() < index {
            list.push(hole.clone());
        }
        list.push(entry(spec));
    }
    list
}

/// The firewall of a guest.
pub(crate) fn firewall(spec: &Spec) -> Option<Expr> {
    let firewall = spec.get("firewall")?.as_map()?;
    let empty = Spec::new();
    let options = firewall.get("options").and_then(Value::as_map).unwrap_or(&empty);
    let mut reading = Reading::new(options);
    reading.put("enabled", "enable");
    // Proxmox' defaults, written out: the provider has others.
    for (field, default) in
        [("dhcp", false), ("macfilter", true), ("ipfilter", false), ("ndp", true), ("radv", false)]
    {
        let value = reading.take(field).and_then(Value::as_bool).unwrap_or(default);
        reading.set(field, Some(Expr::Bool(value)));
    }
    for field in ["log_level_in", "log_level_out"] {
        reading.put(field, field);
    }
    reading.put("input_policy", "policy_in");
    reading.put("output_policy", "policy_out");
    let rules = firewall.get("rules").map(rules).unwrap_or_default();
    if !rules.is_empty() {
        reading.set("rules", Some(Expr::List(rules)));
    }
    reading.object()
}

/// Rules in order.
fn rules(rules: &Value) -> Vec<Expr> {
    let rules = rules.as_list().unwrap_or_default().iter().filter_map(Value::as_map);
    rules.filter_map(|rule| rule_data(rule).object()).collect()
}

fn rule_data(rule: &Spec) -> Reading<'_> {
    let mut reading = Reading::new(rule);
    let is_group = rule.get("type").and_then(Value::as_text) == Some("group");
    if is_group {
        reading.put("security_group", "action");
    } else {
        reading.put("type", "type");
        reading.put("action", "action");
    }
    reading.put("enabled", "enable");
    for field in ["comment", "source", "dest", "proto", "dport", "sport", "iface", "log", "macro"] {
        reading.put(field, field);
    }
    reading
}

pub(crate) fn startup(spec: &Spec) -> Option<Expr> {
    let mut reading = Reading::new(spec.get("startup")?.as_map()?);
    reading.put("order", "order");
    reading.put("up_delay", "up");
    reading.put("down_delay", "down");
    reading.object()
}
