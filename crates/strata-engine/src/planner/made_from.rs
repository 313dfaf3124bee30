//! What an object was made from: a template is recreated when its image changes, and no record names a source that the object does not
//! come from.

use strata_resource::{Address, Content, FieldChange, FieldPath, MadeFrom, Resource, Spec, Value};
use strata_state::StateResource;

use super::Planner;

/// Why an object has to be recreated although nothing of it can be seen to differ.
pub(super) struct Outdated {
    pub(super) changes: Vec<FieldChange>,
    pub(super) reason: String,
}

impl Planner<'_> {
    /// Whether what it was made from is not what the source asks for any more, and only a new object can have it.
    pub(super) fn outdated(&self, resource: &Resource, recorded: &StateResource) -> Option<Outdated> {
        let table = resource.kind().table();
        if let Some(content) = table.content {
            return other_content(content, &resource.spec, &recorded.spec);
        }
        let made_from = table.made_from?;
        let reason = made_from.follows?.to_owned();
        let changes: Vec<FieldChange> = sources(made_from, &resource.spec)
            .filter_map(|(path, wanted)| {
                let former = sources(made_from, &recorded.spec).find(|(own, _)| *own == path)?.1;
                // The same image has another name in the stack that it was moved to.
                let known = match &recorded.made_as {
                    Some(made) => made.lineage.replaced_in(former, self.request.lineage.short()),
                    None => former.to_owned(),
                };
                let same = [former, &known].iter().any(|name| file_name(name) == file_name(wanted));
                (!same).then(|| change(path, former, wanted))
            })
            .collect();
        let recast = resource.depends_on.iter().any(|to| self.recast.contains(to));
        (!changes.is_empty() || recast).then_some(Outdated { changes, reason })
    }

    /// Objects that were made from one that is replaced, and that stay as they are.
    pub(super) fn made_from_former(&self, source: &Resource, recorded: &StateResource) -> Vec<String> {
        let Some(content) = source.kind().table().content else { return Vec::new() };
        let name = |spec: &Spec| spec.get(content.name).and_then(Value::as_text).map(str::to_owned);
        let (Some(former), Some(new)) = (name(&recorded.spec), name(&source.spec)) else {
            return Vec::new();
        };
        let same_name = file_name(&former) == file_name(&new);
        if same_name && other_content(content, &source.spec, &recorded.spec).is_none() {
            return Vec::new();
        }
        let is_made = |resource: &&Resource| {
            let made_from = resource.kind().table().made_from.filter(|made_from| made_from.follows.is_none());
            made_from.is_some_and(|made_from| {
                let of_whole =
                    made_from.fields.iter().filter_map(|field| resource.spec.get(*field)?.as_text());
                sources(made_from, &resource.spec)
                    .map(|(_, from)| from)
                    .chain(of_whole)
                    .any(|from| from == new)
            }) && resource.depends_on.contains(&source.address)
                && self.request.state.resources.contains_key(&resource.address)
        };
        let stay = self.request.graph.iter().filter(is_made);
        stay.map(|resource| format!("`{}` was made from the former one and stays as it is", resource.address))
            .collect()
    }
}

/// The same name is to hold something else: only where the source chose it.
fn other_content(content: Content, wanted: &Spec, recorded: &Spec) -> Option<Outdated> {
    let text = |spec: &'_ Spec, field: &str| spec.get(field).and_then(Value::as_text).map(str::to_owned);
    if text(wanted, content.name) != text(recorded, content.name) {
        return None;
    }
    let both = |field: &&'static str| Some((*field, text(recorded, field)?, text(wanted, field)?));
    let (field, former, wanted) = content.by.iter().find_map(both)?;
    (former != wanted).then(|| Outdated {
        changes: vec![change(FieldPath::dotted(field), &former, &wanted)],
        reason: "another image takes the name of the former one".to_owned(),
    })
}

fn change(path: FieldPath, before: &str, after: &str) -> FieldChange {
    let (before, after) = (Some(Value::text(before)), Some(Value::text(after)));
    FieldChange { path, before, after, drift: false }
}

/// What the parts of an object were made from.
fn sources(made_from: MadeFrom, spec: &Spec) -> impl Iterator<Item = (FieldPath, &str)> {
    made_from.in_slots.iter().flat_map(move |(slots, field)| {
        let slots_of = spec.get(*slots).and_then(Value::as_map).into_iter().flatten();
        slots_of.filter_map(move |(slot, part)| {
            let path = FieldPath::root().child(slots).child(slot).child(field);
            Some((path, part.as_map()?.get(*field)?.as_text()?))
        })
    })
}

/// Its name says what an image is; the storage that it lies on does not.
fn file_name(volume: &str) -> &str {
    volume.rsplit('/').next().unwrap_or(volume)
}

/// What is there was made from what its record says, whatever the source says now. Without a record nobody knows.
pub(crate) fn keep_sources(address: &Address, spec: &mut Spec, recorded: Option<&Spec>) {
    let Some(made_from) = address.kind().table().made_from else { return };
    for field in made_from.fields {
        match recorded.and_then(|recorded| recorded.get(*field)) {
            Some(former) if spec.contains_key(*field) => {
                spec.insert((*field).to_owned(), former.clone());
            }
            _ => {
                spec.remove(*field);
            }
        }
    }
    for (slots, field) in made_from.in_slots {
        let Some(Value::Map(parts)) = spec.get_mut(*slots) else { continue };
        for (slot, part) in parts.iter_mut() {
            let Value::Map(part) = part else { continue };
            let former = recorded.and_then(|recorded| recorded.get(*slots)?.as_map()?.get(slot)?.as_map());
            match former.map(|former| former.get(*field)) {
                Some(Some(source)) if part.contains_key(*field) => {
                    part.insert((*field).to_owned(), source.clone());
                }
                Some(_) => {
                    part.remove(*field);
                }
                // A new part is made now.
                None if recorded.is_some() => {}
                None => {
                    part.remove(*field);
                }
            }
        }
    }
}
