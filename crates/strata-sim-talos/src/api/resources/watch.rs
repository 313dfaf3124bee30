//! Watching resources: what is there, and then every change of it.

use std::sync::Arc;

use prost::Message as _;
use tokio::sync::mpsc;

use super::{all, id_of};
use crate::api::{Call, Outcome, Reply};
use crate::grpc::Status;
use crate::place::Presence;
use crate::version::Version;
use crate::wire::Timestamp;
use crate::wire::cosi::{self, Event, Metadata, Resource, Spec, WatchReply};
use crate::world::Machines;

/// Events of one watch that a slow reader may be behind.
const BEHIND: usize = 256;

/// One watch, for as long as its client listens and the machine runs.
struct Watch {
    machines: Arc<Machines>,
    presence: Presence,
    asked: cosi::WatchRequest,
    version: Version,
    admin: bool,
    to: mpsc::Sender<Result<Vec<u8>, Status>>,
}

pub(super) fn begin(call: &Call<'_>) -> Outcome {
    let asked: cosi::WatchRequest = call.request()?;
    // A type that does not exist is refused at once.
    all(&call.machines.world(), call.key, &asked.kind, call.version, call.admin)?;
    let (to, from) = mpsc::channel(BEHIND);
    let watch = Watch {
        machines: Arc::clone(call.machines),
        presence: call.presence.clone(),
        asked,
        version: call.version,
        admin: call.admin,
        to,
    };
    tokio::spawn(watch.run());
    Ok(Reply::Stream(from))
}

fn created(resource: &Resource) -> Option<i64> {
    Some(resource.metadata.as_ref()?.created.as_ref()?.seconds)
}

impl Watch {
    fn look(&self) -> Option<Vec<Resource>> {
        let world = self.machines.world();
        // With its boot, a watch is over.
        if !world.is_present(&self.presence) {
            return None;
        }
        let found = all(&world, &self.presence.machine, &self.asked.kind, self.version, self.admin).ok()?;
        let wanted = |resource: &Resource| self.asked.id.as_deref().is_none_or(|id| id == id_of(resource));
        Some(found.into_iter().filter(wanted).collect())
    }

    /// In the place of a resource, where there is none.
    fn nothing(&self, id: &str) -> Resource {
        Resource {
            metadata: Some(Metadata {
                namespace: self.asked.namespace.clone(),
                kind: self.asked.kind.clone(),
                id: id.to_owned(),
                version: "undefined".to_owned(),
                phase: "running".to_owned(),
                created: Some(Timestamp::default()),
                updated: Some(Timestamp::default()),
                ..Metadata::default()
            }),
            spec: Some(Spec::default()),
        }
    }

    async fn send(&self, events: Vec<Event>) -> bool {
        let aggregated = self.asked.options.as_ref().is_some_and(|options| options.aggregated);
        let batches: Vec<Vec<Event>> =
            if aggregated { vec![events] } else { events.into_iter().map(|e| vec![e]).collect() };
        for events in batches.into_iter().filter(|events| !events.is_empty()) {
            if self.to.send(Ok(WatchReply { events }.encode_to_vec())).await.is_err() {
                return false;
            }
        }
        true
    }

    async fn run(self) {
        let event = |kind: i32, resource: Resource, old: Option<Resource>| Event {
            resource: Some(resource),
            kind,
            old,
        };
        let Some(mut known) = self.look() else { return };
        let contents = self.asked.options.as_ref().is_some_and(|options| options.bootstrap_contents);
        let mut first: Vec<Event> = Vec::new();
        if self.asked.id.is_some() || contents {
            first = known.iter().map(|resource| event(cosi::CREATED, resource.clone(), None)).collect();
        }
        if let (Some(id), true) = (&self.asked.id, known.is_empty()) {
            // A watch of one resource that is not there begins with its absence.
            first.push(event(cosi::DESTROYED, self.nothing(id), None));
        }
        if contents && self.asked.id.is_none() {
            first.push(event(cosi::BOOTSTRAPPED, self.nothing(""), None));
        }
        // Clients take the first message, which is empty, as the sign that the watch stands.
        if self.to.send(Ok(WatchReply::default().encode_to_vec())).await.is_err() || !self.send(first).await {
            return;
        }
        loop {
            let changed = self.machines.shared.until_changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let Some(now) = self.look() else { return };
            let mut events = Vec::new();
            for resource in &now {
                match known.iter().find(|old| id_of(old) == id_of(resource)) {
                    None => events.push(event(cosi::CREATED, resource.clone(), None)),
                    // It went and came again in between.
                    Some(old) if created(old) != created(resource) => {
                        events.push(event(cosi::DESTROYED, old.clone(), None));
                        events.push(event(cosi::CREATED, resource.clone(), None));
                    }
                    Some(old) if old != resource => {
                        events.push(event(cosi::UPDATED, resource.clone(), Some(old.clone())));
                    }
                    Some(_) => {}
                }
            }
            for old in known.iter().filter(|old| !now.iter().any(|resource| id_of(resource) == id_of(old))) {
                events.push(event(cosi::DESTROYED, old.clone(), None));
            }
            known = now;
            if !self.send(events).await {
                return;
            }
            tokio::select! {
                () = changed => {}
                () = self.to.closed() => return,
            }
        }
    }
}
