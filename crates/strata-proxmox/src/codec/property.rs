//! Property strings: `virtio=BC:24:…,bridge=vmbr0,firewall=1`. Order and unknown parts are kept.

use std::fmt;

/// A property string, taken apart. The part without a name has the name of the default key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PropertyString {
    default_key: &'static str,
    parts: Vec<(String, String)>,
}

impl PropertyString {
    pub(crate) fn new(default_key: &'static str) -> Self {
        Self { default_key, parts: Vec::new() }
    }

    pub(crate) fn parse(text: &str, default_key: &'static str) -> Self {
        let part = |part: &str| match part.split_once('=') {
            Some((key, value)) => (key.trim().to_owned(), value.to_owned()),
            None => (default_key.to_owned(), part.to_owned()),
        };
        let parts = text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(part).collect();
        Self { default_key, parts }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.parts.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    pub(crate) fn set(&mut self, key: &str, value: impl Into<String>) {
        let value = value.into();
        match self.parts.iter_mut().find(|(name, _)| name == key) {
            Some(part) => part.1 = value,
            // The default key stands first, where it needs no name.
            None if key == self.default_key => self.parts.insert(0, (key.to_owned(), value)),
            None => self.parts.push((key.to_owned(), value)),
        }
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.parts.retain(|(name, _)| name != key);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parts.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

impl fmt::Display for PropertyString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.parts.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if key == self.default_key && !value.contains('=') {
                write!(f, "{comma}{value}")?;
            } else {
                write!(f, "{comma}{key}={value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_and_unknown_parts() {
        let text = "local:110/vm-110-disk-0.qcow2,cache=writeback,mbps_rd=100,size=2G,ssd=1";
        let mut property = PropertyString::parse(text, "file");
        assert_eq!(property.to_string(), text);
        assert_eq!(property.get("file"), Some("local:110/vm-110-disk-0.qcow2"));
        property.set("ssd", "0");
        property.set("aio", "native");
        property.remove("cache");
        assert_eq!(
            property.to_string(),
            "local:110/vm-110-disk-0.qcow2,mbps_rd=100,size=2G,ssd=0,aio=native"
        );
    }

    #[test]
    fn a_named_default_key_is_the_same_as_a_bare_one() {
        assert_eq!(PropertyString::parse("enabled=1,type=isa", "enabled").to_string(), "1,type=isa");
        assert_eq!(PropertyString::parse("1", "enabled").get("enabled"), Some("1"));
        let mut property = PropertyString::parse("memory=32", "type");
        property.set("type", "std");
        assert_eq!(property.to_string(), "std,memory=32");
        assert!(PropertyString::parse(" ", "x").is_empty());
    }
}
