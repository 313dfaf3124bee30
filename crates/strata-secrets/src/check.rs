//! Looking for secrets in the clear, in files that go into a repository.

mod layout;
mod shape;

use std::path::Path;

use strata_secret::Redactor;

use crate::sops::{CONFIG_FILE, CreationRules, Format, SopsFile};
use crate::vault;

pub use shape::Shape;

/// A secret, or what is likely one, that anybody can read. It says where, never what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The file's name, or a rule of `.sops.yaml`, says that it is encrypted, and it is not.
    NotEncrypted,
    /// Values in an encrypted file that should be encrypted and are not.
    PlainValues(Vec<String>),
    /// What looks like a secret, on this line.
    Looks { line: usize, like: Shape },
    /// A saved plan.
    Plan,
    /// A secret of the repository on this line.
    KnownSecret { line: usize },
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Finding::NotEncrypted => write!(f, "should be encrypted and is not"),
            Finding::PlainValues(names) => {
                write!(f, "`{}` should be encrypted and is not", names.join("`, `"))
            }
            Finding::Looks { line, like } => write!(f, "line {line}: {like} in the clear"),
            Finding::Plan => write!(f, "a saved plan, which is not for a repository"),
            Finding::KnownSecret { line } => {
                write!(f, "line {line}: a secret of this repository in the clear")
            }
        }
    }
}

/// Looks at one file. Its path starts where `.sops.yaml` stands; `known` has the secrets that were resolved so far.
pub fn check_file(path: &Path, content: &[u8], rules: &CreationRules, known: &Redactor) -> Vec<Finding> {
    let mut findings = Vec::new();
    match SopsFile::parse(content, Format::of(path)) {
        Ok(file) => {
            let plain = file.plain_values();
            if !plain.is_empty() {
                findings.push(Finding::PlainValues(plain));
            }
        }
        Err(_) if !vault::is_vault(content) && should_be_encrypted(path, content, rules) => {
            findings.push(Finding::NotEncrypted);
        }
        Err(_) => {}
    }
    if shape::is_plan(content) {
        findings.push(Finding::Plan);
    }
    let text = layout::readable(content);
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let mut looks = layout::looks(&lines);
    for (index, line) in lines.iter().enumerate() {
        let line_number = index + 1;
        // Which one it is says more than what it looks like.
        if known.is_in(line) {
            findings.push(Finding::KnownSecret { line: line_number });
        } else if let Some(like) = looks.remove(&line_number) {
            findings.push(Finding::Looks { line: line_number, like });
        }
    }
    findings
}

fn should_be_encrypted(path: &Path, content: &[u8], rules: &CreationRules) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name == CONFIG_FILE || content.iter().all(u8::is_ascii_whitespace) {
        return false;
    }
    // A vault may also hold single values in a file that is otherwise plain.
    let inline = || {
        std::str::from_utf8(content)
            .is_ok_and(|text| vault::encrypted_names(text).is_ok_and(|n| !n.is_empty()))
    };
    let by_name = name.contains(".sops.")
        || name.contains(".vault.")
        || name.ends_with("secrets.tfvars")
        || name.ends_with(".secret.tfvars");
    let by_rule = rules.for_path(path).is_some_and(|rule| rule.is_for_certain_paths());
    (by_name || by_rule) && !inline()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, content: &str) -> Vec<Finding> {
        let rules =
            CreationRules::parse("creation_rules:\n  - path_regex: ^private/\n    age: x\n  - age: y\n");
        let known = Redactor::new();
        known.add_text("a-known-secret");
        check_file(Path::new(path), content.as_bytes(), &rules.expect("rules"), &known)
    }

    #[test]
    fn files_that_should_be_encrypted_are_found() {
        for path in ["secrets.sops.yaml", "all.vault.yaml", "x/secrets.tfvars", "private/x.yaml"] {
            assert_eq!(check(path, "a: b\n"), [Finding::NotEncrypted], "{path}");
            assert_eq!(check(path, "$ANSIBLE_VAULT;1.1;AES256\n00\n"), [], "{path}");
            assert_eq!(check(path, ""), [], "{path}");
        }
        assert_eq!(check("plain.yaml", "a: b\n"), []);
        assert_eq!(check(".sops.yaml", "creation_rules: []\n"), []);
    }

    #[test]
    fn keys_and_known_secrets_are_found_and_not_quoted() {
        let key = format!("x: y\nkey: AGE-SECRET-KEY-1{}\n", "Q".repeat(58));
        assert_eq!(check("a.txt", &key), [Finding::Looks { line: 2, like: Shape::PrivateKey }]);
        assert_eq!(
            check("a.pem", "-----BEGIN OPENSSH PRIVATE KEY-----\n"),
            [Finding::Looks { line: 1, like: Shape::PrivateKey }]
        );
        assert_eq!(check("a.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n-----BEGIN PUBLIC KEY-----\n"), []);
        let found = check("notes.md", "\nuse a-known-secret here\n");
        assert_eq!(found, [Finding::KnownSecret { line: 2 }]);
        assert_eq!(found[0].to_string(), "line 2: a secret of this repository in the clear");
    }
}
