//! Edits of files that people wrote: what is asked for changes, and nothing else.

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use strata_yaml::edit::{EditError, Step, insert, insert_all, path_at, remove, set, value_of};

/// `a.b.0`: numbers are indexes.
fn path(text: &str) -> Vec<Step> {
    let step = |part: &str| part.parse().map_or_else(|_| Step::from(part), Step::Index);
    text.split('.').filter(|part| !part.is_empty()).map(step).collect()
}

#[track_caller]
fn sets(text: &str, at: &str, value: Json, expected: &str) {
    let edited = set(text, &path(at), &value).expect("it can be edited");
    assert_eq!(edited, expected);
    let crlf = set(&text.replace('\n', "\r\n"), &path(at), &value).expect("it can be edited");
    assert_eq!(crlf, expected.replace('\n', "\r\n"), "with CRLF");
}

#[track_caller]
fn removes(text: &str, at: &str, expected: &str) {
    assert_eq!(remove(text, &path(at)).expect("it can be edited"), expected);
    let crlf = remove(&text.replace('\n', "\r\n"), &path(at)).expect("it can be edited");
    assert_eq!(crlf, expected.replace('\n', "\r\n"), "with CRLF");
}

#[test]
fn several_keys_come_at_once_as_they_would_one_by_one() {
    let entries = json!({"one": {"vmId": 1, "disks": {"scsi0": 8}}, "www": {"vmId": 2}});
    let Json::Object(entries) = entries else { panic!() };
    for text in ["", "# none yet\n", "a: 1\n", "vms:\n  old:\n    vmId: 3\n", STACK] {
        let at_once = insert_all(text, &path("vms"), &entries).unwrap();
        let one_by_one = entries.iter().try_fold(text.to_owned(), |text, (key, value)| {
            insert(&text, &path(&format!("vms.{key}")), value)
        });
        assert_eq!(at_once, one_by_one.unwrap(), "{text}");
    }
    let lines = "vms:\n  one:\n    vmId: 1\n    disks: {scsi0: 8}\n  www:\n    vmId: 2\n";
    for text in ["vms:\n", "vms: {}\n"] {
        assert_eq!(insert_all(text, &path("vms"), &entries).unwrap(), lines);
    }
    let there = insert_all("vms: {one: {}}\n", &path("vms"), &entries);
    assert!(matches!(there, Err(EditError::Exists(_))), "{there:?}");
}

#[test]
fn the_way_to_a_byte_is_known() {
    let way = |needle: &str| path_at(STACK, STACK.find(needle).unwrap()).unwrap();
    assert_eq!(way("vmId: 9100"), path("vms.web.vmId"));
    assert_eq!(way("9100"), path("vms.web.vmId"));
    assert_eq!(way("true}"), path("vms.web.disks.scsi0.ssd"));
    assert_eq!(way("vlan"), path("vms.web.network.0.vlan"));
    assert_eq!(way("# The web"), path(""));
}

const STACK: &str = "\
# The web servers.
proxmox: {target: pve, node: pve1}   # the only one

vms:
  # behind the proxy
  web:
    vmId: 9100   # keep
    cores: 2
    memory: '4096'
    disks: {scsi0: {size: 40, ssd: true}}
    network: [{bridge: vmbr0, vlan: 30}]
    notes: |
      first
      second
    # tags: [a]
  db:
    vmId: 9110
";

#[test]
fn a_scalar_changes_and_its_comment_stays() {
    sets("a: 1 # one\nb: 2\n", "a", json!(5), "a: 5 # one\nb: 2\n");
    sets("a:   1\n", "a", json!("x"), "a: x\n");
    sets("a: 'x'\nb: \"y\"\n", "a", json!("it's"), "a: 'it''s'\nb: \"y\"\n");
    sets("a: 'x'\nb: \"y\"\n", "b", json!("1"), "a: 'x'\nb: \"1\"\n");
    sets("a: x # c\n", "a", json!("1"), "a: \"1\" # c\n");
    sets("a: # c\nb: 1\n", "a", json!(true), "a: true # c\nb: 1\n");
    sets("a: one\n  two\nb: 1\n", "a", json!("x"), "a: x\nb: 1\n");
    sets("{a: 1, b: {c: 2}} # c\n", "b.c", json!([1, "x"]), "{a: 1, b: {c: [1, x]}} # c\n");
    sets("a: [1, 2, 3]\n", "a.1", json!(9), "a: [1, 9, 3]\n");
    sets("a:\n- 1 # one\n- 2\n", "a.0", json!(9), "a:\n- 9 # one\n- 2\n");
    sets("a:\n  - 1\n  -\n", "a.1", json!(9), "a:\n  - 1\n  - 9\n");
}

#[test]
fn texts_of_several_lines_come_and_go() {
    sets("a: | # c\n  x\n  y\n\n# d\nb: 1\n", "a", json!("z"), "a: z # c\n\n# d\nb: 1\n");
    sets("a: z # c\nb: 1\n", "a", json!("x\n\ny\n"), "a: | # c\n  x\n\n  y\nb: 1\n");
    sets("- z\n- 1\n", "0", json!("x\ny"), "- |-\n  x\n  y\n- 1\n");
    sets("a: {b: 1}\n", "a.b", json!("x\ny"), "a: {b: \"x\\ny\"}\n");
}

#[test]
fn new_keys_come_last_in_the_style_around_them() {
    sets("a: 1\n", "b", json!(2), "a: 1\nb: 2\n");
    sets("a: {b: 1}\n", "a.c", json!({"d": 1}), "a: {b: 1, c: {d: 1}}\n");
    sets("a: {b: 1,}\n", "a.c", json!(2), "a: {b: 1, c: 2,}\n");
    sets("a: {}\n", "a.c", json!(2), "a:\n  c: 2\n");
    sets("a: {b: {}}\n", "a.b.c", json!(2), "a: {b: {c: 2}}\n");
    sets(
        "a:\n    b: 1\n    # c\nd: 1\n",
        "a.e.f",
        json!({"g": 1}),
        "a:\n    b: 1\n    # c\n    e:\n        f:\n            g: 1\nd: 1\n",
    );
    sets("a:\n  b:\n    c: 1\n", "a.d", json!({"e": 1}), "a:\n  b:\n    c: 1\n  d:\n    e: 1\n");
    sets("a:\n- b: 1\n  c: 2\n", "a.0.d", json!(3), "a:\n- b: 1\n  c: 2\n  d: 3\n");
    sets("a:\n- b: 1\n  c: 2\n", "a.1", json!({"b": 2}), "a:\n- b: 1\n  c: 2\n- b: 2\n");
    sets("a: [\n  1, # one\n  2  # two\n]\n", "a.2", json!(3), "a: [\n  1, # one\n  2,  # two\n  3\n]\n");
    sets("a: [\n  1,\n  2, # two\n]\n", "a.2", json!(3), "a: [\n  1,\n  2, # two\n  3,\n]\n");
    sets("a: # none yet\nb: 1\n", "a.c", json!(2), "a: # none yet\n  c: 2\nb: 1\n");
    sets("a: ~ # none yet\n", "a.c", json!(2), "a: # none yet\n  c: 2\n");
    assert_eq!(set("a: 1", &path("b"), &json!(2)).unwrap(), "a: 1\nb: 2");
    assert_eq!(set("\u{feff}a: 1\n", &path("b"), &json!(2)).unwrap(), "\u{feff}a: 1\nb: 2\n");
}

#[test]
fn a_file_without_anything_takes_a_value() {
    assert_eq!(set("", &path("vms.db.vmId"), &json!(100)).unwrap(), "vms:\n  db:\n    vmId: 100\n");
    sets("# only this\n", "a", json!(1), "# only this\na: 1\n");
    sets("---\n# c\n", "a.b", json!([{"c": 1}]), "---\n# c\na:\n  b:\n    - {c: 1}\n");
    sets("--- {}\n", "a", json!(1), "--- {a: 1}\n");
}

#[test]
fn a_whole_stack_is_edited_where_it_differs() {
    let edited = set(STACK, &path("vms.web.cores"), &json!(4)).unwrap();
    assert_eq!(edited, STACK.replace("cores: 2", "cores: 4"));
    let edited = set(STACK, &path("vms.web.disks.scsi0.size"), &json!(60)).unwrap();
    assert_eq!(edited, STACK.replace("size: 40", "size: 60"));
    let edited = set(STACK, &path("vms.web.network.0.ip"), &json!("dhcp")).unwrap();
    assert_eq!(edited, STACK.replace("vlan: 30}", "vlan: 30, ip: dhcp}"));
    let edited = set(STACK, &path("vms.web.tags"), &json!(["a"])).unwrap();
    assert_eq!(edited, STACK.replace("    # tags: [a]\n", "    # tags: [a]\n    tags: [a]\n"));
    let guest = json!({"vmId": 9120, "disks": {"scsi0": {"size": 1}}, "notes": "a\nb\n"});
    let edited = set(STACK, &path("vms.cache"), &guest).unwrap();
    let written = "  cache:\n    vmId: 9120\n    disks: {scsi0: {size: 1}}\n    notes: |\n      a\n      b\n";
    assert_eq!(edited, format!("{STACK}{written}"));
    assert_eq!(remove(&edited, &path("vms.cache")).unwrap(), STACK);
    // Only what differs: the comments inside stay.
    let mut web = value_of(STACK).unwrap()["vms"]["web"].clone();
    web["cores"] = json!(3);
    web.as_object_mut().unwrap().remove("memory");
    let edited = set(STACK, &path("vms.web"), &web).unwrap();
    assert_eq!(edited, STACK.replace("cores: 2", "cores: 3").replace("    memory: '4096'\n", ""));
}

#[test]
fn values_are_removed_with_their_lines() {
    removes("a: 1 # one\n# two\nb: 2\n", "a", "# two\nb: 2\n");
    removes("a:\n  b: 1\n  # c\nd: 1\n", "a", "d: 1\n".replace("d", "  # c\nd").as_str());
    removes("a: {b: 1, c: 2}\n", "a.b", "a: {c: 2}\n");
    removes("a: {b: 1, c: 2}\n", "a.c", "a: {b: 1}\n");
    removes("a: {b: 1}\n", "a.b", "a: {}\n");
    removes("a:\n  # why\n  b: 1\nc: 2\n", "a.b", "a: {}\n  # why\nc: 2\n");
    removes("a:\n- b: 1\n  c: 2\n", "a.0.b", "a:\n- c: 2\n");
    removes("a:\n- b: 1\n  # why\n  c: 2\n", "a.0.b", "a:\n-\n  # why\n  c: 2\n");
    removes("a:\n- b: 1\n", "a.0.b", "a:\n- {}\n");
    removes("a:\n- 1\n- 2 # two\n- 3\n", "a.1", "a:\n- 1\n- 3\n");
    removes("a:\n- 1\n", "a.0", "a: []\n");
    removes("a: [\n  1, # one\n  2\n]\n", "a.0", "a: [\n  2\n]\n");
    removes("a: [\n  1, # one\n  2\n]\n", "a.1", "a: [\n  1, # one\n]\n");
}

#[test]
fn items_go_where_they_are_asked_for() {
    let put = |text: &str, at: &str, value: Json| insert(text, &path(at), &value).unwrap();
    assert_eq!(put("a:\n# one\n- 1\n- 2\n", "a.0", json!(0)), "a:\n- 0\n# one\n- 1\n- 2\n");
    assert_eq!(put("a:\n- 1 # one\n# two\n- 2\n", "a.1", json!(9)), "a:\n- 1 # one\n- 9\n# two\n- 2\n");
    assert_eq!(put("a: [1, 2]\n", "a.1", json!(9)), "a: [1, 9, 2]\n");
    assert_eq!(put("a: [1, 2]\n", "a.2", json!(9)), "a: [1, 2, 9]\n");
    assert_eq!(put("a: []\n", "a.0", json!(9)), "a: [9]\n");
    let found = insert("a: 1\n", &path("a"), &json!(2)).unwrap_err();
    assert_eq!(found.to_string(), "`a` is in the file already");
    // What a list begins and ends with stays where it is.
    let text = "a:\n- 1 # one\n- 2 # two\n- 3 # three\n";
    sets(text, "a", json!([1, 3]), "a:\n- 1 # one\n- 3 # three\n");
    sets(text, "a", json!([1, 2, 7, 3]), "a:\n- 1 # one\n- 2 # two\n- 7\n- 3 # three\n");
}

#[test]
fn what_cannot_be_edited_is_refused() {
    let refused = |text: &str, at: &str| set(text, &path(at), &json!(7)).unwrap_err();
    assert_eq!(refused("a: 1\n---\nb: 1\n", "a"), EditError::SecondDocument);
    assert_eq!(refused("a: 1\n", "a.b").to_string(), "`a` is not a mapping");
    assert_eq!(refused("a: {b: 1}\n", "a.0").to_string(), "`a` is not a list");
    assert_eq!(refused("a: [1]\n", "a.5").to_string(), "`a[5]` is not in the file");
    assert!(matches!(refused("a: [1\n", "a"), EditError::Syntax { .. }));
    let anchored = "a: &x {b: 1}\nc: *x\n";
    assert_eq!(
        refused(anchored, "c.b").to_string(),
        "`c` is an alias of a value that stands elsewhere in the file"
    );
    // The alias would change with it.
    assert_eq!(refused(anchored, "a.b").to_string(), "`a.b` cannot be edited as it is written");
    assert_eq!(remove("a: 1\n", &path("b")).unwrap_err().to_string(), "`b` is not in the file");
    // A key that `<<` brought is written beside it, and wins.
    sets(
        "a: &x\n  b: 1\nc:\n  <<: *x\n  d: 1\n",
        "c.b",
        json!(2),
        "a: &x\n  b: 1\nc:\n  <<: *x\n  d: 1\n  b: 2\n",
    );
}

/// A value as somebody wrote it.
#[derive(Debug, Clone)]
enum Page {
    Plain(Json),
    Flow(Json),
    Text(String),
    Mapping(Vec<(String, Page)>),
    List(Vec<Page>),
}

fn scalar() -> impl Strategy<Value = Json> {
    prop_oneof![
        any::<i32>().prop_map(Json::from),
        any::<bool>().prop_map(Json::from),
        "[a-z]{0,8}".prop_map(Json::from),
        "[ -~äß€]{0,12}".prop_map(Json::from),
        Just(Json::Null),
    ]
}

fn value() -> impl Strategy<Value = Json> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map("[a-f]{1,2}", inner, 0..4)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

fn page() -> impl Strategy<Value = Page> {
    let leaf = prop_oneof![
        scalar().prop_map(Page::Plain),
        value().prop_map(Page::Flow),
        "[a-z]{1,5}(\n[a-z #:-]{0,8}[a-z]){1,3}\n?".prop_map(Page::Text),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map("[a-f]{1,2}", inner.clone(), 1..4)
                .prop_map(|map| Page::Mapping(map.into_iter().collect())),
            prop::collection::vec(inner, 1..4).prop_map(Page::List),
        ]
    })
}

/// Writes a page with a comment above and behind everything that takes one.
struct Hand {
    out: String,
    step: usize,
    comments: usize,
}

impl Hand {
    fn comment(&mut self) -> String {
        self.comments += 1;
        format!("# c{}.", self.comments)
    }

    fn mapping(&mut self, entries: &[(String, Page)], indent: usize, mut inline: bool) {
        for (key, page) in entries {
            if !inline {
                let comment = self.comment();
                self.out.push_str(&format!("{}{comment}\n{}", " ".repeat(indent), " ".repeat(indent)));
            }
            inline = false;
            self.out.push_str(&format!("{key}:"));
            self.beside(page, indent);
        }
    }

    fn list(&mut self, items: &[Page], indent: usize, mut inline: bool) {
        for page in items {
            if !inline {
                self.out.push_str(&" ".repeat(indent));
            }
            inline = false;
            self.out.push('-');
            match page {
                Page::Mapping(entries) => {
                    self.out.push(' ');
                    self.mapping(entries, indent + 2, true);
                }
                Page::List(items) => {
                    self.out.push(' ');
                    self.list(items, indent + 2, true);
                }
                other => self.beside(other, indent),
            }
        }
    }

    fn beside(&mut self, page: &Page, indent: usize) {
        let comment = self.comment();
        let inner = indent + self.step;
        match page {
            Page::Plain(Json::Null) => self.out.push_str(&format!(" {comment}\n")),
            Page::Plain(json) | Page::Flow(json) => self.out.push_str(&format!(" {json} {comment}\n")),
            Page::Text(text) => {
                let header = if text.ends_with('\n') { "|" } else { "|-" };
                self.out.push_str(&format!(" {header} {comment}\n"));
                for line in text.lines() {
                    self.out.push_str(&format!("{}{line}\n", " ".repeat(inner)));
                }
            }
            Page::Mapping(entries) => {
                self.out.push_str(&format!(" {comment}\n"));
                self.mapping(entries, inner, false);
            }
            Page::List(items) => {
                self.out.push_str(&format!(" {comment}\n"));
                self.list(items, inner, false);
            }
        }
    }
}

/// Every path of a value.
fn paths(value: &Json, here: &[Step], found: &mut Vec<Vec<Step>>) {
    let mut go = |step: Step, value: &Json| {
        let path: Vec<Step> = here.iter().cloned().chain([step]).collect();
        paths(value, &path, found);
        found.push(path);
    };
    match value {
        Json::Object(map) => map.iter().for_each(|(key, value)| go(key.as_str().into(), value)),
        Json::Array(items) => items.iter().enumerate().for_each(|(index, value)| go(index.into(), value)),
        _ => {}
    }
}

fn at<'j>(value: &'j mut Json, path: &[Step]) -> &'j mut Json {
    path.iter().fold(value, |here, step| match step {
        Step::Key(key) => &mut here[key.as_str()],
        Step::Index(index) => &mut here[*index],
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn an_edit_changes_what_was_asked_and_keeps_every_comment(
        entries in prop::collection::btree_map("[a-f]{1,2}", page(), 1..4),
        step in 1_usize..5,
        chosen in any::<prop::sample::Index>(),
        new in value(),
        crlf in any::<bool>(),
    ) {
        let mut hand = Hand { out: String::new(), step, comments: 0 };
        hand.mapping(&entries.into_iter().collect::<Vec<_>>(), 0, false);
        let text = if crlf { hand.out.replace('\n', "\r\n") } else { hand.out.clone() };
        let before = value_of(&text).unwrap();
        let mut all = Vec::new();
        paths(&before, &[], &mut all);
        let path = chosen.get(&all);

        // A new key beside every mapping: all comments stay, and so does every line.
        let mut wanted = before.clone();
        let parent = &path[..path.len() - 1];
        if let Json::Object(map) = at(&mut wanted, parent) {
            map.insert("zz".to_owned(), new.clone());
            let target: Vec<Step> = parent.iter().cloned().chain([Step::from("zz")]).collect();
            let edited = set(&text, &target, &new).unwrap();
            prop_assert_eq!(value_of(&edited).unwrap(), wanted);
            for comment in 1..=hand.comments {
                let comment = format!("# c{comment}.");
                prop_assert!(edited.contains(&comment), "{comment} is gone:\n{edited}");
            }
            prop_assert_eq!(crlf, !edited.replace("\r\n", "").contains('\n') && edited.contains("\r\n"));
            // And it can be removed again without a trace.
            prop_assert_eq!(remove(&edited, &target).unwrap(), text.clone());
        }

        // Another value: comments outside of the old one stay.
        let mut wanted = before.clone();
        let old = std::mem::replace(at(&mut wanted, path), new.clone());
        let edited = set(&text, path, &new).unwrap();
        prop_assert_eq!(value_of(&edited).unwrap(), wanted);
        if old == new {
            prop_assert_eq!(&edited, &text);
        }
        if !old.is_object() && !old.is_array() {
            for comment in 1..=hand.comments {
                let comment = format!("# c{comment}.");
                prop_assert!(edited.contains(&comment), "{comment} is gone:\n{edited}");
            }
        }

        // Without it.
        let mut wanted = before.clone();
        let parent = at(&mut wanted, parent);
        match (parent, path.last()) {
            (Json::Object(map), Some(Step::Key(key))) => drop(map.remove(key)),
            (Json::Array(items), Some(Step::Index(index))) => drop(items.remove(*index)),
            _ => {}
        }
        let edited = remove(&text, path).unwrap();
        prop_assert_eq!(value_of(&edited).unwrap(), wanted);
    }
}
