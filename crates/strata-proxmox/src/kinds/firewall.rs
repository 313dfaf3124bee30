//! The firewall of the whole datacenter.

use strata_resource::kind;

use super::shared::{ADOPT, DATACENTER, NO_MARK};

kind! {
    /// The firewall of the whole datacenter: options and rules.
    "firewall" {
        called: "firewall of the datacenter",
        identity: &["firewall"],
        proof: NO_MARK,
        shares: &[ADOPT],
        ..DATACENTER
    }
    /// `datacenter`
    "firewall": Text => InPlace;
    /// it is on
    "options.enable": Bool => InPlace [off_by_default];
    /// what happens to incoming traffic that no rule speaks of
    "options.policy_in": Text => InPlace [default_text("DROP")];
    /// what happens to outgoing traffic that no rule speaks of
    "options.policy_out": Text => InPlace [default_text("ACCEPT")];
    /// rules in their order
    "rules": List => InPlace;
}
