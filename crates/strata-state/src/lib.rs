//! The state document and its stores: locks, history, journal.
