//! Files that are not YAML, or more YAML than we take.

use insta::assert_snapshot;

use crate::tree;

fn mistakes(text: &str) -> String {
    tree(text).1
}

#[test]
fn an_empty_file() {
    assert_snapshot!(mistakes(""), @"
    error[empty-file]: the file is empty; it should hold a mapping
    --> a.yaml:1:1
    ");
    assert_snapshot!(mistakes("# only a comment\n"), @"
    error[empty-file]: the file is empty; it should hold a mapping
     --> a.yaml:1:1
      |
    1 | # only a comment
      | ^
    ");
}

#[test]
fn tabs() {
    assert_snapshot!(mistakes("vms:\n\tweb: 1\n"), @"
    error[syntax]: a tab is used as indentation; YAML takes spaces only
     --> a.yaml:2:1
      |
    2 |     web: 1
      | ^^^^
      |
      = hint: replace each tab with spaces
    ");
    assert_snapshot!(mistakes("vms: 1\n\tweb: 2\n"), @"
    error[syntax]: a tab is used as indentation; YAML takes spaces only
     --> a.yaml:2:1
      |
    2 |     web: 2
      | ^^^^
      |
      = hint: replace each tab with spaces
    ");
}

#[test]
fn a_tab_inside_text_is_fine() {
    assert_eq!(mistakes("notes: |\n  a\tb\n  \tc\nname: 'x\ty'\n"), "");
}

#[test]
fn duplicate_keys() {
    assert_snapshot!(mistakes("vms:\n  web: 1\n  db: 2\n  web: 3\n"), @"
    error[duplicate-key]: the key `web` is here twice
     --> a.yaml:4:3
      |
    2 |   web: 1
      |   --- first here
    3 |   db: 2
    4 |   web: 3
      |   ^^^ again here
      |
      = hint: keep one of them
    ");
}

#[test]
fn two_documents() {
    assert_snapshot!(mistakes("a: 1\n---\nb: 2\n"), @"
    error[second-document]: a second document begins here; this file takes one
     --> a.yaml:2:1
      |
    2 | ---
      | ^^^
      |
      = hint: move it to a file of its own, or remove the `---`
    ");
}

#[test]
fn unclosed_brackets() {
    assert_snapshot!(mistakes("vms: {web: {cores: 2}\nnext: 1\n"), @"
    error[syntax]: a `{` or `[` is not closed before the next line
     --> a.yaml:1:6
      |
    1 | vms: {web: {cores: 2}
      |      ^ never closed
    2 | next: 1
      | - found instead
    ");
    assert_snapshot!(mistakes("tags: [a, b\n"), @"
    error[syntax]: a list that begins with `[` has no `]`
     --> a.yaml:1:7
      |
    1 | tags: [a, b
      |       ^    - found instead
      |       |
      |       never closed
    ");
    assert_snapshot!(mistakes("tags: ]\n"), @"
    error[syntax]: this bracket closes nothing
     --> a.yaml:1:7
      |
    1 | tags: ]
      |       ^
    ");
}

#[test]
fn unclosed_quotes() {
    assert_snapshot!(mistakes("name: 'web\nnext: 1\n"), @"
    error[syntax]: a quoted text has no closing quote, or its next line is not indented
     --> a.yaml:1:7
      |
    1 | name: 'web
      |       ^
    ");
}

#[test]
fn wrong_indentation() {
    assert_snapshot!(mistakes("vms:\n  web: 1\n   db: 2\n"), @"
    error[syntax]: a `:` cannot stand here
     --> a.yaml:3:6
      |
    3 |    db: 2
      |      ^
      |
      = hint: quote a text that contains `: `; or the line above or this one is indented wrongly
    ");
    assert_snapshot!(mistakes("- a\nb: 1\n"), @"
    error[syntax]: this line does not fit the lines before it
     --> a.yaml:2:1
      |
    2 | b: 1
      | ^
      |
      = hint: check that the lines of one mapping begin in the same column
    ");
    assert_snapshot!(mistakes("url: http: //x\n"), @"
    error[syntax]: a `:` cannot stand here
     --> a.yaml:1:10
      |
    1 | url: http: //x
      |          ^
      |
      = hint: quote a text that contains `: `; or the line above or this one is indented wrongly
    ");
}

#[test]
fn characters_that_begin_no_text() {
    assert_snapshot!(mistakes("user: @admin\n"), @"
    error[syntax]: a text cannot begin with `@`
     --> a.yaml:1:7
      |
    1 | user: @admin
      |       ^
      |
      = hint: put it in quotes
    ");
    assert_snapshot!(mistakes("user: a\u{1b}[31m\n"), @r#"
    error[syntax]: the control character U+001B cannot stand in YAML
     --> a.yaml:1:8
      |
    1 | user: a␛[31m
      |        ^
      |
      = hint: write it as "\u001b" in quotes
    "#);
}

#[test]
fn tags_and_odd_keys() {
    assert_snapshot!(mistakes("password: !vault |\n  abc\n"), @"
    error[unknown-tag]: the tag `!vault` means nothing here
     --> a.yaml:1:11
      |
    1 | password: !vault |
      |           ^^^^^^^^
      |
      = hint: keep encrypted values in a `*.vault.yaml` file and refer to them with `{secret: name}`
    ");
    assert_snapshot!(mistakes("? [a]\n: 1\n"), @"
    error[syntax]: a key must be text, found a list
     --> a.yaml:1:3
      |
    1 | ? [a]
      |   ^^^
    ");
}

#[test]
fn anchors_and_merge_keys() {
    let (node, mistakes) =
        tree("x: &x {a: 1, b: 2}\ny: &y {c: 3, a: 9}\nz:\n  <<: [*x, *y]\n  b: 5\nw: *x\n");
    assert_eq!(mistakes, "");
    let node = node.unwrap();
    let number = |path: &[&str]| node.at(path).unwrap().as_scalar().unwrap().text.clone();
    assert_eq!(number(&["z", "a"]), "1", "the first of the list wins");
    assert_eq!(number(&["z", "b"]), "5", "what is written wins");
    assert_eq!(number(&["z", "c"]), "3");
    assert_eq!(number(&["w", "b"]), "2");
}

#[test]
fn bad_anchors_and_merge_keys() {
    assert_snapshot!(mistakes("a: *nobody\n"), @"
    error[syntax]: no anchor with this name was set before
     --> a.yaml:1:4
      |
    1 | a: *nobody
      |    ^
      |
      = hint: an anchor is set with `&name` and used with `*name`
    ");
    assert_snapshot!(mistakes("a: &a [*a]\n"), @"
    error[syntax]: this alias stands inside the value that it repeats
     --> a.yaml:1:8
      |
    1 | a: &a [*a]
      |        ^^
    ");
    assert_snapshot!(mistakes("x: &x 5\nz: {<<: *x}\n"), @"
    error[wrong-type]: `<<` takes a mapping or a list of mappings, found the number `5`
     --> a.yaml:1:4
      |
    1 | x: &x 5
      |    ^^^^
    2 | z: {<<: *x}
      |     -- merged here
    ");
    assert_snapshot!(mistakes("x: &x {a: 1}\nz:\n  <<: *x\n  <<: *x\n"), @"
    error[duplicate-key]: the key `<<` is here twice
     --> a.yaml:4:3
      |
    3 |   <<: *x
      |   -- first here
    4 |   <<: *x
      |   ^^ again here
      |
      = hint: write one `<<` with a list: `<<: [*a, *b]`
    ");
}

#[test]
fn spans_count_bytes_after_other_alphabets_and_a_byte_order_mark() {
    let text = "\u{feff}näme: 'é'\nx: [1,\n  zwei]\r\nz: 3\r\n";
    let (node, mistakes) = tree(text);
    assert_eq!(mistakes, "");
    let node = node.unwrap();
    let mapping = node.as_mapping().unwrap();
    let under = |span: strata_diagnostics::Span| &text[span.range()];
    assert_eq!(under(mapping.entries[0].key.span), "näme");
    assert_eq!(under(mapping.entries[0].value.span), "'é'");
    assert_eq!(under(mapping.entries[1].value.span), "[1,\n  zwei]");
    assert_eq!(under(mapping.entries[2].value.span), "3");
}

#[test]
fn a_block_ends_with_its_last_value() {
    let text = "a:\n  b: 1\n  c:\n    - 2\n\n\n# far away\nd: 4\n";
    let node = tree(text).0.unwrap();
    assert_eq!(&text[node.get("a").unwrap().span.range()], "b: 1\n  c:\n    - 2");
}
