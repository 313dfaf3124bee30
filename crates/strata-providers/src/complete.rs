//! What is drawn, completed with what only files of the repository tell; and the secrets in it, scrubbed from now on.

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use strata_blueprint::{Blueprint, kinds};
use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_resource::{Spec, Value};
use strata_secret::Redactor;
use strata_session::Workspace;

pub(crate) fn complete(workspace: &Workspace, drawn: &mut Blueprint) {
    let machines = drawn.graph.iter().filter(|resource| resource.kind() == kinds::MACHINE);
    machines.flat_map(|machine| machine.spec.values()).for_each(|value| learn(workspace.redactor(), value));
    digest_manifests(workspace, drawn);
}

/// What a file of manifests says is part of what is wanted: with another content it is applied again. One that cannot be read is told
/// when it is needed.
fn digest_manifests(workspace: &Workspace, drawn: &mut Blueprint) {
    for resource in drawn.graph.iter_mut().filter(|resource| resource.kind() == kinds::FLUX) {
        let file = resource
            .spec
            .get("source")
            .and_then(Value::as_text)
            .and_then(|source| source.strip_prefix("file:"));
        if let Some(content) =
            file.and_then(|file| read_file(&workspace.root().join(file), LARGEST_FILE).ok())
        {
            let digest = format!("sha256:{}", hex::encode(Sha256::digest(&content)));
            resource.spec.insert("manifests".to_owned(), Value::Text(digest));
        }
    }
}

/// Has the parts of a secret scrubbed from whatever others say, too: a server quotes the value that it does not like, not the whole
/// document that it came in.
fn learn(redactor: &Redactor, value: &Value) {
    if let Some(plain) = value.as_secret().and_then(|secret| secret.plain()) {
        match serde_json::from_str::<Json>(plain.expose()) {
            Ok(parts @ (Json::Object(_) | Json::Array(_))) => learn_parts(redactor, &parts),
            _ => learn_text(redactor, plain.expose()),
        }
    }
    value.as_map().into_iter().flat_map(Spec::values).for_each(|value| learn(redactor, value));
    value.as_list().into_iter().flatten().for_each(|value| learn(redactor, value));
}

fn learn_parts(redactor: &Redactor, parts: &Json) {
    match parts {
        Json::String(text) => learn_text(redactor, text),
        Json::Array(items) => items.iter().for_each(|item| learn_parts(redactor, item)),
        Json::Object(map) => {
            for (key, value) in map {
                learn_text(redactor, key);
                learn_parts(redactor, value);
            }
        }
        _ => {}
    }
}

/// Short words and numbers are in every text.
fn learn_text(redactor: &Redactor, text: &str) {
    const SHORTEST: usize = 8;
    if text.len() >= SHORTEST && !text.bytes().all(|byte| byte.is_ascii_digit()) {
        redactor.add_text(text);
    }
}
