//! What the scheduler of each node does about replication: once a minute it copies the guests whose time has come, and removes the
//! jobs that are marked for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::World;
use crate::endpoints::calendar::Event;

pub const FILE: &str = "replication";

/// Seconds between two looks at the jobs.
const ROUND: f64 = 60.0;
/// How often a job runs that says nothing about it.
const USUAL: &str = "*/15";

/// How a job went so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Progress {
    pub last_sync: i64,
    pub last_try: i64,
    pub duration: f64,
    pub log: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Scheduler {
    pub jobs: BTreeMap<String, Progress>,
    /// When it looks next, in milliseconds since 1970.
    next: Option<i64>,
}

impl World {
    /// When a job runs next, in seconds since 1970.
    pub fn next_sync(&self, id: &str) -> i64 {
        let Some(job) = self.cluster.section(FILE, id) else { return 0 };
        if job.props.contains_key("remove_job") {
            return 1;
        }
        let last = self.daemons.replication.jobs.get(id).map_or(0, |progress| progress.last_try);
        let event = Event::parse(job.props.get("schedule").map_or(USUAL, String::as_str));
        event.and_then(|event| event.next(last)).unwrap_or(0)
    }

    /// Looks at the jobs if it is time to. Gives the time of the next look.
    pub fn advance_replication(&mut self, now: i64) -> Option<i64> {
        let scheduler = &mut self.daemons.replication;
        if self.cluster.file(FILE).next().is_none() {
            scheduler.next = None;
            scheduler.jobs.clear();
            return None;
        }
        let round = self.clock.scaled_ms(ROUND);
        let next = *scheduler.next.get_or_insert(now + round);
        if now < next {
            return Some(next);
        }
        scheduler.next = Some(now + round);
        let ids: Vec<String> = self.cluster.file(FILE).map(|(id, _)| id.to_owned()).collect();
        for id in ids {
            self.replicate(&id);
        }
        self.daemons.replication.next
    }

    fn replicate(&mut self, id: &str) {
        let now = self.now();
        let Some(job) = self.cluster.section(FILE, id) else { return };
        if job.props.contains_key("remove_job") {
            self.cluster.file_mut(FILE).shift_remove(id);
            self.daemons.replication.jobs.remove(id);
            return;
        }
        let disabled = job.props.get("disable").is_some_and(|value| value == "1");
        if disabled || self.next_sync(id) > now {
            return;
        }
        let log = vec![format!("{id}: start replication job"), format!("{id}: end replication job")];
        let progress = Progress { last_sync: now, last_try: now, duration: 1.5, log };
        self.daemons.replication.jobs.insert(id.to_owned(), progress);
    }

    /// The first job of a guest.
    pub fn replication_of(&self, vmid: u32) -> Option<&str> {
        let prefix = format!("{vmid}-");
        self.cluster.file(FILE).map(|(id, _)| id).find(|id| id.starts_with(&prefix))
    }
}
