//! A host itself: its settings and its firewall.

use strata_yaml::{Spanned, record};

use crate::value::address::{Ip, Mac};

record! {
    /// How a host is woken up by others.
    pub struct WakeOnLan [shorthand("mac")] {
        /// the hardware address of its card
        "mac" mac: Mac;
        /// the interface that the others send from
        "interface" interface: Option<String>;
        /// the address that they send to
        "broadcast" broadcast: Option<Ip>;
    }
}

record! {
    /// A host.
    pub struct Host {
        /// its notes
        "notes" notes: Option<String> [env()];
        /// how many seconds pass before its first guest is started with it
        "startDelay" start_delay: Option<u32> [range(0, 300)];
        /// how many percent of its memory guests with ballooning may fill; otherwise 80
        "ballooningTarget" ballooning_target: Option<u32> [range(0, 100)];
        /// how it is woken up by others
        "wakeOnLan" wake_on_lan: Option<WakeOnLan>;
    }
}
