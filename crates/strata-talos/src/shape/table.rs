//! Reads the notation of `tables/*.txt`.
//!
//! `document KIND SINCE [controlplane] [link]` and `record NAME [needs FIELD…]` begin a block of indented fields, `name type`
//! each; the fields of a record that needs some count for nothing without one of those. A type
//! is a word, `[type]`, `[type by field]` or `{type}`; `record` takes the fields indented below it; a capital letter names
//! a record of its own; `+Name` takes over all its fields. Behind a type: `?` absent and zero differ, `!` always written,
//! `=` a patch replaces it, `*` an empty list is kept.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::{DocumentShape, Field, Leaf, Record, Shape, V1ALPHA1};

const SOURCES: [&str; 7] = [
    include_str!("tables/v1alpha1-machine.txt"),
    include_str!("tables/v1alpha1-cluster.txt"),
    include_str!("tables/kubernetes.txt"),
    include_str!("tables/links.txt"),
    include_str!("tables/network.txt"),
    include_str!("tables/runtime.txt"),
    include_str!("tables/storage.txt"),
];

/// Every document that Talos knows.
pub(crate) fn tables() -> &'static [DocumentShape] {
    static TABLES: LazyLock<Vec<DocumentShape>> = LazyLock::new(|| parse(&SOURCES));
    &TABLES
}

#[derive(Clone, Copy)]
struct Line {
    indent: usize,
    text: &'static str,
}

/// The tables are part of the program, and a test reads them all: what is wrong with them is a bug, and told as one.
fn parse(sources: &[&'static str]) -> Vec<DocumentShape> {
    let mut records = HashMap::new();
    let mut documents = Vec::new();
    for block in sources.iter().flat_map(|source| source.split("\n\n")) {
        let mut lines = block
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| Line { indent: line.len() - line.trim_start().len(), text: line.trim() });
        let Some(head) = lines.next() else { continue };
        let body: Vec<Line> = lines.collect();
        match head.text.split(' ').collect::<Vec<_>>()[..] {
            ["record", name] => drop(records.insert(name, (Vec::new(), body))),
            ["record", name, "needs", ref fields @ ..] => drop(records.insert(name, (fields.to_vec(), body))),
            ["document", kind, since, ref flags @ ..] => documents.push((kind, since, flags.to_vec(), body)),
            _ => panic!("a block begins with `document` or `record`, not `{}`", head.text),
        }
    }
    let mut reader = Reader { records, made: HashMap::new() };
    documents
        .into_iter()
        .map(|(kind, since, flags, body)| {
            let record = reader.record(Vec::new(), &body);
            DocumentShape {
                kind,
                since: since.parse().expect("a contract that is known"),
                controlplane: flags.contains(&"controlplane"),
                link: flags.contains(&"link"),
                named: kind != V1ALPHA1 && record.field("name").is_some(),
                record,
            }
        })
        .collect()
}

struct Reader {
    records: HashMap<&'static str, (Vec<&'static str>, Vec<Line>)>,
    made: HashMap<&'static str, Arc<Record>>,
}

impl Reader {
    fn record(&mut self, essential: Vec<&'static str>, lines: &[Line]) -> Arc<Record> {
        Arc::new(Record { fields: self.fields(lines), essential })
    }

    fn fields(&mut self, lines: &[Line]) -> Vec<Field> {
        let mut fields = Vec::new();
        let mut rest = lines;
        while let Some((line, after)) = rest.split_first() {
            let deeper = after.iter().take_while(|next| next.indent > line.indent).count();
            let (below, next) = after.split_at(deeper);
            rest = next;
            if let Some(name) = line.text.strip_prefix('+') {
                let (_, lines) = self.records.get(name).expect("a record of that name").clone();
                fields.extend(self.fields(&lines));
            } else {
                fields.push(self.field(line.text, below));
            }
        }
        fields
    }

    fn field(&mut self, text: &'static str, below: &[Line]) -> Field {
        let (name, kind) = text.split_once(' ').expect("a name and a type");
        let bare = kind.trim_end_matches(['?', '!', '=', '*']);
        let marks = &kind[bare.len()..];
        Field {
            name,
            shape: self.shape(bare, below),
            optional: marks.contains('?'),
            always: marks.contains('!'),
            replace: marks.contains('='),
            keep_empty: marks.contains('*'),
        }
    }

    fn shape(&mut self, text: &'static str, below: &[Line]) -> Shape {
        if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            let (item, by) = match inner.split_once(" by ") {
                Some((item, by)) => (item, Some(by)),
                None => (inner, None),
            };
            return Shape::List { item: Box::new(self.shape(item, below)), by };
        }
        if let Some(inner) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            return Shape::Map(Box::new(self.shape(inner, below)));
        }
        match text {
            "record" => Shape::Record(self.record(Vec::new(), below)),
            "any" => Shape::Any { secret: false },
            "secrets" => Shape::Any { secret: true },
            "args" => Shape::Args,
            name if name.starts_with(|c: char| c.is_ascii_uppercase()) => Shape::Record(self.named(name)),
            word => Shape::Leaf(Leaf::from_word(word).unwrap_or_else(|| panic!("`{word}` is no type"))),
        }
    }

    fn named(&mut self, name: &'static str) -> Arc<Record> {
        if let Some(record) = self.made.get(name) {
            return record.clone();
        }
        let known = self.records.get(name).unwrap_or_else(|| panic!("no record `{name}`"));
        let (essential, lines) = known.clone();
        let record = self.record(essential, &lines);
        self.made.insert(name, record.clone());
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::document;

    #[test]
    fn all_tables_are_read() {
        assert_eq!(tables().len(), 90);
        let machine = document(V1ALPHA1).unwrap().record.field("machine").unwrap();
        assert!(machine.optional && machine.always && !machine.replace);
        let Shape::Record(machine) = &machine.shape else { panic!("a record") };
        let network = machine.field("network").unwrap();
        let Shape::Record(network) = &network.shape else { panic!("a record") };
        assert!(matches!(
            &network.field("interfaces").unwrap().shape,
            Shape::List { by: Some("interface"), .. }
        ));
        let vlan = document("VLANConfig").unwrap();
        assert!(vlan.link && vlan.named && vlan.record.field("addresses").is_some());
        assert!(document("KubeAPIServerConfig").unwrap().controlplane);
    }
}
