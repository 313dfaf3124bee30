//! A configuration of OpenSSH: `ssh -F FILE NAME`.

use std::fmt::Write as _;

use crate::host::Inventory;

/// One block for each host with an address.
pub fn render(inventory: &Inventory) -> String {
    let mut text = String::new();
    for host in &inventory.hosts {
        let Some(address) = host.address else { continue };
        let _ = writeln!(text, "Host {}\n    HostName {address}", host.name);
        if let Some(user) = host.user.as_deref().filter(|user| is_plain(user)) {
            let _ = writeln!(text, "    User {user}");
        }
        // Keys belong to machines, and addresses are given to others.
        let _ = writeln!(text, "    HostKeyAlias {}\n", host.name);
    }
    text
}

/// What ssh takes as one word, and expands nothing of.
fn is_plain(user: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
    !user.starts_with('-') && user.chars().all(allowed)
}
