//! Cases made on the spot by a real `talosctl`.
