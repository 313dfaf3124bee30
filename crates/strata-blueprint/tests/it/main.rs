//! What of the source reaches the resources.

mod readers;
