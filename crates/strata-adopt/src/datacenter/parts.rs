//! What a datacenter has about guests: high availability and replication stand in the entries of the guests, rules beside them.

use serde_json::{Map, Value as Json};
use strata_resource::{KindTable, Spec, Value};
use strata_source::machine::guest::Replication;
use strata_source::stack::HaRule;
use strata_yaml::edit::{self, EditError, Step};

use super::{Place, WrittenObject, identity, said, section};

/// The VMIDs of the guests that an object is about; none of what is about no guest.
pub fn guests_of(table: &KindTable, spec: &Spec) -> Vec<u32> {
    let number = |text: &str| text.rsplit(':').next()?.split('-').next()?.parse().ok();
    match section(table.kind()).map(|section| (section.place)(spec)) {
        Some(Place::OfGuest(_) | Place::ListedOfGuest(_)) => {
            number(&identity(table, spec)).into_iter().collect()
        }
        _ => {
            let members = spec.get(MEMBERS).and_then(Value::as_list).unwrap_or_default();
            members.iter().filter_map(|member| number(member.as_text()?)).collect()
        }
    }
}

/// Whether an object stands in the entry of a guest.
pub fn is_of_guest(table: &KindTable) -> bool {
    let place = section(table.kind()).map(|section| (section.place)(&Spec::new()));
    matches!(place, Some(Place::OfGuest(_) | Place::ListedOfGuest(_)))
}

/// The text of a file with an object in it, and the way to the object; `entry` leads to the guest that it is a part of.
pub fn put_part(
    text: &str,
    entry: &[Step],
    object: &WrittenObject,
) -> Result<(String, Vec<Step>), EditError> {
    let within = |key: &str| [entry, &[Step::from(key)]].concat();
    match object.place {
        Place::OfGuest(key) => {
            let one = Map::from_iter([(key.name().to_owned(), object.yaml.clone())]);
            Ok((edit::insert_all(text, entry, &one)?, within(key.name())))
        }
        Place::ListedOfGuest(key) => {
            let path = within(key.name());
            let there = edit::value_of(text)?;
            let pointer: String = path.iter().map(|step| format!("/{}", escaped(step))).collect();
            let mut items = there.pointer(&pointer).and_then(Json::as_array).cloned().unwrap_or_default();
            let mut item = object.yaml.clone();
            let number = Replication::job.name();
            if let Json::Object(own) = &mut item
                && own.get(number).and_then(Json::as_u64) == u64::try_from(items.len()).ok()
            {
                own.shift_remove(number);
            }
            items.push(item);
            let place = [&path[..], &[Step::Index(items.len() - 1)]].concat();
            Ok((edit::set(text, &path, &Json::Array(items))?, place))
        }
        _ => {
            let (text, mut paths) = super::put_objects(text, std::slice::from_ref(object))?;
            Ok((text, paths.pop().unwrap_or_default()))
        }
    }
}

fn escaped(step: &Step) -> String {
    match step {
        Step::Key(key) => key.replace('~', "~0").replace('/', "~1"),
        Step::Index(index) => index.to_string(),
    }
}

/// The field of a rule that has its guests.
const MEMBERS: &str = "members";

/// `vm:120` is called `vm-120`.
pub(super) fn service(table: &KindTable, spec: &Spec) -> String {
    identity(table, spec).replace(':', "-")
}

/// Its number is the end of its id; `local` is the only type.
pub(super) fn replication(table: &KindTable, spec: &Spec) -> Spec {
    let mut shaped = said(table, spec);
    shaped.retain(|field, value| field != "type" || value.as_text() != Some("local"));
    let id = identity(table, spec);
    let number = id.rsplit('-').next().and_then(|number| number.parse().ok());
    shaped.extend(number.map(|number| (Replication::job.name().to_owned(), Value::Int(number))));
    shaped
}

/// Its type follows from what it says; its guests are written by whoever knows what they are called.
pub(super) fn rule(table: &KindTable, spec: &Spec) -> Spec {
    let mut shaped = said(table, spec);
    shaped.remove("type");
    if shaped.contains_key(HaRule::guests.name()) {
        shaped.remove(MEMBERS);
    }
    shaped
}
