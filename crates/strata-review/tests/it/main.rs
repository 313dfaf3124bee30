//! What a commit range can change: checked against what is drawn, and in real clones.

#![allow(clippy::unwrap_used)]

mod clones;
mod comments;
mod drawn;
mod rules;
mod seals;
mod walk;
