//! What the real `talosctl` made, against what is made here; and the API client, against a node made for it.

mod api;
mod golden;
mod node;
mod patches;
mod secrets;
mod talosctl;
mod world;
