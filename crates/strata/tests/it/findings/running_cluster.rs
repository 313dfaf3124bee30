//! Changes that would break a running cluster.
