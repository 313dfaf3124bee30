//! Where the objects of a state are. A server has folders for what it keeps, a store that needs no server a folder for each state.
//!
//! ```text
//! Layout::Server     heads/<name>                        lock, versions, which parts the journal has: the record
//!                    contents/<id>/<part>                a version's bytes, never changed
//!                    journals/<id>                       lines of a journal, never changed
//! Layout::Folders    <name>/lock                         the record
//!                    <name>/history/<serial>-<id>.json   a version's bytes
//!                    <name>/journal/<id>                 lines of the journal
//! ```

use crate::name::StateName;

/// A part of a content. Larger than a piece, since every request to a bucket takes its time.
pub(super) const PART: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    Server,
    Folders,
}

impl Layout {
    pub(super) fn record(self, name: &StateName) -> String {
        match self {
            Self::Server => plain_path(name),
            // Programs of a former layout look for a lock here: what they cannot read they take for one that is held.
            Self::Folders => format!("{name}/lock"),
        }
    }

    /// The name by which a record knows a content that is written whole.
    pub(super) fn content(self, name: &StateName, serial: Option<u64>, id: String) -> String {
        match self {
            Self::Server => id,
            Self::Folders => format!("{name}/history/{:08}-{id}.json", serial.unwrap_or(0)),
        }
    }

    /// The name by which a record knows lines of its journal.
    pub(super) fn journal(self, name: &StateName, id: String) -> String {
        match self {
            Self::Server => id,
            Self::Folders => format!("{name}/journal/{id}"),
        }
    }

    /// Where records may be.
    pub(super) fn records(self) -> &'static str {
        match self {
            Self::Server => "heads",
            Self::Folders => "",
        }
    }

    /// The state that an object belongs to, where its path says so.
    pub(super) fn state_of(path: &str) -> Option<&str> {
        let (folder, name) = path.rsplit_once('/')?;
        match name {
            "lock" | "state.json" => Some(folder),
            _ => None,
        }
    }
}

/// Names of a server's objects are plain: what is not a letter or a digit is written in hexadecimal.
fn plain_path(name: &StateName) -> String {
    let mut path = "heads/".to_owned();
    for byte in name.as_str().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => path.push(char::from(byte)),
            other => path.push_str(&format!("_{other:02x}")),
        }
    }
    path
}

/// A name with a folder in it is an object as it is.
fn is_path(name: &str) -> bool {
    name.contains('/')
}

/// How many bytes each object of a content has, but the last.
pub(super) fn part_size(content: &str, size: u64) -> u64 {
    if is_path(content) { size.max(1) } else { PART as u64 }
}

/// How many objects a content of this size has.
pub(super) fn parts(content: &str, size: u64) -> u64 {
    size.div_ceil(part_size(content, size)).max(1)
}

pub(super) fn content_part(content: &str, part: u64) -> String {
    if is_path(content) { content.to_owned() } else { format!("contents/{content}/{part:05}") }
}

pub(super) fn journal_part(journal: &str) -> String {
    if is_path(journal) { journal.to_owned() } else { format!("journals/{journal}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_server_become_plain_paths() {
        let path = |name| Layout::Server.record(&StateName::parse(name).unwrap());
        assert_eq!(path("prod/web-1"), "heads/prod_2fweb-1");
        assert_eq!(path("a_b ä"), "heads/a_5fb_20_c3_a4");
    }

    #[test]
    fn a_content_is_in_parts_or_whole() {
        let name = StateName::parse("prod/web").unwrap();
        let (large, size) = (PART as u64 * 2, PART as u64 * 2 + 1);
        let id = Layout::Server.content(&name, Some(7), "ab".to_owned());
        assert_eq!((parts(&id, size), parts(&id, large), parts(&id, 0)), (3, 2, 1));
        assert_eq!(content_part(&id, 2), "contents/ab/00002");
        let whole = Layout::Folders.content(&name, Some(7), "ab".to_owned());
        assert_eq!((parts(&whole, size), parts(&whole, 0)), (1, 1));
        assert_eq!(content_part(&whole, 0), "prod/web/history/00000007-ab.json");
        assert_eq!(journal_part(&Layout::Folders.journal(&name, "ab".to_owned())), "prod/web/journal/ab");
    }
}
