//! The journal: what was about to be done, written before it is done, and what came of it.
//!
//! A record is one line: a checksum and JSON. Only the last line may be torn (the process died while writing it); then nothing
//! was sent for it, since a remote write waits for its record to be durable.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strata_resource::{Address, Spec};

use crate::{StateDocument, StateResource};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Create,
    Update,
    Delete,
}

impl Action {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub enum JournalRecord {
    /// An operation is about to begin.
    Begin(OpenEntry),
    /// A remote task was started for it.
    Task { id: u64, task: String },
    /// It ended, with this effect on the state.
    End { id: u64, address: Address, effect: Effect },
}

/// What an ended operation means for the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    Put(Box<StateResource>),
    Remove,
    Unchanged,
}

/// An operation that was begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenEntry {
    pub id: u64,
    pub action: Action,
    pub address: Address,
    pub target: String,
    /// VMID, volume id, node: the fields of the spec that are the object's identity.
    pub identity: Spec,
    /// SHA-256 of the spec, as hex.
    pub spec_digest: String,
    /// What the state is to say when it is done; none if nothing is left then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub becomes: Option<Box<StateResource>>,
    /// When it was begun, in seconds since 1970.
    pub begun: i64,
    /// The tasks that it started (UPIDs), as far as their answers arrived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// Where it goes, if the record itself is moved to another state: nothing remote is changed by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Box<Destination>>,
}

/// An address in another state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Destination {
    pub key: String,
    pub address: Address,
}

impl OpenEntry {
    /// What was begun, as a verb.
    pub fn doing(&self) -> &'static str {
        if self.to.is_some() { "move" } else { self.action.as_str() }
    }
}

impl JournalRecord {
    /// Says how many records are before it, so that a line that was removed is seen. It belongs to no operation: former versions
    /// ignore a task of an entry that is not open.
    fn count(records: usize) -> Self {
        Self::Task { id: 0, task: format!("{records} {COUNTED}") }
    }

    fn as_count(&self) -> Option<usize> {
        match self {
            Self::Task { id: 0, task } => task.strip_suffix(COUNTED)?.trim_end().parse().ok(),
            _ => None,
        }
    }

    pub fn id(&self) -> u64 {
        match self {
            Self::Begin(entry) => entry.id,
            Self::Task { id, .. } | Self::End { id, .. } => *id,
        }
    }

    /// The line, with its checksum and its newline.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        line_of(self)
    }
}

/// What a record says that counts the others.
const COUNTED: &str = "records before this one";

/// One line: a checksum and JSON.
pub(crate) fn line_of(record: &impl Serialize) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string(record)?;
    Ok(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())))
}

/// A line that is neither whole nor the last one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is damaged: {reason}")]
pub struct DamagedJournal {
    pub line: usize,
    pub reason: String,
}

/// Reads the lines of a journal. A torn last line is dropped.
pub fn parse_journal(text: &[u8]) -> Result<Vec<JournalRecord>, DamagedJournal> {
    parse_lines(text, |json| serde_json::from_slice(json).map_err(|error| error.to_string()))
}

/// Reads the JSON of every whole line.
pub(crate) fn parse_lines<T>(
    text: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, String>,
) -> Result<Vec<T>, DamagedJournal> {
    let (lines, _) = whole_lines(text)?;
    let parsed = lines
        .into_iter()
        .enumerate()
        .map(|(index, json)| parse(json).map_err(|reason| DamagedJournal { line: index + 1, reason }));
    parsed.collect()
}

/// The JSON of every whole line, and how many bytes they take: what follows is a torn line, to be cut off before anything is
/// appended.
pub(crate) fn whole_lines(text: &[u8]) -> Result<(Vec<&[u8]>, usize), DamagedJournal> {
    let (mut whole, mut bytes) = (Vec::new(), 0);
    let mut lines = text.split_inclusive(|byte| *byte == b'\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        match checked(line) {
            Ok(json) => whole.push(json),
            Err(_) if lines.peek().is_none() => break,
            Err(reason) => return Err(DamagedJournal { line: index + 1, reason: reason.to_owned() }),
        }
        bytes += line.len();
    }
    Ok((whole, bytes))
}

fn checked(line: &[u8]) -> Result<&[u8], &'static str> {
    let line = line.strip_suffix(b"\n").ok_or("it has no end")?;
    let (sum, json) = line.split_at_checked(9).ok_or("it is too short")?;
    let sum = std::str::from_utf8(&sum[..8]).ok().and_then(|sum| u32::from_str_radix(sum, 16).ok());
    if sum == Some(crc32fast::hash(json)) { Ok(json) } else { Err("its checksum is wrong") }
}

/// What a journal holds, as far as it matters for noticing what is missing. A write whose answer was lost is there twice and counts once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalTally {
    records: BTreeSet<(&'static str, u64, String)>,
    /// A write failed: nobody knows what of it is there.
    uncertain: bool,
}

impl JournalTally {
    /// Of a journal that is empty.
    pub fn new() -> Self {
        Self { records: BTreeSet::new(), uncertain: false }
    }

    /// Counts the records of a journal. Fails if there were more of them once.
    pub fn of(records: &[JournalRecord]) -> Result<Self, DamagedJournal> {
        let mut tally = Self::new();
        for (index, record) in records.iter().enumerate() {
            let found = tally.records.len();
            if let Some(expected) = record.as_count().filter(|expected| *expected > found) {
                let reason =
                    format!("{expected} records were before it and {found} are there: a line is missing");
                return Err(DamagedJournal { line: index + 1, reason });
            }
            tally.add(record);
        }
        Ok(tally)
    }

    fn add(&mut self, record: &JournalRecord) {
        self.records.insert(match record {
            JournalRecord::Begin(entry) => ("begin", entry.id, String::new()),
            JournalRecord::Task { id, task } => ("task", *id, task.clone()),
            JournalRecord::End { id, .. } => ("end", *id, String::new()),
        });
    }

    /// Adds records that are about to be written, and to them the one that counts them.
    pub fn seal(&mut self, records: &mut Vec<JournalRecord>) {
        if self.uncertain || records.is_empty() {
            return;
        }
        records.iter().for_each(|record| self.add(record));
        let count = JournalRecord::count(self.records.len());
        self.add(&count);
        records.push(count);
    }

    /// What was sealed last may not be there: nothing is counted from here on.
    pub fn doubt(&mut self) {
        self.uncertain = true;
    }
}

impl Default for JournalTally {
    fn default() -> Self {
        Self::new()
    }
}

/// The state with its journal: what ended is part of the document, what did not is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedState {
    pub document: StateDocument,
    /// In the order in which they were begun.
    pub open: Vec<OpenEntry>,
    /// The newest entry of document or journal; the next one is greater.
    pub last_id: u64,
    /// The journal holds something that the stored document does not.
    pub unfolded: bool,
    /// The journal holds something that the stored document holds too: a run died before it could clear it.
    pub uncleared: bool,
}

/// Applies the records that the document does not hold yet.
pub fn replay(mut document: StateDocument, records: Vec<JournalRecord>) -> ReplayedState {
    let folded = document.folded;
    let mut open: BTreeMap<u64, OpenEntry> = BTreeMap::new();
    let mut last_id = folded;
    let uncleared = records.iter().any(|record| record.id() != 0 && record.id() <= folded);
    for record in records.into_iter().filter(|record| record.id() > folded) {
        last_id = last_id.max(record.id());
        match record {
            JournalRecord::Begin(entry) => {
                open.insert(entry.id, entry);
            }
            JournalRecord::Task { id, task } => {
                if let Some(entry) = open.get_mut(&id) {
                    entry.tasks.push(task);
                }
            }
            JournalRecord::End { id, address, effect } => {
                open.remove(&id);
                effect.apply_to(&mut document, address);
            }
        }
    }
    let open = open.into_values().collect();
    ReplayedState { document, open, last_id, unfolded: last_id > folded, uncleared }
}

impl Effect {
    pub fn apply_to(self, document: &mut StateDocument, address: Address) {
        match self {
            Self::Put(resource) => {
                document.resources.insert(address, *resource);
            }
            Self::Remove => {
                document.resources.remove(&address);
            }
            Self::Unchanged => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_resource::{Lineage, Stage};

    fn address() -> Address {
        crate::test_kinds::address("web/vm/web-1")
    }

    fn begin(id: u64) -> JournalRecord {
        JournalRecord::Begin(OpenEntry {
            id,
            action: Action::Create,
            address: address(),
            target: "pve".into(),
            identity: Spec::new(),
            spec_digest: "00".into(),
            becomes: None,
            begun: 0,
            tasks: Vec::new(),
            to: None,
        })
    }

    fn end(id: u64) -> JournalRecord {
        let resource = StateResource {
            target: "pve".into(),
            spec: Spec::new(),
            facts: Spec::new(),
            depends_on: Default::default(),
            stage: Stage::Compute,
            protect: false,
            partial: false,
            deposed: Vec::new(),
            made_as: None,
        };
        JournalRecord::End { id, address: address(), effect: Effect::Put(Box::new(resource)) }
    }

    fn text(records: &[JournalRecord]) -> Vec<u8> {
        records.iter().flat_map(|record| record.to_line().unwrap().into_bytes()).collect()
    }

    #[test]
    fn a_torn_last_line_is_dropped_at_every_length() {
        let records = [begin(1), JournalRecord::Task { id: 1, task: "UPID:x".into() }];
        let whole = text(&records);
        let first = text(&records[..1]).len();
        for length in 0..whole.len() {
            let parsed = parse_journal(&whole[..length]).unwrap();
            assert_eq!(parsed.len(), usize::from(length >= first), "{length}");
        }
        assert_eq!(parse_journal(&whole).unwrap(), records);
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_an_error() {
        let mut bytes = text(&[begin(1), begin(2)]);
        bytes[20] ^= 1;
        assert_eq!(
            parse_journal(&bytes).unwrap_err().to_string(),
            "line 1 is damaged: its checksum is wrong"
        );
    }

    #[test]
    fn f19_a_line_that_was_taken_out_is_noticed() {
        let task = JournalRecord::Task { id: 1, task: "UPID:x".into() };
        let mut records = Vec::new();
        let mut tally = JournalTally::default();
        for batch in
            [vec![begin(1), begin(2)], vec![task], vec![end(1)], vec![begin(3), end(2)], vec![end(3)]]
        {
            let mut batch = batch;
            tally.seal(&mut batch);
            records.extend(batch);
        }
        let whole = parse_journal(&text(&records)).unwrap();
        assert_eq!(JournalTally::of(&whole), Ok(tally));
        for missing in 0..records.len() - 1 {
            let mut left = records.clone();
            left.remove(missing);
            let damage = JournalTally::of(&left).unwrap_err();
            assert!(damage.to_string().contains("a line is missing"), "{missing}: {damage}");
        }
        // The end may be lost with the process that wrote it, and a write may be there twice.
        for length in 0..records.len() {
            assert!(JournalTally::of(&records[..length]).is_ok(), "{length}");
        }
        let twice = [&records[..3], &records[..3], &records[3..]].concat();
        assert!(JournalTally::of(&twice).is_ok());
        // It changes nothing in what the journal means, and one of a former version has no counts.
        let document = StateDocument::new(Lineage::derive("r", "k"), "k");
        let plain: Vec<_> = records.iter().filter(|record| record.as_count().is_none()).cloned().collect();
        assert_eq!(replay(document.clone(), records), replay(document, plain.clone()));
        assert!(JournalTally::of(&plain[1..]).is_ok());
    }

    #[test]
    fn what_ended_is_in_the_state_and_what_did_not_is_open() {
        let document = StateDocument::new(Lineage::derive("r", "k"), "k");
        let task = JournalRecord::Task { id: 2, task: "UPID:x".into() };
        let state = replay(document.clone(), vec![begin(1), begin(2), task, end(1)]);
        assert!(state.document.resources.contains_key(&address()));
        assert_eq!(state.open.len(), 1);
        assert_eq!(state.open[0].tasks, ["UPID:x"]);
        assert_eq!(state.last_id, 2);
        // A document that holds the journal already is not changed by it.
        let folded = StateDocument { folded: 2, ..document };
        let state = replay(folded.clone(), vec![begin(1), end(1), begin(2)]);
        assert!(state.uncleared);
        assert_eq!((state.document, state.open.len(), state.unfolded), (folded, 0, false));
    }
}
