//! What the configuration files made of sections have in common: typed reading, and the digest of a file.

use std::fmt::Write as _;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::api::param::Kind;
use crate::api::{Arg, Call, Param, Refusal, no};
use crate::world::World;
use crate::world::made_up::sha1_hex;

/// An option as JSON: numbers and booleans are numbers there, everything else is text.
pub fn typed(params: &[Param], key: &str, value: &str) -> Value {
    let kind = params.iter().find(|p| p.name == key).map(|p| &p.kind);
    match kind {
        Some(Kind::Int | Kind::Bool | Kind::Number) => number(value),
        Some(Kind::Array(_)) => Value::Array(value.lines().map(|line| json!(line)).collect()),
        _ => json!(value),
    }
}

/// A number where it is one, else the text itself.
pub fn number(value: &str) -> Value {
    if let Ok(whole) = value.parse::<i64>() {
        return json!(whole);
    }
    value.parse::<f64>().map_or_else(|_| json!(value), |n| json!(n))
}

/// All options of a section. An empty one has no line in the file, so it is not read again.
pub fn typed_all(params: &[Param], props: &IndexMap<String, String>) -> Map<String, Value> {
    props.iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| (k.clone(), typed(params, k, v))).collect()
}

/// The digest of a file with these sections: kind, id, options.
pub fn digest<'s>(
    sections: impl IntoIterator<Item = (&'s str, &'s str, &'s IndexMap<String, String>)>,
) -> String {
    let mut text = String::new();
    for (kind, id, props) in sections {
        let _ = writeln!(text, "{kind}: {id}");
        for (key, value) in props {
            let _ = writeln!(text, "\t{key} {value}");
        }
        text.push('\n');
    }
    sha1_hex(&text)
}

/// The options of a kind of section: those it must have, and those it may have.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub required: &'static [&'static str],
    pub optional: &'static [&'static str],
}

impl Options {
    pub fn knows(&self, option: &str) -> bool {
        self.required.contains(&option) || self.optional.contains(&option)
    }

    /// 500 for an option that this kind does not have, or (at creation) for one that is missing.
    pub fn check(&self, props: &Props, creating: bool) -> Result<(), Refusal> {
        if let Some(unknown) = props.keys().find(|key| !self.knows(key)) {
            return Err(no(format!("unexpected property '{unknown}'")));
        }
        match self.required.iter().find(|key| creating && !props.contains_key(**key)) {
            Some(missing) => Err(no(format!("missing value for required option '{missing}'"))),
            None => Ok(()),
        }
    }

    /// Takes options away, with the complaints of the original.
    pub fn remove(&self, props: &mut Props, set: &Props, doomed: &[String]) -> Result<(), Refusal> {
        for key in doomed {
            if !self.knows(key) {
                return Err(no(format!("no such option '{key}'")));
            }
            if self.required.contains(&key.as_str()) {
                return Err(no(format!("unable to delete required option '{key}'")));
            }
            if set.contains_key(key) {
                return Err(no(format!("cannot set and delete property '{key}' at the same time!")));
            }
            props.shift_remove(key);
        }
        Ok(())
    }
}

pub type Props = IndexMap<String, String>;

/// The options among the parameters of a call; `own` are those of the call itself. Lists have an entry a line.
pub fn given(call: &Call<'_>, own: &[&str]) -> Props {
    let mut props = Props::new();
    for (key, arg) in call.args.0.iter().filter(|(key, _)| !own.contains(&key.as_str())) {
        match arg {
            Arg::List(_) => drop(props.insert(key.clone(), call.args.values(key).join("\n"))),
            other => props.extend(other.as_text().map(|text| (key.clone(), text.to_owned()))),
        }
    }
    props
}

/// The digest of one of the cluster's files.
pub fn file_digest(world: &World, file: &str) -> String {
    digest(world.cluster.file(file).map(|(id, section)| (section.kind.as_str(), id, &section.props)))
}

/// Puts what failed before the text of a refusal. One with parameters, or another status, becomes text too: the original
/// has only its words by then.
pub fn failed(what: &'static str) -> impl Fn(Refusal) -> Refusal {
    move |refusal| match refusal {
        Refusal::Error { status: 500, message, errors: None } => {
            no(format!("{what}: {}", message.trim_end_matches('\n')))
        }
        Refusal::Error { status, .. } => no(format!("{what}: {status} {}", refusal.text())),
        other => other,
    }
}
