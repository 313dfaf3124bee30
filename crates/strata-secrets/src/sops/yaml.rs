//! YAML as a format of SOPS: values and comments are exchanged in place, everything else stays as it was written.

use std::collections::HashMap;
use std::ops::Range;

use self::layout::{BoxId, Content, Layout, ValuePlace};
use self::remarks::AttachedComment;
use super::SopsError;
use super::format::{File, Replacement, Replacements, Writing};
use super::metadata::Meta;
use super::tree::{Comment, Document, Item, Leaf, Node, Slot};
use crate::value::Value;

mod layout;
mod metadata;
mod remarks;
mod render;

/// The key of the metadata.
const SOPS: &str = "sops";

pub(crate) struct YamlFile {
    text: String,
    layout: Layout,
    documents: Vec<Document>,
    /// Where each comment stands; the slot of a comment is its index here, after the slots of the values.
    comments: Vec<Range<usize>>,
    /// For each document, where its metadata stands.
    metadata: Vec<Option<MetadataPlace>>,
}

/// Comments with their order and slot, by document and home.
type Homes<'s> = HashMap<(usize, Option<BoxId>), Vec<(usize, Slot, &'s AttachedComment)>>;

struct MetadataPlace {
    meta: Meta,
    /// The key and everything below it.
    span: Range<usize>,
    flow: bool,
}

impl YamlFile {
    pub(crate) fn parse(text: &str) -> Result<Self, SopsError> {
        let scanned = crate::yaml::scan::scan(text)?;
        let layout = layout::lay_out(text, &scanned)?;
        if layout.roots.is_empty() {
            return Err(SopsError::Empty);
        }
        let attached = remarks::attach(text, &scanned.events, &scanned.remarks, &layout);
        let mut file = YamlFile {
            text: text.to_owned(),
            comments: attached.iter().map(|remark| remark.span.clone()).collect(),
            documents: Vec::new(),
            metadata: Vec::new(),
            layout,
        };
        let mut by_home: Homes<'_> = HashMap::new();
        for (index, remark) in attached.iter().enumerate() {
            let slot = file.layout.slots.len() + index;
            by_home.entry((remark.document, remark.home)).or_default().push((remark.at, slot, remark));
        }
        for document in 0..file.layout.roots.len() {
            let items = file.items(document, file.layout.roots[document].container, &by_home);
            let place = file.metadata_place(document)?;
            let items =
                items.into_iter().filter(|item| !matches!(item, Item::Entry { key, .. } if key == SOPS));
            file.documents.push(Document { items: items.collect() });
            file.metadata.push(place);
        }
        Ok(file)
    }

    /// The items of a mapping or list with its comments, in the order in which SOPS sees them.
    fn items(&self, document: usize, container: Option<BoxId>, comments: &Homes<'_>) -> Vec<Item> {
        let mut ordered: Vec<(usize, bool, Item)> = Vec::new();
        for (at, slot, remark) in comments.get(&(document, container)).into_iter().flatten() {
            let text = self.text[remark.span.start + 1..remark.span.end].to_owned();
            let comment = Comment { text, slot: *slot, neighbours: remark.neighbours.clone() };
            ordered.push((*at, false, Item::Comment(comment)));
        }
        for placed in container.iter().flat_map(|id| &self.layout.boxes[*id].items) {
            let node = self.node(document, &placed.content, comments);
            ordered.push((placed.at, true, Item::Entry { key: placed.key.clone(), node }));
        }
        ordered.sort_by_key(|(at, is_entry, _)| (*at, *is_entry));
        ordered.into_iter().map(|(_, _, item)| item).collect()
    }

    fn node(&self, document: usize, content: &Content, comments: &Homes<'_>) -> Node {
        match content {
            Content::Value(slot) => Node::Leaf(Leaf { value: self.value(*slot), slot: *slot }),
            Content::Container(id) => {
                let items = self.items(document, Some(*id), comments);
                if self.layout.boxes[*id].list { Node::List(items) } else { Node::Mapping(items) }
            }
        }
    }

    fn value(&self, slot: Slot) -> Value {
        self.layout.slots[slot].as_ref().map_or(Value::Null, |slot| slot.value.clone())
    }

    fn metadata_place(&self, document: usize) -> Result<Option<MetadataPlace>, SopsError> {
        let Some(id) = self.layout.roots[document].container else { return Ok(None) };
        let root = &self.layout.boxes[id];
        let Some(placed) = root.items.iter().find(|item| item.key == SOPS) else { return Ok(None) };
        let meta = self.meta(&placed.content);
        Ok(Some(MetadataPlace { meta, span: placed.at..placed.end, flow: root.flow }))
    }

    fn meta(&self, content: &Content) -> Meta {
        match content {
            Content::Container(id) => {
                let container = &self.layout.boxes[*id];
                if container.list {
                    Meta::List(container.items.iter().map(|item| self.meta(&item.content)).collect())
                } else {
                    let fields =
                        container.items.iter().map(|item| (item.key.clone(), self.meta(&item.content)));
                    Meta::Mapping(fields.collect())
                }
            }
            Content::Value(slot) => match self.value(*slot) {
                Value::Int(number) => Meta::Number(number),
                Value::Bool(value) => Meta::Bool(value),
                Value::Null => Meta::Null,
                Value::Time(time) => Meta::Scalar(time),
                other => Meta::Scalar(String::from_utf8_lossy(&other.to_bytes()).into_owned()),
            },
        }
    }
}

impl File for YamlFile {
    fn documents(&self) -> &[Document] {
        &self.documents
    }

    fn metadata(&self) -> Result<Option<Meta>, SopsError> {
        let mut places = self.metadata.iter().flatten();
        let Some(first) = self.metadata.first().and_then(Option::as_ref) else {
            return match places.next() {
                Some(_) => Err(SopsError::Metadata {
                    field: SOPS.into(),
                    reason: "missing in the first document".into(),
                }),
                None => Ok(None),
            };
        };
        // SOPS looks at the first only. It writes the same into all of them, so anything else was tampered with.
        if places.any(|place| place.meta != first.meta) {
            return Err(SopsError::Metadata {
                field: SOPS.into(),
                reason: "differs between the documents".into(),
            });
        }
        Ok(Some(first.meta.clone()))
    }

    fn render(
        &self,
        replacements: &Replacements,
        metadata: Option<&Meta>,
        writing: Writing,
    ) -> Result<Vec<u8>, SopsError> {
        render::render(self, replacements, metadata, writing).map(String::into_bytes)
    }
}
