//! Events: how the machine is, now and whenever that changes.

use std::sync::Arc;

use prost::Message as _;
use tokio::sync::mpsc;

use super::resources::machine_status;
use super::{Call, Outcome, Reply};
use crate::talos::wire::{Any, Event};

/// Events that a slow reader may be behind.
const BEHIND: usize = 64;
const STATUS: &str = "talos/runtime/machine.MachineStatusEvent";

pub(super) fn events(call: &Call<'_>) -> Outcome {
    let (to, from) = mpsc::channel(BEHIND);
    let (shared, presence) = (Arc::clone(call.shared), call.presence.clone());
    tokio::spawn(async move {
        let mut last = None;
        let mut number = 0_u64;
        loop {
            let changed = shared.until_changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let now = {
                let world = shared.world();
                // With its boot, the stream is over.
                if !world.is_present(&presence) {
                    return;
                }
                machine_status(&world, &presence.machine)
            };
            if last.as_ref() != Some(&now) {
                number += 1;
                let data = Any { url: STATUS.to_owned(), value: now.encode_to_vec() };
                let id = format!("{}-{number}", presence.boot);
                let event = Event { data: Some(data), id, actor: String::new() };
                if to.send(event.encode_to_vec()).await.is_err() {
                    return;
                }
                last = Some(now);
            }
            tokio::select! {
                () = changed => {}
                () = to.closed() => return,
            }
        }
    });
    Ok(Reply::Stream(from))
}
