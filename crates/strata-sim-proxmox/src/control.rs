//! Someone else's changes: any call of the API as any user, and what only a shell on a node could do.

pub mod call;
pub mod shell;
