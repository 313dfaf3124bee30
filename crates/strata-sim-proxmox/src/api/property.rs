//! Property strings: `virtio=MAC,bridge=vmbr0` and the like; parsed, checked and printed by a schema.

use indexmap::IndexMap;
use serde_json::Value;

use super::args::{Arg, Args};
use super::check::{Errors, check_value};
use super::param::{Kind, Param};

/// One key of a property string.
#[derive(Debug)]
struct Field {
    param: Param,
    /// The key of a value that comes without one.
    is_default: bool,
}

/// A check of the values together; its text is the whole complaint.
type Validator = fn(&PropertyString) -> Result<(), String>;

/// The keys that a property string may have.
#[derive(Debug, Default)]
pub struct Properties {
    fields: IndexMap<String, Field>,
    /// `alias` → (the key it stands for, the key that then holds the alias' own name).
    aliases: IndexMap<String, (String, Option<String>)>,
    /// Runs after the schema.
    validator: Option<Validator>,
    /// A key that is not known is told with the other complaints.
    loose: bool,
}

/// The values of a parsed property string, in the order they were written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PropertyString(pub IndexMap<String, String>);

impl PropertyString {
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        self.0.insert(key.to_owned(), value.into());
    }

    pub fn remove(&mut self, key: &str) -> Option<String> {
        self.0.shift_remove(key)
    }

    pub fn is_set(&self, key: &str) -> bool {
        self.get(key) == Some("1")
    }
}

/// The API takes several words for a boolean in a property string, and only there.
fn boolean(value: &str) -> Option<&'static str> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" => Some("1"),
        "0" | "off" | "no" | "false" => Some("0"),
        _ => None,
    }
}

impl Properties {
    pub fn new(params: impl IntoIterator<Item = Param>) -> Self {
        let field = |param: Param| (param.name.to_string(), Field { param, is_default: false });
        Self { fields: params.into_iter().map(field).collect(), ..Self::default() }
    }

    /// Names the key of a value that comes without one.
    #[must_use]
    pub fn default_key(mut self, key: &str) -> Self {
        if let Some(field) = self.fields.get_mut(key) {
            field.is_default = true;
        }
        self
    }

    #[must_use]
    pub fn alias(mut self, alias: &str, target: &str) -> Self {
        self.aliases.insert(alias.to_owned(), (target.to_owned(), None));
        self
    }

    /// `alias=value` sets `target` to the value and `key` to the alias' name (`virtio=MAC`).
    #[must_use]
    pub fn key_alias(mut self, alias: &str, target: &str, key: &str) -> Self {
        self.aliases.insert(alias.to_owned(), (target.to_owned(), Some(key.to_owned())));
        self
    }

    /// For those that are read by another reader, which tells unknown keys with the other complaints.
    #[must_use]
    pub fn loose(mut self) -> Self {
        self.loose = true;
        self
    }

    #[must_use]
    pub fn validated(mut self, validator: Validator) -> Self {
        self.validator = Some(validator);
        self
    }

    /// The keys that it may have.
    pub fn params(&self) -> impl Iterator<Item = &Param> {
        self.fields.values().map(|field| &field.param)
    }

    fn default_name(&self) -> Option<&str> {
        self.fields.iter().find(|(_, f)| f.is_default).map(|(k, _)| k.as_str())
    }

    /// Parses and checks; the error is what stands after `invalid format - `.
    pub fn parse(&self, data: &str, path: &str) -> Result<PropertyString, String> {
        let values = self.split(data)?;
        let mut errors = Errors::new();
        for (key, field) in &self.fields {
            let arg = values.get(key).map(|v| Arg::Text(v.to_owned()));
            // Most keys of most strings are optional and not there.
            if arg.is_some() || !field.param.optional {
                check_value(&field.param, arg.as_ref(), &format!("{path}.{key}"), &mut errors);
            }
        }
        for key in values.0.keys().filter(|key| !self.fields.contains_key(*key)) {
            let text =
                "property is not defined in schema and the schema does not allow additional properties";
            errors.insert(format!("{path}.{key}"), Value::String(text.to_owned()));
        }
        for key in values.0.keys() {
            let requires = self.fields.get(key).and_then(|f| f.param.requires);
            if let Some(other) = requires
                && values.get(other).is_none()
            {
                let text = format!("missing property required by '{path}.{key}'");
                errors.insert(format!("{path}.{other}"), Value::String(text));
            }
        }
        if !errors.is_empty() {
            let mut text = "format error\n".to_owned();
            for (key, error) in &errors {
                text.push_str(&format!("{key}: {}\n", error.as_str().unwrap_or_default()));
            }
            return Err(text);
        }
        if let Some(validator) = self.validator {
            validator(&values)?;
        }
        Ok(values)
    }

    /// Parses what is already stored and therefore valid; parts that are not are left out.
    pub fn read(&self, data: &str) -> PropertyString {
        self.split(data).unwrap_or_default()
    }

    fn split(&self, data: &str) -> Result<PropertyString, String> {
        let mut values = PropertyString::default();
        let mut default_seen = false;
        for part in data.split(',') {
            if part.trim().is_empty() {
                continue;
            }
            match part.split_once('=') {
                Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                    self.keyed(&mut values, key, value)?
                }
                None => {
                    let name = self
                        .default_name()
                        .ok_or("value without key, but schema does not define a default key\n".to_owned())?;
                    if default_seen || values.get(name).is_some() {
                        return Err(format!("duplicate key in comma-separated list property: {name}\n"));
                    }
                    default_seen = true;
                    let value = self.normal(name, part);
                    values.set(name, value);
                }
                Some(_) => return Err("missing key in comma-separated list property\n".to_owned()),
            }
        }
        Ok(values)
    }

    fn keyed(&self, values: &mut PropertyString, key: &str, value: &str) -> Result<(), String> {
        if values.get(key).is_some() {
            return Err(format!("duplicate key in comma-separated list property: {key}\n"));
        }
        let mut target = key;
        if let Some((real, own_name)) = self.aliases.get(key) {
            if let Some(own_name) = own_name {
                if values.get(own_name).is_some() {
                    return Err(format!("key alias '{own_name}' is already defined\n"));
                }
                values.set(own_name, key);
            }
            if values.get(real).is_some() {
                return Err(format!("key '{real}' is already defined (via alias)\n"));
            }
            target = real;
        }
        if !self.fields.contains_key(target) && !self.loose {
            return Err(format!("invalid key in comma-separated list property: {target}\n"));
        }
        let value = self.normal(target, value);
        values.set(target, value);
        Ok(())
    }

    fn normal(&self, key: &str, value: &str) -> String {
        let is_bool = self.fields.get(key).is_some_and(|f| matches!(f.param.kind, Kind::Bool));
        if is_bool && let Some(word) = boolean(value) { word.to_owned() } else { value.to_owned() }
    }

    /// Prints in the API's order: the default key bare and first, then required keys, then the rest, each sorted.
    /// A key with a key alias is printed as `alias=value`.
    pub fn print(&self, values: &PropertyString) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut done: Vec<&str> = Vec::new();
        let combined =
            self.aliases.values().find_map(|(target, own)| own.as_deref().map(|own| (own, target.as_str())));
        let mut keys: Vec<&str> = values.0.keys().map(String::as_str).collect();
        keys.sort_unstable();
        let required = |k: &&str| self.fields.get(*k).is_some_and(|f| !f.param.optional);
        let order = self
            .default_name()
            .into_iter()
            .chain(keys.iter().copied().filter(required))
            .chain(keys.iter().copied())
            .collect::<Vec<_>>();
        for key in order {
            if done.contains(&key) {
                continue;
            }
            done.push(key);
            let Some(value) = values.get(key) else { continue };
            if let Some((own, target)) = combined
                && key == own
                && let Some(other) = values.get(target)
            {
                parts.push(format!("{value}={other}"));
                done.push(target);
            } else if Some(key) == self.default_name() {
                parts.push(value.to_owned());
            } else {
                parts.push(format!("{key}={value}"));
            }
        }
        parts.join(",")
    }
}

/// The values of a property string as call arguments, to check them like parameters.
impl From<&PropertyString> for Args {
    fn from(values: &PropertyString) -> Self {
        values.0.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::param::{flag, int, text};

    fn net() -> Properties {
        Properties::new([
            text("model").one_of(&["e1000", "virtio"]),
            text("macaddr").format(crate::api::format::mac).opt(),
            text("bridge").opt(),
            flag("firewall").opt(),
            int("tag").min(1.0).max(4094.0).opt(),
        ])
        .default_key("model")
        .key_alias("virtio", "macaddr", "model")
        .key_alias("e1000", "macaddr", "model")
    }

    #[test]
    fn a_model_is_given_in_any_of_three_ways() {
        let schema = net();
        for given in
            ["virtio=BC:24:11:01:02:03,bridge=vmbr0", "model=virtio,macaddr=BC:24:11:01:02:03,bridge=vmbr0"]
        {
            let parsed = schema.parse(given, "net0").unwrap();
            assert_eq!(schema.print(&parsed), "virtio=BC:24:11:01:02:03,bridge=vmbr0");
        }
        let parsed = schema.parse("tag=7,bridge=vmbr0,virtio,firewall=on", "net0").unwrap();
        assert_eq!(schema.print(&parsed), "virtio,bridge=vmbr0,firewall=1,tag=7");
    }

    #[test]
    fn complaints_name_the_part() {
        let schema = net();
        assert_eq!(
            schema.parse("virtio,foo=1", "net0").unwrap_err(),
            "invalid key in comma-separated list property: foo\n"
        );
        assert_eq!(
            schema.parse("nosuch", "net0").unwrap_err(),
            "format error\nnet0.model: value 'nosuch' does not have a value in the enumeration 'e1000, virtio'\n"
        );
        assert_eq!(
            schema.parse("virtio=01:00:5e:00:00:01", "net0").unwrap_err(),
            "format error\nnet0.macaddr: invalid format - value does not look like a valid unicast MAC address\n\n"
        );
    }
}
