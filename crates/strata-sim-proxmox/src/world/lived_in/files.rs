//! Reading the files: configurations of guests, files of sections, the list of volumes.
//!
//! The files are part of the program and a test walks what comes of them, so what cannot be read is left out without a word.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::world::GuestKind;
use crate::world::cluster::Section;
use crate::world::guest::{Config, Pending};

/// A guest as its file has it.
pub(super) struct ReadGuest {
    pub(super) vmid: u32,
    pub(super) kind: GuestKind,
    pub(super) running: bool,
    pub(super) config: Config,
    pub(super) pending: BTreeMap<String, Pending>,
    pub(super) snapshots: IndexMap<String, Config>,
}

/// The guests of a node: each begins with a line `==> qemu-server/100.conf running <==`.
pub(super) fn guests(text: &str) -> impl Iterator<Item = ReadGuest> {
    text.split("==> ").skip(1).filter_map(|part| {
        let (head, body) = part.split_once(" <==\n")?;
        let (path, power) = head.split_once(' ').unwrap_or((head, ""));
        let (folder, file) = path.split_once('/')?;
        let kind = if folder == "lxc" { GuestKind::Lxc } else { GuestKind::Qemu };
        let mut guest = ReadGuest {
            vmid: file.strip_suffix(".conf")?.parse().ok()?,
            kind,
            running: power == "running",
            config: Config::new(),
            pending: BTreeMap::new(),
            snapshots: IndexMap::new(),
        };
        guest.read(body);
        Some(guest)
    })
}

impl ReadGuest {
    fn read(&mut self, body: &str) {
        let mut sections = body.split("\n[");
        self.config = options(sections.next().unwrap_or_default());
        for section in sections {
            let Some((name, body)) = section.split_once("]\n") else { continue };
            if name == "PENDING" {
                self.pending = pending(options(body));
            } else {
                self.snapshots.insert(name.to_owned(), options(body));
            }
        }
    }
}

fn pending(mut options: Config) -> BTreeMap<String, Pending> {
    let deleted = options.remove("delete").unwrap_or_default();
    let deletes = deleted.split(',').filter(|key| !key.is_empty()).map(|key| {
        let force = key.starts_with('!');
        (key.trim_start_matches('!').to_owned(), Pending::Delete { force })
    });
    let mut all: BTreeMap<String, Pending> = deletes.collect();
    all.extend(options.into_iter().map(|(key, value)| (key, Pending::Set(value))));
    all
}

/// One section: notes behind `#`, options as `key: value`, raw options of the container runtime below one key.
fn options(body: &str) -> Config {
    let mut config = Config::new();
    for line in body.lines() {
        if let Some(note) = line.strip_prefix('#') {
            let notes = config.entry("description".to_owned()).or_default();
            notes.push_str(&decoded(note));
            notes.push('\n');
        } else if let Some((key, value)) = line.split_once(':') {
            let value = value.trim();
            if key.starts_with("lxc.") {
                let raw = config.entry("lxc".to_owned()).or_default();
                raw.push_str(&format!("{key}: {value}\n"));
            } else {
                config.insert(key.to_owned(), value.to_owned());
            }
        }
    }
    config
}

/// Text in which `%3A` stands for a colon.
pub(super) fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The sections of a file: `kind: id`, then options, one a line behind a tab. An option without a value is set; one that is there several
/// times is a list.
pub(super) fn sections(text: &str) -> impl Iterator<Item = (String, Section)> {
    text.split("\n\n").filter_map(|part| {
        let mut lines = part.lines();
        let (kind, id) = lines.next()?.split_once(": ")?;
        let mut section = Section { kind: kind.to_owned(), props: IndexMap::new() };
        for line in lines {
            let line = line.trim_start();
            let (key, value) = match line.split_once(' ') {
                Some((key, value)) => (key, value),
                None => (line, "1"),
            };
            let kept = section.props.entry(key.to_owned()).or_default();
            if !kept.is_empty() {
                kept.push('\n');
            }
            kept.push_str(value);
        }
        Some((id.to_owned(), section))
    })
}

/// A volume of the list.
pub(super) struct Listed<'t> {
    /// None on a shared storage.
    pub(super) node: Option<&'t str>,
    pub(super) volid: &'t str,
    pub(super) content: &'t str,
    pub(super) size: u64,
}

/// `node volume content bytes`, with `-` for the node of a shared storage.
pub(super) fn volumes(text: &str) -> impl Iterator<Item = Listed<'_>> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut words = line.split_whitespace();
        let node = words.next().map(|node| (node != "-").then_some(node))?;
        let (volid, content, size) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
        Some(Listed { node, volid, content, size })
    })
}
