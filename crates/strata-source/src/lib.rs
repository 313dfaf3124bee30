//! The repository's files as typed values; overlays; cross-file checks; JSON Schema; the import formats.
