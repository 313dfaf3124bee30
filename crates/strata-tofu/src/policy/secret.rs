//! Secrets in the clear: values that are called like one, and values that look like one whatever they are called.

use hcl_edit::Span as _;
use hcl_edit::expr::Expression;
use hcl_edit::structure::{Block, Body, Structure};
use hcl_edit::template::{Element, Template};
use serde_json::Value as Json;
use strata_diagnostics::{Diagnostic, FileId, Span};

use super::{Check, File};

const WORDS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "credential",
    "credentials",
    "apikey",
    "passcode",
];
const PAIRS: [&str; 4] = ["api_key", "private_key", "secret_key", "access_key"];
/// What is said about a secret is none: its name, where it is, how long it lasts.
const ABOUT: [&str; 52] = [
    "id",
    "ids",
    "name",
    "names",
    "file",
    "path",
    "url",
    "uri",
    "ref",
    "length",
    "version",
    "arn",
    "type",
    "kind",
    "policy",
    "ttl",
    "expiry",
    "expiration",
    "lifetime",
    "duration",
    "period",
    "days",
    "enabled",
    "endpoint",
    "username",
    "user",
    "store",
    "provider",
    "class",
    "namespace",
    "format",
    "prefix",
    "suffix",
    "issuer",
    "audience",
    "count",
    "description",
    "algorithm",
    "rotation",
    "scope",
    "permissions",
    "validity",
    "item",
    "items",
    "vault",
    "folder",
    "engine",
    "mount",
    "backend",
    "manager",
    "group",
    "role",
];

/// `api_token`, `apiToken` and `API-TOKEN` are one name.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut before_is_lower = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && before_is_lower {
            snake.push('_');
        }
        before_is_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        snake.push(if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' });
    }
    snake
}

fn is_secret(whole: &str) -> bool {
    let name = snake(whole);
    let is_annotation = whole.contains('/');
    let named = name.split('_').any(|part| WORDS.contains(&part))
        || PAIRS.iter().any(|pair| name == *pair || name.ends_with(&format!("_{pair}")));
    let last = name.rsplit('_').next().unwrap_or_default();
    named && !is_annotation && !ABOUT.contains(&last)
}

/// What a text is, if nobody would mistake it for something else.
fn looks_like(text: &str) -> Option<&'static str> {
    let starts = |prefix: &str, least: usize| {
        text.match_indices(prefix).any(|(at, _)| {
            let bounded = !text[..at].ends_with(|before: char| before.is_ascii_alphanumeric());
            let rest = text[at + prefix.len()..].bytes();
            bounded
                && rest.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count()
                    >= least
        })
    };
    if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----") {
        Some("a private key")
    } else if starts("AGE-SECRET-KEY-1", 50) {
        Some("an age key")
    } else if ["AKIA", "ASIA"].iter().any(|prefix| starts(prefix, 16)) {
        Some("a key of AWS")
    } else if ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].iter().any(|prefix| starts(prefix, 30))
        || starts("github_pat_", 30)
    {
        Some("a token of GitHub")
    } else if starts("glpat-", 20) {
        Some("a token of GitLab")
    } else if ["xoxb-", "xoxp-", "xoxa-", "xapp-"].iter().any(|prefix| starts(prefix, 20)) {
        Some("a token of Slack")
    } else if is_proxmox_token(text) {
        Some("an API token of Proxmox")
    } else if is_web_token(text) {
        Some("a web token")
    } else if has_password(text) {
        Some("an address with a password in it")
    } else {
        None
    }
}

/// `user@realm!name=00000000-0000-0000-0000-000000000000`.
fn is_proxmox_token(text: &str) -> bool {
    let Some((before, after)) = text.split_once('=') else { return false };
    let uuid = after.get(..36).unwrap_or_default();
    let is_uuid = uuid.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    uuid.len() == 36 && is_uuid && before.contains('@') && before.contains('!')
}

/// Three parts, of which the first two are JSON.
fn is_web_token(text: &str) -> bool {
    let parts: Vec<&str> = text.trim().split('.').collect();
    let is_part = |part: &&str| {
        part.len() >= 10
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    parts.len() == 3
        && parts[0].starts_with("eyJ")
        && parts[1].starts_with("eyJ")
        && parts.iter().all(is_part)
}

/// `scheme://user:password@host`.
fn has_password(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let place = rest.split(['/', '?', '#', ' ', '\n']).next().unwrap_or_default();
    let user = place.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
    let is_scheme = !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-'));
    is_scheme && user.is_some_and(|(_, password)| !password.is_empty() && !is_stand_in(password))
}

/// What stands where a secret would be.
fn is_stand_in(text: &str) -> bool {
    let text = text.trim();
    let bare = text.trim_matches(['<', '>', '*', '.', 'x', 'X']);
    text.is_empty()
        || bare.is_empty()
        || (text.starts_with('<') && text.ends_with('>'))
        // Where it is.
        || (["/", "~/", "./", "../"].iter().any(|start| text.starts_with(start)) && !text.contains(char::is_whitespace))
        || ["ENC[", "sops:", "vault:", "${", "$(", "{{", "ref+"].iter().any(|start| text.starts_with(start))
        || matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "none" | "null" | "redacted" | "sensitive"
        )
}

pub(super) fn check(check: &mut Check<'_>, file: &File) {
    body(check, file, &file.body);
}

/// The same for JSON, where a key has no place.
pub(super) fn check_json(check: &mut Check<'_>, file: FileId, json: &Json) {
    // A file of sops says itself that it is encrypted.
    if json["sops"].is_object() {
        return;
    }
    walk_json(check, file, "", json);
}

fn walk_json(check: &mut Check<'_>, file: FileId, name: &str, json: &Json) {
    match json {
        Json::String(text) => told(check, name, text, Span::start_of(file)),
        Json::Array(items) => items.iter().for_each(|item| walk_json(check, file, name, item)),
        Json::Object(fields) => {
            for (key, inner) in fields {
                // What a variable is called is not said by `default`.
                walk_json(check, file, if key == "default" { name } else { key }, inner);
            }
        }
        _ => {}
    }
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
    let inner = |check: &mut Check<'_>, expression: &Expression| value(check, file, name, expression);
    match expression {
        Expression::String(text) => self::text(check, file, name, text.as_str(), expression),
        Expression::HeredocTemplate(heredoc) => {
            self::text(check, file, name, &written(&heredoc.template), expression);
        }
        // With something in it that comes from elsewhere, only its shape counts.
        Expression::StringTemplate(template) => {
            self::text(check, file, "", &parts(template.iter()), expression)
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
        Expression::Array(items) => items.iter().for_each(|item| inner(check, item)),
        Expression::Parenthesis(parenthesis) => inner(check, parenthesis.inner()),
        Expression::Conditional(conditional) => {
            inner(check, &conditional.true_expr);
            inner(check, &conditional.false_expr);
        }
        // `sensitive("…")`, `base64encode("…")`; what a file is called is no secret.
        Expression::FuncCall(call) => {
            let function = call.name.name.as_str();
            let name = if function.starts_with("file") || function == "templatefile" || function == "lookup" {
                ""
            } else {
                name
            };
            call.args.iter().for_each(|argument| value(check, file, name, argument));
        }
        _ => {}
    }
}

fn written(template: &Template) -> String {
    // A document that something is put into is not the secret itself, but there may be one in it.
    let is_whole = template.iter().all(|element| matches!(element, Element::Literal(_)));
    let text = parts(template.iter());
    if is_whole { text } else { format!("${{…}}{text}") }
}

fn parts<'t>(elements: impl Iterator<Item = &'t Element>) -> String {
    let literal = |element: &'t Element| match element {
        Element::Literal(literal) => literal.as_str(),
        _ => "${}",
    };
    elements.map(literal).collect()
}

fn text(check: &mut Check<'_>, file: &File, name: &str, text: &str, expression: &Expression) {
    let place = expression.span().map(|range| Span::new(file.id, range.start, range.end));
    told(check, name, text, place.unwrap_or(Span::start_of(file.id)));
}

fn told(check: &mut Check<'_>, name: &str, text: &str, span: Span) {
    let message = match looks_like(text) {
        Some(what) if name.is_empty() => format!("{what} in the clear"),
        Some(what) => format!("`{name}` is {what} in the clear"),
        None if is_secret(name) && !is_stand_in(text) && !text.contains("://") => {
            format!("`{name}` is a secret in the clear")
        }
        None => return,
    };
    let problem = Diagnostic::error("plaintext-secret", message).at(span).without_source();
    check.found.push(problem.hint("`strata secrets encrypt` the file, or name the secret in strata.yaml"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "proxmox_api_token",
            "root_password",
            "api_key",
            "apiToken",
            "clientSecret",
            "db_pwd",
            "SECRET-KEY",
            "aws_access_key",
            "credentials",
            "PROXMOX_VE_PASSWORD",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "proxmox_api_token_id",
            "secret_name",
            "http_tokens",
            "name",
            "token_ttl",
            "password_policy",
            "secretRef",
            "private_key_path",
            "tokenExpiration",
            "key",
            "secret_store",
            "keyboard",
            "compass",
            "access_keys_enabled",
            "secret_permissions",
            "cert-manager.io/inject-ca-from-secret",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn secrets_are_known_by_their_looks() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let age = format!("AGE-SECRET-KEY-1{}", "Q".repeat(58));
        let web = ["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0In0", "abcdefghijklmnop"].join(".");
        for text in [
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
            "AKIAIOSFODNN7EXAMPLE",
            &token,
            &age,
            &web,
            "root@pam!ci=01234567-89ab-cdef-0123-456789abcdef",
            "postgres://app:hunter2@db.example/app",
            "key: glpat-abcdefghij0123456789",
        ] {
            assert!(looks_like(text).is_some(), "{text}");
        }
        for text in [
            "-----BEGIN CERTIFICATE-----\nabc",
            "-----BEGIN PUBLIC KEY-----",
            "AKIA",
            "https://example.org:8006/api2/json",
            "root@pam!ci",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 ops@example",
            "https://user@example.org/x",
            "git@github.com:a/b.git",
            "glpatch-notes",
            "postgres://app:${}@db.example/app",
            "sha256:44f4414c874f84af1c91425ec47fdf816e3932ad43f5a54890dec4e42712c387",
        ] {
            assert!(looks_like(text).is_none(), "{text}");
        }
        for text in
            ["", "***", "<your token>", "${var.x}", "ENC[AES256_GCM,data:x]", "xxxx", "~/.ssh/id_ed25519"]
        {
            assert!(is_stand_in(text), "{text}");
        }
        assert!(!is_stand_in("hunter2"));
    }
}
