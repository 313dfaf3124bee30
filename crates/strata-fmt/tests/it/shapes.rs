//! What the layout looks like.

use strata_fmt::{Left, WIDTH, format};

#[track_caller]
fn becomes(before: &str, after: &str) {
    let formatted = format(before).expect("it is plain YAML");
    assert_eq!(formatted, after);
    assert_eq!(format(&formatted).expect("its own layout is plain YAML"), formatted, "twice is once");
    let crlf = format(&before.replace('\n', "\r\n")).expect("it is plain YAML");
    assert_eq!(
        crlf,
        if before.contains('\n') { after.replace('\n', "\r\n") } else { after.to_owned() },
        "CRLF"
    );
}

#[test]
fn levels_have_two_spaces_and_lists_stand_below_their_key() {
    becomes(
        "vms:\n    web:\n        disks:\n        - a\n        -   b:   1\n            c: 2\n        -\n          d: 3\n",
        "vms:\n  web:\n    disks:\n      - a\n      - b: 1\n        c: 2\n      - d: 3\n",
    );
    becomes("- - a\n  - b\n-   - c\n", "- - a\n  - b\n- - c\n");
}

#[test]
fn quotes_go_where_nobody_needs_them() {
    let before = "a: \"web\"\nb: 'on'\nc: \"1.5\"\nd: '10.0.0.1/24'\ne: 'it''s'\nf: \"x: y\"\ng: \"a\\nb\"\nh: 'say \"hi\"'\ni: \"sha256:44f4\"\nj: \"2026-01-01\"\nk: \"\"\nl: '{{ x }}'\nm: [\"a:b\", \"c\"]\n\"key\": 1\n'8': 2\nn: !!str \"a\"\n";
    let after = "a: web\nb: \"on\"\nc: \"1.5\"\nd: 10.0.0.1/24\ne: it's\nf: \"x: y\"\ng: \"a\\nb\"\nh: say \"hi\"\ni: sha256:44f4\nj: \"2026-01-01\"\nk: \"\"\nl: \"{{ x }}\"\nm: [\"a:b\", c]\nkey: 1\n\"8\": 2\nn: !!str \"a\"\n";
    becomes(before, after);
}

#[test]
fn brackets_have_one_form_and_open_where_they_are_too_long() {
    becomes(
        "a: [ 1,2 ,3 ]\nb: { x: 1,y:  [ ] }\nc:\n  - {x: 1}\n",
        "a: [1, 2, 3]\nb: {x: 1, y: []}\nc:\n  - {x: 1}\n",
    );
    becomes("a: [\n  1,\n  2,\n]\nb: [x: 1, y]\n", "a: [1, 2]\nb: [{x: 1}, y]\n");
    let name = "n".repeat(WIDTH / 2);
    becomes(
        &format!(
            "a: [{name}, {name}]\nb: {{one: {name}, two: [{name}, {name}]}}\nc:\n  - {{x: {name}, y: {name}}}\n"
        ),
        &format!(
            "a:\n  - {name}\n  - {name}\nb:\n  one: {name}\n  two:\n    - {name}\n    - {name}\nc:\n  - x: {name}\n    y: {name}\n"
        ),
    );
}

#[test]
fn comments_stay_with_what_they_are_about() {
    becomes(
        "# top\n\n\n\na:   # of a\n    # of b\n    b: 1  # one\n    c: 22 # two\n    # last of a\n# of d\nd:\n- 1\n# of e\ne: [   # why\n  1, # first\n  # before two\n  2\n  # end\n]\nf: # of f\n  text\n-  \n"
            .trim_end_matches("-  \n"),
        "# top\n\na:   # of a\n  # of b\n  b: 1  # one\n  c: 22 # two\n  # last of a\n# of d\nd:\n  - 1\n# of e\ne:   # why\n  - 1 # first\n  # before two\n  - 2\n  # end\nf: # of f\n  text\n",
    );
    becomes(
        "a: 1    # x\nbcd: \"e\"  # y\n",
        "a: 1   # x\nbcd: e # y\n".replace("   # x", "    # x").replace("e # y", "e  # y").as_str(),
    );
    becomes("- # of a\n  a: 1\n-\n  # of b\n  b: 2\n", "- # of a\n  a: 1\n-\n  # of b\n  b: 2\n");
    becomes("# nothing but this\n", "# nothing but this\n");
    becomes("", "");
}

#[test]
fn columns_of_comments_stay_columns() {
    becomes(
        "a:\n    one: \"x\"      # 1\n    three: 3      # 3\n\n    b: 1   # alone\n",
        "a:\n  one: x        # 1\n  three: 3      # 3\n\n  b: 1   # alone\n",
    );
}

#[test]
fn blocks_of_text_keep_every_letter() {
    becomes(
        "a: |   # why\n        one\n          two\n\n        three\n\n\nb: >-\n   x\n   y\nc:\n- |+\n   kept\n\n- d: |2\n      led\n     by\n",
        "a: | # why\n  one\n    two\n\n  three\n\nb: >-\n  x\n  y\nc:\n  - |+\n    kept\n\n  - d: |2\n        led\n       by\n"
            .replace("| # why", "|   # why")
            .as_str(),
    );
    becomes(
        "a: one\n     two\n\n     three\nb: \"x\n        y\"\n",
        "a: one\n  two\n\n  three\nb: \"x\n  y\"\n",
    );
}

#[test]
fn anchors_tags_aliases_and_documents_stay() {
    becomes(
        "---\na:  &x\n    b: 1\nc:   *x\nd: &y [ 1 ]\ne: !t  {f:   2}\n*x : g\n<<:  *x\n---   # second\n- !!str   5\n",
        "---\na: &x\n  b: 1\nc: *x\nd: &y [1]\ne: !t {f: 2}\n*x : g\n<<: *x\n---   # second\n- !!str 5\n",
    );
}

#[test]
fn what_is_no_plain_yaml_is_left_alone() {
    for template in [
        "a: {{ name }}\n",
        "{% if x %}\na: 1\n{% endif %}\n",
        "#% if x %#\na:    1\n#% endif %#\n",
        "a:\n{{- range .x }}\n  - 1\n{{- end }}\n",
    ] {
        assert_eq!(format(template), Err(Left::Template), "{template}");
    }
    for sealed in [
        "a:   ENC[x]\nsops:\n    mac: ENC[y]\n    version: 3.9.0\n",
        "$ANSIBLE_VAULT;1.1;AES256\n6162\n",
        "a:   !vault |\n    $ANSIBLE_VAULT;1.1;AES256\n    6162\n",
    ] {
        assert_eq!(format(sealed), Err(Left::Encrypted), "{sealed}");
    }
    assert!(matches!(format("a: [1\nb: 2\n"), Err(Left::Syntax { .. })));
    assert!(matches!(format("? a\n: b\n"), Err(Left::Unusual { line: 1, .. })));
    assert!(matches!(format("%YAML 1.2\n---\na: 1\n"), Err(Left::Unusual { .. })));
}
