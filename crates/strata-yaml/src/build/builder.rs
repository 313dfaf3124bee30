//! Puts finished values where they belong, and counts them.

use std::collections::HashMap;

use super::{Key, Limits, Parts, Position, Problem, Tag, Tree, Written};

const MERGE: &str = "<<";

/// The entries of a mapping in their order.
type Named<N> = Vec<(Key, N)>;

pub(super) struct Builder<'t, T: Tree> {
    tree: &'t mut T,
    limits: &'t Limits,
    open: Vec<Open<T::Node>>,
    documents: Vec<(Position, T::Node)>,
    begun: usize,
    ended: bool,
    anchors: HashMap<usize, Finished<T::Node>>,
    values: usize,
    aliased: usize,
}

/// A list or mapping that has begun and not ended.
struct Open<N> {
    anchor: usize,
    at: Position,
    /// Where the last thing in it ends.
    last: Position,
    items: Items<N>,
    values: usize,
    height: usize,
}

enum Items<N> {
    List(Vec<N>),
    Mapping(Entries<N>),
}

struct Entries<N> {
    done: Named<N>,
    /// Where each key stands, the merge key included.
    seen: HashMap<String, Position>,
    pending: Option<Pending>,
    merged: Vec<(Position, N)>,
}

/// What the next value of a mapping is for.
enum Pending {
    Name(Key),
    Merge(Position),
    /// Its key was there before.
    Dropped,
}

#[derive(Clone)]
struct Finished<N> {
    node: N,
    values: usize,
    height: usize,
}

impl<'t, T: Tree> Builder<'t, T> {
    pub(super) fn new(tree: &'t mut T, limits: &'t Limits) -> Self {
        Self {
            tree,
            limits,
            open: Vec::new(),
            documents: Vec::new(),
            begun: 0,
            ended: false,
            anchors: HashMap::new(),
            values: 0,
            aliased: 0,
        }
    }

    /// True once nothing that follows can matter.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    pub(super) fn documents(self) -> Vec<(Position, T::Node)> {
        self.documents
    }

    /// The parser's complaint. A block has no bracket, and an empty start.
    pub(super) fn syntax(&self, info: &str, at: Position) -> T::Error {
        let bracket = self.open.iter().rev().map(|open| open.at).find(|start| !start.is_empty());
        self.tree.error(Problem::Syntax { info, bracket }, at)
    }

    pub(super) fn document(&mut self, at: Position) -> Result<(), T::Error> {
        self.anchors.clear();
        self.begun += 1;
        if T::ONE_DOCUMENT && self.begun > 1 {
            self.ended = true;
            return self.tolerate(Problem::SecondDocument, at);
        }
        Ok(())
    }

    pub(super) fn tag(&mut self, tag: Option<Tag<'_>>, scalar: bool, at: Position) -> Result<(), T::Error> {
        match tag.filter(|tag| !self.tree.takes_tag(*tag, scalar)) {
            Some(tag) => self.tolerate(Problem::UnknownTag(tag), at),
            None => Ok(()),
        }
    }

    pub(super) fn scalar(
        &mut self,
        scalar: Written<'_>,
        anchor: usize,
        at: Position,
    ) -> Result<(), T::Error> {
        let merges = scalar.plain && scalar.text == MERGE;
        if let Some(Items::Mapping(entries)) = self.open.last_mut().map(|open| &mut open.items)
            && merges
            && entries.pending.is_none()
        {
            let key = Key { text: MERGE.to_owned(), at };
            return self.named(key, true);
        }
        let node = self.tree.scalar(scalar, at);
        self.complete(Finished { node, values: 1, height: 1 }, anchor, at)
    }

    pub(super) fn open(&mut self, mapping: bool, anchor: usize, at: Position) -> Result<(), T::Error> {
        if self.open.len() >= self.limits.depth {
            return Err(self.tree.error(Problem::TooDeep { most: self.limits.depth }, at));
        }
        let items = if mapping {
            let (done, merged) = (Vec::new(), Vec::new());
            Items::Mapping(Entries { done, seen: HashMap::new(), pending: None, merged })
        } else {
            Items::List(Vec::new())
        };
        self.open.push(Open { anchor, at, last: at, items, values: 1, height: 1 });
        Ok(())
    }

    pub(super) fn close(&mut self, end: Position) -> Result<(), T::Error> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        // A block ends where the next token begins, which may be many lines on: end it with its last value.
        let at = if end.is_empty() { open.at.to(open.last) } else { open.at.to(end) };
        let node = match open.items {
            Items::List(items) => self.tree.list(items, at),
            Items::Mapping(entries) => {
                let entries = self.merged(entries)?;
                self.tree.mapping(entries, at)
            }
        };
        let finished = Finished { node, values: open.values, height: open.height + 1 };
        self.complete(finished, open.anchor, at)
    }

    pub(super) fn alias(&mut self, anchor: usize, at: Position) -> Result<(), T::Error> {
        let Some(finished) = self.anchors.get(&anchor) else {
            return Err(self.tree.error(Problem::AliasInside, at));
        };
        // Looked at before it is copied.
        self.aliased += finished.values;
        if self.aliased > self.limits.aliased {
            return Err(self.tree.error(Problem::TooManyAliased { most: self.limits.aliased }, at));
        }
        if self.open.len() + finished.height > self.limits.depth {
            return Err(self.tree.error(Problem::TooDeep { most: self.limits.depth }, at));
        }
        let finished = finished.clone();
        self.complete(finished, 0, at)
    }

    /// Puts a finished value where it belongs.
    fn complete(&mut self, done: Finished<T::Node>, anchor: usize, at: Position) -> Result<(), T::Error> {
        self.values += 1;
        if self.values + self.aliased > self.limits.values {
            return Err(self.tree.error(Problem::TooManyValues { most: self.limits.values }, at));
        }
        if anchor != 0 {
            // The copy counts like an alias: anchors in anchors in anchors would multiply the tree.
            self.aliased += done.values;
            self.anchors.insert(anchor, done.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.documents.push((at, done.node));
            return Ok(());
        };
        open.values += done.values;
        open.height = open.height.max(done.height);
        open.last = at;
        let entries = match &mut open.items {
            Items::List(items) => {
                items.push(done.node);
                return Ok(());
            }
            Items::Mapping(entries) => entries,
        };
        match entries.pending.take() {
            Some(Pending::Name(key)) => entries.done.push((key, done.node)),
            Some(Pending::Merge(key)) => entries.merged.push((key, done.node)),
            Some(Pending::Dropped) => {}
            None => {
                let Some(text) = self.tree.key(&done.node) else {
                    return Err(self.tree.error(Problem::KeyNotText(&done.node), at));
                };
                return self.named(Key { text, at }, false);
            }
        }
        Ok(())
    }

    /// A key: the next value is its own.
    fn named(&mut self, key: Key, merge: bool) -> Result<(), T::Error> {
        let Some(Open { items: Items::Mapping(entries), last, .. }) = self.open.last_mut() else {
            return Ok(());
        };
        *last = key.at;
        if let Some(first) = entries.seen.get(&key.text).copied() {
            entries.pending = Some(Pending::Dropped);
            return self.tolerate(Problem::DuplicateKey { key: &key.text, first }, key.at);
        }
        entries.seen.insert(key.text.clone(), key.at);
        entries.pending = Some(if merge { Pending::Merge(key.at) } else { Pending::Name(key) });
        Ok(())
    }

    /// The entries of a mapping with those that merge keys bring: they never win over what is written out, and an earlier source
    /// wins over a later.
    fn merged(&mut self, entries: Entries<T::Node>) -> Result<Named<T::Node>, T::Error> {
        let Entries { mut done, mut seen, merged, .. } = entries;
        for (at, node) in merged {
            for source in self.sources(node, at)? {
                for (key, node) in source {
                    if !seen.contains_key(&key.text) {
                        seen.insert(key.text.clone(), key.at);
                        done.push((key, node));
                    }
                }
            }
        }
        Ok(done)
    }

    /// The mappings that a merge key names.
    fn sources(&mut self, node: T::Node, at: Position) -> Result<Vec<Named<T::Node>>, T::Error> {
        let candidates = match self.tree.parts(node, at) {
            Parts::List(items) => items.into_iter().map(|item| self.tree.parts(item, at)).collect(),
            other => vec![other],
        };
        let mut sources = Vec::new();
        for candidate in candidates {
            let node = match candidate {
                Parts::Mapping(entries) => {
                    sources.push(entries);
                    continue;
                }
                Parts::Scalar(node) => node,
                Parts::List(items) => self.tree.list(items, at),
            };
            self.tolerate(Problem::NotMergeable(&node, at), at)?;
        }
        Ok(sources)
    }

    fn tolerate(&mut self, problem: Problem<'_, T::Node>, at: Position) -> Result<(), T::Error> {
        let error = self.tree.error(problem, at);
        self.tree.tolerate(error)
    }
}
