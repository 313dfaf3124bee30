//! Lines of /etc/hosts.

use std::fmt::Write as _;

use crate::host::Inventory;

/// One line for each address.
pub fn render(inventory: &Inventory) -> String {
    let mut text = String::new();
    for host in &inventory.hosts {
        for address in &host.addresses {
            let _ = writeln!(text, "{address} {}", host.name);
        }
    }
    text
}
