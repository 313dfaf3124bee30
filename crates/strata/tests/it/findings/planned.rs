//! What the plan did not say, or said wrongly.
