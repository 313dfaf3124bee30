//! Single values of a plain YAML file replaced; its comments, its order and everything else stay.

use strata_secret::{SecretBytes, SecretString};

use crate::sops::plain_yaml;

/// The file with these values changed or added, and these names gone. `None` if it is not text. Whether the result says what it
/// should is for the caller to check: a file may be laid out in ways that lines do not show.
pub fn merge(plain: &SecretBytes, changed: &[(&str, &str)], gone: &[&str]) -> Option<SecretBytes> {
    let text = std::str::from_utf8(plain.expose()).ok()?;
    let mut merged = zeroize::Zeroizing::new(String::with_capacity(text.len() + 4096));
    let mut missing: Vec<(&str, &str)> = changed.to_vec();
    let mut dropping = false;
    for line in text.split_inclusive('\n') {
        // The lines of a value are indented, or items of a list; an empty one may be part of it.
        let inside = line.starts_with([' ', '\t', '-']) && !line.starts_with("---");
        if inside || (dropping && line.trim().is_empty()) {
            if !dropping {
                merged.push_str(line);
            }
            continue;
        }
        let key = key_of(line);
        dropping = false;
        if let Some(index) = missing.iter().position(|(name, _)| Some(*name) == key) {
            let (name, value) = missing.remove(index);
            push(&mut merged, name, value)?;
            dropping = true;
        } else if gone.iter().any(|name| Some(*name) == key) {
            dropping = true;
        } else {
            merged.push_str(line);
        }
    }
    if !merged.is_empty() && !merged.ends_with('\n') {
        merged.push('\n');
    }
    for (name, value) in missing {
        push(&mut merged, name, value)?;
    }
    Some(SecretBytes::new(merged.as_bytes()))
}

fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once(':')?;
    let key = key.trim_end();
    let quoted = |mark: char| key.strip_prefix(mark).and_then(|key| key.strip_suffix(mark));
    Some(quoted('"').or_else(|| quoted('\'')).unwrap_or(key))
}

fn push(text: &mut String, name: &str, value: &str) -> Option<()> {
    let line = plain_yaml(&[(name, &SecretString::from(value))]);
    text.push_str(std::str::from_utf8(line.expose()).ok()?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(text: &str, changed: &[(&str, &str)], gone: &[&str]) -> String {
        let merged = merge(&SecretBytes::new(text), changed, gone).unwrap();
        String::from_utf8(merged.expose().to_vec()).unwrap()
    }

    #[test]
    fn the_rest_stays_as_it_is() {
        let text = "# mine\na: old\n# b's\n\"b\": |\n  two\n\n  lines\nc:\n- x\nd: 1 # kept\ne: gone";
        let changed = [("a", "new"), ("b", "b2"), ("f", "added")];
        assert_eq!(
            merged(text, &changed, &["e"]),
            "# mine\na: new\n# b's\nb: b2\nc:\n- x\nd: 1 # kept\nf: added\n"
        );
        assert_eq!(merged("", &[("a", "1")], &[]), "a: \"1\"\n");
        assert_eq!(merged("a: x", &[], &["c"]), "a: x\n");
    }
}
