//! Whether a live property is what was asked for: the server answers in other words than it is asked in.

use serde_json::Value;

use crate::{Dataset, Property};

/// Whether a property of a dataset is as wanted. `INHERIT` is met by what is not set on the dataset itself.
pub fn is_as_wanted(live: &Dataset, name: &str, wanted: &Value) -> bool {
    let Some(property) = live.properties.get(name) else {
        // Nothing is set where nothing is wanted.
        return is_nothing(wanted);
    };
    if wanted.as_str() == Some("INHERIT") {
        return !property.local;
    }
    match wanted {
        Value::String(text) => is_text(property, text),
        Value::Number(number) => number.as_u64().is_some_and(|number| is_number(property, number)),
        Value::Bool(truth) => is_text(property, if *truth { "ON" } else { "OFF" }),
        Value::Null => is_number(property, 0),
        _ => false,
    }
}

fn is_nothing(wanted: &Value) -> bool {
    matches!(wanted, Value::Null) || wanted.as_str() == Some("INHERIT") || wanted.as_u64() == Some(0)
}

fn is_text(property: &Property, wanted: &str) -> bool {
    let same = |live: &Option<String>| live.as_deref().is_some_and(|live| live.eq_ignore_ascii_case(wanted));
    if same(&property.value) || same(&property.raw) {
        return true;
    }
    // `128K` is answered as such or as bytes.
    bytes(wanted).is_some_and(|wanted| property.bytes() == Some(wanted))
}

/// Zero means none, which has many names.
fn is_number(property: &Property, wanted: u64) -> bool {
    match property.bytes() {
        Some(live) => live == wanted,
        None => {
            let none = |live: &Option<String>| {
                live.as_deref().is_none_or(|live| live.is_empty() || live.eq_ignore_ascii_case("none"))
            };
            wanted == 0 && none(&property.value)
        }
    }
}

fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KIB" => 10,
        "M" | "MIB" => 20,
        "G" | "GIB" => 30,
        "T" | "TIB" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn live(name: &str, value: Value, raw: Value, parsed: Value, source: &str) -> Dataset {
        let property = Property {
            value: value.as_str().map(str::to_owned),
            raw: raw.as_str().map(str::to_owned),
            parsed,
            local: source == "LOCAL",
        };
        Dataset {
            name: "tank/a".to_owned(),
            volume: false,
            locked: false,
            mountpoint: None,
            properties: [(name.to_owned(), property)].into(),
            user_properties: Default::default(),
            used: None,
            used_by_itself: None,
        }
    }

    #[test]
    fn the_same_in_other_words() {
        let lz4 = live("compression", json!("LZ4"), json!("lz4"), json!("lz4"), "LOCAL");
        assert!(is_as_wanted(&lz4, "compression", &json!("lz4")));
        assert!(!is_as_wanted(&lz4, "compression", &json!("ZSTD")));
        assert!(!is_as_wanted(&lz4, "compression", &json!("INHERIT")));
        let inherited = live("compression", json!("LZ4"), json!("lz4"), json!("lz4"), "INHERITED");
        assert!(is_as_wanted(&inherited, "compression", &json!("INHERIT")));
        let size = live("recordsize", json!("128K"), json!("131072"), json!(131_072), "LOCAL");
        assert!(is_as_wanted(&size, "recordsize", &json!("128K")));
        assert!(is_as_wanted(&size, "recordsize", &json!("131072")));
        let quota = live("quota", json!("10G"), json!("10737418240"), json!(10_737_418_240_u64), "LOCAL");
        assert!(is_as_wanted(&quota, "quota", &json!(10_737_418_240_u64)));
        assert!(!is_as_wanted(&quota, "quota", &json!(0)));
        let none = live("quota", json!(null), json!("0"), json!(null), "DEFAULT");
        assert!(is_as_wanted(&none, "quota", &json!(0)) && is_as_wanted(&none, "quota", &json!(null)));
        let atime = live("atime", json!("OFF"), json!("off"), json!(false), "LOCAL");
        assert!(is_as_wanted(&atime, "atime", &json!(false)));
        assert!(!is_as_wanted(&atime, "missing", &json!("X")));
    }
}
