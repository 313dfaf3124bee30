//! The mark of a host that is being maintained, as one line of its notes: which repository does what with which hosts, and how far it is.
//!
//! It is written before what it announces. Whoever comes after a run that died reads from it how to go on; everybody else leaves the host alone.

use std::fmt;

const BEGINNING: &str = "strata maintenance:";

/// How far a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It waits until the hosts before it are done.
    Planned,
    /// Its guests go.
    Leaving,
    /// Its guests are gone: it may be worked on.
    Empty,
    /// It is told to reboot, at this time by its own clock, in seconds since 1970.
    Rebooting(i64),
    /// Its guests come back.
    Returning,
    /// Others are still to be done.
    Done,
}

/// The mark of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintenanceMark {
    /// The id of the repository.
    pub by: String,
    /// `drain`, `update` or `reboot`.
    pub verb: String,
    /// All hosts that it is done to, in their order.
    pub hosts: Vec<String>,
    pub stage: Stage,
}

impl fmt::Display for MaintenanceMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, verb, hosts, stage } = self;
        write!(f, "{BEGINNING} by={by} verb={verb} hosts={} stage=", hosts.join(","))?;
        match stage {
            Stage::Planned => f.write_str("planned"),
            Stage::Leaving => f.write_str("leaving"),
            Stage::Empty => f.write_str("empty"),
            Stage::Rebooting(since) => write!(f, "rebooting since={since}"),
            Stage::Returning => f.write_str("returning"),
            Stage::Done => f.write_str("done"),
        }
    }
}

impl MaintenanceMark {
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<(&str, &str)> = line
            .trim()
            .strip_prefix(BEGINNING)?
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .collect();
        let word = |name: &str| words.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let stage = match word("stage")? {
            "planned" => Stage::Planned,
            "leaving" => Stage::Leaving,
            "empty" => Stage::Empty,
            "rebooting" => Stage::Rebooting(word("since")?.parse().ok()?),
            "returning" => Stage::Returning,
            "done" => Stage::Done,
            _ => return None,
        };
        Some(Self {
            by: word("by")?.to_owned(),
            verb: word("verb")?.to_owned(),
            hosts: word("hosts")?.split(',').map(str::to_owned).collect(),
            stage,
        })
    }

    /// The mark in the notes of a host. A line that begins like one and cannot be read belongs to a later version: it is a mark of somebody else.
    pub fn in_notes(notes: &str) -> Option<Self> {
        let line = notes.lines().find(|line| line.trim().starts_with(BEGINNING))?;
        let unreadable = || Self {
            by: "an unknown version".to_owned(),
            verb: "maintenance".to_owned(),
            hosts: Vec::new(),
            stage: Stage::Planned,
        };
        Some(Self::parse(line).unwrap_or_else(unreadable))
    }

    /// Notes without the line of a mark, and the line.
    pub(crate) fn split(notes: &str) -> (String, Option<String>) {
        let is_mark = |line: &&str| line.trim().starts_with(BEGINNING);
        match notes.lines().find(is_mark) {
            None => (notes.to_owned(), None),
            Some(mark) => {
                let own: Vec<&str> = notes.lines().filter(|line| !is_mark(line)).collect();
                (own.join("\n"), Some(mark.to_owned()))
            }
        }
    }

    /// The notes with this mark in the place of the one before; without one, without any. What people wrote stays.
    pub fn put(mark: Option<&Self>, notes: &str) -> String {
        let mut lines: Vec<String> =
            notes.lines().filter(|line| !line.trim().starts_with(BEGINNING)).map(str::to_owned).collect();
        lines.extend(mark.map(ToString::to_string));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_back_and_leaves_the_notes_of_people_alone() {
        let mark = |stage| MaintenanceMark {
            by: "demo1".into(),
            verb: "reboot".into(),
            hosts: vec!["pve1".into(), "pve2".into()],
            stage,
        };
        let mut notes = "rack 4\nask Ann".to_owned();
        for stage in [
            Stage::Planned,
            Stage::Leaving,
            Stage::Empty,
            Stage::Rebooting(1_794_916_800),
            Stage::Returning,
            Stage::Done,
        ] {
            notes = MaintenanceMark::put(Some(&mark(stage)), &notes);
            assert_eq!(MaintenanceMark::in_notes(&notes), Some(mark(stage)), "{notes}");
            assert!(notes.starts_with("rack 4\nask Ann\nstrata maintenance: ") && notes.lines().count() == 3);
        }
        assert_eq!(MaintenanceMark::put(None, &notes), "rack 4\nask Ann");
        assert_eq!(MaintenanceMark::in_notes("rack 4"), None);
        let later = MaintenanceMark::in_notes("strata maintenance: stage=asleep").unwrap();
        assert_eq!(later.by, "an unknown version", "never overwritten");
    }
}
