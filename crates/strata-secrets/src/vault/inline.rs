//! Single values in a vault, inside YAML that is otherwise plain: `name: !vault |` and the lines below it.

use std::ops::Range;

use strata_secret::{RandomSource, SecretString};

use super::{Passwords, VaultError, VaultPassword};
use crate::yaml::scan::{Scalar, Scanned, Style, scan};
use crate::yaml::write::double_quoted;
use crate::yaml::{YamlError, line_of, named_scalars};

/// How far the lines of a vault are indented, as `ansible-vault encrypt_string` does.
const INDENT: usize = 10;

impl From<YamlError> for VaultError {
    fn from(error: YamlError) -> Self {
        match error {
            YamlError::Syntax { line, reason } => VaultError::Yaml { line, reason },
            YamlError::Layout { line } => VaultError::Yaml { line, reason: error.to_string() },
            other => VaultError::Yaml { line: 1, reason: other.to_string() },
        }
    }
}

/// Whether a scalar is a vault.
pub(crate) fn is_vaulted(scalar: &Scalar) -> bool {
    let tag = scalar.tag.as_ref().map(|tag| tag.name.as_str());
    matches!(tag, Some("!vault" | "!vault-encrypted"))
}

/// Opens a vaulted scalar.
pub(crate) fn open_scalar(scalar: &Scalar, passwords: &Passwords) -> Result<SecretString, VaultError> {
    let opened = super::open(scalar.text.trim_start().as_bytes(), passwords)?;
    let text = opened.plaintext().clone().into_string();
    text.map_err(|_| VaultError::Damaged("its content is not text in UTF-8"))
}

/// The names of all vaulted values.
pub fn encrypted_names(yaml: &str) -> Result<Vec<Vec<String>>, VaultError> {
    let scanned = scan(yaml)?;
    let named = named_scalars(&scanned.events)?;
    Ok(named.into_iter().filter(|named| is_vaulted(named.scalar)).map(|named| named.path).collect())
}

/// The file with every vaulted value in the clear; everything else stays as it is.
pub fn decrypt_values(yaml: &str, passwords: &Passwords) -> Result<SecretString, VaultError> {
    let replace = |scalar: &Scalar, _: usize| {
        Ok((double_quoted(open_scalar(scalar, passwords)?.expose()), String::new()))
    };
    replace_vaulted(yaml, &scan(yaml)?, replace).map(SecretString::new)
}

/// The file with every vaulted value under another password.
pub fn rekey_values(
    yaml: &str,
    passwords: &Passwords,
    new: &VaultPassword,
    random: &mut dyn RandomSource,
) -> Result<String, VaultError> {
    replace_vaulted(yaml, &scan(yaml)?, |scalar, column| {
        let plain = open_scalar(scalar, passwords)?;
        block(&plain, new, column, random)
    })
}

/// The file with one plain value put into a vault.
pub fn encrypt_value(
    yaml: &str,
    path: &[&str],
    password: &VaultPassword,
    random: &mut dyn RandomSource,
) -> Result<String, VaultError> {
    let scanned = scan(yaml)?;
    let named = named_scalars(&scanned.events)?;
    let missing = || VaultError::NoSuchValue(path.join("."));
    let named = named.into_iter().find(|named| named.path.iter().eq(path.iter())).ok_or_else(missing)?;
    let scalar = named.scalar;
    if is_vaulted(scalar) {
        return Err(VaultError::AlreadyAVault);
    }
    if scalar.span.is_empty() {
        return Err(missing());
    }
    let (head, lines) = block(
        &SecretString::from(scalar.text.as_str()),
        password,
        line_indent(yaml, scalar.span.start),
        random,
    )?;
    let result = splice(yaml, edits(yaml, scalar, head, lines));
    // A value in braces has no room for lines of its own.
    let again = scan(&result)?;
    let good = named_scalars(&again.events)?.iter().any(|named| {
        named.path.iter().eq(path.iter()) && named.scalar.style == Style::Block && is_vaulted(named.scalar)
    });
    if good { Ok(result) } else { Err(YamlError::Layout { line: line_of(yaml, scalar.span.start) }.into()) }
}

fn replace_vaulted(
    yaml: &str,
    scanned: &Scanned,
    mut replace: impl FnMut(&Scalar, usize) -> Result<(String, String), VaultError>,
) -> Result<String, VaultError> {
    let mut all: Vec<(Range<usize>, String)> = Vec::new();
    for named in named_scalars(&scanned.events)?.iter().filter(|named| is_vaulted(named.scalar)) {
        let start = named.scalar.span.start;
        // An alias names the same scalar twice.
        if all.iter().any(|(known, _)| known.contains(&start)) {
            continue;
        }
        let (head, lines) = replace(named.scalar, line_indent(yaml, start))?;
        all.extend(edits(yaml, named.scalar, head, lines));
    }
    Ok(splice(yaml, all))
}

/// Puts other text in the place of a scalar with its tag, and other lines in the place of its lines. What else
/// stands on its line, such as a comment, stays.
fn edits(yaml: &str, scalar: &Scalar, head: String, lines: String) -> Vec<(Range<usize>, String)> {
    let start = scalar.tag.as_ref().map_or(scalar.span.start, |tag| tag.span.start.min(scalar.span.start));
    let line_end = yaml[scalar.span.end..].find(['\n', '\r']).map_or(yaml.len(), |end| scalar.span.end + end);
    let below = scalar.block.clone().unwrap_or(line_end..line_end);
    vec![(start..scalar.span.end, head), (below, lines)]
}

fn splice(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for (range, replacement) in edits {
        result.push_str(&text[done..range.start]);
        result.push_str(&replacement);
        done = range.end;
    }
    result.push_str(&text[done..]);
    result
}

fn line_indent(text: &str, at: usize) -> usize {
    let line = &text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..];
    line.len() - line.trim_start_matches([' ', '-']).len()
}

fn block(
    plain: &SecretString,
    password: &VaultPassword,
    column: usize,
    random: &mut dyn RandomSource,
) -> Result<(String, String), VaultError> {
    let vault = super::encrypt(&plain.clone().into(), password, random)?;
    let indent = " ".repeat(column + INDENT);
    let lines: String = vault.lines().map(|line| format!("\n{indent}{line}")).collect();
    Ok(("!vault |".to_owned(), lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(text: &str) -> VaultPassword {
        VaultPassword { id: None, password: SecretString::from(text) }
    }

    #[test]
    fn a_value_goes_into_the_vault_and_comes_out() {
        let mut random = |buffer: &mut [u8]| buffer.fill(5);
        let plain = "# top\nhost: db # not secret\nlogin:\n  user: admin\n  password: \"a: b\"  # secret\nlist:\n  - x\n";
        let once =
            encrypt_value(plain, &["login", "password"], &password("one"), &mut random).expect("a scalar");
        let twice = encrypt_value(&once, &["list", "0"], &password("one"), &mut random).expect("a scalar");
        assert!(twice.starts_with("# top\nhost: db # not secret\nlogin:\n  user: admin\n  password: !vault |  # secret\n            $ANSIBLE"), "{twice}");
        assert_eq!(encrypted_names(&twice).expect("YAML"), [vec!["login", "password"], vec!["list", "0"]]);
        let rekeyed =
            rekey_values(&twice, &Passwords::given(vec![password("one")]), &password("two"), &mut random);
        let rekeyed = rekeyed.expect("the old password");
        assert!(decrypt_values(&rekeyed, &Passwords::given(vec![password("one")])).is_err());
        let clear =
            decrypt_values(&rekeyed, &Passwords::given(vec![password("two")])).expect("the new password");
        assert!(clear.expose().contains("password: \"a: b\"  # secret\n"), "{}", clear.expose());
        assert!(clear.expose().contains("- \"x\""), "{}", clear.expose());
    }

    #[test]
    fn what_cannot_be_encrypted_is_refused() {
        let mut random = |buffer: &mut [u8]| buffer.fill(5);
        for (yaml, path) in [("a: 1\n", "b"), ("a:\n", "a"), ("a: {b: 1}\n", "a")] {
            let result = encrypt_value(yaml, &[path], &password("x"), &mut random);
            assert!(matches!(result, Err(VaultError::NoSuchValue(_))), "{yaml}");
        }
        assert!(encrypt_value("a: {b: x}\n", &["a", "b"], &password("x"), &mut random).is_err());
    }
}
