//! Every YAML file of this repository, and files that nobody wrote: the meaning stays, and every comment.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use strata_diagnostics::{Diagnostics, SourceMap};
use strata_fmt::{Left, format};
use strata_yaml::{Kind, Node, Parsed, parse};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap().to_owned()
}

fn yaml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != ".git" {
                yaml_files(&path, found);
            }
        } else if name.ends_with(".yaml") || name.ends_with(".yml") {
            found.push(path);
        }
    }
}

/// What Strata reads there, without places and styles.
fn meaning(text: &str) -> Option<String> {
    fn of(node: &Node, out: &mut String) {
        match &node.kind {
            Kind::Scalar(scalar) => out.push_str(&format!("{:?}={:?};", scalar.text, scalar.kind())),
            Kind::List(items) => {
                out.push('[');
                items.iter().for_each(|item| of(item, out));
                out.push(']');
            }
            Kind::Mapping(mapping) => {
                out.push('{');
                for entry in &mapping.entries {
                    out.push_str(&format!("{:?}:", entry.key.value));
                    of(&entry.value, out);
                }
                out.push('}');
            }
        }
    }
    let mut sources = SourceMap::new();
    let file = sources.add("a.yaml", text);
    match parse(&sources, file, &mut Diagnostics::new()) {
        Parsed::Document(node) => {
            let mut out = String::new();
            of(&node, &mut out);
            Some(out)
        }
        Parsed::Empty => Some(String::new()),
        Parsed::Broken => None,
    }
}

/// The comments of a text that has no `#` in its values.
fn marks(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_once('#')).map(|(_, comment)| comment.trim_end()).collect()
}

#[test]
fn the_corpus_keeps_its_meaning_and_is_stable() {
    let mut files = Vec::new();
    yaml_files(&top(), &mut files);
    let (mut formatted, mut left) = (0, 0);
    for path in &files {
        let text = fs::read_to_string(path).unwrap();
        match format(&text) {
            Ok(new) => {
                formatted += 1;
                assert_eq!(meaning(&text), meaning(&new), "{}", path.display());
                assert_eq!(format(&new).as_ref(), Ok(&new), "{}", path.display());
            }
            Err(why) => {
                assert_ne!(why, Left::Meaning, "{}", path.display());
                assert!(
                    why.is_expected() || meaning(&text).is_none(),
                    "{} is plain YAML, and left alone: {why}",
                    path.display()
                );
                left += 1;
            }
        }
    }
    assert!(formatted > 60, "{formatted} formatted, {left} left alone of {}", files.len());
}

#[test]
fn the_examples_are_in_this_layout() {
    let mut files = Vec::new();
    yaml_files(&top().join("examples"), &mut files);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(format(&text).unwrap_or_else(|_| text.clone()), text, "{}", path.display());
    }
}

/// A tree that is written carelessly: any step, brackets or lines, spaces, quotes, comments and blank lines anywhere.
#[derive(Debug, Clone)]
enum Sketch {
    Scalar(String),
    List(Vec<Sketch>, Hand),
    Mapping(Vec<Sketch>, Hand),
}

#[derive(Debug, Clone)]
struct Hand {
    brackets: bool,
    step: usize,
    blank: usize,
    above: bool,
    behind: usize,
    after: bool,
}

fn hand() -> impl Strategy<Value = Hand> {
    (any::<bool>(), 1..5_usize, 0..3_usize, any::<bool>(), 0..6_usize, any::<bool>()).prop_map(
        |(brackets, step, blank, above, behind, after)| Hand { brackets, step, blank, above, behind, after },
    )
}

fn sketch() -> impl Strategy<Value = Sketch> {
    let word = prop_oneof![
        "[a-z]{1,8}",
        Just("'quoted'".to_owned()),
        Just("\"12\"".to_owned()),
        Just("'it''s'".to_owned()),
        Just("\"a: b\"".to_owned()),
        Just("yes".to_owned()),
        Just("~".to_owned()),
        Just("12.50".to_owned()),
        Just("\"on\"".to_owned()),
        Just("'a, b'".to_owned()),
        Just("10.0.0.1/24".to_owned()),
        Just("&x".to_owned()),
        Just("!t word".to_owned()),
        Just("\"long long long long long long long long long long long long\"".to_owned()),
    ];
    let leaf = word.prop_map(Sketch::Scalar);
    leaf.prop_recursive(5, 40, 5, |inner| {
        let many = prop::collection::vec(inner, 1..5);
        prop_oneof![
            (many.clone(), hand()).prop_map(|(items, hand)| Sketch::List(items, hand)),
            (many, hand()).prop_map(|(items, hand)| Sketch::Mapping(items, hand)),
        ]
    })
}

struct Pen {
    out: String,
    comments: usize,
}

impl Pen {
    fn comment(&mut self) -> String {
        self.comments += 1;
        format!("# {}", self.comments)
    }

    fn flow(&mut self, sketch: &Sketch) -> String {
        match sketch {
            Sketch::Scalar(word) => word.clone(),
            Sketch::List(items, hand) => self.brackets(items, hand, ['[', ']'], false),
            Sketch::Mapping(items, hand) => self.brackets(items, hand, ['{', '}'], true),
        }
    }

    fn brackets(&mut self, items: &[Sketch], hand: &Hand, signs: [char; 2], named: bool) -> String {
        let mut out = String::from(signs[0]);
        for (index, item) in items.iter().enumerate() {
            out.push_str(&" ".repeat(hand.blank));
            if hand.after && index == 1 {
                out.push_str(&format!(" {}\n            ", self.comment()));
            }
            if named {
                out.push_str(&format!("k{index}: "));
            }
            out.push_str(&self.flow(item));
            out.push(',');
        }
        out.push(' ');
        out.push(signs[1]);
        out
    }

    fn block(&mut self, sketch: &Sketch, indent: usize) {
        let (items, hand, named) = match sketch {
            Sketch::List(items, hand) if !hand.brackets => (items, hand, false),
            Sketch::Mapping(items, hand) if !hand.brackets => (items, hand, true),
            other => {
                let text = self.flow(other);
                self.out.push_str(&format!(" {text}\n"));
                return;
            }
        };
        let pad = " ".repeat(indent);
        self.out.push('\n');
        for (index, item) in items.iter().enumerate() {
            self.out.push_str(&"\n".repeat(hand.blank));
            if hand.above && index == 0 {
                let comment = self.comment();
                self.out.push_str(&format!("{}{comment}\n", " ".repeat(indent + hand.behind)));
            }
            match named {
                true => self.out.push_str(&format!("{pad}k{index}:")),
                false => self.out.push_str(&format!("{pad}-")),
            }
            self.block(item, indent + hand.step);
            if hand.after && index + 1 == items.len() {
                let comment = self.comment();
                self.out.push_str(&format!("{}{comment}\n", " ".repeat(hand.behind)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_lost_whoever_wrote_it(sketch in sketch()) {
        let mut pen = Pen { out: String::new(), comments: 0 };
        pen.block(&sketch, 0);
        let text = pen.out.trim_start_matches(' ');
        prop_assume!(meaning(text).is_some());
        let formatted = format(text);
        prop_assert!(formatted.is_ok(), "{formatted:?}\n{text}");
        let formatted = formatted.unwrap();
        prop_assert_eq!(meaning(text), meaning(&formatted), "{}\n{}", text, formatted);
        prop_assert_eq!(marks(text), marks(&formatted), "{}\n{}", text, formatted);
        prop_assert_eq!(format(&formatted), Ok(formatted.clone()), "{}", text);
        prop_assert!(!formatted.contains("\n\n\n"), "{}", formatted);
    }

    #[test]
    fn any_text_is_formatted_or_left_alone(text in "([ a-c:#\\-\\[\\]{},&*!|>'\"\n]|- |: |\n  ){0,40}") {
        // A block that ends within its indentation, without a line break, is read in more than one way.
        let text = text + "\n";
        match format(&text) {
            Ok(formatted) => {
                prop_assert_eq!(format(&formatted), Ok(formatted.clone()), "{:?}", text);
                prop_assert_eq!(meaning(&text), meaning(&formatted), "{:?}", text);
            }
            Err(left) => prop_assert!(left != Left::Meaning, "{text:?}"),
        }
    }
}
