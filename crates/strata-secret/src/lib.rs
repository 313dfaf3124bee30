//! The Secret type and keyed digests; used by resource, state, engine and strata-secrets.
