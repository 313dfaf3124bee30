//! A guest's configuration as it is, and as it becomes with the next restart.

use std::collections::BTreeMap;

use crate::api::PendingRow;

/// The keys of one guest.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveConfig {
    values: BTreeMap<String, LiveValue>,
    /// Sent along with a write, so that it fails if somebody else wrote in between.
    pub(crate) digest: String,
    pub(crate) lock: Option<String>,
}

#[derive(Debug, Clone, Default)]
struct LiveValue {
    current: Option<String>,
    pending: Option<Pending>,
}

#[derive(Debug, Clone)]
enum Pending {
    Set(String),
    Delete,
}

impl LiveConfig {
    /// Keys that are all in effect.
    pub(crate) fn of(keys: &BTreeMap<String, String>) -> Self {
        let value = |text: &String| LiveValue { current: Some(text.clone()), pending: None };
        let values = keys.iter().map(|(key, text)| (key.clone(), value(text))).collect();
        Self { values, ..Self::default() }
    }

    pub(crate) fn new(rows: Vec<PendingRow>) -> Self {
        let mut live = Self::default();
        for row in rows {
            let current = row.value.map(|value| value.0);
            match row.key.as_str() {
                "digest" => live.digest = current.unwrap_or_default(),
                "lock" => live.lock = current,
                _ => {
                    let deleted = row.delete.is_some_and(|delete| delete > 0).then_some(Pending::Delete);
                    let pending = row.pending.map(|value| Pending::Set(value.0)).or(deleted);
                    live.values.insert(row.key, LiveValue { current, pending });
                }
            }
        }
        live
    }

    /// What the key will be once everything is in effect: what a plan compares with.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key)?.effective()
    }

    pub(crate) fn is_on(&self, key: &str) -> bool {
        self.get(key) == Some("1")
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().filter_map(|(key, value)| Some((key.as_str(), value.effective()?)))
    }

    pub(crate) fn has_pending(&self) -> bool {
        self.values.values().any(|value| value.pending.is_some())
    }

    /// The same guest as it runs now, without what waits for a restart.
    pub(crate) fn running(&self) -> Self {
        let current = |value: &LiveValue| LiveValue { current: value.current.clone(), pending: None };
        let values = self.values.iter().map(|(key, value)| (key.clone(), current(value))).collect();
        Self { values, digest: self.digest.clone(), lock: self.lock.clone() }
    }
}

impl LiveValue {
    fn effective(&self) -> Option<&str> {
        match &self.pending {
            Some(Pending::Set(value)) => Some(value),
            Some(Pending::Delete) => None,
            None => self.current.as_deref(),
        }
    }
}

#[cfg(test)]
pub(crate) fn live(pairs: &[(&str, &str)]) -> LiveConfig {
    let rows = pairs.iter().map(|(key, value)| serde_json::json!({"key": key, "value": value})).collect();
    LiveConfig::new(serde_json::from_value(serde_json::Value::Array(rows)).unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_a_restart_counts_as_said() {
        let rows = r#"[{"key":"memory","value":"64","pending":"128"},{"key":"cores","pending":2},
            {"key":"scsihw","value":"lsi","delete":1},{"key":"onboot","value":1},{"key":"digest","value":"abc"},
            {"key":"lock","value":"clone"}]"#;
        let live = LiveConfig::new(serde_json::from_str(rows).unwrap());
        assert_eq!(
            (live.get("memory"), live.get("cores"), live.get("scsihw")),
            (Some("128"), Some("2"), None)
        );
        assert_eq!((live.digest.as_str(), live.lock.as_deref()), ("abc", Some("clone")));
        assert!(live.is_on("onboot") && live.has_pending());
        let running = live.running();
        assert_eq!(
            (running.get("memory"), running.get("cores"), running.get("scsihw")),
            (Some("64"), None, Some("lsi"))
        );
    }
}
