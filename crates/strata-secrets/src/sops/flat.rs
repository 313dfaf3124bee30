//! Metadata as a flat list of names, for formats without nesting: `age__list_0__map_recipient`.

use std::collections::BTreeMap;

use super::SopsError;
use super::metadata::Meta;

const MAP: &str = "__map_";
const LIST: &str = "__list_";

/// Every scalar with its name. Empty lists and mappings have none.
pub(crate) fn flatten(meta: &Meta) -> Vec<(String, String)> {
    let mut flat = Vec::new();
    if let Meta::Mapping(fields) = meta {
        fields.iter().for_each(|(key, value)| descend(key.clone(), value, &mut flat));
    }
    flat
}

fn descend(name: String, meta: &Meta, flat: &mut Vec<(String, String)>) {
    match meta {
        Meta::Mapping(fields) => {
            fields.iter().for_each(|(key, value)| descend(format!("{name}{MAP}{key}"), value, flat));
        }
        Meta::List(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| descend(format!("{name}{LIST}{index}"), value, flat));
        }
        Meta::Scalar(text) => flat.push((name, text.clone())),
        Meta::Number(number) => flat.push((name, number.to_string())),
        Meta::Bool(value) => flat.push((name, value.to_string())),
        Meta::Null => {}
    }
}

#[derive(Default)]
struct Branch {
    value: Option<String>,
    fields: BTreeMap<String, Branch>,
    items: BTreeMap<usize, Branch>,
}

/// The tree that a flat list stands for.
pub(crate) fn unflatten(flat: &[(String, String)]) -> Result<Meta, SopsError> {
    let mut root = Branch::default();
    for (name, value) in flat {
        let bad = |reason: &str| SopsError::Metadata { field: name.clone(), reason: reason.to_owned() };
        let mut branch = &mut root;
        for step in steps(name) {
            branch = match step {
                Step::Field(key) => branch.fields.entry(key.to_owned()).or_default(),
                Step::Item(index) => {
                    branch.items.entry(index.ok_or_else(|| bad("not a number"))?).or_default()
                }
            };
        }
        if branch.value.replace(value.clone()).is_some() {
            return Err(bad("there twice"));
        }
    }
    convert(root, "sops")
}

enum Step<'n> {
    Field(&'n str),
    Item(Option<usize>),
}

fn steps(name: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let mut rest = name;
    let mut item = false;
    loop {
        let next = [MAP, LIST].into_iter().filter_map(|mark| rest.find(mark).map(|at| (at, mark))).min();
        let (part, following) = match next {
            Some((at, mark)) => (&rest[..at], Some((&rest[at + mark.len()..], mark))),
            None => (rest, None),
        };
        steps.push(if item { Step::Item(part.parse().ok()) } else { Step::Field(part) });
        match following {
            Some((following, mark)) => (rest, item) = (following, mark == LIST),
            None => return steps,
        }
    }
}

fn convert(branch: Branch, name: &str) -> Result<Meta, SopsError> {
    let bad = |reason: &str| SopsError::Metadata { field: name.to_owned(), reason: reason.to_owned() };
    match (branch.value, branch.fields.is_empty(), branch.items.is_empty()) {
        (Some(value), true, true) => Ok(Meta::Scalar(value)),
        (None, _, true) => {
            let field = |(key, value): (String, Branch)| convert(value, &key).map(|meta| (key, meta));
            Ok(Meta::Mapping(branch.fields.into_iter().map(field).collect::<Result<_, _>>()?))
        }
        (None, true, false) => {
            if branch.items.keys().enumerate().any(|(expected, index)| expected != *index) {
                return Err(bad("an item of the list is missing"));
            }
            Ok(Meta::List(
                branch.items.into_values().map(|item| convert(item, name)).collect::<Result<_, _>>()?,
            ))
        }
        _ => Err(bad("both a value and something below it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_survives_being_flat() {
        let field = |key: &str, value: Meta| (key.to_owned(), value);
        let entry =
            Meta::Mapping(vec![field("enc", Meta::text("x")), field("recipient", Meta::text("age1"))]);
        let meta = Meta::Mapping(vec![
            field("age", Meta::List(vec![entry.clone(), entry])),
            field("mac", Meta::text("y")),
            field("shamir_threshold", Meta::text("2")),
        ]);
        let flat = flatten(&meta);
        assert_eq!(flat[1].0, "age__list_0__map_recipient");
        assert_eq!(unflatten(&flat).expect("whole"), meta);
    }

    #[test]
    fn holes_and_contradictions_are_refused() {
        let flat = |names: &[&str]| {
            names.iter().map(|name| ((*name).to_owned(), "v".to_owned())).collect::<Vec<_>>()
        };
        for names in
            [&["a__list_1"][..], &["a__list_x"], &["a", "a__map_b"], &["a", "a"], &["a__list_0", "a__map_b"]]
        {
            assert!(unflatten(&flat(names)).is_err(), "{names:?}");
        }
    }
}
