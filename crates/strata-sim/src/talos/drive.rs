//! Lets time pass for the machines and for the daemons of the nodes: settles the world whenever something changed or is due.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::shared::Shared;
use crate::task::drive::pick_up;

/// Even without any event the world is looked at this often, as a clock may jump.
const AT_LEAST: Duration = Duration::from_secs(5);

pub async fn run(shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    loop {
        let changed = shared.until_changed();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let (next, now) = shared.settle();
        let next = {
            let mut world = shared.world();
            let daemons = world.settle_daemons();
            pick_up(&shared, &mut world);
            next.into_iter().chain(daemons).min()
        };
        let wait =
            next.map_or(AT_LEAST, |time| Duration::from_millis(u64::try_from(time - now).unwrap_or(0) + 1));
        tokio::select! {
            () = tokio::time::sleep(wait.min(AT_LEAST)) => {}
            () = changed => {}
            _ = stop.changed() => return,
        }
    }
}
