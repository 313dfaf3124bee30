//! The state of OpenTofu or Terraform: what was built, under which address. It holds secrets: nothing here can be printed whole.

use serde_json::{Map, Value as Json};

/// The format that every version since Terraform 0.12 writes.
const VERSION: u64 = 4;

/// A state, as far as Strata reads it.
pub struct TofuState {
    pub resources: Vec<TofuResource>,
    /// Objects that are no longer what their address means, and others that cannot be used; by address, with the reason.
    pub unusable: Vec<(String, &'static str)>,
}

/// One instance of a resource or of a data source.
pub struct TofuResource {
    /// `module.node["cp-1"].proxmox_virtual_environment_vm.this`.
    pub address: String,
    /// `proxmox_virtual_environment_vm`.
    pub kind: String,
    /// The name in its block.
    pub label: String,
    /// It is only read, not managed.
    pub is_data: bool,
    /// The module it is in, with the keys of its instances; empty at the top.
    pub module: String,
    /// The key of `for_each` or `count`.
    pub key: Option<String>,
    attributes: Map<String, Json>,
}

/// Why a file cannot be read as a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TofuStateError {
    #[error("it is empty")]
    Empty,
    #[error("it ends in the middle: it is no whole state")]
    Truncated,
    #[error("it is no JSON at line {0}")]
    NotJson(usize),
    #[error("it is JSON, but no state of OpenTofu or Terraform")]
    NotState,
    #[error("it is encrypted by OpenTofu")]
    Encrypted,
    #[error("its format is version {0}, and only 4 can be read")]
    Version(u64),
}

impl TofuStateError {
    /// What helps.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Encrypted => {
                "`tofu state pull | strata import --state -` decrypts it on the way, with the keys that tofu has"
            }
            Self::Version(version) if *version < VERSION => {
                "`terraform init` and `terraform apply -refresh-only` of version 0.13 or newer write the current format"
            }
            Self::Version(_) => "a newer Strata may know it",
            _ => "`tofu state pull > terraform.tfstate` writes a whole one, from any backend",
        }
    }
}

impl TofuState {
    pub fn parse(text: &str) -> Result<Self, TofuStateError> {
        if text.trim().is_empty() {
            return Err(TofuStateError::Empty);
        }
        let root: Json = serde_json::from_str(text).map_err(|error| match error.is_eof() {
            true => TofuStateError::Truncated,
            false => TofuStateError::NotJson(error.line()),
        })?;
        if root.get("encrypted_data").is_some() {
            return Err(TofuStateError::Encrypted);
        }
        let Some(version) = root.get("version").and_then(Json::as_u64) else {
            return Err(TofuStateError::NotState);
        };
        if version != VERSION {
            // Plans and other files have versions too.
            let is_state = root.get("serial").is_some() || root.get("modules").is_some();
            return Err(if is_state { TofuStateError::Version(version) } else { TofuStateError::NotState });
        }
        let Some(written) = root.get("resources").and_then(Json::as_array) else {
            return Err(TofuStateError::NotState);
        };
        let mut state = Self { resources: Vec::new(), unusable: Vec::new() };
        for resource in written {
            state.read(resource);
        }
        Ok(state)
    }

    fn read(&mut self, resource: &Json) {
        let text = |key: &str| resource.get(key).and_then(Json::as_str).unwrap_or_default();
        let (kind, name, module) = (text("type"), text("name"), text("module"));
        let is_data = text("mode") == "data";
        for instance in resource.get("instances").and_then(Json::as_array).into_iter().flatten() {
            let key = instance.get("index_key").and_then(key_of);
            let address = address(module, is_data, kind, name, key.as_ref());
            if instance.get("deposed").is_some_and(|deposed| !deposed.is_null()) {
                self.unusable.push((address, "it is a former object that OpenTofu was about to delete"));
                continue;
            }
            let Some(attributes) = instance.get("attributes").and_then(Json::as_object) else {
                self.unusable.push((address, "the state has no attributes of it"));
                continue;
            };
            if instance.get("status").and_then(Json::as_str) == Some("tainted") {
                self.unusable.push((address.clone(), "it is tainted: OpenTofu would recreate it"));
            }
            self.resources.push(TofuResource {
                address,
                kind: kind.to_owned(),
                label: name.to_owned(),
                is_data,
                module: module.to_owned(),
                key: key.map(|key| key.0),
                attributes: attributes.clone(),
            });
        }
    }
}

/// The key as text, and as it is written in an address.
fn key_of(key: &Json) -> Option<(String, String)> {
    match key {
        Json::String(text) => Some((text.clone(), key.to_string())),
        Json::Number(number) => Some((number.to_string(), number.to_string())),
        _ => None,
    }
}

fn address(module: &str, is_data: bool, kind: &str, name: &str, key: Option<&(String, String)>) -> String {
    let mut address = String::new();
    if !module.is_empty() {
        address.push_str(module);
        address.push('.');
    }
    if is_data {
        address.push_str("data.");
    }
    address.push_str(&format!("{kind}.{name}"));
    if let Some((_, key)) = key {
        address.push_str(&format!("[{key}]"));
    }
    address
}

impl TofuResource {
    /// All that the provider says of it, as JSON.
    /// The attributes as text, for a reader that wants places in it.
    pub fn json(&self) -> String {
        Json::Object(self.attributes.clone()).to_string()
    }

    pub fn attributes(&self) -> Attributes<'_> {
        Attributes(&self.attributes)
    }
}

/// The attributes of a resource or of a block. What is empty counts as absent, as the providers mean it.
#[derive(Clone, Copy)]
pub struct Attributes<'a>(&'a Map<String, Json>);

impl<'a> Attributes<'a> {
    /// As it is written.
    pub fn raw(self, key: &str) -> Option<&'a Json> {
        self.0.get(key)
    }

    pub fn text(self, key: &str) -> Option<&'a str> {
        self.0.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    pub fn int(self, key: &str) -> Option<i64> {
        let value = self.0.get(key)?;
        // Some ids are texts.
        value
            .as_i64()
            .or_else(|| value.as_f64().map(|number| number as i64))
            .or_else(|| value.as_str()?.parse().ok())
    }

    /// A number that means nothing if it is not positive.
    pub fn positive(self, key: &str) -> Option<i64> {
        self.int(key).filter(|number| *number > 0)
    }

    pub fn number(self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64().filter(|number| *number > 0.0)
    }

    pub fn flag(self, key: &str) -> Option<bool> {
        self.0.get(key)?.as_bool()
    }

    pub fn texts(self, key: &str) -> Vec<&'a str> {
        let list = self.0.get(key).and_then(Json::as_array);
        list.into_iter().flatten().filter_map(Json::as_str).filter(|text| !text.is_empty()).collect()
    }

    /// The blocks of a kind: a list of them, one object, or objects by key.
    pub fn blocks(self, key: &str) -> Vec<Attributes<'a>> {
        match self.0.get(key) {
            Some(Json::Array(items)) => items.iter().filter_map(Json::as_object).map(Attributes).collect(),
            Some(Json::Object(map)) => vec![Attributes(map)],
            _ => Vec::new(),
        }
    }

    pub fn block(self, key: &str) -> Option<Attributes<'a>> {
        self.blocks(key).into_iter().next()
    }

    /// Objects by key, as newer resources have them.
    pub fn entries(self, key: &str) -> Vec<(&'a str, Attributes<'a>)> {
        let map = self.0.get(key).and_then(Json::as_object);
        let entries = map.into_iter().flatten();
        entries.filter_map(|(key, value)| Some((key.as_str(), Attributes(value.as_object()?)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> TofuStateError {
        TofuState::parse(text).map(|_| ()).unwrap_err()
    }

    #[test]
    fn addresses_are_those_that_tofu_shows() {
        let state = r#"{"version": 4, "serial": 1, "resources": [
            {"module": "module.node[\"cp-1\"]", "mode": "managed", "type": "t", "name": "this",
             "instances": [{"attributes": {"a": ""}}]},
            {"mode": "data", "type": "d", "name": "x", "instances": [{"index_key": 0, "attributes": {}}]},
            {"mode": "managed", "type": "t", "name": "y", "instances": [
                {"index_key": "a\"b", "attributes": {}}, {"index_key": "a\"b", "deposed": "00", "attributes": {}},
                {"index_key": "c", "status": "tainted", "attributes": {}}]}
        ]}"#;
        let state = TofuState::parse(state).unwrap_or_else(|error| panic!("{error}"));
        let addresses: Vec<&str> = state.resources.iter().map(|found| found.address.as_str()).collect();
        assert_eq!(
            addresses,
            ["module.node[\"cp-1\"].t.this", "data.d.x[0]", "t.y[\"a\\\"b\"]", "t.y[\"c\"]"]
        );
        assert_eq!(state.unusable.len(), 2);
        assert_eq!(state.resources[0].attributes().text("a"), None);
    }

    #[test]
    fn what_is_no_state_is_told_apart() {
        assert_eq!(error(" \n"), TofuStateError::Empty);
        assert_eq!(error("{\"version\": 4, \"resources\": [{"), TofuStateError::Truncated);
        assert_eq!(error("a = 1"), TofuStateError::NotJson(1));
        assert_eq!(error("[]"), TofuStateError::NotState);
        assert_eq!(error("{\"version\": 4}"), TofuStateError::NotState);
        assert_eq!(error("{\"version\": 3, \"serial\": 9, \"modules\": []}"), TofuStateError::Version(3));
        assert_eq!(
            error(
                "{\"serial\": 1, \"lineage\": \"x\", \"meta\": {}, \"encrypted_data\": \"…\", \"encryption_version\": \"v0\"}"
            ),
            TofuStateError::Encrypted
        );
    }
}
