//! What others wrote, as one kind of tree whatever the format: values with their places, and which of them were taken.
//!
//! A value counts as taken when somebody made something of it; what is left in the end is reported. A value that was computed from
//! others takes those with it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Where something stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLine {
    /// By its path from the root of the folder that is read.
    pub file: Rc<str>,
    /// The first is 1.
    pub line: usize,
}

impl SourceLine {
    pub(super) fn new(file: &str, line: usize) -> Self {
        Self { file: file.into(), line }
    }
}

/// Whether a value was taken, and the values that it was made of.
#[derive(Debug, Default)]
pub(super) struct Mark {
    taken: Cell<bool>,
    /// It stands in a file that shows what the real one looks like.
    example: bool,
    /// A default of a type: the code's word, which is no news where nobody uses it.
    quiet: Cell<bool>,
    parts: Vec<Rc<Mark>>,
}

impl Mark {
    fn is_example(&self) -> bool {
        self.example || self.parts.iter().any(|part| part.is_example())
    }

    fn take(&self) {
        if !self.taken.replace(true) {
            self.parts.iter().for_each(|part| part.take());
        }
    }
}

/// The marks of what stands in code, where the same text is evaluated for many instances.
#[derive(Debug, Default)]
pub(super) struct Marks(RefCell<HashMap<Spot, Rc<Mark>>>);

/// A file, and how many bytes into it.
type Spot = (Rc<str>, usize);

impl Marks {
    pub(super) fn at(&self, file: &Rc<str>, offset: usize) -> Rc<Mark> {
        let new = || Rc::new(Mark { example: is_example(file), ..Mark::default() });
        self.0.borrow_mut().entry((file.clone(), offset)).or_insert_with(new).clone()
    }

    /// Whether what stands there was taken; nothing if nobody evaluated it.
    pub(super) fn taken(&self, file: &Rc<str>, offset: usize) -> Option<bool> {
        self.0.borrow().get(&(file.clone(), offset)).map(|mark| mark.taken.get())
    }
}

/// Words in the names of files that show what the real ones look like.
const EXAMPLES: [&str; 6] = ["example", "sample", "template", "tmpl", "tpl", "dist"];

/// Whether a file of variables is one that shows what the real one looks like.
pub(super) fn is_example(path: &str) -> bool {
    let own = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    own.contains("tfvars") && own.split(['.', '_', '-']).any(|part| EXAMPLES.contains(&part))
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Rc<Vec<Tree>>),
    Map(Rc<Vec<(String, Tree)>>),
    /// What only running the code would tell, such as `module.network.id`.
    Unknown(String),
}

/// A value that nobody took.
#[derive(Debug, Clone)]
pub(crate) struct Left {
    pub(crate) path: String,
    pub(super) place: SourceLine,
    /// The expression, if only running the code would tell its value.
    pub(super) unknown: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(super) place: SourceLine,
    pub(super) content: Content,
    mark: Rc<Mark>,
}

impl Tree {
    pub(super) fn new(place: SourceLine, content: Content) -> Self {
        Self { place, content, mark: Rc::default() }
    }

    pub(super) fn marked(place: SourceLine, content: Content, mark: Rc<Mark>) -> Self {
        Self { place, content, mark }
    }

    /// A value that was computed: taking it takes what it was made of.
    pub(super) fn made_of(place: SourceLine, content: Content, parts: &[&Tree]) -> Self {
        let mut marks = Vec::new();
        parts.iter().for_each(|part| part.marks(&mut marks));
        Self { place, content, mark: Rc::new(Mark { parts: marks, ..Mark::default() }) }
    }

    /// Whether it is made of what an example says.
    pub(super) fn is_example(&self) -> bool {
        let mut marks = Vec::new();
        self.marks(&mut marks);
        marks.iter().any(|mark| mark.is_example())
    }

    fn marks(&self, found: &mut Vec<Rc<Mark>>) {
        match &self.content {
            Content::List(items) => items.iter().for_each(|item| item.marks(found)),
            Content::Map(entries) => entries.iter().for_each(|(_, tree)| tree.marks(found)),
            _ => found.push(self.mark.clone()),
        }
    }

    pub(super) fn empty(file: &str) -> Self {
        Self::map_of(SourceLine::new(file, 1), Vec::new())
    }

    pub(super) fn map_of(place: SourceLine, entries: Vec<(String, Tree)>) -> Self {
        Self::new(place, Content::Map(Rc::new(entries)))
    }

    pub(super) fn list_of(place: SourceLine, items: Vec<Tree>) -> Self {
        Self::new(place, Content::List(Rc::new(items)))
    }

    /// The value at a key; nothing for null.
    pub(super) fn get(&self, key: &str) -> Option<&Tree> {
        let (_, tree) = self.entries().iter().find(|(name, _)| name == key)?;
        (!matches!(tree.content, Content::Null)).then_some(tree)
    }

    /// The value at the end of a path of keys.
    pub(super) fn at(&self, path: &[&str]) -> Option<&Tree> {
        path.iter().try_fold(self, |tree, key| tree.get(key))
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries().iter().any(|(name, _)| name == key)
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.as_text()
    }

    /// The text, if it is as it has to be; otherwise it is left, and reported.
    pub(super) fn text_if(&self, key: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
        self.get(key)?.as_text_if(fits)
    }

    pub(super) fn as_text_if(&self, fits: impl Fn(&str) -> bool) -> Option<String> {
        let text = self.peek()?;
        fits(&text).then(|| self.taken(text))
    }

    pub(super) fn int(&self, key: &str) -> Option<i64> {
        self.get(key)?.as_int()
    }

    pub(super) fn int_in(&self, key: &str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        self.get(key)?.as_int_in(range)
    }

    pub(super) fn bool(&self, key: &str) -> Option<bool> {
        self.get(key)?.as_bool()
    }

    /// Truth, however it is written: older code has numbers for it.
    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        let tree = self.get(key)?;
        match tree.peek().as_deref() {
            Some("1") => Some(tree.taken(true)),
            Some("0") => Some(tree.taken(false)),
            _ => tree.as_bool(),
        }
    }

    /// Texts and numbers alike, without taking them. A text that somebody else would fill in is none.
    pub(super) fn peek(&self) -> Option<String> {
        match &self.content {
            Content::Text(text) if !text.is_empty() && !text.contains("${") => Some(text.clone()),
            Content::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    pub(super) fn as_text(&self) -> Option<String> {
        let text = self.peek()?;
        Some(self.taken(text))
    }

    /// Texts, numbers and truth, as text: what a label or an option takes.
    pub(super) fn as_word(&self) -> Option<String> {
        match &self.content {
            Content::Bool(value) => Some(self.taken(value.to_string())),
            Content::Text(text) if text.is_empty() => Some(self.taken(String::new())),
            _ => self.as_text(),
        }
    }

    fn whole(&self) -> Option<i64> {
        match &self.content {
            Content::Number(number) if number.fract() == 0.0 => Some(*number as i64),
            Content::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    pub(super) fn as_int(&self) -> Option<i64> {
        let number = self.whole()?;
        Some(self.taken(number))
    }

    pub(super) fn as_int_in(&self, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let number = self.whole().filter(|number| range.contains(number))?;
        Some(self.taken(number))
    }

    pub(super) fn as_number(&self) -> Option<f64> {
        let number = match &self.content {
            Content::Number(number) => *number,
            Content::Text(text) => text.trim().parse().ok()?,
            _ => return None,
        };
        Some(self.taken(number))
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        let value = match &self.content {
            Content::Bool(value) => *value,
            Content::Text(text) => text.parse().ok()?,
            _ => return None,
        };
        Some(self.taken(value))
    }

    fn taken<T>(&self, value: T) -> T {
        self.mark.take();
        value
    }

    pub(super) fn items(&self) -> &[Tree] {
        match &self.content {
            Content::List(items) => items,
            _ => &[],
        }
    }

    pub(super) fn list(&self, key: &str) -> &[Tree] {
        self.get(key).map(Self::items).unwrap_or_default()
    }

    /// Blocks and lists alike: a single mapping stands for a list of one.
    pub(super) fn several(&self, key: &str) -> Vec<&Tree> {
        match self.get(key) {
            Some(tree) if matches!(tree.content, Content::Map(_)) => vec![tree],
            // How many there are of a block may be known only to a run.
            Some(tree) => {
                tree.items().iter().filter(|item| !matches!(item.content, Content::Unknown(_))).collect()
            }
            None => Vec::new(),
        }
    }

    /// The only block of a kind, or an object.
    pub(super) fn one(&self, key: &str) -> Option<&Tree> {
        self.several(key).into_iter().next()
    }

    pub(super) fn texts(&self, key: &str) -> Vec<String> {
        self.list(key).iter().filter_map(Self::as_text).collect()
    }

    /// One text, or a list of them.
    pub(super) fn texts_or_one(&self, key: &str) -> Vec<String> {
        match self.get(key).map(|tree| (tree, &tree.content)) {
            Some((tree, Content::Text(_))) => tree.as_text().into_iter().collect(),
            _ => self.texts(key),
        }
    }

    pub(super) fn texts_if(&self, key: &str, fits: impl Fn(&str) -> bool) -> Vec<String> {
        self.list(key).iter().filter_map(|item| item.as_text_if(&fits)).collect()
    }

    pub(super) fn entries(&self) -> &[(String, Tree)] {
        match &self.content {
            Content::Map(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn map(&self, key: &str) -> &[(String, Tree)] {
        self.get(key).map(Self::entries).unwrap_or_default()
    }

    /// Takes everything below: somebody said in other words what becomes of it.
    pub(super) fn take_all(&self) {
        match &self.content {
            Content::List(items) => items.iter().for_each(Self::take_all),
            Content::Map(entries) => entries.iter().for_each(|(_, tree)| tree.take_all()),
            _ => self.mark.take(),
        }
    }

    /// Counts everything below as the code's word, not the user's.
    pub(super) fn hush(&self) {
        let mut marks = Vec::new();
        self.marks(&mut marks);
        marks.iter().for_each(|mark| mark.quiet.set(true));
    }

    pub(super) fn take_keys(&self, keys: &[&str]) {
        keys.iter().filter_map(|key| self.get(key)).for_each(Self::take_all);
    }

    fn says_nothing(&self) -> bool {
        match &self.content {
            Content::Null => true,
            Content::Text(text) => text.is_empty(),
            Content::List(items) => items.iter().all(Self::says_nothing),
            Content::Map(entries) => entries.iter().all(|(_, tree)| tree.says_nothing()),
            _ => false,
        }
    }

    pub(super) fn any_taken(&self) -> bool {
        match &self.content {
            Content::List(items) => items.iter().any(Self::any_taken),
            Content::Map(entries) => entries.iter().any(|(_, tree)| tree.any_taken()),
            _ => self.mark.taken.get(),
        }
    }

    /// Whether nothing of it can be told.
    fn all_unknown(&self) -> bool {
        match &self.content {
            Content::List(items) => items.iter().all(Self::all_unknown),
            Content::Map(entries) => entries.iter().all(|(_, tree)| tree.all_unknown()),
            Content::Unknown(_) | Content::Null => true,
            _ => false,
        }
    }

    /// What nobody took: the topmost of it, with its path.
    pub(crate) fn left(&self) -> Vec<Left> {
        let mut found = Vec::new();
        for (key, tree) in self.entries() {
            tree.collect(key, false, &mut found);
        }
        found
    }

    /// The same, without what only the code says.
    pub(super) fn left_of_user(&self) -> Vec<Left> {
        let mut found = Vec::new();
        for (key, tree) in self.entries() {
            tree.collect(key, true, &mut found);
        }
        found
    }

    /// Whether nothing of it is the user's word.
    fn is_quiet(&self) -> bool {
        match &self.content {
            Content::List(items) => items.iter().all(Self::is_quiet),
            Content::Map(entries) => entries.iter().all(|(_, tree)| tree.is_quiet()),
            Content::Null => true,
            _ => self.mark.quiet.get(),
        }
    }

    fn collect(&self, path: &str, of_user: bool, found: &mut Vec<Left>) {
        if self.says_nothing() || of_user && self.is_quiet() {
            return;
        }
        let is_leaf = matches!(self.content, Content::Unknown(_));
        if !self.any_taken() && (is_leaf || !self.all_unknown()) {
            let unknown = match &self.content {
                Content::Unknown(expression) => Some(expression.clone()),
                // Filled in by another tool; what stands around it may be secret.
                Content::Text(text) if text.contains("${") => {
                    let name = text.split("${").nth(1).and_then(|rest| rest.split('}').next());
                    Some(format!("${{{}}}", name.unwrap_or_default()))
                }
                _ => None,
            };
            found.push(Left { path: path.to_owned(), place: self.place.clone(), unknown });
            return;
        }
        match &self.content {
            Content::Map(entries) => {
                entries.iter().for_each(|(key, tree)| tree.collect(&format!("{path}.{key}"), of_user, found));
            }
            Content::List(items) => {
                for (index, tree) in items.iter().enumerate() {
                    tree.collect(&format!("{path}[{index}]"), of_user, found);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn what_was_not_taken_is_known_with_its_line() {
        let text = "a: 1\nb:\n  c: x\n  d: y\ne: {f: 1, g: []}\nh: ''\n";
        let (tree, problems) = parse::yaml("a.yaml", text);
        let tree = tree.unwrap();
        assert!(problems.is_empty());
        assert_eq!(tree.int("a"), Some(1));
        assert_eq!(tree.get("b").and_then(|b| b.text("c")).as_deref(), Some("x"));
        let left: Vec<(String, usize)> =
            tree.left().into_iter().map(|left| (left.path, left.place.line)).collect();
        assert_eq!(left, [("b.d".to_owned(), 4), ("e".to_owned(), 5)]);
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_not_taken() {
        let (tree, _) = parse::yaml("a.yaml", "count: three\nsize: 7\nname: ${NAME}\n");
        let tree = tree.unwrap();
        assert_eq!((tree.int("count"), tree.int_in("size", 8..=9), tree.text("name")), (None, None, None));
        assert_eq!(tree.left().len(), 3);
    }

    #[test]
    fn a_computed_value_takes_what_it_was_made_of() {
        let (tree, _) = parse::yaml("a.yaml", "address: 192.0.2.1\nlength: 24\n");
        let tree = tree.unwrap();
        let parts = [tree.get("address").unwrap(), tree.get("length").unwrap()];
        let joined = Tree::made_of(tree.place.clone(), Content::Text("192.0.2.1/24".into()), &parts);
        assert_eq!(tree.left().len(), 2);
        joined.as_text();
        assert!(tree.left().is_empty());
    }
}
