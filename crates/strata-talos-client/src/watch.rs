//! Watching resources: what is there, and then what changes.

use std::collections::VecDeque;
use std::time::Duration;

use crate::client::{Stream, TalosClient};
use crate::error::{TalosError, TalosReason};
use crate::resource::{Resource, ResourceKind};
use crate::wire::cosi as wire;

const PATH: &str = "/cosi.resource.State/Watch";

/// A watch that is under way. Dropping it ends it.
pub struct Watch {
    client: TalosClient,
    stream: Stream<wire::WatchResponse>,
    waiting: VecDeque<wire::Event>,
}

/// What a watch tells.
#[derive(Clone)]
pub enum WatchEvent {
    /// It is there, or new.
    Created(Resource),
    Updated(Resource),
    Destroyed(Resource),
    /// Of a kind: all that was there when the watch began has been told.
    Bootstrapped,
}

impl TalosClient {
    /// Watches one resource, which need not be there yet. Its first event is what is: a resource that is absent is told as
    /// [`WatchEvent::Destroyed`] without a spec. More than `idle` between two events is [`TalosReason::Timeout`].
    pub async fn watch(&self, kind: ResourceKind, id: &str, idle: Duration) -> Result<Watch, TalosError> {
        self.watch_with(kind, Some(id.to_owned()), idle).await
    }

    /// Watches all resources of a kind: first those that are there, then [`WatchEvent::Bootstrapped`], then changes.
    pub async fn watch_kind(&self, kind: ResourceKind, idle: Duration) -> Result<Watch, TalosError> {
        self.watch_with(kind, None, idle).await
    }

    async fn watch_with(
        &self,
        kind: ResourceKind,
        id: Option<String>,
        idle: Duration,
    ) -> Result<Watch, TalosError> {
        let options = wire::WatchOptions { bootstrap_contents: id.is_none() };
        let request = wire::WatchRequest {
            namespace: kind.namespace.to_owned(),
            kind: kind.name.to_owned(),
            id,
            options: Some(options),
            // So that the end of what was there is told.
            api_version: 1,
        };
        let stream = self.stream(PATH, &request, idle).await?;
        Ok(Watch { client: self.clone(), stream, waiting: VecDeque::new() })
    }
}

impl Watch {
    /// The next event; none if the node ended the watch.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, TalosError> {
        loop {
            while let Some(event) = self.waiting.pop_front() {
                let event = read(event).map_err(|reason| self.client.error(PATH, reason))?;
                if event.is_some() {
                    return Ok(event);
                }
            }
            match self.stream.next().await? {
                Some(answer) => self.waiting.extend(answer.events),
                None => return Ok(None),
            }
        }
    }
}

fn read(event: wire::Event) -> Result<Option<WatchEvent>, TalosReason> {
    let resource = || {
        let missing = || TalosReason::Malformed("an event has no resource".to_owned());
        event.resource.clone().ok_or_else(missing).and_then(Resource::read)
    };
    Ok(match event.event_type {
        0 => Some(WatchEvent::Created(resource()?)),
        1 => Some(WatchEvent::Updated(resource()?)),
        2 => Some(WatchEvent::Destroyed(resource()?)),
        3 => Some(WatchEvent::Bootstrapped),
        4 => {
            let message = event.error.clone().unwrap_or_else(|| "the watch failed".to_owned());
            return Err(TalosReason::Failed { code: 2, message });
        }
        // Keep-alives, and what newer versions add.
        _ => None,
    })
}
