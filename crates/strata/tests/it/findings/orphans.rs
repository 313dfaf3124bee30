//! Absence and effect: what a refusal, a missing privilege or a forgotten task must not be taken for.

mod absence;
mod effect;
mod leftovers;
mod written;

pub(crate) use self::leftovers::unlock_as_told;
