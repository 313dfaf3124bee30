//! Tasks: what runs behind a UPID, in steps, with a log, holding locks; and the list of those that were.

pub mod drive;
pub mod list;
pub mod upid;

pub use list::{Task, Tasks};
pub use upid::Upid;

use crate::world::World;

/// The rest of a task's work. An error is the text the task fails with.
pub type Cont = Box<dyn FnOnce(&mut World, &Job) -> Result<Step, String> + Send>;
/// Undoes what an interrupted step leaves behind.
pub type Undo = Box<dyn FnOnce(&mut World) + Send>;

/// The task as its own work sees it.
#[derive(Debug, Clone)]
pub struct Job {
    pub id: u64,
    pub node: String,
    pub user: String,
}

impl Job {
    pub fn log(&self, world: &mut World, line: impl Into<String>) {
        world.tasks.log(self.id, line.into());
    }
}

/// What a task does next.
pub enum Step {
    /// Let this many seconds pass (scaled by the pace), then go on.
    Wait { seconds: f64, then: Cont, undo: Option<Undo> },
    /// Take a lock, waiting for it if need be, and hold it to the end of the task.
    Lock { key: LockKey, then: Cont },
    /// Finished, exit status OK.
    Done,
    /// Finished with so many warnings.
    Warned(usize),
}

impl Step {
    pub fn wait(
        seconds: f64,
        then: impl FnOnce(&mut World, &Job) -> Result<Self, String> + Send + 'static,
    ) -> Self {
        Self::Wait { seconds, then: Box::new(then), undo: None }
    }

    pub fn lock(
        key: LockKey,
        then: impl FnOnce(&mut World, &Job) -> Result<Self, String> + Send + 'static,
    ) -> Self {
        Self::Lock { key, then: Box::new(then) }
    }

    /// What to undo if the task is stopped while it waits here.
    #[must_use]
    pub fn or_undo(self, undo: impl FnOnce(&mut World) + Send + 'static) -> Self {
        match self {
            Self::Wait { seconds, then, .. } => Self::Wait { seconds, then, undo: Some(Box::new(undo)) },
            other => other,
        }
    }
}

/// Boxes the first step of a task.
pub fn work(f: impl FnOnce(&mut World, &Job) -> Result<Step, String> + Send + 'static) -> Cont {
    Box::new(f)
}

/// The lock on a guest's configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LockKey {
    Qemu(u32),
    Lxc(u32),
}

impl LockKey {
    /// What the API says when it waited in vain.
    pub fn timeout_text(&self) -> String {
        match self {
            Self::Qemu(vmid) => {
                format!("can't lock file '/var/lock/qemu-server/lock-{vmid}.conf' - got timeout")
            }
            Self::Lxc(vmid) => {
                format!("can't lock file '/run/lock/lxc/pve-config-{vmid}.lock' - got timeout")
            }
        }
    }
}
