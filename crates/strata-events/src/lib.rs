//! What Strata says to programs: each line of `--json`, and each document that it writes, as a type with a JSON Schema.
//!
//! An [`Event`] is what a line is about. [`line`] adds what every line has: the version of this contract, the time, and the
//! [`Subject`] where the event is about one stack. Whoever makes an event names its subject: nothing here remembers a current stack, so
//! that events of stacks that run at the same time can interleave. [`schemas`] has the schemas, which `strata schema` prints; the tables of
//! docs/json.md are made from them. A verb of another crate says these, and its lines for people, to a [`Terminal`]. This crate prints nothing and reads no clock.
//!
//! What always holds: a line that [`line`] makes is valid by the schema `events`, and a field that the schema does not name is in no
//! line, but where the schema of an event says that it takes others.
//!
//! ```
//! use strata_events::{Event, Subject, line};
//!
//! let subject = Subject::of_key("prod/web");
//! let event = Event::Deferred { needs: "net.gateway" };
//! assert_eq!(
//!     line(&event, Some(&subject), 0).unwrap(),
//!     r#"{"event":"deferred","version":1,"time":"1970-01-01T00:00:00Z","stack":"web","environment":"prod","needs":"net.gateway"}"#
//! );
//! ```

mod event;
mod parts;
mod recovered;
pub mod schemas;
mod subject;
mod terminal;

pub use event::{DriftFound, Event};
pub use parts::{
    Asked, ChangeReason, EtcdHealth, GraphEdge, GraphNode, KubernetesHealth, NodeVersions, Place, Side,
};
pub use recovered::{FoundObject, LeftOut, Unreadable};
pub use subject::Subject;
pub use terminal::Terminal;

use serde_json::{Map, Value};

/// The version of the contract. It goes up when a field changes its meaning or goes; new events and new fields leave it.
pub const VERSION: u32 = 1;

/// One line, without its end: the event with its envelope in front. `now` is in seconds since 1970.
pub fn line(event: &Event<'_>, subject: Option<&Subject>, now: i64) -> Result<String, serde_json::Error> {
    let mut envelope = Map::new();
    let mut fields = match serde_json::to_value(event)? {
        Value::Object(fields) => fields,
        other => return serde_json::to_string(&other),
    };
    let time = jiff::Timestamp::from_second(now).unwrap_or_default();
    envelope.insert("event".into(), fields.shift_remove("event").unwrap_or_default());
    envelope.insert("version".into(), VERSION.into());
    envelope.insert("time".into(), time.to_string().into());
    if let Some(subject) = subject {
        envelope.insert("stack".into(), subject.stack.clone().into());
        envelope.insert("environment".into(), subject.environment.clone().into());
    }
    envelope.extend(fields);
    serde_json::to_string(&envelope)
}
