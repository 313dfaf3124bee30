//! Events: how the machine is whenever that changes, and that it goes down.

use std::sync::Arc;

use prost::Message as _;
use tokio::sync::mpsc;

use super::resources::machine_status;
use super::{Call, Outcome, Reply};
use crate::wire::{Any, Event, EventsRequest, TaskEvent};

/// Events that a slow reader may be behind.
const BEHIND: usize = 64;
const STATUS: &str = "talos/runtime/machine.MachineStatusEvent";
const TASK: &str = "talos/runtime/machine.TaskEvent";

pub(super) fn events(call: &Call<'_>) -> Outcome {
    let asked: EventsRequest = call.request()?;
    // Whoever asks for what happened before is told the last of it.
    let past = asked.tail_events != 0 || !asked.tail_id.is_empty() || asked.tail_seconds != 0;
    let (to, from) = mpsc::channel(BEHIND);
    let (machines, presence) = (Arc::clone(call.machines), call.presence.clone());
    tokio::spawn(async move {
        let mut number = 0_u64;
        let mut event = |url: &str, value: Vec<u8>| {
            number += 1;
            let data = Some(Any { url: url.to_owned(), value });
            let id = format!("{}-{number}", presence.boot);
            Ok(Event { data, id, actor: String::new() }.encode_to_vec())
        };
        // Clients take the first event, which is empty, as the sign that the stream stands.
        if to.send(event("", Vec::new())).await.is_err() {
            return;
        }
        let mut last = None;
        loop {
            let changed = machines.shared.until_changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let now = {
                let world = machines.world();
                world.is_present(&presence).then(|| machine_status(&world, &presence.machine))
            };
            let Some(now) = now else {
                // With its boot, the stream is over.
                let stopping = TaskEvent { task: "stopAllServices".to_owned(), action: 0 };
                let _ = to.send(event(TASK, stopping.encode_to_vec())).await;
                return;
            };
            let told = past || last.is_some();
            if told
                && last.as_ref() != Some(&now)
                && to.send(event(STATUS, now.encode_to_vec())).await.is_err()
            {
                return;
            }
            last = Some(now);
            tokio::select! {
                () = changed => {}
                () = to.closed() => return,
            }
        }
    });
    Ok(Reply::Stream(from))
}
