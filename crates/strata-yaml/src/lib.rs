//! Parser events to a spanned tree; a decoder that gathers all errors; comment-keeping edits.
