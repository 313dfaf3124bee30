//! Changes of a machine configuration, told in a few lines. A new version of Talos may move a hundred fields from one
//! document to others: a reader wants to know which documents come and go, and every field only when asked (`-v`).

use std::collections::{BTreeMap, BTreeSet};

use strata_resource::FieldChange;

use crate::style::{self, paint};

/// More fields than these of one document that come or go are told by what they have in common.
const FEW: usize = 6;

type Row = (String, String, String);

/// Rows for documents and for many fields that come or go, and the changes that are left to be shown one by one.
pub(super) fn rows<'c>(whole: &str, changes: &'c [FieldChange]) -> (Vec<Row>, Vec<&'c FieldChange>) {
    let mut documents = Sides::default();
    let mut fields: BTreeMap<&str, Sides> = BTreeMap::new();
    for change in changes {
        let [config, document, field @ ..] = change.path.keys() else { continue };
        if config != whole || change.drift {
            continue;
        }
        match field {
            [] => documents.note(change, document.clone()),
            [.., _] => fields.entry(document).or_default().note(change, common(field)),
        }
    }
    fields.retain(|_, sides| sides.count > FEW);
    let told = |change: &&FieldChange| match change.path.keys() {
        [config, _] if config == whole => one_sided(change) && !change.drift,
        [config, document, ..] if config == whole => {
            one_sided(change) && !change.drift && fields.contains_key(document.as_str())
        }
        _ => false,
    };
    let rest = changes.iter().filter(|change| !told(change)).collect();
    let mut rows = documents.rows(whole);
    for (document, sides) in &fields {
        rows.extend(sides.rows(&format!("{whole}.{document}")));
    }
    (rows, rest)
}

fn one_sided(change: &FieldChange) -> bool {
    change.before.is_some() != change.after.is_some()
}

/// What the fields of a part have in common: `cluster.apiServer` of `cluster.apiServer.auditPolicy.kind`.
fn common(field: &[String]) -> String {
    field.iter().take(2).map(String::as_str).collect::<Vec<_>>().join(".")
}

/// What comes and what goes.
#[derive(Default)]
struct Sides {
    comes: BTreeSet<String>,
    goes: BTreeSet<String>,
    count: usize,
}

impl Sides {
    fn note(&mut self, change: &FieldChange, name: String) {
        match (&change.before, &change.after) {
            (None, Some(_)) => self.comes.insert(name),
            (Some(_), None) => self.goes.insert(name),
            _ => return,
        };
        self.count += 1;
    }

    fn rows(&self, path: &str) -> Vec<Row> {
        [(&self.comes, "+", style::CREATE), (&self.goes, "-", style::DESTROY)]
            .into_iter()
            .filter(|(names, ..)| !names.is_empty())
            .map(|(names, sign, colour)| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                (path.to_owned(), paint(colour, format!("{sign} {}", names.join(", "))), String::new())
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use strata_resource::{FieldPath, Value};

    use super::*;

    fn change(path: &[&str], before: Option<&str>, after: Option<&str>) -> FieldChange {
        let value = |text: &str| Value::Text(text.to_owned());
        FieldChange {
            path: path.iter().fold(FieldPath::root(), |path, key| path.child(key)),
            before: before.map(value),
            after: after.map(value),
            drift: false,
        }
    }

    #[test]
    fn documents_are_named_and_many_fields_gathered() {
        let mut changes = vec![
            change(&["config", "KubeletConfig"], None, Some("a")),
            change(&["config", "KubePrismConfig"], None, Some("b")),
            change(&["config", "HostnameConfig", "hostname"], Some("a"), Some("b")),
            change(&["version"], Some("v1.13.0"), Some("v1.14.0")),
        ];
        for field in ["a", "b", "c", "d", "e", "f", "g"] {
            changes.push(change(&["config", "v1alpha1", "cluster", "apiServer", field], Some("x"), None));
        }
        changes.push(change(&["config", "v1alpha1", "cluster", "id"], Some("x"), Some("y")));
        let (rows, rest) = rows("config", &changes);
        let shown: Vec<(&str, String)> = rows
            .iter()
            .map(|(path, text, _)| (path.as_str(), anstream::adapter::strip_str(text).to_string()))
            .collect();
        assert_eq!(
            shown,
            [
                ("config", "+ KubePrismConfig, KubeletConfig".to_owned()),
                ("config.v1alpha1", "- cluster.apiServer".to_owned()),
            ]
        );
        let rest: Vec<String> = rest.iter().map(|change| change.path.to_string()).collect();
        assert_eq!(rest, ["config.HostnameConfig.hostname", "version", "config.v1alpha1.cluster.id"]);
    }

    #[test]
    fn what_somebody_else_changed_is_shown_field_by_field() {
        let mut drifted = change(&["config", "KubeletConfig"], Some("a"), None);
        drifted.drift = true;
        let (rows, rest) = rows("config", std::slice::from_ref(&drifted));
        assert!(rows.is_empty());
        assert_eq!(rest, [&drifted]);
    }
}
