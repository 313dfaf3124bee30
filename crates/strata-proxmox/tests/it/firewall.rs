//! The firewall of a guest.
