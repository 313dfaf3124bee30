//! The objects of one cluster with their revisions, and the log of changes that watches follow.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::object::metadata;

/// How many changes are remembered for watches.
const MOST_EVENTS: usize = 4096;

/// A change, for those who watch.
#[derive(Debug, Clone)]
pub struct Event {
    pub revision: u64,
    pub key: String,
    /// None if it was removed.
    pub object: Option<Value>,
    /// None if it was added.
    pub previous: Option<Value>,
}

/// All objects of a moment, and the revision at which they were so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    pub revision: u64,
    pub objects: BTreeMap<String, Value>,
}

/// Keys are `group/plural/namespace/name`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Store {
    revision: u64,
    objects: BTreeMap<String, Value>,
    /// How many objects had this key already, so that each has its own uid.
    made: BTreeMap<String, u64>,
    /// Not kept: whoever watches across a restart is told that its revision is gone.
    #[serde(skip)]
    log: VecDeque<Event>,
}

impl Store {
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn contents(&self) -> Contents {
        Contents { revision: self.revision, objects: self.objects.clone() }
    }

    /// Goes back to an earlier moment. Whoever watches has to look again; what comes next has new identities all the same.
    pub fn restore(&mut self, contents: Contents) {
        self.revision = contents.revision;
        self.objects = contents.objects;
        self.log.clear();
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.objects.get(key)
    }

    /// Objects whose key begins like this, in the order of their keys.
    pub fn list<'s>(&'s self, prefix: &str) -> impl Iterator<Item = (&'s str, &'s Value)> + use<'s> {
        let prefix = prefix.to_owned();
        self.objects
            .range(prefix.clone()..)
            .take_while(move |(key, _)| key.starts_with(&prefix))
            .map(|(key, object)| (key.as_str(), object))
    }

    pub fn all(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.objects.iter().map(|(key, object)| (key.as_str(), object))
    }

    /// The number of this incarnation of the key, counted from 1.
    pub fn incarnation(&mut self, key: &str) -> u64 {
        let made = self.made.entry(key.to_owned()).or_default();
        *made += 1;
        *made
    }

    /// Stores an object under a new revision and gives it as stored.
    pub fn put(&mut self, key: &str, mut object: Value) -> Value {
        self.revision += 1;
        metadata(&mut object).insert("resourceVersion".to_owned(), json!(self.revision.to_string()));
        let previous = self.objects.insert(key.to_owned(), object.clone());
        self.note(key, Some(object.clone()), previous);
        object
    }

    /// Removes an object and gives its last form, with the revision of its removal.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let mut last = self.objects.remove(key)?;
        self.revision += 1;
        metadata(&mut last).insert("resourceVersion".to_owned(), json!(self.revision.to_string()));
        self.note(key, None, Some(last.clone()));
        Some(last)
    }

    fn note(&mut self, key: &str, object: Option<Value>, previous: Option<Value>) {
        self.log.push_back(Event { revision: self.revision, key: key.to_owned(), object, previous });
        if self.log.len() > MOST_EVENTS {
            self.log.pop_front();
        }
    }

    /// The changes after a revision, or nothing if they are no longer known.
    pub fn since(&self, revision: u64) -> Option<impl Iterator<Item = &Event>> {
        let known = self.log.front().map_or(self.revision, |first| first.revision - 1);
        let start = self.log.partition_point(|event| event.revision <= revision);
        (revision >= known).then(|| self.log.range(start..))
    }
}
