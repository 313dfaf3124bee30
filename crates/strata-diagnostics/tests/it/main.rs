//! What a reader sees of a diagnostic, in each of the three forms.

use insta::assert_snapshot;
use strata_diagnostics::{Color, Diagnostic, Diagnostics, SourceMap, Span, render, to_json, to_sarif};

fn world() -> (SourceMap, Diagnostic) {
    let mut sources = SourceMap::new();
    let web = sources.add("stacks/web/stack.yaml", "vms:\n  web:\n    vmId: 9100\n    cors: 2\n");
    let db = sources.add("stacks/db/stack.yaml", "vms:\n  db: {vmId: 9100}\n");
    let diagnostic = Diagnostic::error("vmid-collision", "VMID `9100` is used twice on target `pve`")
        .at_with(Span::new(web, 22, 26), "here")
        .also(Span::new(db, 18, 22), "and here")
        .note("a VMID belongs to one guest of a whole Proxmox cluster")
        .hint("the next free one is `9101`");
    (sources, diagnostic)
}

#[test]
fn people_see_both_places_underlined() {
    let (sources, diagnostic) = world();
    assert_snapshot!(render(&diagnostic, &sources, Color::Never), @"
    error[vmid-collision]: VMID `9100` is used twice on target `pve`
     --> stacks/web/stack.yaml:3:11
      |
    3 |     vmId: 9100
      |           ^^^^ here
      |
     ::: stacks/db/stack.yaml:2:14
      |
    2 |   db: {vmId: 9100}
      |              ---- and here
      |
      = note: a VMID belongs to one guest of a whole Proxmox cluster
      = hint: the next free one is `9101`
    ");
}

#[test]
fn colour_changes_nothing_but_colour() {
    let (sources, diagnostic) = world();
    let plain = render(&diagnostic, &sources, Color::Never);
    let styled = render(&diagnostic, &sources, Color::Always);
    assert!(styled.contains("\u{1b}["));
    let mut stripped = String::new();
    let mut rest = styled.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        stripped.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

#[test]
fn a_program_gets_one_object() {
    let (sources, diagnostic) = world();
    assert_snapshot!(to_json(&diagnostic, &sources), @r#"{"severity":"error","code":"vmid-collision","message":"VMID `9100` is used twice on target `pve`","file":"stacks/web/stack.yaml","line":3,"column":11,"endLine":3,"endColumn":15,"label":"here","hint":"the next free one is `9101`","notes":["a VMID belongs to one guest of a whole Proxmox cluster"],"related":[{"file":"stacks/db/stack.yaml","line":2,"column":14,"endLine":2,"endColumn":18,"label":"and here"}]}"#);
}

#[test]
fn a_forge_gets_sarif() {
    let (sources, diagnostic) = world();
    let log = to_sarif([&diagnostic], &sources, ("strata", "0.1.0"));
    assert_snapshot!(serde_json::to_string_pretty(&log["runs"][0]["results"]).unwrap(), @r#"
    [
      {
        "ruleId": "vmid-collision",
        "level": "error",
        "message": {
          "text": "VMID `9100` is used twice on target `pve`; a VMID belongs to one guest of a whole Proxmox cluster; the next free one is `9101`"
        },
        "locations": [
          {
            "physicalLocation": {
              "artifactLocation": {
                "uri": "stacks/web/stack.yaml"
              },
              "region": {
                "startLine": 3,
                "startColumn": 11,
                "endLine": 3,
                "endColumn": 15
              }
            },
            "message": {
              "text": "here"
            }
          }
        ],
        "relatedLocations": [
          {
            "physicalLocation": {
              "artifactLocation": {
                "uri": "stacks/db/stack.yaml"
              },
              "region": {
                "startLine": 2,
                "startColumn": 14,
                "endLine": 2,
                "endColumn": 18
              }
            },
            "message": {
              "text": "and here"
            }
          }
        ]
      }
    ]
    "#);
}

#[test]
fn a_span_over_lines_is_cut_to_the_first() {
    let mut sources = SourceMap::new();
    let file = sources.add("a.yaml", "vms:\n  - a: 1\n    b: 2\n");
    let diagnostic =
        Diagnostic::error("wrong-type", "expected a mapping, found a list").at(Span::new(file, 7, 22));
    assert_snapshot!(render(&diagnostic, &sources, Color::Never), @"
    error[wrong-type]: expected a mapping, found a list
     --> a.yaml:2:3
      |
    2 |   - a: 1
      |   ^^^^^^
    ");
}

#[test]
fn an_endless_line_is_named_and_not_shown() {
    let mut sources = SourceMap::new();
    let file = sources.add("a.yaml", "[".repeat(100_000));
    let diagnostic = Diagnostic::error("syntax", "nested too deeply").at(Span::new(file, 100, 101));
    assert_snapshot!(render(&diagnostic, &sources, Color::Never), @"
    error[syntax]: nested too deeply
    --> a.yaml:1:101
    ");
}

#[test]
fn an_empty_file_and_the_end_of_a_file_can_be_named() {
    let mut sources = SourceMap::new();
    let empty = sources.add("empty.yaml", "");
    let diagnostic = Diagnostic::error("empty-file", "the file is empty").at(Span::start_of(empty));
    assert_snapshot!(render(&diagnostic, &sources, Color::Never), @"
    error[empty-file]: the file is empty
    --> empty.yaml:1:1
    ");
    let short = sources.add("short.yaml", "a: [é\n");
    let diagnostic = Diagnostic::error("syntax", "`[` is never closed").at(Span::new(short, 7, 7));
    assert_snapshot!(render(&diagnostic, &sources, Color::Never), @"
    error[syntax]: `[` is never closed
     --> short.yaml:2:1
      |
    2 |
      | ^
    ");
}

#[test]
fn repetitions_go_and_the_rest_is_in_reading_order() {
    let mut sources = SourceMap::new();
    let file = sources.add("a.yaml", "a: 1\nb: 2\n");
    let mut list = Diagnostics::new();
    list.push(Diagnostic::error("x", "nowhere"));
    list.push(Diagnostic::error("x", "second").at(Span::new(file, 5, 6)));
    list.push(Diagnostic::warning("x", "first").at(Span::new(file, 0, 1)));
    list.push(Diagnostic::error("x", "second").at(Span::new(file, 5, 6)));
    list.tidy();
    let messages: Vec<&str> = list.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
    assert_eq!(messages, ["first", "second", "nowhere"]);
    assert_eq!((list.error_count(), list.warning_count()), (2, 1));
}
