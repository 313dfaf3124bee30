//! JSON patches (RFC 6902), for configurations of one document.

use strata_secret::SecretString;

use crate::config::MachineConfig;
use crate::document::plain_tree;
use crate::patch::{PatchError, dotted, moved, text};
use crate::shape::V1ALPHA1;
use crate::tree::Value;
use crate::yaml::Node;

#[derive(Clone)]
pub(super) struct Operation {
    number: usize,
    path: Vec<String>,
    pointer: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Add(Value),
    Remove,
    Replace(Value),
    Test(Value),
    Move(Vec<String>),
    Copy(Vec<String>),
}

pub(super) fn parse(nodes: &[Node]) -> Result<Vec<Operation>, PatchError> {
    let parse = |(index, node): (usize, &Node)| {
        let syntax = |reason| PatchError::Syntax { line: node.line, reason };
        let field = |name: &str| node.get(name).and_then(text);
        let pointer = field("path").ok_or_else(|| syntax("a JSON patch operation needs a `path`"))?;
        let path = steps(pointer).ok_or_else(|| syntax("the `path` of a JSON patch begins with `/`"))?;
        let value =
            || node.get("value").map(plain_tree).ok_or_else(|| syntax("this operation needs a `value`"));
        let from = || {
            let from = field("from").ok_or_else(|| syntax("this operation needs a `from`"))?;
            steps(from).ok_or_else(|| syntax("the `from` of a JSON patch begins with `/`"))
        };
        let kind = match field("op") {
            Some("add") => Kind::Add(value()?),
            Some("remove") => Kind::Remove,
            Some("replace") => Kind::Replace(value()?),
            Some("test") => Kind::Test(node.get("value").map_or(Value::Null, plain_tree)),
            Some("move") => Kind::Move(from()?),
            Some("copy") => Kind::Copy(from()?),
            _ => return Err(syntax("the `op` of a JSON patch is add, remove, replace, test, move or copy")),
        };
        Ok(Operation { number: index + 1, path, pointer: pointer.to_owned(), kind })
    };
    if nodes.is_empty() {
        return Err(PatchError::Empty);
    }
    nodes.iter().enumerate().map(parse).collect()
}

/// The names of a JSON pointer.
fn steps(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let unescape = |step: &str| step.replace("~1", "/").replace("~0", "~");
    Some(pointer.strip_prefix('/')?.split('/').map(unescape).collect())
}

pub(super) fn apply(config: MachineConfig, operations: &[Operation]) -> Result<MachineConfig, PatchError> {
    let documents = config.documents();
    if documents.len() != 1 {
        let path = operations.first().map(|operation| operation.path.as_slice()).unwrap_or_default();
        let kind = moved::owner(&config, path).unwrap_or(V1ALPHA1);
        return Err(PatchError::JsonOnSeveral { documents: documents.len(), path: dotted(path), kind });
    }
    let mut root = documents[0].to_value();
    for operation in operations {
        operation.apply(&mut root).map_err(|reason| PatchError::Json {
            number: operation.number,
            path: operation.pointer.clone(),
            reason,
        })?;
    }
    // Read again, so that a value of a wrong type or an unknown field is found here and not on the node.
    let text = SecretString::from(crate::yaml::write(&root));
    Ok(MachineConfig::from_yaml(&text)?)
}

const MISSING: &str = "there is nothing at this path";

impl Operation {
    fn apply(&self, root: &mut Value) -> Result<(), &'static str> {
        match &self.kind {
            Kind::Add(value) => add(root, &self.path, value.clone()),
            Kind::Remove => remove(root, &self.path).map(drop),
            Kind::Replace(value) => {
                *find(root, &self.path).ok_or(MISSING)? = value.clone();
                Ok(())
            }
            Kind::Test(value) => match find(root, &self.path) {
                Some(found) if same(found, value) => Ok(()),
                None if *value == Value::Null => Ok(()),
                Some(_) => Err("the value is another than the one tested for"),
                None => Err(MISSING),
            },
            Kind::Move(from) => {
                let value = remove(root, from)?;
                add(root, &self.path, value)
            }
            Kind::Copy(from) => {
                let value = find(root, from).ok_or("there is nothing at `from`")?.clone();
                add(root, &self.path, value)
            }
        }
    }
}

/// Octal and other numbers are one thing in JSON.
fn same(left: &Value, right: &Value) -> bool {
    match (left.as_int(), right.as_int()) {
        (Some(left), Some(right)) => left == right,
        _ => left == right,
    }
}

fn find<'v>(root: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    path.iter().try_fold(root, |value, step| match value {
        Value::Map(map) => map.get_mut(step),
        Value::List(items) => {
            let index = index(step, items.len())?;
            items.get_mut(index)
        }
        _ => None,
    })
}

/// A negative index counts from the end.
fn index(step: &str, length: usize) -> Option<usize> {
    match step.strip_prefix('-') {
        Some(back) => length.checked_sub(back.parse().ok()?),
        None => step.parse().ok(),
    }
}

fn add(root: &mut Value, path: &[String], value: Value) -> Result<(), &'static str> {
    let Some((last, parents)) = path.split_last() else {
        *root = value;
        return Ok(());
    };
    match find(root, parents).ok_or("what it should be added to is not there")? {
        Value::Map(map) => {
            map.insert(last.clone(), value);
        }
        Value::List(items) if last == "-" => items.push(value),
        Value::List(items) => {
            let index = index(last, items.len() + 1).ok_or("this is no index of a list")?;
            if index > items.len() {
                return Err("the index is beyond the end of the list");
            }
            items.insert(index, value);
        }
        _ => return Err("what it should be added to is neither a mapping nor a list"),
    }
    Ok(())
}

fn remove(root: &mut Value, path: &[String]) -> Result<Value, &'static str> {
    let (last, parents) = path.split_last().ok_or("the whole configuration cannot be removed")?;
    match find(root, parents).ok_or(MISSING)? {
        Value::Map(map) => map.shift_remove(last).ok_or(MISSING),
        Value::List(items) => {
            let index = index(last, items.len()).filter(|index| *index < items.len()).ok_or(MISSING)?;
            Ok(items.remove(index))
        }
        _ => Err(MISSING),
    }
}
