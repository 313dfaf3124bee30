//! What the real `talosctl` made, against what is made here.

mod golden;
mod node;
mod talosctl;
mod world;
