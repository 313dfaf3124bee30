//! The tree that SOPS sees in a file of any format, and the walk whose order the MAC depends on.
//!
//! The tree holds no layout. Each value and comment has a slot, and the format that made the tree knows where in
//! the text that slot is.

use super::SopsError;
use crate::value::Value;

/// Where in its file a value or comment is; an index into what the format remembers.
pub(crate) type Slot = usize;

/// One YAML document, or the whole of a file of another format.
#[derive(Clone)]
pub(crate) struct Document {
    pub(crate) items: Vec<Item>,
}

/// One line of thought in a mapping or list.
#[derive(Clone)]
pub(crate) enum Item {
    Comment(Comment),
    /// In a list, `key` is empty and not part of the path.
    Entry {
        key: String,
        node: Node,
    },
}

#[derive(Clone)]
pub(crate) enum Node {
    Mapping(Vec<Item>),
    List(Vec<Item>),
    Leaf(Leaf),
}

#[derive(Clone)]
pub(crate) struct Leaf {
    pub(crate) value: Value,
    pub(crate) slot: Slot,
}

#[derive(Clone)]
pub(crate) struct Comment {
    /// Without the leading `#`.
    pub(crate) text: String,
    pub(crate) slot: Slot,
    /// Paths of the mappings before and after it. Which of them a comment belongs to is a matter of layout on
    /// which libraries disagree, so an encrypted comment is tried with each.
    pub(crate) neighbours: Vec<String>,
}

/// What the walk hands out.
pub(crate) enum Visited<'t> {
    Value(&'t Leaf),
    Comment(&'t Comment),
}

/// Where the walk is.
pub(crate) struct TreePosition<'p> {
    /// The keys from the root on. A list adds nothing, as in SOPS.
    pub(crate) path: &'p [&'p str],
    /// For each mapping and list from the root on: the comments directly above the current item.
    pub(crate) comments: &'p [Vec<&'p str>],
}

impl TreePosition<'_> {
    /// The path as additional data of the cipher.
    pub(crate) fn additional(&self) -> String {
        additional(self.path)
    }
}

/// Each key followed by a colon.
pub(crate) fn additional<K: AsRef<str>>(path: &[K]) -> String {
    // The root is a single colon too: SOPS joins the keys and adds one.
    let mut joined = path.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(":");
    joined.push(':');
    joined
}

type Visitor<'v, 't> = dyn FnMut(&TreePosition<'_>, Visited<'t>) -> Result<(), SopsError> + 'v;

/// Visits every value but null and every comment, in the order of the file.
pub(crate) fn walk<'t>(documents: &'t [Document], visit: &mut Visitor<'_, 't>) -> Result<(), SopsError> {
    for document in documents {
        walk_items(&document.items, false, &mut Vec::new(), &mut Vec::new(), visit)?;
    }
    Ok(())
}

fn walk_items<'t>(
    items: &'t [Item],
    in_list: bool,
    path: &mut Vec<&'t str>,
    comments: &mut Vec<Vec<&'t str>>,
    visit: &mut Visitor<'_, 't>,
) -> Result<(), SopsError> {
    comments.push(Vec::new());
    for item in items {
        match item {
            Item::Comment(comment) => {
                above(comments).push(&comment.text);
                visit(&TreePosition { path, comments }, Visited::Comment(comment))?;
            }
            Item::Entry { key, node } => {
                if !in_list {
                    path.push(key);
                }
                match node {
                    Node::Mapping(items) => walk_items(items, false, path, comments, visit)?,
                    Node::List(items) => walk_items(items, true, path, comments, visit)?,
                    Node::Leaf(Leaf { value: Value::Null, .. }) => {}
                    Node::Leaf(leaf) => visit(&TreePosition { path, comments }, Visited::Value(leaf))?,
                }
                if !in_list {
                    path.pop();
                }
                above(comments).clear();
            }
        }
    }
    comments.pop();
    Ok(())
}

fn above<'c, 't>(comments: &'c mut [Vec<&'t str>]) -> &'c mut Vec<&'t str> {
    comments.last_mut().expect("every mapping and list pushes one before its items are walked")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(text: &str) -> Node {
        Node::Leaf(Leaf { value: Value::text(text), slot: 0 })
    }

    fn entry(key: &str, node: Node) -> Item {
        Item::Entry { key: key.to_owned(), node }
    }

    fn comment(text: &str) -> Item {
        Item::Comment(Comment { text: text.to_owned(), slot: 0, neighbours: Vec::new() })
    }

    #[test]
    fn lists_add_nothing_to_the_path_and_comments_hold_for_one_item() {
        let document = Document {
            items: vec![
                comment("top"),
                entry(
                    "a",
                    Node::List(vec![
                        comment("one"),
                        entry("", leaf("x")),
                        entry("", Node::Mapping(vec![entry("b", leaf("y"))])),
                    ]),
                ),
                entry("c", Node::Leaf(Leaf { value: Value::Null, slot: 0 })),
                entry("d", leaf("z")),
            ],
        };
        let mut seen = Vec::new();
        walk(&[document], &mut |place, visited| {
            let what = match visited {
                Visited::Value(leaf) => leaf.value.as_str().expect("text").to_owned(),
                Visited::Comment(comment) => format!("#{}", comment.text),
            };
            seen.push(format!("{} {what} {:?}", place.additional(), place.comments));
            Ok(())
        })
        .expect("the visitor never fails");
        assert_eq!(
            seen,
            [
                r#": #top [["top"]]"#,
                r#"a: #one [["top"], ["one"]]"#,
                r#"a: x [["top"], ["one"]]"#,
                r#"a:b: y [["top"], [], []]"#,
                r#"d: z [[]]"#,
            ]
        );
    }
}
