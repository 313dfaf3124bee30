//! The metadata as YAML, in the form in which `sops` writes it.

use super::SOPS;
use crate::sops::metadata::Meta;
use crate::yaml::write::{STEP, Spot, double_quoted, write_text};

/// The key `sops` with everything below it, as lines.
pub(super) fn block(meta: &Meta) -> String {
    let mut lines = format!("{SOPS}:");
    below(meta, 0, &mut lines);
    lines.push('\n');
    lines
}

/// Writes what stands behind a key of a mapping in this column.
fn below(meta: &Meta, column: usize, lines: &mut String) {
    match meta {
        Meta::Mapping(fields) if !fields.is_empty() => {
            let column = column / STEP * STEP + STEP;
            for (key, value) in fields {
                lines.push_str(&format!("\n{}{}:", " ".repeat(column), key_text(key)));
                below(value, column, lines);
            }
        }
        Meta::List(items) if !items.is_empty() => {
            let column = column / STEP * STEP + STEP;
            for item in items {
                lines.push_str(&format!("\n{}-", " ".repeat(column)));
                list_item(item, column, lines);
            }
        }
        other => inline(other, Spot::Value(column), lines),
    }
}

fn list_item(meta: &Meta, dash: usize, lines: &mut String) {
    match meta {
        Meta::Mapping(fields) if !fields.is_empty() => {
            for (index, (key, value)) in fields.iter().enumerate() {
                let lead = if index == 0 { " ".to_owned() } else { format!("\n{}", " ".repeat(dash + 2)) };
                lines.push_str(&format!("{lead}{}:", key_text(key)));
                below(value, dash + 2, lines);
            }
        }
        other => inline(other, Spot::Item(dash), lines),
    }
}

fn inline(meta: &Meta, spot: Spot, lines: &mut String) {
    lines.push(' ');
    match meta {
        Meta::Scalar(text) => {
            let written = write_text(text, spot, true);
            lines.push_str(&written.head);
            lines.push_str(&written.block);
        }
        other => lines.push_str(&flow(other)),
    }
}

fn key_text(key: &str) -> String {
    write_text(key, Spot::Value(0), false).head
}

/// The metadata in braces, on one line.
pub(super) fn flow(meta: &Meta) -> String {
    match meta {
        Meta::Mapping(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{}: {}", double_quoted(key), flow(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Meta::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Meta::Scalar(text) => double_quoted(text),
        Meta::Number(number) => number.to_string(),
        Meta::Bool(value) => value.to_string(),
        Meta::Null => "null".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_as_sops_writes_it() {
        let field = |key: &str, value: Meta| (key.to_owned(), value);
        let entry = Meta::Mapping(vec![
            field("enc", Meta::text("one\ntwo\n")),
            field("recipient", Meta::text("age1x")),
        ]);
        let meta = Meta::Mapping(vec![
            field("age", Meta::List(vec![entry.clone()])),
            field("key_groups", Meta::List(vec![Meta::Mapping(vec![field("age", Meta::List(vec![entry]))])])),
            field("lastmodified", Meta::text("2026-11-15T19:57:17Z")),
            field("kms", Meta::List(vec![])),
            field("shamir_threshold", Meta::Number(2)),
        ]);
        assert_eq!(
            block(&meta),
            "\
sops:
    age:
        - enc: |
            one
            two
          recipient: age1x
    key_groups:
        - age:
            - enc: |
                one
                two
              recipient: age1x
    lastmodified: \"2026-11-15T19:57:17Z\"
    kms: []
    shamir_threshold: 2
"
        );
        assert!(flow(&meta).starts_with(r#"{"age": [{"enc": "one\ntwo\n", "recipient": "age1x"}]"#));
    }
}
