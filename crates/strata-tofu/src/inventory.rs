//! What OpenTofu's state has, as `show -json` tells it, without the secrets in it.

use serde::Serialize;
use serde_json::Value as Json;

use crate::changes::{marked, masked};
use crate::message::asked_for;

/// One resource that OpenTofu made or took over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Held {
    pub address: String,
    /// `aws_instance`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the provider knows it by, where that is no secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// An apply did not finish it: the next one makes it again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
    pub values: Json,
}

/// Reads what `show -json` says of a state. `scrub` takes from a text what else is known to be secret.
pub fn held(said: &[u8], scrub: &dyn Fn(&str) -> String) -> Result<Vec<Held>, String> {
    let json: Json = asked_for(said).map_err(|error| format!("OpenTofu does not show its state: {error}"))?;
    if !json["format_version"].as_str().is_some_and(|format| format.starts_with("1.")) {
        return Err("OpenTofu shows its state in a format that is not known here".to_owned());
    }
    let mut resources = Vec::new();
    below(&json["values"]["root_module"], &mut resources);
    // Providers copy values to fields that they do not mark.
    let marked = marked::of_state(&json["values"], &resources);
    let scrub: &dyn Fn(&str) -> String = &|text| scrub(&marked::without(text, &marked));
    let mut found: Vec<Held> = resources.into_iter().map(|resource| of(resource, scrub)).collect();
    found.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(found)
}

/// The resources of a module and of those within it; what is only looked at is none.
fn below<'j>(module: &'j Json, found: &mut Vec<&'j Json>) {
    let own = module["resources"].as_array().into_iter().flatten();
    found.extend(own.filter(|resource| resource["mode"] == "managed"));
    module["child_modules"].as_array().into_iter().flatten().for_each(|inner| below(inner, found));
}

fn of(resource: &Json, scrub: &dyn Fn(&str) -> String) -> Held {
    let text = |name: &str| resource[name].as_str().unwrap_or_default();
    let address = match resource["deposed_key"].as_str() {
        Some(key) => format!("{} (former {key})", text("address")),
        None => text("address").to_owned(),
    };
    let values = masked(&resource["values"], &resource["sensitive_values"], &Json::Null, scrub);
    let is_open = resource["sensitive_values"]["id"].as_bool() != Some(true);
    let id = values["id"].as_str().filter(|_| is_open).map(str::to_owned);
    Held {
        address: scrub(&address),
        kind: text("type").to_owned(),
        id,
        tainted: resource["tainted"].as_bool() == Some(true),
        values,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As OpenTofu 1.12.6 shows a state: a module, a former object, a data source, and a secret that a provider copied.
    const SHOWN: &str = r#"{"format_version": "1.0", "values": {
        "outputs": {"hidden": {"sensitive": true, "value": "MARKER-output"}},
        "root_module": {
            "resources": [
                {"address": "terraform_data.b", "mode": "managed", "type": "terraform_data", "tainted": true,
                 "values": {"id": "1", "input": {"token": "MARKER-marked", "note": "as MARKER-output"}, "output": {"token": "MARKER-marked"}},
                 "sensitive_values": {"input": {"token": true}, "output": {}}},
                {"address": "terraform_data.b", "deposed_key": "0a", "mode": "managed", "type": "terraform_data",
                 "values": {"id": "MARKER-id", "input": "MARKER-known"}, "sensitive_values": {"id": true}},
                {"address": "data.http.x", "mode": "data", "type": "http", "values": {}}
            ],
            "child_modules": [{"address": "module.m", "resources": [
                {"address": "module.m.terraform_data.a[\"x/y\"]", "mode": "managed", "type": "terraform_data", "values": {"id": "2"}}
            ]}]
        }}}"#;

    #[test]
    fn everything_that_it_made_is_found_and_no_secret_is_told() {
        let found = held(SHOWN.as_bytes(), &|text| text.replace("MARKER-known", "<secret>")).unwrap();
        let rows: Vec<(&str, Option<&str>, bool)> =
            found.iter().map(|one| (one.address.as_str(), one.id.as_deref(), one.tainted)).collect();
        assert_eq!(
            rows,
            [
                ("module.m.terraform_data.a[\"x/y\"]", Some("2"), false),
                ("terraform_data.b", Some("1"), true),
                ("terraform_data.b (former 0a)", None, false),
            ]
        );
        let told = serde_json::to_string(&found).unwrap();
        assert!(!told.contains("MARKER"), "{told}");
        assert!(told.contains("(sensitive)"), "{told}");
    }

    #[test]
    fn what_is_not_a_state_is_refused() {
        let nothing = held(br#"{"format_version":"1.0"}"#, &str::to_owned).unwrap();
        assert!(nothing.is_empty());
        for text in ["", "{}", "[]", r#"{"format_version": "2.0"}"#] {
            assert!(held(text.as_bytes(), &str::to_owned).is_err(), "{text}");
        }
        // A warning of OpenTofu comes before what it was asked for.
        let warned = b"\nWarning: a {file} is missing\n\n{\"format_version\":\"1.0\"}\n";
        assert_eq!(held(warned, &str::to_owned), Ok(Vec::new()));
    }
}
