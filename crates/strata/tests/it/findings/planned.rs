//! What the plan did not say, or said wrongly.

mod removed_stack;
