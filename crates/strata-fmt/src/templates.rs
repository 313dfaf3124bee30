//! What has no layout of its own: files that a program fills in first, and files that are encrypted.

use crate::Left;
use crate::token::{Sign, Tokens};
use crate::tree::{Document, Kind, Node};

/// What the parser stopped at may be a sign of a template.
pub(crate) fn blame(text: &str, problem: Left) -> Left {
    if text.starts_with("$ANSIBLE_VAULT") {
        return Left::Encrypted;
    }
    let is_template = ["{{", "{%", "%{"].iter().any(|sign| text.contains(sign));
    if is_template { Left::Template } else { problem }
}

/// makejinja's lines are comments to YAML: their indentation is the output's. Texts of Ansible Vault are tagged.
pub(crate) fn refuse(text: &str, tokens: &Tokens) -> Result<(), Left> {
    if text.starts_with("$ANSIBLE_VAULT") {
        return Err(Left::Encrypted);
    }
    let makes = |at: usize| ["#%", "#{", "#|"].iter().any(|sign| text[at..].starts_with(sign));
    if tokens.comments.iter().any(|comment| makes(comment.start)) {
        return Err(Left::Template);
    }
    let is_vault = |at: usize| text[at..].starts_with("!vault");
    if tokens.tokens.iter().any(|token| token.sign == Sign::Property && is_vault(token.start)) {
        return Err(Left::Encrypted);
    }
    Ok(())
}

/// What SOPS has written holds a digest of itself.
pub(crate) fn refuse_encrypted(documents: &[Document]) -> Result<(), Left> {
    let is_sealed = |document: &Document| {
        let sops = document.root.as_ref().and_then(|root| child(root, "sops"));
        sops.is_some_and(|sops| child(sops, "mac").is_some() || child(sops, "version").is_some())
    };
    if documents.iter().any(is_sealed) { Err(Left::Encrypted) } else { Ok(()) }
}

fn child<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let Kind::Mapping { entries, .. } = &node.kind else { return None };
    let named = |key: &Node| matches!(&key.kind, Kind::Scalar(scalar) if scalar.text == name);
    entries.iter().find(|(key, _)| named(key)).map(|(_, value)| value)
}
