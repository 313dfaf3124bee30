//! A verb as a tool: what a client is told of it, and the command line of a call.

use serde_json::{Map, Value, json};

/// What an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One text.
    Text,
    /// Any number of texts.
    Texts,
    /// Yes or no.
    Flag,
}

/// One argument of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// The name that a client calls it by.
    pub name: &'static str,
    /// What it takes.
    pub form: Form,
    /// The option that it becomes, such as `--base`; otherwise it stands for itself, after all options.
    pub option: Option<&'static str>,
    /// Whether a call without it is refused.
    pub required: bool,
    /// What it is for.
    pub help: &'static str,
}

/// A verb that only looks.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// The name that a client calls it by.
    pub name: &'static str,
    /// The words of the verb, with options that are always given.
    pub verb: &'static [&'static str],
    /// What it takes.
    pub arguments: &'static [Argument],
    /// What it does, for the one who chooses a tool.
    pub help: &'static str,
}

impl Tool {
    /// As a client is told of it.
    pub(crate) fn description(&self) -> Value {
        let properties: Map<String, Value> = self
            .arguments
            .iter()
            .map(|argument| {
                let mut form = match argument.form {
                    Form::Text => json!({"type": "string"}),
                    Form::Texts => json!({"type": "array", "items": {"type": "string"}}),
                    Form::Flag => json!({"type": "boolean"}),
                };
                form["description"] = argument.help.into();
                (argument.name.to_owned(), form)
            })
            .collect();
        let required: Vec<&str> =
            self.arguments.iter().filter(|one| one.required).map(|one| one.name).collect();
        json!({
            "name": self.name,
            "description": self.help,
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true},
        })
    }
}

/// The command line of a call, or what is wrong with its arguments.
pub fn command_line(tool: &Tool, given: &Value) -> Result<Vec<String>, String> {
    let none = Map::new();
    let given = match given {
        Value::Null => &none,
        Value::Object(given) => given,
        _ => return Err("arguments are an object".to_owned()),
    };
    if let Some(unknown) = given.keys().find(|name| tool.arguments.iter().all(|own| own.name != *name)) {
        return Err(format!("`{}` takes no argument `{unknown}`", tool.name));
    }
    let mut line: Vec<String> = tool.verb.iter().map(|&word| word.to_owned()).collect();
    let mut standing = Vec::new();
    for argument in tool.arguments {
        let value = given.get(argument.name).filter(|value| !value.is_null());
        let Some(value) = value else {
            if argument.required {
                return Err(format!("`{}` needs the argument `{}`", tool.name, argument.name));
            }
            continue;
        };
        let texts = texts(argument, value)?;
        match (argument.option, argument.form) {
            (Some(option), Form::Flag) if !texts.is_empty() => line.push(option.to_owned()),
            (_, Form::Flag) => {}
            // In one word, so that a value that begins with a dash is no option.
            (Some(option), _) => line.extend(texts.into_iter().map(|text| format!("{option}={text}"))),
            (None, _) => standing.extend(texts),
        }
    }
    if !standing.is_empty() {
        line.push("--".to_owned());
        line.extend(standing);
    }
    Ok(line)
}

/// The texts of a value; a flag that is set has one.
fn texts(argument: &Argument, value: &Value) -> Result<Vec<String>, String> {
    let wrong = |what: &str| format!("`{}` takes {what}", argument.name);
    match argument.form {
        Form::Flag => {
            let set = value.as_bool().ok_or_else(|| wrong("true or false"))?;
            Ok(set.then(String::new).into_iter().collect())
        }
        Form::Text => {
            let text = value.as_str().ok_or_else(|| wrong("a text"))?;
            Ok(vec![text.to_owned()])
        }
        Form::Texts => {
            let texts = value.as_array().ok_or_else(|| wrong("a list of texts"))?;
            texts
                .iter()
                .map(|text| text.as_str().map(str::to_owned))
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("a list of texts"))
        }
    }
}
