//! Secrets that were printed or stored, and files that hold them.
