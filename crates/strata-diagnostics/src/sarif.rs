//! Diagnostics as a SARIF 2.1.0 log, which forges show beside the lines of a pull request.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{Diagnostic, Label, SourceMap};

/// One log with one run of `tool` (its name and version).
pub fn to_sarif<'a>(
    diagnostics: impl IntoIterator<Item = &'a Diagnostic>,
    sources: &SourceMap,
    tool: (&str, &str),
) -> Value {
    let diagnostics: Vec<&Diagnostic> = diagnostics.into_iter().collect();
    let codes: BTreeSet<&str> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    let rules: Vec<Value> = codes.iter().map(|code| json!({"id": code})).collect();
    let results: Vec<Value> = diagnostics.iter().map(|diagnostic| result(diagnostic, sources)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": tool.0, "version": tool.1, "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
    let mut text = diagnostic.message.clone();
    for part in diagnostic.notes.iter().chain(&diagnostic.hint) {
        text.push_str("; ");
        text.push_str(part);
    }
    let mut result = json!({
        "ruleId": diagnostic.code,
        "level": diagnostic.severity.as_str(),
        "message": {"text": text},
    });
    if let Some(label) = &diagnostic.primary {
        result["locations"] = json!([location(label, sources)]);
    }
    if !diagnostic.secondary.is_empty() {
        result["relatedLocations"] =
            diagnostic.secondary.iter().map(|label| location(label, sources)).collect();
    }
    result
}

fn location(label: &Label, sources: &SourceMap) -> Value {
    let at = sources.location(label.span);
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": {"uri": uri(&at.file)},
            "region": {
                "startLine": at.line,
                "startColumn": at.column,
                "endLine": at.end_line,
                "endColumn": at.end_column,
            },
        },
    });
    if !label.text.is_empty() {
        location["message"] = json!({"text": label.text});
    }
    location
}

/// The path as a relative URI: SARIF readers refuse spaces and other characters in it.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(byte as char)
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
