//! Lets time pass for the machines and for the daemons of the nodes: advances them whenever something changed or is due.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::whole::Parts;

/// Even without any event the world is looked at this often, as a clock may jump.
const AT_LEAST: Duration = Duration::from_secs(5);

pub(crate) async fn run(parts: Arc<Parts>, mut stop: watch::Receiver<bool>) {
    loop {
        let changed = parts.shared.until_changed();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let next = parts.machines.advance();
        let now = parts.shared.clock().now_ms();
        let next = next.into_iter().chain(parts.datacenter.advance()).min();
        let wait =
            next.map_or(AT_LEAST, |time| Duration::from_millis(u64::try_from(time - now).unwrap_or(0) + 1));
        tokio::select! {
            () = tokio::time::sleep(wait.min(AT_LEAST)) => {}
            () = changed => {}
            _ = stop.changed() => return,
        }
    }
}
