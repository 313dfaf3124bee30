//! Secrets in the clear.

use hcl_edit::Span as _;
use hcl_edit::expr::Expression;
use hcl_edit::structure::{Block, Body, Structure};
use strata_diagnostics::{Diagnostic, Span};

use super::{Check, File};

const WORDS: [&str; 6] = ["password", "passphrase", "secret", "token", "credential", "apikey"];
const PAIRS: [&str; 2] = ["api_key", "private_key"];
/// A name of a secret is none.
const HARMLESS: [&str; 9] = ["_id", "_name", "_file", "_path", "_url", "_ref", "_length", "_version", "_arn"];

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let named = name.split(['_', '-']).any(|part| WORDS.contains(&part))
        || PAIRS.iter().any(|pair| name.contains(pair));
    named && !HARMLESS.iter().any(|end| name.ends_with(end))
}

pub(super) fn check(check: &mut Check<'_>, file: &File) {
    body(check, file, &file.body);
}

fn body(check: &mut Check<'_>, file: &File, inner: &Body) {
    for structure in inner.iter() {
        match structure {
            Structure::Attribute(attribute) => value(check, file, attribute.key.as_str(), &attribute.value),
            Structure::Block(block) if block.ident.as_str() == "variable" => variable(check, file, block),
            Structure::Block(block) => body(check, file, &block.body),
        }
    }
}

/// The default of a variable that is called like a secret.
fn variable(check: &mut Check<'_>, file: &File, block: &Block) {
    let Some(name) = block.labels.first() else { return };
    if let Some(default) = block.body.get_attribute("default") {
        value(check, file, name.as_str(), &default.value);
    }
}

fn value(check: &mut Check<'_>, file: &File, name: &str, expression: &Expression) {
    match expression {
        Expression::String(text) if is_secret(name) && !text.as_str().is_empty() => {
            let span = expression
                .span()
                .map_or(Span::start_of(file.id), |range| Span::new(file.id, range.start, range.end));
            let message = format!("`{name}` is a secret in the clear");
            let problem = Diagnostic::error("plaintext-secret", message).at(span).without_source();
            check
                .found
                .push(problem.hint("`strata secrets encrypt` the file, or name the secret in strata.yaml"));
        }
        Expression::Object(object) => {
            for (key, entry) in object.iter() {
                let key = match key.as_ident() {
                    Some(ident) => ident.as_str().to_owned(),
                    None => key.as_expr().and_then(|key| key.as_str()).unwrap_or_default().to_owned(),
                };
                value(check, file, &key, entry.expr());
            }
        }
        Expression::Array(items) => items.iter().for_each(|item| value(check, file, name, item)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn names_of_secrets_are_known() {
        assert!(is_secret("proxmox_api_token") && is_secret("root_password") && is_secret("api_key"));
        assert!(
            !is_secret("proxmox_api_token_id")
                && !is_secret("secret_name")
                && !is_secret("http_tokens")
                && !is_secret("name")
        );
    }
}
