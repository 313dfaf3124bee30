//! What the plan did not say, or said wrongly.

mod detached;
mod orphans;
mod removed_stack;
mod replaced;
mod reported;
