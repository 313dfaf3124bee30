//! Who owns which fields: `managedFields` after an update and after a server-side apply, with its conflicts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::failure::Failure;
use super::fields::{self, Fields};
use super::object::metadata;
use super::shape::{Items, Shape};

/// Who writes, and how.
#[derive(Debug, Clone)]
pub struct Writer<'w> {
    pub manager: &'w str,
    pub api_version: &'w str,
    pub subresource: Option<&'w str>,
    pub now: &'w str,
}

/// One entry of `managedFields`.
#[derive(Debug, Clone)]
struct Entry {
    manager: String,
    apply: bool,
    api_version: String,
    subresource: String,
    time: Value,
    fields: Fields,
}

fn read(object: &Value) -> Vec<Entry> {
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    super::object::list(object, "/metadata/managedFields")
        .iter()
        .map(|entry| Entry {
            manager: text(entry, "manager"),
            apply: entry["operation"] == "Apply",
            api_version: text(entry, "apiVersion"),
            subresource: text(entry, "subresource"),
            time: entry["time"].clone(),
            fields: fields::from_json(&entry["fieldsV1"]),
        })
        .collect()
}

fn write(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.fields.is_empty());
    entries.sort_by_key(|entry| (!entry.apply, entry.time.to_string()));
    let entries: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let mut json = json!({
                "manager": entry.manager, "operation": if entry.apply { "Apply" } else { "Update" },
                "apiVersion": entry.api_version, "time": entry.time, "fieldsType": "FieldsV1",
                "fieldsV1": fields::to_json(&entry.fields),
            });
            if !entry.subresource.is_empty() {
                json["subresource"] = json!(entry.subresource);
            }
            json
        })
        .collect();
    if entries.is_empty() {
        metadata(object).shift_remove("managedFields");
    } else {
        metadata(object).insert("managedFields".to_owned(), Value::Array(entries));
    }
}

impl Writer<'_> {
    fn is(&self, entry: &Entry, apply: bool) -> bool {
        entry.manager == self.manager
            && entry.apply == apply
            && entry.subresource == self.subresource.unwrap_or_default()
    }

    fn entry<'e>(&self, entries: &'e mut Vec<Entry>, apply: bool) -> &'e mut Entry {
        let at = entries.iter().position(|entry| self.is(entry, apply)).unwrap_or_else(|| {
            entries.push(Entry {
                manager: self.manager.to_owned(),
                apply,
                api_version: self.api_version.to_owned(),
                subresource: self.subresource.unwrap_or_default().to_owned(),
                time: json!(self.now),
                fields: Fields::new(),
            });
            entries.len() - 1
        });
        &mut entries[at]
    }
}

/// After a write that is no apply: what it changed is the writer's, what is gone is nobody's.
pub fn after_update(old: Option<&Value>, new: &mut Value, shape: Shape<'_>, writer: &Writer<'_>) {
    // The books are kept here; what a client sends about them does not count.
    let mut entries = old.map(read).unwrap_or_default();
    let now_set = fields::of(new, shape);
    let changed: Fields = now_set
        .iter()
        .filter(|path| old.is_none_or(|old| fields::at(old, shape, path) != fields::at(new, shape, path)))
        .cloned()
        .collect();
    // An item whose members changed is not the writer's because of that.
    let before = old.map(|old| fields::of(old, shape)).unwrap_or_default();
    let changed: Fields = changed
        .into_iter()
        .filter(|path| {
            !(before.contains(path)
                && now_set.range(path.clone()..).nth(1).is_some_and(|p| p.starts_with(path)))
        })
        .collect();
    for entry in &mut entries {
        let own = writer.is(entry, false);
        entry.fields.retain(|path| now_set.contains(path) && (own || !changed.contains(path)));
    }
    if !changed.is_empty() {
        let entry = writer.entry(&mut entries, false);
        entry.fields.extend(changed);
        entry.time = json!(writer.now);
        entry.api_version = writer.api_version.to_owned();
    }
    write(new, entries);
}

/// A server-side apply on what is there: the new object, or who stands in the way.
pub fn apply(
    live: Option<&Value>,
    config: &Value,
    shape: Shape<'_>,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, Failure> {
    let wanted = fields::of(config, shape);
    let mut entries = live.map(read).unwrap_or_default();
    let mut conflicts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if let Some(live) = live {
        for entry in entries.iter_mut().filter(|entry| !writer.is(entry, true)) {
            let taken: Fields = entry
                .fields
                .intersection(&wanted)
                .filter(|path| {
                    let (theirs, ours) = (fields::at(live, shape, path), fields::at(config, shape, path));
                    // What is in an item is compared on its own.
                    theirs != ours && !ours.is_some_and(|v| v.is_object() && is_item(path))
                })
                .cloned()
                .collect();
            if !force && !taken.is_empty() {
                let who = format!("{:?} using {}", entry.manager, entry.api_version);
                conflicts.entry(who).or_default().extend(taken.iter().map(|p| fields::display(p)));
            }
            entry.fields.retain(|path| !taken.contains(path));
        }
    }
    if !conflicts.is_empty() {
        return Err(conflict(&conflicts));
    }
    let mut merged = live.cloned().unwrap_or_else(|| json!({}));
    merge(&mut merged, config, shape);
    let ours = writer.entry(&mut entries, true);
    let dropped: Vec<_> = ours.fields.difference(&wanted).cloned().collect();
    let same = ours.fields == wanted;
    ours.fields = wanted;
    ours.api_version = writer.api_version.to_owned();
    if !same {
        ours.time = json!(writer.now);
    }
    for path in dropped.iter().rev() {
        let owned = entries.iter().any(|entry| entry.fields.iter().any(|other| other.starts_with(path)));
        if !owned {
            fields::remove(&mut merged, shape, path);
        }
    }
    write(&mut merged, entries);
    Ok(merged)
}

fn is_item(path: &[fields::Step]) -> bool {
    matches!(path.last(), Some(fields::Step::Item(_)))
}

fn conflict(conflicts: &BTreeMap<String, Vec<String>>) -> Failure {
    let count: usize = conflicts.values().map(Vec::len).sum();
    let mut causes = Vec::new();
    let mut texts = Vec::new();
    for (who, paths) in conflicts {
        texts.push(match paths.as_slice() {
            [one] => format!("conflict with {who}: {one}"),
            many => format!("conflicts with {who}:\n- {}", many.join("\n- ")),
        });
        causes.extend(paths.iter().map(|path| {
            json!({ "reason": "FieldManagerConflict", "message": format!("conflict with {who}"), "field": path })
        }));
    }
    let plural = if count == 1 { "" } else { "s" };
    let message = format!("Apply failed with {count} conflict{plural}: {}", texts.join("\n"));
    Failure::new(409, "Conflict", message).with_causes(causes)
}

/// Puts a configuration over an object.
fn merge(live: &mut Value, config: &Value, shape: Shape<'_>) {
    match (live, config) {
        (Value::Object(live), Value::Object(config)) if !shape.is_whole() => {
            for (name, value) in config {
                match live.get_mut(name) {
                    Some(there) => merge(there, value, shape.member(name)),
                    None => {
                        live.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(live), Value::Array(config)) if shape.items() != Items::Atomic => {
            let items = shape.items();
            for item in config {
                let step = fields::step_to(item, items);
                let same = |there: &&mut Value| step.is_some() && fields::step_to(there, items) == step;
                match live.iter_mut().find(same) {
                    Some(there) => merge(there, item, shape.item()),
                    None => live.push(item.clone()),
                }
            }
        }
        (live, config) => *live = config.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(manager: &str) -> Writer<'_> {
        Writer { manager, api_version: "v1", subresource: None, now: "2026-01-01T00:00:00Z" }
    }

    fn map(data: Value) -> Value {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data })
    }

    #[test]
    fn what_is_no_longer_applied_goes_unless_someone_else_owns_it() {
        let shape = Shape::builtin();
        let one =
            apply(None, &map(json!({ "a": "1", "b": "2", "c": "3" })), shape, &writer("one"), false).unwrap();
        let two = apply(Some(&one), &map(json!({ "b": "2" })), shape, &writer("two"), false).unwrap();
        let three = apply(Some(&two), &map(json!({ "a": "1" })), shape, &writer("one"), false).unwrap();
        assert_eq!(three["data"], json!({ "a": "1", "b": "2" }), "`b` is also theirs, `c` is gone");
        let four = apply(Some(&three), &map(json!({})), shape, &writer("two"), false).unwrap();
        assert_eq!(four["data"], json!({ "a": "1" }));
    }

    #[test]
    fn another_value_for_someone_elses_field_is_a_conflict() {
        let shape = Shape::builtin();
        let one = apply(None, &map(json!({ "a": "1" })), shape, &writer("one"), false).unwrap();
        let refused = apply(Some(&one), &map(json!({ "a": "2" })), shape, &writer("two"), false).unwrap_err();
        assert_eq!((refused.code, refused.reason), (409, "Conflict"));
        assert_eq!(refused.message, "Apply failed with 1 conflict: conflict with \"one\" using v1: .data.a");
        let forced = apply(Some(&one), &map(json!({ "a": "2" })), shape, &writer("two"), true).unwrap();
        assert_eq!(forced["data"]["a"], "2");
        assert_eq!(
            forced["metadata"]["managedFields"].as_array().unwrap().len(),
            1,
            "the other owns nothing now"
        );
    }

    #[test]
    fn an_update_takes_what_it_changes() {
        let shape = Shape::builtin();
        let one = apply(None, &map(json!({ "a": "1", "b": "1" })), shape, &writer("one"), false).unwrap();
        let mut edited = one.clone();
        edited["data"]["a"] = json!("9");
        after_update(Some(&one), &mut edited, shape, &writer("edit"));
        let refused = apply(Some(&edited), &map(json!({ "a": "1", "b": "1" })), shape, &writer("one"), false)
            .unwrap_err();
        assert!(
            refused.message.contains("\"edit\"") && refused.message.ends_with(".data.a"),
            "{}",
            refused.message
        );
    }

    #[test]
    fn items_with_keys_are_merged() {
        let shape = Shape::builtin();
        let pod = |containers: Value| json!({ "spec": { "containers": containers } });
        let one =
            apply(None, &pod(json!([{ "name": "a", "image": "x" }])), shape, &writer("one"), false).unwrap();
        let two = pod(json!([{ "name": "a", "tty": true }, { "name": "b", "image": "y" }]));
        let two = apply(Some(&one), &two, shape, &writer("two"), false).unwrap();
        assert_eq!(
            two["spec"]["containers"],
            json!([
                { "name": "a", "image": "x", "tty": true }, { "name": "b", "image": "y" },
            ])
        );
        let three =
            apply(Some(&two), &pod(json!([{ "name": "b", "image": "y" }])), shape, &writer("two"), false)
                .unwrap();
        assert_eq!(three["spec"]["containers"][0], json!({ "name": "a", "image": "x" }));
    }
}
