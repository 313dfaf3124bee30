//! Files that try to use up the memory or the stack.

use insta::assert_snapshot;
use proptest::prelude::*;

use crate::tree;

const TEN_MEGABYTES: usize = 10_000_000;

fn filled(part: &str) -> String {
    part.repeat(TEN_MEGABYTES / part.len())
}

#[test]
fn ten_megabytes_of_nesting_are_refused_at_once() {
    assert_snapshot!(tree(&filled("[")).1, @"
    error[too-deep]: lists and mappings are nested more than 64 deep
    --> a.yaml:1:256
    ");
    assert_snapshot!(tree(&filled("- ")).1, @"
    error[too-deep]: lists and mappings are nested more than 64 deep
    --> a.yaml:1:129
    ");
    for part in ["{", "{a: ", "? ", "[a, {b: ", "[[],", "- ? "] {
        let mistakes = tree(&part.repeat(1_000_000 / part.len())).1;
        assert!(mistakes.contains("too-deep"), "{part:?}: {mistakes}");
    }
    let mut stairs = String::new();
    for depth in 0..4400 {
        stairs.push_str(&" ".repeat(depth));
        stairs.push_str("a:\n");
    }
    let mistakes = tree(&stairs).1;
    assert!(mistakes.contains("nested more than 64 deep"), "{mistakes}");
    assert!(mistakes.contains("a.yaml:65:65"), "{mistakes}");
}

#[test]
fn much_of_anything_else_ends() {
    for part in
        ["'", "\"", "!", "&a ", "*a ", "%", "\t", "a", "- \n", "a: b\n", "a:", "---\n", "\n", "é", "\r", "|"]
    {
        let _ = tree(&part.repeat(200_000 / part.len()));
    }
}

#[test]
fn aliases_of_aliases_are_refused() {
    let mut laughs = String::from("a: &a [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n");
    for (this, last) in ('b'..='i').zip('a'..) {
        let many = vec![format!("*{last}"); 9].join(", ");
        laughs.push_str(&format!("{this}: &{this} [{many}]\n"));
    }
    assert_snapshot!(tree(&laughs).1, @"
    error[too-large]: the aliases of this file repeat more than 100000 values
     --> a.yaml:6:8
      |
    6 | f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e]
      |        ^^
    ");
}

#[test]
fn aliases_cannot_hide_depth() {
    let mut deep = String::from("a0: &a0 [x]\n");
    for level in 1..100 {
        deep.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    let mistakes = tree(&deep).1;
    assert!(mistakes.contains("nested more than 64 deep"), "{mistakes}");
}

#[test]
fn a_file_of_unreasonable_size_is_refused() {
    let mistakes = tree(&" ".repeat((32 << 20) + 1)).1;
    assert_snapshot!(mistakes, @"error[too-large]: the file has 33554433 bytes; the limit is 33554432");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_text_makes_the_reader_panic(text in "[-a-c:{}\\[\\],&*!|>'\"%@?# \t\n\r<é~0-9.]{0,200}") {
        let _ = tree(&text);
    }

    #[test]
    fn every_span_lies_in_its_file(text in "[-a-c:{}\\[\\],&*'\" \n<é]{0,80}") {
        fn check(node: &strata_yaml::Node, text: &str) {
            assert!(text.get(node.span.range()).is_some());
            for item in node.as_list().unwrap_or_default() {
                check(item, text);
            }
            for entry in node.as_mapping().map(|mapping| mapping.entries.as_slice()).unwrap_or_default() {
                assert!(text.get(entry.key.span.range()).is_some());
                check(&entry.value, text);
            }
        }
        if let Some(node) = tree(&text).0 {
            check(&node, &text);
        }
    }
}
