//! What an unquoted scalar is, by the rules of the YAML reader that Kubernetes uses: those of YAML 1.1.

use serde_json::{Number, Value};
use strata_yaml::go;

pub(super) fn resolve(text: &str) -> Value {
    if go::is_null(text) {
        return Value::Null;
    }
    if let Some(truth) = go::boolean(text).or_else(|| go::old_boolean(text)) {
        return Value::Bool(truth);
    }
    // JSON has no infinity: such a value stays text.
    number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    match go::number(text)? {
        go::Number::Int(number) => {
            i64::try_from(number).map(Number::from).or_else(|_| u64::try_from(number).map(Number::from)).ok()
        }
        go::Number::Float(number) => Number::from_f64(number),
    }
}
