//! What proves that an object is ours: the lineage of a state, and the mark in a guest's notes (docs/ownership.md).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Address;

/// Names one state of one repository: 32 hex digits, derived, never drawn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Lineage(String);

impl Lineage {
    /// Derived from the repository's id and the state's key, so that two plans of one source agree before any state exists.
    pub fn derive(repository: &str, state_key: &str) -> Self {
        let mut hash = Sha256::new();
        for part in ["strata lineage 1", repository, state_key] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hex::encode(&hash.finalize()[..16]))
    }

    /// The whole of it, as states store it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Twelve digits, for the names of volumes.
    pub fn short(&self) -> &str {
        &self.0[..12.min(self.0.len())]
    }

    /// The same in the name of a volume that is made once more, while the first one lives elsewhere: `bcd45a29c4e9.2`.
    pub fn short_of(&self, again: u32) -> String {
        match again {
            0 => self.short().to_owned(),
            again => format!("{}.{}", self.short(), u64::from(again) + 1),
        }
    }

    /// A name with another text in the place of this lineage, however often the volume was made.
    pub fn replaced_in(&self, name: &str, other: &str) -> String {
        let Some((before, after)) = name.split_once(self.short()) else { return name.to_owned() };
        let digits = |rest: &str| rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let after = match after.strip_prefix('.') {
            Some(rest) if digits(rest) > 0 => &rest[digits(rest)..],
            _ => after,
        };
        format!("{before}{other}{after}")
    }
}

impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The line in a guest's notes that says whose it is: `strata: <lineage> <address> vmid=<id>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Which state it belongs to, short.
    pub lineage: String,
    /// What that state calls it.
    pub address: String,
    /// The guest that it was written for: a copy of the text on another guest proves nothing.
    pub vmid: u32,
}

const PREFIX: &str = "strata: ";

impl Mark {
    /// What a guest of this address carries.
    pub fn new(lineage: &Lineage, address: &Address, vmid: u32) -> Self {
        Self { lineage: lineage.to_string(), address: address.to_string(), vmid }
    }

    /// Finds the mark among the lines of a guest's notes, and gives the notes without it.
    pub fn split_from_notes(notes: &str) -> (Option<Self>, String) {
        let mut mark = None;
        let mut rest = Vec::new();
        for line in notes.lines() {
            match Self::parse(line.trim()) {
                Some(found) if mark.is_none() => mark = Some(found),
                _ => rest.push(line),
            }
        }
        (mark, rest.join("\n").trim_end().to_owned())
    }

    /// The notes as Proxmox gets them: what the user wrote, then the mark on a line of its own.
    pub fn join_to_notes(&self, notes: &str) -> String {
        if notes.is_empty() { self.to_string() } else { format!("{}\n\n{self}", notes.trim_end()) }
    }

    /// None for a line that is no mark; notes around it are not its business.
    pub fn parse(line: &str) -> Option<Self> {
        let mut parts = line.strip_prefix(PREFIX)?.split(' ');
        let (lineage, address, vmid) = (parts.next()?, parts.next()?, parts.next()?);
        let vmid = vmid.strip_prefix("vmid=")?.parse().ok()?;
        parts.next().is_none().then(|| Self {
            lineage: lineage.to_owned(),
            address: address.to_owned(),
            vmid,
        })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{} {} vmid={}", self.lineage, self.address, self.vmid)
    }
}

/// The end of a comment that says whose an object of the datacenter is: `[strata 0123456789ab dc/pool/web]`. One line: some comments
/// are one line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentMark {
    /// The short form: comments are read by people.
    pub lineage: String,
    /// What the state calls it.
    pub address: String,
}

const BEGIN: &str = "[strata ";

impl CommentMark {
    /// What an object of this address carries in its comment.
    pub fn new(lineage: &Lineage, address: &Address) -> Self {
        Self { lineage: lineage.short().to_owned(), address: address.to_string() }
    }

    /// The mark at the end of a comment, and the comment without it.
    pub fn split_from_comment(comment: &str) -> (Option<Self>, String) {
        let comment = comment.trim();
        let parsed = comment.rfind(BEGIN).and_then(|at| Some((at, Self::parse(&comment[at..])?)));
        match parsed {
            Some((at, mark)) => (Some(mark), comment[..at].trim_end().to_owned()),
            None => (None, comment.to_owned()),
        }
    }

    /// Behind what people wrote.
    pub fn join_to_comment(&self, comment: &str) -> String {
        if comment.is_empty() { self.to_string() } else { format!("{} {self}", comment.trim()) }
    }

    fn parse(text: &str) -> Option<Self> {
        let inside = text.strip_prefix(BEGIN)?.strip_suffix(']')?;
        let (lineage, address) = inside.split_once(' ')?;
        let hex = lineage.len() == 12 && lineage.bytes().all(|byte| byte.is_ascii_hexdigit());
        let whole = !address.is_empty() && !address.contains([' ', '[', ']']);
        (hex && whole).then(|| Self { lineage: lineage.to_owned(), address: address.to_owned() })
    }
}

impl fmt::Display for CommentMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BEGIN}{} {}]", self.lineage, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn a_lineage_in_a_name_is_replaced_however_often_the_volume_was_made() {
        let (own, other) = (Lineage::derive("r", "dev/s"), Lineage::derive("r", "dev/d"));
        let name = |short: &str| format!("local:iso/strata-{short}-2.5-x.iso");
        for again in [0, 1, 11] {
            assert!(own.short_of(again).starts_with(own.short()));
            assert_eq!(own.replaced_in(&name(&own.short_of(again)), other.short()), name(other.short()));
        }
        assert_eq!(own.short_of(1), format!("{}.2", own.short()));
        assert_eq!(own.replaced_in(&name(other.short()), "x"), name(other.short()));
    }

    #[test]
    fn a_mark_ends_a_comment() {
        let lineage = Lineage::derive("r1", "dev/dc");
        let mark = CommentMark::new(&lineage, &Address::new(None, "dc", Kind::named("pool"), "web"));
        for comment in ["", "for the web", "odd [strata things"] {
            let joined = mark.join_to_comment(comment);
            assert_eq!(
                CommentMark::split_from_comment(&format!("{joined}\n")),
                (Some(mark.clone()), comment.to_owned())
            );
        }
        for other in ["", "by hand", "[strata x dc/pool/web]", "[strata 0123456789ab dc/pool/web] more"] {
            assert_eq!(CommentMark::split_from_comment(other), (None, other.to_owned()));
        }
    }

    #[test]
    fn the_mark_survives_a_round_trip_through_notes() {
        let lineage = Lineage::derive("r1", "dev/web");
        let mark = Mark::new(&lineage, &Address::new(None, "web", Kind::named("vm"), "web-1"), 9100);
        for notes in ["", "one line", "two\nlines"] {
            let joined = mark.join_to_notes(notes);
            assert_eq!(Mark::split_from_notes(&joined), (Some(mark.clone()), notes.to_owned()));
            // Containers get a trailing newline from the server.
            assert_eq!(Mark::split_from_notes(&format!("{joined}\n")).0, Some(mark.clone()));
        }
    }

    #[test]
    fn lineages_differ_by_repository_and_by_state() {
        assert_eq!(Lineage::derive("a", "b"), Lineage::derive("a", "b"));
        assert_ne!(Lineage::derive("a", "b"), Lineage::derive("a", "c"));
        assert_ne!(Lineage::derive("ab", "c"), Lineage::derive("a", "bc"));
    }

    #[test]
    fn what_only_resembles_a_mark_is_a_note() {
        for notes in ["strata: x", "strata: a b vmid=no", "strata: a b vmid=1 more", "see strata: a b vmid=1"]
        {
            assert_eq!(Mark::split_from_notes(notes), (None, notes.to_owned()));
        }
    }
}
