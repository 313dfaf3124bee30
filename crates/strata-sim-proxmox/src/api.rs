//! What an endpoint is made of: a route with its parameters and permission, the call it receives, the answer or
//! refusal it gives. Nothing here knows HTTP, and nothing here knows a single endpoint.

pub mod answer;
pub mod args;
pub mod call;
pub mod check;
pub mod format;
pub mod param;
pub mod permission;
pub mod property;
pub mod route;
pub mod router;

pub use answer::{Answer, Refusal, forbidden, fuse, no, wrong, wrong_many};
pub use args::{Arg, Args};
pub use call::{Call, Caller, Effects, NO_WORKER};
pub use param::{Param, array, flag, int, number, text};
pub use permission::{Check, Perm};
pub use property::{Properties, PropertyString};
pub use route::{Reply, Route, delete, get, post, put};
