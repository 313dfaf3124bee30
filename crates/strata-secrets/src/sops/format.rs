//! What a file format gives to SOPS: a tree, the metadata, and a way to write changed values back into the text.

use std::collections::HashMap;
use std::path::Path;

use super::SopsError;
use super::metadata::Meta;
use super::tree::{Document, Slot};
use crate::value::Value;

/// The formats of SOPS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Yaml,
    Json,
    Dotenv,
    Ini,
    /// Anything else: the whole file is one value.
    Binary,
}

impl Format {
    /// The format that `sops` takes a file of this name for.
    pub fn of(path: &Path) -> Self {
        // The ending of the name, not the extension: `.env` is all name to a `Path`.
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match name.rsplit_once('.') {
            Some((_, "yaml" | "yml")) => Format::Yaml,
            Some((_, "json")) => Format::Json,
            Some((_, "env")) => Format::Dotenv,
            Some((_, "ini")) => Format::Ini,
            _ => Format::Binary,
        }
    }
}

/// What is written in the place of a value or comment.
#[derive(Clone)]
pub(crate) enum Replacement {
    /// An encrypted value.
    Token(String),
    /// A decrypted value.
    Value(Value),
    /// The text of a comment, encrypted or not.
    Comment(String),
}

/// Changes by slot; what has none stays as it is.
pub(crate) type Replacements = HashMap<Slot, Replacement>;

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    /// In the style of `sops`.
    Usual,
    /// On one line each, quoted wherever possible. The way out where a document's layout leaves no room for lines.
    Quoted,
}

/// A file that was read.
pub(crate) trait File {
    /// The tree, without the metadata.
    fn documents(&self) -> &[Document];

    /// The metadata, if there is any.
    fn metadata(&self) -> Result<Option<Meta>, SopsError>;

    /// The file with changed values and this metadata, or without any.
    fn render(
        &self,
        replacements: &Replacements,
        metadata: Option<&Meta>,
        writing: Writing,
    ) -> Result<Vec<u8>, SopsError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_the_name_decides() {
        for (path, format) in [
            ("a/secrets.sops.yaml", Format::Yaml),
            ("a.yml", Format::Yaml),
            ("a.json", Format::Json),
            (".env", Format::Dotenv),
            ("deploy/prod.env", Format::Dotenv),
            ("a.ini", Format::Ini),
            ("yaml", Format::Binary),
            ("secrets.tfvars", Format::Binary),
        ] {
            assert_eq!(Format::of(Path::new(path)), format, "{path}");
        }
    }
}
