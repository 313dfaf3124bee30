//! Puts values into specs, leaving out what is not said.

use strata_resource::{Spec, Value};

pub(crate) trait Fields {
    fn put(&mut self, key: &str, value: impl Into<Value>);
    fn put_some(&mut self, key: &str, value: Option<impl Into<Value>>);
    /// Nothing for an empty map or list.
    fn put_full(&mut self, key: &str, value: Value);
}

impl Fields for Spec {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.insert(key.to_owned(), value.into());
    }

    fn put_some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn put_full(&mut self, key: &str, value: Value) {
        let empty =
            value.as_map().is_some_and(Spec::is_empty) || value.as_list().is_some_and(<[Value]>::is_empty);
        if !empty {
            self.put(key, value);
        }
    }
}

pub(crate) fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> Value {
    Value::List(items.into_iter().map(|item| Value::Text(item.to_string())).collect())
}

pub(crate) fn int(number: impl Into<u64>) -> Value {
    Value::Int(i64::try_from(number.into()).unwrap_or(i64::MAX))
}

/// A number as Proxmox writes it: no decimals where there are none.
pub(crate) fn decimal(number: f64) -> Value {
    Value::Text(number.to_string())
}
