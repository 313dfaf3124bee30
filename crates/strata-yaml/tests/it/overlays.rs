//! One tree over another.

use strata_diagnostics::{Diagnostics, SourceMap};
use strata_yaml::{Node, Parsed, overlay, parse};

fn laid(base: &str, over: &str) -> (Node, SourceMap) {
    let mut sources = SourceMap::new();
    let base = sources.add("base.yaml", base);
    let over = sources.add("over.yaml", over);
    let mut diagnostics = Diagnostics::new();
    let Parsed::Document(base) = parse(&sources, base, &mut diagnostics) else { panic!("{diagnostics:?}") };
    let Parsed::Document(over) = parse(&sources, over, &mut diagnostics) else { panic!("{diagnostics:?}") };
    (overlay(&base, &over), sources)
}

fn text(node: &Node, path: &[&str]) -> String {
    node.at(path).and_then(Node::as_scalar).map(|scalar| scalar.text.clone()).unwrap_or_default()
}

#[test]
fn keys_are_merged_and_values_keep_their_file() {
    let (node, sources) = laid("a: {b: 1, c: 2}\nd: 3\n", "a: {c: 9, e: 4}\nd: null\n");
    assert_eq!(
        (text(&node, &["a", "b"]), text(&node, &["a", "c"]), text(&node, &["a", "e"])),
        ("1".into(), "9".into(), "4".into())
    );
    assert!(node.get("d").is_none(), "null takes the key away");
    assert_eq!(sources.path(node.at(&["a", "c"]).unwrap().span.file), "over.yaml");
    assert_eq!(sources.path(node.at(&["a", "b"]).unwrap().span.file), "base.yaml");
}

#[test]
fn lists_are_replaced() {
    let (node, _) = laid("a: [1, 2, 3]\n", "a: [4]\n");
    assert_eq!(node.get("a").unwrap().as_list().unwrap().len(), 1);
}

#[test]
fn one_item_of_a_list_is_reached_by_its_slot() {
    let (node, _) =
        laid("network: [{bridge: a}, {bridge: b}]\n", "network: {net1: {vlan: 5}, net2: {bridge: c}}\n");
    assert_eq!(text(&node, &["network", "net0", "bridge"]), "a");
    assert_eq!(text(&node, &["network", "net1", "bridge"]), "b");
    assert_eq!(text(&node, &["network", "net1", "vlan"]), "5");
    assert_eq!(text(&node, &["network", "net2", "bridge"]), "c");
}

#[test]
fn a_mapping_without_slots_replaces_a_list() {
    let (node, _) = laid("a: [1]\n", "a: {first: 1}\n");
    assert_eq!(text(&node, &["a", "first"]), "1");
}
