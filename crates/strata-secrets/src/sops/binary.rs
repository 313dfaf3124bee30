//! Files of any bytes: encrypted, they are a JSON object with the one key `data`.

use super::SopsError;
use super::format::{File, Replacement, Replacements, Writing};
use super::json::{JsonFile, quoted};
use super::metadata::Meta;
use super::tree::{Document, Item, Leaf, Node};
use crate::value::Value;

const DATA: &str = "data";

/// A plain file as a tree with one value.
pub(crate) struct PlainBinary {
    documents: Vec<Document>,
}

impl PlainBinary {
    pub(crate) fn new(content: &[u8]) -> Self {
        let node = Node::Leaf(Leaf { value: Value::text(content), slot: 0 });
        Self { documents: vec![Document { items: vec![Item::Entry { key: DATA.to_owned(), node }] }] }
    }
}

impl File for PlainBinary {
    fn documents(&self) -> &[Document] {
        &self.documents
    }

    fn metadata(&self) -> Result<Option<Meta>, SopsError> {
        Ok(None)
    }

    fn render(
        &self,
        replacements: &Replacements,
        metadata: Option<&Meta>,
        writing: Writing,
    ) -> Result<Vec<u8>, SopsError> {
        let token = match replacements.get(&0) {
            Some(Replacement::Token(token)) => token.as_str(),
            // Nothing to encrypt: the file is empty.
            _ => "",
        };
        JsonFile::parse(&format!("{{\n\t\"{DATA}\": {}\n}}\n", quoted(token)))?.render(
            &Replacements::new(),
            metadata,
            writing,
        )
    }
}

/// An encrypted file.
pub(crate) struct SealedBinary(JsonFile);

impl SealedBinary {
    pub(crate) fn parse(text: &str) -> Result<Self, SopsError> {
        let file = JsonFile::parse(text)?;
        match file.documents()[0].items.as_slice() {
            [Item::Entry { key, node: Node::Leaf(_) }] if key == DATA => Ok(Self(file)),
            _ => Err(SopsError::NotAMapping),
        }
    }
}

impl File for SealedBinary {
    fn documents(&self) -> &[Document] {
        self.0.documents()
    }

    fn metadata(&self) -> Result<Option<Meta>, SopsError> {
        self.0.metadata()
    }

    fn render(
        &self,
        replacements: &Replacements,
        metadata: Option<&Meta>,
        writing: Writing,
    ) -> Result<Vec<u8>, SopsError> {
        if metadata.is_some() {
            return self.0.render(replacements, metadata, writing);
        }
        Ok(match replacements.get(&0) {
            Some(Replacement::Value(value)) => value.to_bytes().to_vec(),
            _ => Vec::new(),
        })
    }
}
