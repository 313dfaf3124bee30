//! Encrypted files of the repository that hold secrets: they stay what they are, and what the code takes from them is taken from them.

use serde_json::{Value as Json, json};

use super::Import;
use super::tree::{Content, SourceLine, Tree};
use super::{NO_TOKEN, parse};

/// What ours is called where the repository has a file of the usual name.
const OTHER_NAME: &str = "strata.sops.yaml";

/// Whether a file is called like one of secrets that SOPS encrypted.
fn is_called_so(path: &str) -> bool {
    let own = path.rsplit('/').next().unwrap_or(path);
    let ending = own.ends_with(".yaml") || own.ends_with(".yml");
    own.starts_with("secret") && (own.contains(".sops.") || own.contains(".enc.")) && ending
}

pub(super) fn keep(import: &mut Import<'_>) {
    for path in import.files.inside_all() {
        if !is_called_so(&path) || import.imported.files.contains_key(&path) {
            continue;
        }
        let Some(text) = import.read(&path) else { continue };
        let (tree, _) = parse::yaml(&path, &text);
        let Some(tree) = tree else { continue };
        // Manifests of Kubernetes are Flux' business.
        if tree.has("kind") && tree.has("apiVersion") {
            continue;
        }
        let place = SourceLine::new(&path, 1);
        if !tree.has("sops") {
            import.note(Some(&place), "it is called encrypted and is not: it was not copied");
            continue;
        }
        if path == import.imported.secrets_file {
            OTHER_NAME.clone_into(&mut import.imported.secrets_file);
        }
        import.note(
            Some(&place),
            format!("it is kept as `{path}`, encrypted as it is, and its names can be used as `{{secret: NAME}}`: Strata needs the same age key"),
        );
        import
            .kept_names
            .extend(tree.entries().iter().map(|(key, _)| key.clone()).filter(|key| key != "sops"));
        import.imported.files.insert(path.clone(), text);
        import.model.secret_files.push(path);
    }
}

impl Import<'_> {
    /// A secret value as a reference: a new one for what is in the clear, the repository's own for what its encrypted file has.
    pub(super) fn secret_of(&mut self, tree: &Tree, name: &str) -> Option<Json> {
        if let Content::Unknown(expression) = &tree.content {
            let own = self.name_in_kept(expression)?;
            tree.take_all();
            return Some(json!({"secret": own}));
        }
        let value = tree.as_text()?;
        Some(self.secret(name, &value))
    }

    /// The name that `data.sops_file.NAME.data["proxmox.token"]` is about, where the file was kept.
    pub(super) fn name_in_kept(&self, expression: &str) -> Option<String> {
        let (_, rest) =
            expression.split_once("sops_file.").or_else(|| expression.split_once("sops_external."))?;
        let rest = rest.split_once(".data")?.1;
        let own = match rest.strip_prefix('[') {
            Some(key) => key.split(']').next()?.trim_matches('"').to_owned(),
            None => rest.strip_prefix('.')?.to_owned(),
        };
        let first = own.split('.').next().unwrap_or_default();
        (self.kept_names.contains(first)
            && own.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter)))
        .then_some(own)
    }

    /// Tokens that nobody wrote down, but whose names an encrypted file of the repository has, are its own.
    pub(super) fn theirs(&mut self) {
        let kept = self.kept_names.clone();
        self.imported.secrets.retain(|name, value| value != NO_TOKEN || !kept.contains(name));
    }
}
