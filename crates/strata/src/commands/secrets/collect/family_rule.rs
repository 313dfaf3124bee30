//! Who can read the family's encrypted file: its rule in `.sops.yaml`, and its line in `strata.yaml`.

use std::path::{Path, PathBuf};

use strata_secrets::creation;
use strata_secrets::sops::{CONFIG_FILE, CreationRules, Settings, config_with_rule};
use strata_source::cluster::flat::SECRETS_RULE;

use super::super::{Keys, failed, read, replace, unruled};
use crate::command_error::CommandError;

/// The settings of a repository.
const SETTINGS_FILE: &str = "strata.yaml";

/// What the new file is encrypted for. The family's rule is added where no rule is for such files.
pub(super) fn settings(keys: &Keys<'_>, path: &Path) -> Result<Settings, CommandError> {
    let rule = creation::rule(path).map_err(|error| unruled(path, error))?;
    if let Some(rule) = &rule
        && (rule.settings.mac_only_encrypted
            || rule.pattern().is_some_and(|regex| regex.contains("infrastructure")))
    {
        return rule.usable().cloned().map_err(|error| failed(path, error));
    }
    // A rule for more than these files says at least who reads the repository's secrets.
    let mut recipients: Vec<String> = match &rule {
        Some(rule) => rule.usable().map_err(|error| failed(path, error))?.groups.concat(),
        None => keys.access(path).identities().recipients().to_vec(),
    };
    let folder = creation::folder(path).unwrap_or_else(|| above(path));
    if recipients.is_empty() {
        recipients.push(make_key(keys, &folder)?);
    }
    let config = folder.join(CONFIG_FILE);
    let text = match config.is_file() {
        true => Some(String::from_utf8(read(&config)?).map_err(|_| failed(&config, "not text in UTF-8"))?),
        false => None,
    };
    let new = config_with_rule(SECRETS_RULE, true, &recipients);
    let new = match &text {
        Some(text) => insert(text, &new).ok_or_else(|| {
            failed(&config, "no rule of it is for the family's encrypted files, and none can be added here")
                .hint(format!("add this as its first rule:\n{}", rule_lines(&new, "  ")))
        })?,
        None => new,
    };
    replace(&config, new.as_bytes())?;
    keys.context.printer.line(format!("added a rule for `{SECRETS_RULE}` to `{CONFIG_FILE}`"));
    creation::settings(path, &[]).map_err(|error| unruled(path, error))
}

/// The folder above `infrastructure/`.
fn above(path: &Path) -> PathBuf {
    path.ancestors().nth(2).unwrap_or(path).to_owned()
}

/// A new age key, as `strata init` makes one.
fn make_key(keys: &Keys<'_>, folder: &Path) -> Result<String, CommandError> {
    let (key, recipient) = strata_secrets::generate_identity();
    let path = folder.join(strata_session::secrets::OWN_KEY);
    if path.exists() {
        return Err(failed(&path, "no age key could be read from it")
            .hint("it should have a line `AGE-SECRET-KEY-…`"));
    }
    strata_secrets::replace_private(&path, key.expose().as_bytes())
        .map_err(|error| failed(&path, format!("cannot make a key: {error}")))?;
    keys.context.printer.line(format!(
        "made the key `{}`: keep a copy of it, and keep it out of git",
        strata_session::secrets::OWN_KEY
    ));
    Ok(recipient)
}

/// Puts the rule before all others: the first that fits decides. `None` if the result would not say that.
fn insert(text: &str, new: &str) -> Option<String> {
    let before = CreationRules::parse(text).ok()?;
    let candidates = ["  ", ""].map(|indent| {
        let lines = rule_lines(new, indent);
        if before.is_empty() && !text.contains("creation_rules") {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            return format!("{text}{end}creation_rules:\n{lines}");
        }
        let mut merged = String::new();
        for line in text.split_inclusive('\n') {
            merged.push_str(line);
            if line.trim_end() == "creation_rules:" {
                merged.push_str(&lines);
            }
        }
        merged
    });
    candidates.into_iter().find(|text| {
        CreationRules::parse(text).is_ok_and(|rules| {
            let rule = rules.for_path(Path::new(strata_source::cluster::flat::SECRETS_FILE));
            rules.len() == before.len() + 1 && rule.and_then(|rule| rule.pattern()) == Some(SECRETS_RULE)
        })
    })
}

/// The lines of the only rule of a `.sops.yaml`, indented otherwise.
fn rule_lines(config: &str, indent: &str) -> String {
    let lines = config.lines().skip(1).map(|line| line.strip_prefix("  ").unwrap_or(line));
    lines.map(|line| format!("{indent}{line}\n")).collect()
}

/// Lets references find the file.
pub(super) fn list_in_settings(keys: &Keys<'_>, root: &Path, file: &Path) -> Result<(), CommandError> {
    let path = root.join(SETTINGS_FILE);
    if !path.is_file() {
        return Ok(());
    }
    let text = String::from_utf8(read(&path)?).map_err(|_| failed(&path, "not text in UTF-8"))?;
    let file = file.display().to_string();
    if text.contains(&file) {
        return Ok(());
    }
    let printer = keys.context.printer;
    if text.lines().any(|line| line.starts_with("secrets:")) {
        printer.note(format!(
            "note: add `- sops: {file}` under `secrets` in {SETTINGS_FILE}, so that references find it"
        ));
        return Ok(());
    }
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    replace(&path, format!("{text}{end}secrets:\n  - sops: {file}\n").as_bytes())?;
    printer.line(format!("listed `{file}` in `{SETTINGS_FILE}`"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inserted(text: &str) -> Option<String> {
        insert(text, &config_with_rule(SECRETS_RULE, true, &["age1new".to_owned()]))
    }

    #[test]
    fn the_rule_comes_first_and_the_others_stay() {
        let rule = "- path_regex: infrastructure/.*\\.sops\\.ya?ml\n";
        for (text, indent) in [
            ("# mine\ncreation_rules:\n  - path_regex: x\n    age: age1old\n", "  "),
            ("creation_rules:\n- age: age1old\nstores: {yaml: {indent: 2}}\n", ""),
            ("stores: {yaml: {indent: 2}}", "  "),
        ] {
            let merged = inserted(text).unwrap();
            assert!(merged.contains(&format!("creation_rules:\n{indent}{rule}")), "{merged}");
            assert!(text.lines().all(|line| merged.contains(line)), "{merged}");
        }
        assert_eq!(inserted("creation_rules: [{age: age1old}]\n"), None);
    }
}
