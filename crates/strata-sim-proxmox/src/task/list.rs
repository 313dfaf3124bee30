//! The tasks of the datacenter, running and ended, and the locks that running ones hold.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use super::{Cont, Job, LockKey, Undo, Upid};

/// Ended tasks are forgotten beyond this number.
const MOST: usize = 20_000;

/// Lets someone else stop a running task.
#[derive(Debug, Default)]
pub struct Stop {
    asked: AtomicBool,
    bell: Notify,
}

impl Stop {
    pub fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
        self.bell.notify_waiters();
        self.bell.notify_one();
    }

    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    pub async fn asked(&self) {
        while !self.is_asked() {
            self.bell.notified().await;
        }
    }
}

pub struct Task {
    pub upid: Upid,
    pub text: String,
    pub log: Vec<String>,
    /// Set when it ended.
    pub end: Option<i64>,
    pub exit: Option<String>,
    /// Which one it was to end, counted from 1; 0 while it runs.
    pub ended: u64,
    pub stop: Arc<Stop>,
    pub undo: Option<Undo>,
    /// Its good end is one with a warning.
    pub warns: bool,
}

impl Task {
    /// The user without the token.
    pub fn user(&self) -> &str {
        self.upid.user.split('!').next().unwrap_or_default()
    }

    pub fn token(&self) -> Option<&str> {
        self.upid.user.split_once('!').map(|(_, token)| token)
    }

    pub fn failed(&self) -> bool {
        self.exit.as_deref().is_some_and(|exit| exit != "OK" && !exit.starts_with("WARNINGS"))
    }
}

#[derive(Default)]
pub struct Tasks {
    all: BTreeMap<u64, Task>,
    by_upid: HashMap<String, u64>,
    next: u64,
    ended: u64,
    /// Started by a call or a task and not yet picked up.
    pub queue: VecDeque<(Job, Cont)>,
    locks: HashMap<LockKey, u64>,
}

impl Tasks {
    /// Registers a task and queues its work; gives its UPID.
    pub fn start(&mut self, node: &str, kind: &str, id: &str, user: &str, now: i64, work: Cont) -> String {
        self.next += 1;
        let number = self.next;
        let upid = Upid {
            node: node.to_owned(),
            pid: u32::try_from(1000 + number % 4_000_000).unwrap_or(1000),
            pstart: 460_000 + number * 17,
            start: now,
            kind: kind.to_owned(),
            id: id.to_owned(),
            user: user.to_owned(),
        };
        let text = upid.to_string();
        let job = Job { id: number, node: node.to_owned(), user: user.to_owned() };
        let task = Task {
            upid,
            text: text.clone(),
            log: Vec::new(),
            end: None,
            exit: None,
            ended: 0,
            stop: Arc::default(),
            undo: None,
            warns: false,
        };
        self.by_upid.insert(text.clone(), number);
        self.all.insert(number, task);
        self.queue.push_back((job, work));
        while self.all.len() > MOST {
            let Some((_, old)) = self.all.pop_first() else { break };
            self.by_upid.remove(&old.text);
        }
        text
    }

    /// Its worker died at once, and nobody remembers it.
    pub fn forget(&mut self, upid: &str) {
        let Some(id) = self.by_upid.remove(upid) else { return };
        self.all.remove(&id);
        self.queue.retain(|(job, _)| job.id != id);
    }

    pub fn warn(&mut self, upid: &str) {
        if let Some(task) = self.by_upid.get(upid).and_then(|id| self.all.get_mut(id)) {
            task.warns = true;
        }
    }

    /// The node died: its tasks end where they are, nothing is undone.
    pub fn die_on(&mut self, node: &str, now: i64) {
        let mut dead = Vec::new();
        for (id, task) in &mut self.all {
            if task.upid.node == node && task.exit.is_none() {
                task.undo = None;
                dead.push((*id, Arc::clone(&task.stop)));
            }
        }
        for (id, stop) in dead {
            self.finish(id, "unexpected status".to_owned(), now);
            self.queue.retain(|(job, _)| job.id != id);
            stop.ask();
        }
    }

    pub fn log(&mut self, id: u64, line: String) {
        if let Some(task) = self.all.get_mut(&id) {
            task.log.push(line);
        }
    }

    /// How many have ended so far.
    pub fn count_ended(&self) -> u64 {
        self.ended
    }

    /// Notes how a task ended, and frees its locks.
    pub fn finish(&mut self, id: u64, mut exit: String, now: i64) {
        self.locks.retain(|_, holder| *holder != id);
        let Some(task) = self.all.get_mut(&id).filter(|task| task.exit.is_none()) else { return };
        if task.warns && exit == "OK" {
            task.log.push("WARN: this is a warning".to_owned());
            exit = "WARNINGS: 1".to_owned();
        }
        let last = if exit == "OK" {
            "TASK OK".to_owned()
        } else if exit.starts_with("WARNINGS") {
            format!("TASK {exit}")
        } else {
            format!("TASK ERROR: {exit}")
        };
        task.log.extend(last.lines().map(str::to_owned));
        task.exit = Some(exit);
        task.end = Some(now);
        self.ended += 1;
        task.ended = self.ended;
        task.undo = None;
    }

    pub fn get(&self, upid: &str) -> Option<&Task> {
        self.all.get(self.by_upid.get(upid)?)
    }

    pub fn by_id(&mut self, id: u64) -> Option<&mut Task> {
        self.all.get_mut(&id)
    }

    /// Newest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Task> {
        self.all.values().rev()
    }

    pub fn is_locked(&self, key: &LockKey) -> bool {
        self.locks.contains_key(key)
    }

    /// Takes a lock for a task, unless another one has it.
    pub fn lock(&mut self, key: &LockKey, id: u64) -> bool {
        *self.locks.entry(key.clone()).or_insert(id) == id
    }

    /// Gives a lock back before the task ends.
    pub fn unlock(&mut self, key: &LockKey, id: u64) {
        if self.locks.get(key) == Some(&id) {
            self.locks.remove(key);
        }
    }
}
