//! The values that notifications are set up with. They are read by their types, below the parameter table, and what cannot be read
//! is an error of the server in words of its own.

use crate::api::{Call, Refusal, no};
use crate::endpoints::calendar;

/// The options of each kind that can be deleted, in the order in which they are told.
pub fn deletable(kind: &str) -> &'static [&'static str] {
    match kind {
        "gotify" => &["comment", "disable"],
        "sendmail" => &["author", "comment", "disable", "from-address", "mailto", "mailto-user"],
        "smtp" => &["author", "comment", "disable", "mailto", "mailto-user", "password", "port", "username"],
        "webhook" => &["comment", "disable", "header", "body", "secret"],
        _ => &[
            "comment",
            "disable",
            "invert-match",
            "match-calendar",
            "match-field",
            "match-severity",
            "mode",
            "target",
        ],
    }
}

fn error(text: impl AsRef<str>) -> Refusal {
    no(format!("error: {}", text.as_ref()))
}

/// 500 for the first value that is not of its type.
pub fn check(call: &Call<'_>, kind: &str) -> Result<(), Refusal> {
    if let Some(port) = call.args.text("port")
        && port.parse::<u16>().is_err()
    {
        return Err(error(format!("invalid value: integer `{port}`, expected u16")));
    }
    for key in ["header", "secret"] {
        for value in call.args.values(key) {
            pair(&value)?;
        }
    }
    for value in call.args.values("match-field") {
        field(&value)?;
    }
    for severity in call.args.values("match-severity") {
        let unknown = |word: &&str| !["info", "notice", "warning", "error", "unknown"].contains(word);
        if let Some(word) = severity.split(',').map(str::trim).find(unknown) {
            return Err(error(format!("invalid severity {word}")));
        }
    }
    for value in call.args.values("match-calendar") {
        calendar::daily(&value).map_err(|text| error(format!("could not parse schedule: {text}")))?;
    }
    let known = deletable(kind);
    if let Some(key) = call.args.values("delete").into_iter().find(|key| !known.contains(&key.as_str())) {
        let all: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
        let among = if all.len() == 2 { all.join(" or ") } else { format!("one of {}", all.join(", ")) };
        return Err(error(format!("unknown variant `{key}`, expected {among}")));
    }
    Ok(())
}

/// `name=NAME,value=VALUE`.
fn pair(value: &str) -> Result<(), Refusal> {
    for part in value.split(',') {
        match part.split_once('=') {
            None => return Err(error("value without key, but schema does not define a default key")),
            Some((key, _)) if key != "name" && key != "value" => {
                return Err(error(format!(
                    "schema does not allow additional properties, unknown property `{key}`"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The name of a header or secret.
pub fn name_of(value: &str) -> &str {
    value.split(',').find_map(|part| part.strip_prefix("name=")).unwrap_or_default()
}

/// `exact:FIELD=VALUES` or `regex:FIELD=EXPRESSION`.
fn field(value: &str) -> Result<(), Refusal> {
    let failed = |text: String| error(format!("could not apply filter: {text}"));
    let bad = || failed(format!("invalid match-field statement: {value}"));
    let (kind, rest) = value.split_once(':').ok_or_else(bad)?;
    let (name, expected) = rest.split_once('=').ok_or_else(bad)?;
    let safe = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    match kind {
        "exact" if safe => Ok(()),
        "regex" if safe => {
            regex::Regex::new(expected).map(drop).map_err(|why| failed(format!("invalid regex: {why}")))
        }
        _ => Err(bad()),
    }
}
