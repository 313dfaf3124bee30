//! What an object was made from: a template is recreated when its image changes, and no record names a source that the object does not
//! come from.

use strata_resource::{Address, FieldChange, FieldPath, Kind, Resource, Spec, Value};
use strata_state::StateResource;

use super::Planner;

/// Fields of a guest that say what it was made from.
const SOURCES: [&str; 2] = ["clone", "image"];

/// Why an object has to be recreated although nothing of it can be seen to differ.
pub(super) struct Outdated {
    pub(super) changes: Vec<FieldChange>,
    pub(super) reason: String,
}

impl Planner<'_> {
    /// Whether what it was made from is not what the source asks for any more, and only a new object can have it.
    pub(super) fn outdated(&self, resource: &Resource, recorded: &StateResource) -> Option<Outdated> {
        match resource.kind() {
            Kind::Image => other_content(&resource.spec, &recorded.spec),
            Kind::Template => {
                let changes: Vec<FieldChange> = imports(&resource.spec)
                    .filter_map(|(slot, wanted)| {
                        let former = imports(&recorded.spec).find(|(own, _)| *own == slot)?.1;
                        (file_name(former) != file_name(wanted))
                            .then(|| change(&format!("disks.{slot}.import"), former, wanted))
                    })
                    .collect();
                let reason = "its image changed: a template is what it was made from";
                let recast = resource.depends_on.iter().any(|to| self.recast.contains(to));
                (!changes.is_empty() || recast).then(|| Outdated { changes, reason: reason.to_owned() })
            }
            _ => None,
        }
    }

    /// Guests that were made from an image that is replaced: they stay as they are.
    pub(super) fn made_from_former(&self, image: &Resource, recorded: &StateResource) -> Vec<String> {
        let volume = |spec: &Spec| spec.get("volume").and_then(Value::as_text).map(str::to_owned);
        let (Some(former), Some(new)) = (volume(&recorded.spec), volume(&image.spec)) else {
            return Vec::new();
        };
        if file_name(&former) == file_name(&new) && other_content(&image.spec, &recorded.spec).is_none() {
            return Vec::new();
        }
        let is_made = |resource: &&Resource| {
            matches!(resource.kind(), Kind::Vm | Kind::Container)
                && resource.depends_on.contains(&image.address)
                && self.request.state.resources.contains_key(&resource.address)
                && (imports(&resource.spec).any(|(_, from)| from == new)
                    || resource.spec.get("image").and_then(Value::as_text) == Some(new.as_str()))
        };
        let stay = self.request.graph.iter().filter(is_made);
        stay.map(|resource| format!("`{}` was made from the former one and stays as it is", resource.address))
            .collect()
    }
}

/// The same volume is to hold something else: only where the source chose its name. The checksum decides; without two of them, the URL.
fn other_content(wanted: &Spec, recorded: &Spec) -> Option<Outdated> {
    let text = |spec: &'_ Spec, field: &str| spec.get(field).and_then(Value::as_text).map(str::to_owned);
    if text(wanted, "volume") != text(recorded, "volume") {
        return None;
    }
    let (checksum, url) = (
        (text(wanted, "checksum"), text(recorded, "checksum")),
        (text(wanted, "url"), text(recorded, "url")),
    );
    let differs = |field: &str, (wanted, former): (Option<String>, Option<String>)| {
        let (wanted, former) = (wanted?, former?);
        (wanted != former).then(|| Outdated {
            changes: vec![change(field, &former, &wanted)],
            reason: "another image takes the name of the former one".to_owned(),
        })
    };
    match checksum {
        (Some(_), Some(_)) => differs("checksum", checksum),
        _ => differs("url", url),
    }
}

fn change(field: &str, before: &str, after: &str) -> FieldChange {
    let (before, after) = (Some(Value::text(before)), Some(Value::text(after)));
    FieldChange { path: FieldPath::dotted(field), before, after, drift: false }
}

fn imports(spec: &Spec) -> impl Iterator<Item = (&str, &str)> {
    let disks = spec.get("disks").and_then(Value::as_map).into_iter().flatten();
    disks.filter_map(|(slot, disk)| Some((slot.as_str(), disk.as_map()?.get("import")?.as_text()?)))
}

/// Its name says what an image is; the storage that it lies on does not.
fn file_name(volume: &str) -> &str {
    volume.rsplit('/').next().unwrap_or(volume)
}

/// A guest that is there was made from what its record says, whatever the source says now. Without a record nobody knows.
pub(crate) fn keep_sources(address: &Address, spec: &mut Spec, recorded: Option<&Spec>) {
    if !address.kind().is_guest() {
        return;
    }
    for field in SOURCES {
        match recorded.and_then(|recorded| recorded.get(field)) {
            Some(former) if spec.contains_key(field) => {
                spec.insert(field.to_owned(), former.clone());
            }
            _ => {
                spec.remove(field);
            }
        }
    }
    let Some(Value::Map(disks)) = spec.get_mut("disks") else { return };
    for (slot, disk) in disks.iter_mut() {
        let Value::Map(disk) = disk else { continue };
        let former = recorded.and_then(|recorded| recorded.get("disks")?.as_map()?.get(slot)?.as_map());
        match former.map(|former| former.get("import")) {
            Some(Some(import)) if disk.contains_key("import") => {
                disk.insert("import".to_owned(), import.clone());
            }
            Some(_) => {
                disk.remove("import");
            }
            // A new disk is made now.
            None if recorded.is_some() => {}
            None => {
                disk.remove("import");
            }
        }
    }
}
