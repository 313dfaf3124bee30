//! Files that someone changed: refused, or harmless, and never a panic.
//!
//! What SOPS itself leaves open stays open: the names of values that are not encrypted or are empty, the metadata that
//! only describes, and with `mac_only_encrypted` all that is not encrypted.

use strata_secrets::sops::{Format, SopsFile};
use strata_secrets::vault;

use crate::fixtures::{all_keys, passwords, read};

type Values = Vec<(Vec<String>, Vec<u8>)>;

struct Target {
    name: &'static str,
    format: Format,
    content: Vec<u8>,
    values: Values,
}

impl Target {
    fn new(name: &'static str) -> Self {
        let format = Format::of(name.as_ref());
        let content = read(name);
        let values = values(&content, format).expect("the file itself opens");
        Self { name, format, content, values }
    }

    /// Whether a value cannot be read in the file.
    fn is_encrypted(&self, value: &[u8]) -> bool {
        !value.is_empty() && !self.content.windows(value.len()).any(|window| window == value)
    }

    /// Opens changed content: refused, or everything that was encrypted is still the same under the same name.
    fn check(&self, changed: &[u8], what: &str) -> bool {
        let Some(found) = values(changed, self.format) else { return true };
        let encrypted: Vec<_> = self.values.iter().filter(|(_, value)| self.is_encrypted(value)).collect();
        let kept: Vec<_> = found.iter().filter(|pair| encrypted.contains(pair)).collect();
        assert!(kept == encrypted, "{}: {what} changes an encrypted value", self.name);
        if !self.name.contains("k8s") {
            let filled = |values: &Values| -> Vec<Vec<u8>> {
                values.iter().map(|(_, value)| value.clone()).filter(|value| !value.is_empty()).collect()
            };
            assert!(filled(&found) == filled(&self.values), "{}: {what} changes a value", self.name);
        }
        false
    }
}

fn values(content: &[u8], format: Format) -> Option<Values> {
    let open = SopsFile::parse(content, format).ok()?.open(&all_keys()).ok()?;
    // Neither may writing it panic.
    let _ = open.plaintext();
    Some(open.values().into_iter().map(|(path, value)| (path, value.expose().to_vec())).collect())
}

/// Flips a bit in every third byte: no part of a file is shorter than that.
fn flip_bytes(name: &'static str) {
    let target = Target::new(name);
    let content = &target.content;
    let mut refused = 0;
    let places: Vec<usize> = (0..content.len()).step_by(3).collect();
    for index in places.iter().copied() {
        let mut changed = content.clone();
        changed[index] ^= [0x01, 0x02, 0x04, 0x10, 0x20, 0x80][index % 6];
        if target.check(&changed, &format!("byte {index}")) {
            refused += 1;
            continue;
        }
        let line = content[..index].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let before = String::from_utf8_lossy(&content[line..index]).into_owned();
        let after = content[index..].iter().take_while(|byte| **byte != b'\n').count();
        let inside = before.contains("ENC[") && content[index..index + after].contains(&b']');
        assert!(!inside, "{name}: byte {index} of an encrypted value is not protected");
    }
    assert!(
        refused * 100 > places.len() * 90,
        "{name}: only {refused} of {} changes are refused",
        places.len()
    );
}

#[test]
fn yaml_is_protected() {
    flip_bytes("sops/all.sops.yaml");
}

#[test]
fn several_documents_are_protected() {
    flip_bytes("sops/k8s.sops.yaml");
}

#[test]
fn other_formats_are_protected() {
    flip_bytes("sops/app.sops.json");
    flip_bytes("sops/app.sops.env");
    flip_bytes("sops/app.sops.ini");
}

#[test]
fn shared_keys_are_protected() {
    flip_bytes("sops/shamir.sops.yaml");
}

#[test]
fn a_value_that_is_missing_doubled_or_moved_is_refused() {
    for name in [
        "sops/all.sops.yaml",
        "sops/k8s.sops.yaml",
        "sops/app.sops.env",
        "sops/app.sops.ini",
        "sops/app.sops.json",
    ] {
        let target = Target::new(name);
        let text = String::from_utf8(target.content.clone()).expect("UTF-8");
        let lines: Vec<&str> = text.lines().collect();
        let joined = |lines: &[&str]| format!("{}\n", lines.join("\n")).into_bytes();
        let is_value =
            |line: &str| line.contains("ENC[") && !line.contains("type:comment") && !line.contains("mac");
        for index in 0..lines.len() {
            let mut missing = lines.clone();
            missing.remove(index);
            let mut doubled = lines.clone();
            doubled.insert(index, lines[index]);
            let refused = [
                target.check(&joined(&missing), "a missing line"),
                target.check(&joined(&doubled), "a doubled line"),
            ];
            assert!(
                refused == [true; 2] || !is_value(lines[index]),
                "{name}: line {index}: {}",
                lines[index]
            );
            if index + 1 < lines.len() {
                let mut moved = lines.clone();
                moved.swap(index, index + 1);
                let refused = target.check(&joined(&moved), "a moved line");
                let both = is_value(lines[index]) && is_value(lines[index + 1]);
                assert!(refused || !both, "{name}: line {index}: {}", lines[index]);
            }
        }
        for length in (0..text.len()).step_by(11) {
            target.check(&text.as_bytes()[..length], "a cut");
        }
    }
}

#[test]
fn a_value_under_another_name_is_refused() {
    let target = Target::new("sops/all.sops.yaml");
    let text = String::from_utf8(target.content.clone()).expect("UTF-8");
    for (from, to) in [
        ("text:", "next:"),
        ("int:", "integer:"),
        ("numbers:", "digits:"),
        ("3.13.3", "3.13"),
        ("2026-", "2025-"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        let refused = target.check(changed.as_bytes(), from);
        assert!(refused || from == "3.13.3", "{from}");
    }
}

#[test]
fn a_vault_is_protected() {
    for name in ["vault/whole.vault.yaml", "vault/secrets.tfvars"] {
        let original = read(name);
        let header = original.iter().position(|byte| *byte == b'\n').expect("a header");
        for index in (0..original.len()).filter(|index| *index <= header || index % 32 == 0) {
            let mut changed = original.clone();
            changed[index] ^= [0x01, 0x02, 0x04, 0x20][index % 4];
            // The id is only a label, and nothing protects it.
            let in_label =
                index < header && original[..index].iter().filter(|byte| **byte == b';').count() == 3;
            let opened = vault::open(&changed, &passwords());
            assert!(opened.is_err() || in_label, "{name}: byte {index}");
        }
    }
}
