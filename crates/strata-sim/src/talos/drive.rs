//! Lets time pass for the machines: settles the world whenever something changed or is due.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::shared::Shared;

/// Even without any event the world is looked at this often, as a clock may jump.
const AT_LEAST: Duration = Duration::from_secs(5);

pub async fn run(shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    loop {
        let changed = shared.until_changed();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let (next, now) = shared.settle();
        let wait =
            next.map_or(AT_LEAST, |time| Duration::from_millis(u64::try_from(time - now).unwrap_or(0) + 1));
        tokio::select! {
            () = tokio::time::sleep(wait.min(AT_LEAST)) => {}
            () = changed => {}
            _ = stop.changed() => return,
        }
    }
}
