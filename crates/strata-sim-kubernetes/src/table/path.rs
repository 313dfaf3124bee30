//! Paths into objects, as definitions write them: `.status.conditions[?(@.type=="Ready")].status`.

use serde_json::Value;

/// What a path leads to; the first one where it leads to several.
pub fn find<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    let mut here = object;
    let mut rest = path.trim_start_matches('$');
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let end = closing(inner)?;
            here = step(here, &inner[..end])?;
            rest = &inner[end + 1..];
            continue;
        }
        let inner = rest.strip_prefix('.').unwrap_or(rest);
        let end = name_end(inner);
        // A dot within a key is escaped.
        let key = inner[..end].replace("\\.", ".");
        if !key.is_empty() {
            here = here.get(&key)?;
        }
        rest = &inner[end..];
    }
    Some(here)
}

fn name_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let escaped = |at: usize| at > 0 && bytes[at - 1] == b'\\';
    (0..bytes.len()).find(|at| matches!(bytes[*at], b'.' | b'[') && !escaped(*at)).unwrap_or(bytes.len())
}

/// Where the bracket ends that was opened before the text; brackets in quotes do not count.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (byte, quote) {
            (b'"' | b'\'', None) => quote = Some(byte),
            (byte, Some(open)) if byte == open => quote = None,
            (b']', None) => return Some(at),
            _ => {}
        }
    }
    None
}

/// An index, a key in quotes, or a condition that an entry of a list fulfils.
fn step<'v>(value: &'v Value, inside: &str) -> Option<&'v Value> {
    let unquoted = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    if let Some(condition) = inside.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        let (left, right) = condition.split_once("==")?;
        let (left, right) = (left.trim().trim_start_matches('@'), unquoted(right));
        let fits = |entry: &&Value| match find(entry, left) {
            Some(Value::String(text)) => *text == right,
            Some(Value::Bool(flag)) => flag.to_string() == right,
            Some(Value::Number(number)) => number.to_string() == right,
            _ => false,
        };
        return value.as_array()?.iter().find(fits);
    }
    if inside.starts_with(['"', '\'']) {
        return value.get(unquoted(inside));
    }
    let list = value.as_array()?;
    match inside.parse::<i64>() {
        Ok(index) if index < 0 => list.get(list.len().checked_sub(usize::try_from(-index).ok()?)?),
        Ok(index) => list.get(usize::try_from(index).ok()?),
        Err(_) => list.first(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_values() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "x"}},
            "status": {"conditions": [{"type": "Stalled", "status": "False"}, {"type": "Ready", "status": "True"}], "n": [1, 2]},
        });
        let at = |path: &str| find(&object, path).cloned();
        assert_eq!(at(".status.conditions[?(@.type==\"Ready\")].status"), Some(json!("True")));
        assert_eq!(at(".status.n[-1]"), Some(json!(2)));
        assert_eq!(at(".status.n[*]"), Some(json!(1)));
        assert_eq!(at(".metadata.labels.a\\.b/c"), Some(json!("x")));
        assert_eq!(at(".metadata.labels['a.b/c']"), Some(json!("x")));
        assert_eq!(at(".status.missing.more"), None);
        assert_eq!(at(".status.n["), None);
    }
}
