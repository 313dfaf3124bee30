//! What the real `talosctl` made, against what is made here.

mod golden;
mod node;
mod patches;
mod secrets;
mod talosctl;
mod world;
