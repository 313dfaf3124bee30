//! What a saved plan of OpenTofu would do, as `show -json` tells it, without the secrets in it.

mod difference;
pub(crate) mod marked;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use crate::message::asked_for;

pub(crate) use difference::masked;
pub use difference::{Difference, Side};

/// What is done to one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Create,
    Update,
    Replace,
    Delete,
    /// Taken over into the state, as it is.
    Import,
    /// Dropped from the state; the object stays.
    Forget,
    /// It has another address in the code now.
    Move,
    /// Only looked at, or left as it is.
    None,
}

impl Action {
    /// As the lines of `-json` say it.
    pub(crate) fn of_word(word: &str) -> Self {
        match word {
            "create" => Self::Create,
            "update" => Self::Update,
            "replace" => Self::Replace,
            "delete" => Self::Delete,
            "import" => Self::Import,
            "remove" | "forget" => Self::Forget,
            "move" => Self::Move,
            _ => Self::None,
        }
    }

    /// As `show -json` lists it.
    fn of_change(change: &Json) -> Self {
        let actions = &change["change"]["actions"];
        let words: Vec<&str> = actions.as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        match words.as_slice() {
            ["create"] => Self::Create,
            ["update"] => Self::Update,
            ["delete"] => Self::Delete,
            ["delete", "create"] | ["create", "delete"] => Self::Replace,
            ["forget"] => Self::Forget,
            // The former object is left to itself.
            ["forget", "create"] | ["create", "forget"] => Self::Create,
            ["no-op"] if !change["change"]["importing"].is_null() => Self::Import,
            ["no-op"] if change["previous_address"].is_string() => Self::Move,
            _ => Self::None,
        }
    }
}

/// One resource that a plan changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResourceChange {
    pub address: String,
    pub action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Difference>,
}

/// One output that becomes another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputChange {
    pub name: String,
    #[serde(flatten)]
    pub change: Difference,
}

/// Everything that a plan would do.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Changes {
    pub resources: Vec<ResourceChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputChange>,
    /// What somebody else changed since the last apply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<ResourceChange>,
    pub unchanged: usize,
    /// The outputs as they are after the apply, as far as they are known and not sensitive.
    #[serde(skip)]
    pub values: BTreeMap<String, Json>,
    /// A digest of what each change begins from and does, secrets included: never written anywhere.
    #[serde(skip)]
    basis: BTreeMap<String, [u8; 32]>,
}

impl Changes {
    /// Reads what `show -json` says. `scrub` takes from a text what else is known to be secret.
    pub fn parse(said: &[u8], scrub: &dyn Fn(&str) -> String) -> Result<Self, String> {
        let json: Json =
            asked_for(said).map_err(|error| format!("OpenTofu does not show its plan: {error}"))?;
        if !json["format_version"].as_str().is_some_and(|format| format.starts_with("1.")) {
            return Err("OpenTofu shows its plan in a format that is not known here".to_owned());
        }
        // Providers copy values to fields that they do not mark.
        let marked = marked::texts(&json);
        let scrub: &dyn Fn(&str) -> String = &|text| scrub(&marked::without(text, &marked));
        let mut found = Self::default();
        for change in json["resource_changes"].as_array().into_iter().flatten() {
            let action = Action::of_change(change);
            if action == Action::None {
                found.unchanged += usize::from(change["mode"] == "managed");
                continue;
            }
            if matches!(action, Action::Import | Action::Move) {
                found.unchanged += 1;
            }
            let address = address(change);
            found.basis.insert(address, basis(change));
            found.resources.push(resource(change, action, scrub));
        }
        for change in json["resource_drift"].as_array().into_iter().flatten() {
            let action = Action::of_change(change);
            if !matches!(action, Action::None | Action::Move) {
                found.drift.push(resource(change, action, scrub));
            }
        }
        for (name, change) in json["output_changes"].as_object().into_iter().flatten() {
            if change["actions"] != json!(["no-op"]) {
                let change = difference::whole(change, scrub);
                found.outputs.push(OutputChange { name: name.clone(), change });
            }
        }
        for (name, output) in json["planned_values"]["outputs"].as_object().into_iter().flatten() {
            if output["sensitive"].as_bool() == Some(false) && !output["value"].is_null() {
                found.values.insert(name.clone(), output["value"].clone());
            }
        }
        found.resources.sort_by(|a, b| a.address.cmp(&b.address));
        found.drift.sort_by(|a, b| a.address.cmp(&b.address));
        Ok(found)
    }

    /// Whether an apply would do anything, be it only in the state.
    pub fn any(&self) -> bool {
        !self.resources.is_empty() || !self.outputs.is_empty()
    }

    pub fn count(&self, action: Action) -> usize {
        self.resources.iter().filter(|change| change.action == action).count()
    }

    /// What is not as it was when this plan was made, if `now` is the plan of the same source.
    pub fn moved(&self, now: &Self) -> Vec<String> {
        let mut moved = Vec::new();
        for (address, basis) in &self.basis {
            match now.basis.get(address) {
                None => moved.push(format!("`{address}` would not be changed any more")),
                Some(other) if other != basis => moved.push(format!("`{address}` was changed")),
                Some(_) => {}
            }
        }
        let new = now.basis.keys().filter(|address| !self.basis.contains_key(*address));
        moved.extend(new.map(|address| format!("`{address}` would be changed too")));
        moved
    }
}

/// A former object of a replacement has the address of its successor, and a key.
fn address(change: &Json) -> String {
    let address = change["address"].as_str().unwrap_or_default();
    match change["deposed"].as_str() {
        Some(key) => format!("{address} (former {key})"),
        None => address.to_owned(),
    }
}

/// What it begins from and what is done. What comes out may have the time in it.
fn basis(change: &Json) -> [u8; 32] {
    let said = &change["change"];
    let parts = json!([said["actions"], said["before"], said["replace_paths"], said["importing"]]);
    Sha256::digest(parts.to_string().as_bytes()).into()
}

fn resource(change: &Json, action: Action, scrub: &dyn Fn(&str) -> String) -> ResourceChange {
    let said = &change["change"];
    let moved = change["previous_address"].as_str();
    let reason = match change["action_reason"].as_str() {
        Some(reason) => Some(explained(reason)),
        None => moved.map(|from| format!("it was `{from}`")),
    };
    let changes = match action {
        Action::Create => difference::of_new(said, scrub),
        Action::Update | Action::Replace | Action::Import => difference::between(said, scrub),
        Action::Delete | Action::Forget | Action::Move | Action::None => Vec::new(),
    };
    ResourceChange { address: address(change), action, reason, changes }
}

fn explained(reason: &str) -> String {
    match reason {
        "replace_because_cannot_update" => "the provider cannot change it in place",
        "replace_because_tainted" => "it is tainted: an earlier apply did not finish it",
        "replace_by_request" => "as asked for",
        "replace_by_triggers" => "something that it watches changes",
        "delete_because_no_resource_config" => "it is not in the code any more",
        "delete_because_no_module" => "its module is not in the code any more",
        "delete_because_count_index" => "its number is beyond `count`",
        "delete_because_each_key" => "its key is not in `for_each` any more",
        "delete_because_wrong_repetition" => "`count` or `for_each` came or went",
        "delete_because_no_move_target" => "the code has nothing at the address that it was moved to",
        other => return other.replace('_', " "),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As OpenTofu 1.12.6 shows a plan: one change, one replacement, one new, one gone, one left.
    const SHOWN: &str = include_str!("changes/shown.json");

    fn parse(text: &str) -> Changes {
        Changes::parse(text.as_bytes(), &|text| text.replace("MARKER-known", "<secret>")).unwrap()
    }

    #[test]
    fn a_plan_is_read() {
        let found = parse(SHOWN);
        let rows: Vec<(&str, Action)> =
            found.resources.iter().map(|change| (change.address.as_str(), change.action)).collect();
        assert_eq!(
            rows,
            [
                ("terraform_data.changed", Action::Update),
                ("terraform_data.gone", Action::Delete),
                ("terraform_data.new", Action::Create),
                ("terraform_data.replaced[0]", Action::Replace),
            ]
        );
        assert_eq!(found.unchanged, 1);
        assert_eq!(found.resources[1].reason.as_deref(), Some("it is not in the code any more"));
        assert!(found.any() && found.count(Action::Replace) == 1);
        let outputs: Vec<&str> = found.outputs.iter().map(|output| output.name.as_str()).collect();
        assert_eq!(outputs, ["size", "token"]);
    }

    #[test]
    fn no_secret_is_told() {
        assert!(SHOWN.contains("MARKER-marked") && SHOWN.contains("MARKER-known"), "the test shows nothing");
        let told = serde_json::to_string(&parse(SHOWN)).unwrap();
        assert!(!told.contains("MARKER"), "{told}");
        let told = format!("{:?}", parse(SHOWN));
        assert!(!told.contains("MARKER"), "{told}");
    }

    #[test]
    fn outputs_are_known_as_far_as_they_may_be() {
        let shown = r#"{"format_version": "1.2", "planned_values": {"outputs": {
            "size": {"sensitive": false, "type": "number", "value": 1}, "later": {"sensitive": false},
            "token": {"sensitive": true, "type": "string", "value": "MARKER"}}}}"#;
        let values = parse(shown).values;
        assert_eq!(values, BTreeMap::from([("size".to_owned(), json!(1))]));
    }

    #[test]
    fn what_moved_is_named() {
        let then = parse(SHOWN);
        assert!(then.moved(&parse(SHOWN)).is_empty());
        let mut json: Json = serde_json::from_str(SHOWN).unwrap();
        let changes = json["resource_changes"].as_array_mut().unwrap();
        let at = |changes: &[Json], address: &str| {
            changes.iter().position(|one| one["address"] == address).unwrap()
        };
        let place = at(changes, "terraform_data.changed");
        changes[place]["change"]["before"]["input"]["size"] = json!(7);
        let place = at(changes, "terraform_data.gone");
        changes[place]["address"] = json!("terraform_data.other");
        assert_eq!(
            then.moved(&parse(&json.to_string())),
            [
                "`terraform_data.changed` was changed",
                "`terraform_data.gone` would not be changed any more",
                "`terraform_data.other` would be changed too"
            ]
        );
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Changes::parse(b"", &str::to_owned).is_err());
        assert!(Changes::parse(b"{}", &str::to_owned).is_err());
        assert!(Changes::parse(br#"{"format_version": "2.0"}"#, &str::to_owned).is_err());
        let odd = br#"{"format_version": "1.2", "resource_changes": [1, {"change": 3}], "output_changes": {"a": 1}}"#;
        assert!(Changes::parse(odd, &str::to_owned).is_ok());
    }
}
