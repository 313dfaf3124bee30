//! Changes that would break a running cluster, and keys that two clusters would share.

mod fields;
mod keys;
mod rollout;
mod validated;
