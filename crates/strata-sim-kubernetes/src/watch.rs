//! A stream of changes: lines of JSON, from a revision on.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::cluster::{Cluster, Moment};
use super::failure::expired;
use super::resource::Resource;
use super::selector::Selector;
use super::table::{Column, single};

/// What one client follows, and the lines it has not been sent yet.
#[derive(Debug)]
pub struct Watch {
    resource: Resource,
    prefix: String,
    selector: Selector,
    pub seconds: Option<u64>,
    /// Changes up to this one are in the lines already.
    pub revision: u64,
    lines: VecDeque<String>,
    pub ended: bool,
    /// Objects are sent as tables of one row: their columns, what stands beside the cells, and the time.
    pub rows: Option<(Vec<Column>, Option<String>, Moment)>,
}

impl Watch {
    pub fn new(resource: Resource, prefix: String, selector: Selector, seconds: Option<u64>) -> Self {
        Self {
            resource,
            prefix,
            selector,
            seconds,
            revision: 0,
            lines: VecDeque::new(),
            ended: false,
            rows: None,
        }
    }

    fn line(&mut self, kind: &str, object: &Value) {
        self.lines.push_back(format!("{}\n", json!({ "type": kind, "object": object })));
    }

    /// A line about an object of the type.
    fn tell(&mut self, kind: &str, object: Value) {
        let shown = match &self.rows {
            Some((columns, include, moment)) => single(columns, object, include.as_deref(), moment),
            None => object,
        };
        self.line(kind, &shown);
    }

    pub fn add(&mut self, object: Value) {
        self.tell("ADDED", object);
    }

    /// Says that everything that was there has been sent.
    pub fn end_of_initial_events(&mut self) {
        let bookmark = json!({
            "kind": self.resource.kind, "apiVersion": self.resource.api_version(),
            "metadata": {
                "resourceVersion": self.revision.to_string(),
                "annotations": { "k8s.io/initial-events-end": "true" },
            },
        });
        self.line("BOOKMARK", &bookmark);
    }

    /// The lines to send now.
    pub fn take(&mut self) -> Option<String> {
        (!self.lines.is_empty()).then(|| self.lines.drain(..).collect())
    }

    /// Catches up with what changed.
    pub fn follow(&mut self, cluster: &Cluster) {
        let now = cluster.store.revision();
        let Some(events) = cluster.store.since(self.revision) else {
            let gone = expired(format!("too old resource version: {} ({now})", self.revision));
            self.line("ERROR", &gone.to_json());
            self.ended = true;
            return;
        };
        let mine: Vec<_> = events.filter(|event| event.key.starts_with(&self.prefix)).cloned().collect();
        for event in mine {
            let matches = |object: &Option<Value>| object.as_ref().is_some_and(|o| self.selector.matches(o));
            let (before, after) = (matches(&event.previous), matches(&event.object));
            let kind = match (before, after) {
                (false, true) => "ADDED",
                (true, true) => "MODIFIED",
                (true, false) => "DELETED",
                (false, false) => continue,
            };
            let Some(mut object) = event.object.or(event.previous) else { continue };
            if let Value::Object(map) = &mut object {
                map.insert("apiVersion".to_owned(), json!(self.resource.api_version()));
            }
            self.tell(kind, object);
        }
        self.revision = now;
    }
}
