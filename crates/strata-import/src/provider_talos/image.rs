//! The image that a node is installed with, as code names it: a text, or what the image factory's resources come to.

use crate::output::only;
use crate::records::Schematic;
use serde_json::Value as Json;

use super::super::Import;
use super::super::guest::refers_to;
use super::super::module::{Expansion, Resource};
use super::super::output;
use super::super::tree::{Content, Tree};
use super::super::{is_version, parse, talos};
use super::is_of;

pub(super) struct Images<'e> {
    pub(super) expansion: &'e Expansion,
}

/// What an installer says of a node.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Installer {
    pub(super) schematic: Option<Json>,
    pub(super) version: Option<String>,
    pub(super) secure_boot: bool,
}

impl Images<'_> {
    /// The installer that a text or a reference names; nothing if it is none of the image factory's or Talos' own.
    pub(super) fn installer(&self, import: &mut Import<'_>, text: &str) -> Option<Installer> {
        let secure_boot = text.contains("secureboot");
        if let Some(urls) = self.urls(text) {
            let version = urls.body.get("talos_version").and_then(Tree::peek);
            let schematic = urls.body.get("schematic_id").and_then(|id| match &id.content {
                Content::Unknown(reference) => self.schematic(import, reference),
                _ => id.peek().filter(|id| output::is_schematic(id)).map(|id| only(Schematic::id, id)),
            });
            return Some(Installer { schematic, version, secure_boot });
        }
        if !text.contains("installer") {
            return None;
        }
        let version = text
            .rsplit([':', '/'])
            .find(|part| is_version(part.trim_matches('"')))
            .map(|part| part.trim_matches('"').to_owned());
        let by_id =
            text.split(['/', ':']).find(|part| output::is_schematic(part)).map(|id| only(Schematic::id, id));
        let schematic = match by_id {
            Some(id) => Some(id),
            None => {
                let reference = text.split("${").nth(1).and_then(|rest| rest.split('}').next());
                reference.and_then(|reference| self.schematic(import, reference))
            }
        };
        // Images of other registries are somebody's own.
        let official = text.contains("siderolabs/installer") || text.contains("factory.talos.dev");
        (official || schematic.is_some()).then_some(Installer { schematic, version, secure_boot })
    }

    fn urls(&self, text: &str) -> Option<&Resource> {
        let urls = self.expansion.data.iter().filter(|data| data.kind == "talos_image_factory_urls");
        urls.into_iter().find(|data| is_of(text.trim_start_matches("${").trim_end_matches('}'), data))
    }

    /// What a schematic of the same code has in it.
    fn schematic(&self, import: &mut Import<'_>, reference: &str) -> Option<Json> {
        let all = self.expansion.resources.iter();
        let found = all
            .filter(|resource| resource.kind == "talos_image_factory_schematic")
            .find(|resource| refers_to(reference, &resource.full_address()))?;
        let tree = found.body.get("schematic")?;
        let parsed = match &tree.content {
            Content::Text(text) => parse::yaml(&tree.place.file, text).0?,
            Content::Map(_) => tree.clone(),
            _ => return None,
        };
        let written = talos::schematic(&parsed)?;
        tree.take_all();
        let left = parsed.left();
        if matches!(tree.content, Content::Text(_)) {
            for part in left {
                let message = format!(
                    "`{}` of the schematic has no place in Strata and was not carried over",
                    part.path
                );
                import.note(Some(&tree.place), message);
            }
        }
        Some(written)
    }
}
