//! Writes after a lease has lapsed, and records that a run needs after it died.
