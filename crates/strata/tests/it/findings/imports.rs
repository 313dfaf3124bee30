//! What import and sync lost without a word.
